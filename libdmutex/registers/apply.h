/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The lock protocol of one name: pure steps on its value.
 *
 * dm_reg_apply() does a step to a decoded value and says what is true afterwards.  Nothing is true before the swap of
 * the new value is DONE: after a conflict the caller decodes the newer value and does the step again.  If is_changed is
 * false, there is nothing to swap, and the answer is true of the value as it was read.
 *
 * A step whose swap had no answer may be repeated: done twice, it leads to the same value as once.  Only FORCE of
 * nobody in particular breaks the next hold, too; and a repeated SIGNAL may wake one more.
 *
 * The rules N, C and D that comments cite are in doc/design/registers.md.
 */
#ifndef DM_REGISTERS_APPLY_H
#define DM_REGISTERS_APPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/answer.h"
#include "core/hold.h"
#include "registers/value.h"

/* Who: an attempt of a thread, in a session. */
struct dm_reg_ref {
    struct dm_reg_session_id session;
    uint64_t thread; /* for people; never compared */
    uint64_t attempt;
};

/* The verdicts of a step's answer, beside REFUSED, with a reason, and NO_MEMORY, here, not in the store. */
enum dm_reg_act {
    DM_REG_ACQUIRE,     /* OWNED, QUEUED, FULL, NOT_RECOVERABLE; AGAIN: the session is not of this identity (S8, D4) */
    DM_REG_TRY,         /* OWNED, BUSY, NOT_RECOVERABLE; AGAIN */
    DM_REG_RELEASE,     /* DONE; NOT_OWNER: the attempt neither held, nor waited, nor slept */
    DM_REG_CANCEL,      /* OWNED, or DONE: the attempt no longer waits */
    DM_REG_CONSISTENT,  /* DONE; UNKNOWN: it does not hold the whole */
    DM_REG_FORCE,       /* DONE: `me` no longer holds; with attempt 0: nobody does */
    DM_REG_DROP,        /* DONE, BUSY */
    DM_REG_CLAIM,       /* OWNED; UNKNOWN: lost; AGAIN */
    DM_REG_MARK,        /* OWNED, with has_waiter; UNKNOWN */
    DM_REG_WAIT,        /* WAITING; OWNED or QUEUED if repeated; NOT_OWNER, FULL, NOT_RECOVERABLE; AGAIN */
    DM_REG_COND_CANCEL, /* OWNED, QUEUED, UNKNOWN, NOT_RECOVERABLE; is_signalled */
    DM_REG_SIGNAL,      /* DONE; upto, has_left */
    DM_REG_SERVE,       /* a poll: OWNED, QUEUED, WAITING, UNKNOWN, NOT_RECOVERABLE.  Attempt 0 waits for nothing */
    DM_REG_ACT_COUNT
};

enum dm_reg_mark { DM_REG_MARK_NONE, DM_REG_MARK_TELL, DM_REG_MARK_TELL_NO_DEATH };

/* A release that is done with the step, before it. */
struct dm_reg_owed {
    struct dm_reg_ref ref;
    enum dm_end end;
};

struct dm_reg_step {
    enum dm_reg_act act;
    struct dm_reg_ref me;

    enum dm_reg_kind kind;
    uint32_t capacity; /* 0: whatever the value says; a step with a weight knows it */
    uint32_t weight;   /* ACQUIRE, TRY, CLAIM: of the capacity; of a mutex 1 */

    bool is_robust;            /* ACQUIRE, TRY, CANCEL, CLAIM, WAIT, COND_CANCEL, SERVE */
    enum dm_reg_mark mark;     /* MARK; ACQUIRE and TRY: NO_DEATH counts as TELL, because a thread will be inside */
    enum dm_end end;           /* RELEASE, WAIT: how the hold ends */
    uint64_t arrival;          /* ACQUIRE: the place in the queue to come back to (N10); 0: none */
    uint64_t token;            /* CLAIM: of the hold */
    bool is_anonymous;         /* DROP: delete the key */
    struct dm_reg_ref leaving; /* WAIT: the hold that is given back; `me` is the attempt that sleeps */
    const char *condition;     /* WAIT, SIGNAL: the key of its binding */
    int most;                  /* SIGNAL: at most so many sleepers; INT_MAX for a broadcast in one swap */
    uint64_t upto; /* SIGNAL: only this sleeper and older ones; 0: all.  A repetition of a broadcast passes it on */

    /* What the process knows beside. */
    uint64_t identity; /* of the data that the value was read from; never 0 */
    uint64_t quiet_ms; /* of the mark, if it names this identity; else 0 (D2) */
    uint64_t seen;     /* the highest token of the name that the process has seen */
    int64_t clock_us;  /* the store's clock, or else our wall clock, since 1970; 0: none */
    const struct dm_reg_owed *owed;
    int owed_count;
    const struct dm_reg_session_id *dead; /* sessions that are known to be dead (S2) */
    int dead_count;
    /* For people: what sort of process `me` is, and the dead.  NULL: not known. */
    const char *label;
    const char *const *dead_labels;
    int64_t held_ms; /* RELEASE: how long the hold lasted; 0: the value tells */
    /* All attempts of this process about this name that are not over (N7).  NULL: not told. */
    const uint64_t *known;
    int known_count;
};

enum dm_reg_news {
    DM_REG_NEWS_GRANTED,   /* token, is_owner_dead, has_waiter */
    DM_REG_NEWS_SIGNALLED, /* position: from the condition to the queue */
    DM_REG_NEWS_WANTED,    /* to the holder: the queue has its first waiter, or somebody has tried */
    DM_REG_NEWS_LOST,      /* broken by force */
    DM_REG_NEWS_ASK        /* nobody can hold it any more: ask */
};

/* What another attempt is to be told, if the swap is DONE.  Any notice may get lost. */
struct dm_reg_notice {
    enum dm_reg_news news;
    struct dm_reg_session_id session;
    uint64_t attempt;
    uint64_t token;
    uint64_t position;
    bool is_owner_dead, has_waiter;
};

/*
 * Of the answer's fields a value knows these: token, is_owner_dead and has_waiter of OWNED; position and arrival of
 * QUEUED; remaining_ms, which is a whole lease of the holder, because only its session tells when that began; grace_ms
 * of BUSY, and remaining_ms of QUEUED in doubt (D1): what the mark still lacks.
 */
struct dm_reg_result {
    struct dm_answer answer;
    const char *reason; /* REFUSED: a sentence for people */
    bool is_changed;    /* swap the value; is_deleted: delete its key */
    bool is_deleted;
    bool is_signalled; /* COND_CANCEL: a signal came first */
    uint64_t upto;     /* SIGNAL: the newest sleeper of the first try; 0: nobody slept */
    bool has_left;     /* SIGNAL: some of them are still to be signalled */

    /* Set by the caller before: room for notices.  What does not fit is lost, and found by polls (N8). */
    struct dm_reg_notice *notices;
    int notice_room;
    int notice_count;
};

/*
 * `value` becomes the new value, except for its version, which the caller draws; it is tidy.  Where is_changed is
 * false, it is of no more use: another step begins with a value that is decoded anew.  ret_result->notices and
 * notice_room are the caller's; all other fields are set.
 */
void dm_reg_apply(struct dm_reg_name_value *value, const struct dm_reg_step *step, struct dm_reg_result *ret_result);

/* ---- looks, which change nothing ---------------------------------------------------------- */

enum dm_reg_place { DM_REG_NOWHERE, DM_REG_HOLDS, DM_REG_WAITS, DM_REG_SLEEPS };

/* Where an attempt is.  *ret_index, unless NOWHERE: in value->entries. */
enum dm_reg_place dm_reg_find(const struct dm_reg_name_value *value, const struct dm_reg_ref *ref, int *ret_index);

/* True if the value was settled in this identity: its holds and its health are believed (D1). */
bool dm_reg_is_settled(const struct dm_reg_name_value *value, uint64_t identity);

/* True if nobody holds, waits or sleeps, and the name is clean: after a week of that the key may be deleted (N6). */
bool dm_reg_is_idle(const struct dm_reg_name_value *value);

#endif
