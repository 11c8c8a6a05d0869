/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One operation on one name: read the value, apply the step, swap the value, and again if somebody else was faster.
 *
 * Pure: what the step does is apply.h's business, and how requests travel is the store's.  Errands about one name run
 * one at a time, so at most one swap of a name is under way in a process.
 *
 *      READ --> APPLY --writes--> SWAP --done--> SETTLED
 *       ^         |                 |
 *       |         +--nothing to write, and read just now--> SETTLED
 *       +---------------- conflict, perhaps after a pause; no answer
 *
 * N5. A swap without an answer was executed, never is, or comes late.  Only a later swap of the same key, known to be
 *     done, settles that: the value has another version then, and the late swap does not fit.  Looking settles nothing.
 *     So an errand after which its attempt is over writes, even if there is nothing to undo, while a swap of the name
 *     is unsettled.  Where none is, an attempt that the value does not name owes nothing, if the value was read just
 *     now.
 * V6. After a conflict, whoever wants to join the queue pauses for a random time, which grows with the conflicts; who
 *     releases, waits or ends something never does.
 * V9. While nobody waits, a process that releases and locks again as fast as it can would win against all others, since
 *     it knows each value first.  So whoever is refused by such a value uses the newer one at once, most times, and
 *     knocks from its second swap on.  A release after which nobody holds listens; if it hears somebody, its process
 *     lets the others go first, and locks again after some round trips.
 * D3. What is unsettled in the data of one identity is forgotten with them.
 */
#ifndef DM_REGISTERS_ERRAND_H
#define DM_REGISTERS_ERRAND_H

#include <stdbool.h>
#include <stdint.h>

/* What this process knows about one name, beside the bytes of its copy. */
struct dm_reg_copy {
    bool is_known;     /* there is a copy; perhaps it is old */
    bool is_old;       /* somebody has told us of a swap since */
    bool is_unsettled; /* a swap of ours may come late (N5) */
    int64_t yields_ns; /* until when others join the queue before us (V9) */
};

enum dm_reg_errand_want {
    DM_REG_ERRAND_READ,
    DM_REG_ERRAND_APPLY, /* apply the step to the copy, then dm_reg_errand_applied() */
    DM_REG_ERRAND_SWAP,
    DM_REG_ERRAND_WAIT,   /* until dm_reg_errand_due_ns(), or for the answer to the request under way */
    DM_REG_ERRAND_SETTLED /* the answer of the last apply() is the answer */
};

struct dm_reg_errand {
    bool may_pause; /* it wants to join the queue */
    bool is_next;   /* nobody waits in the value that it swaps, and the store has doors; set with the step (V9) */
    bool is_read;   /* the copy was read, or brought by a conflict, since the errand began */
    bool is_under_way;
    enum dm_reg_errand_want want;
    unsigned conflicts;
    int64_t due_ns;
};

enum dm_reg_errand_event {
    DM_REG_ERRAND_EV_DONE,     /* the swap has taken effect: the copy is the new value */
    DM_REG_ERRAND_EV_KNOCKED,  /* the same, and others want to swap the name, and cannot */
    DM_REG_ERRAND_EV_READ,     /* the copy is the value that was read */
    DM_REG_ERRAND_EV_BROUGHT,  /* the swap was refused, and the copy is the newer value that came with the refusal */
    DM_REG_ERRAND_EV_RESERVED, /* the same, and nobody else swaps while we do not pause */
    DM_REG_ERRAND_EV_CONFLICT, /* the swap was refused, and the newer value is not known */
    DM_REG_ERRAND_EV_UNKNOWN   /* no answer */
};

/* The longest pause, in round trips. */
#define DM_REG_PAUSE_MOST 32

/* must_read: the answer is about the present, so a copy does not do. */
void dm_reg_errand_init(struct dm_reg_errand *errand, const struct dm_reg_copy *copy, bool may_pause, bool must_read);

enum dm_reg_errand_want dm_reg_errand_wants(const struct dm_reg_errand *errand, int64_t now_ns);

/* Whether the swap that is wanted is one of those that are refused again and again (V9). */
bool dm_reg_errand_knocks(const struct dm_reg_errand *errand);

/* When it goes on by itself; DM_NEVER: after an answer, or never. */
int64_t dm_reg_errand_due_ns(const struct dm_reg_errand *errand);

/*
 * The step has been applied to the copy.  `writes`: there is a new value.  `is_over`: so is the attempt, by the answer:
 * it neither holds nor waits.
 */
void dm_reg_errand_applied(struct dm_reg_errand *errand, const struct dm_reg_copy *copy, bool writes, bool is_over);

/* The wanted read or swap is sent. */
void dm_reg_errand_send(struct dm_reg_errand *errand);

/* `round_trip_ns`: how long an answer usually takes; `random`: any word. */
void dm_reg_errand_step(struct dm_reg_errand *errand, struct dm_reg_copy *copy, enum dm_reg_errand_event event,
                        int64_t now_ns, int64_t round_trip_ns, uint64_t random);

/* The store refuses, for whatever reason: reads again, not before that moment. */
void dm_reg_errand_refused(struct dm_reg_errand *errand, int64_t again_ns);

/* D3: the store has other data. */
void dm_reg_copy_forget(struct dm_reg_copy *copy);

#endif
