/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One attempt on several servers that know nothing of each other: the answers of each server, and what follows for the
 * attempt.
 *
 * Q1  The attempt owns while a majority of the servers is certain: each from the sending of the last question that the
 *     server has answered "owned", for 0.8 of the lease.
 * Q2  Turns are taken in the queue of one server, the first; ownership needs a majority.
 * Q3  An attempt that has the first server, and not the majority, gives all back after a while.
 * Q5  A renewal goes only to a server that is certain at the sending; any other server gets a try.
 * Q6  The token of a hold is above all that were handed out before: of m servers that own, it is the
 *     (m - K + 1)-th highest of their tokens (K: the majority).  It is firm, and may be handed out, once a majority has
 *     it or a higher one.  A token that is DM_QUORUM_AHEAD_US ahead of the clock that K servers have reached is not
 *     believed, and is neither.
 * Q8  The death of an earlier owner is reported if one server of the majority reports it; a refusal needs as many
 *     servers as can keep the others from a majority.
 *
 * A question belongs to a round.  The release of what the attempt had ends the round, and answers to questions of
 * earlier rounds no longer count, because the release follows these questions on the same connection.
 *
 * Pure, like core/hold.h: no clock, socket, thread or lock; the caller serialises the calls about an attempt.
 */
#ifndef DM_CORE_QUORUM_H
#define DM_CORE_QUORUM_H

#include <stdbool.h>
#include <stdint.h>

#include "core/answer.h"

#define DM_QUORUM_MOST 7

/* A day, so that a clock which is set to local time instead of UTC is near enough. */
#define DM_QUORUM_AHEAD_US (INT64_C(24) * 3600 * 1000000)

enum dm_quorum_question {
    DM_QUORUM_NONE,
    DM_QUORUM_TRY,   /* own the lock, or get BUSY */
    DM_QUORUM_QUEUE, /* own the lock, or wait in the queue */
    DM_QUORUM_RENEW,
    DM_QUORUM_RELEASE
};

/* Which servers a round asks for ownership. */
enum dm_quorum_manner {
    DM_QUORUM_DASH,    /* all at once, as if nobody waited */
    DM_QUORUM_TURN,    /* only the first server's queue */
    DM_QUORUM_CONFIRM, /* the first server's queue, where it seems to be the attempt's turn, and all others */
    DM_QUORUM_PASS     /* the same, but the others are enough: the attempt passes a holder without a majority */
};

enum dm_quorum_step {
    DM_QUORUM_OPEN,    /* answers are to come */
    DM_QUORUM_OWNED,   /* the attempt owns */
    DM_QUORUM_QUEUED,  /* the attempt waits at the first server: give the others back */
    DM_QUORUM_MORE,    /* the attempt has the first server, but no majority yet: dm_quorum_ask_more() */
    DM_QUORUM_BEHIND,  /* others come first: give all back, then wait for a turn */
    DM_QUORUM_REFUSED, /* give all back; dm_quorum_refusal() says why */
    DM_QUORUM_SILENT   /* fewer servers than a majority have answered: give all back */
};

/* What the attempt knows of one server. */
struct dm_leg {
    int64_t from_ns;    /* the sending of the last question that was answered "owned"; 0: the server is not certain */
    int64_t lost_ns;    /* of the last one that was answered otherwise: "owned" to an earlier one means nothing */
    uint64_t token;     /* the server's, which gives only higher ones from now on */
    int64_t ahead_us;   /* how far the server's clock is ahead of ours */
    bool has_clock;     /* ahead_us is known */
    bool is_owner_dead; /* the server reports a death */
    bool is_touched;    /* the server may have the attempt, as owner or in the queue */
    bool had_hold;      /* when a release began */

    /* Of the round. */
    bool is_asked, is_open; /* a question was sent; its answer is still to come */
    bool is_late;           /* open, but no longer waited for */
    uint8_t agains;         /* how often the server has done nothing, and was asked again */
    struct dm_answer said;  /* NOTHING: no answer */
};

struct dm_quorum {
    int count; /* servers */
    uint32_t lease_ms;
    uint64_t round;
    enum dm_quorum_manner manner;
    bool may_queue;
    int first;      /* the server where turns are taken */
    bool is_owned;  /* the attempt has become the owner in this round */
    uint64_t token; /* of the hold, set by dm_quorum_settle_token(); 0: not settled */
    struct dm_leg legs[DM_QUORUM_MOST];
};

/* Rounds are numbered from `round` on; an attempt that comes back must not repeat numbers. */
void dm_quorum_init(struct dm_quorum *quorum, int count, uint32_t lease_ms, uint64_t round);

/* ---- asking ------------------------------------------------------------------------------ */

/* Begins a round; what the attempt has on the servers stays. */
void dm_quorum_begin(struct dm_quorum *quorum, enum dm_quorum_manner manner, bool may_queue, int first);

/* The question that the round has for a server now; NONE: none, or the answer is still to come. */
enum dm_quorum_question dm_quorum_ask(const struct dm_quorum *quorum, int server, int64_t now_ns);

/* The same for the renewal of a hold (Q5). */
enum dm_quorum_question dm_quorum_renewal(const struct dm_quorum *quorum, int server, int64_t now_ns);

/* The question is being sent. */
void dm_quorum_send(struct dm_quorum *quorum, int server, enum dm_quorum_question question);

/*
 * A new server grants nothing for a lease, its grace.  If it answers "owned" to a try then, that comes from a copy of
 * the data, which may be older than the attempt's own release: the answer becomes BUSY.  To the answer that a hold is
 * unknown, the rest of the grace is added, during which the server stays as certain as it was.
 */
void dm_quorum_doubt(const struct dm_quorum *quorum, enum dm_quorum_question question, struct dm_answer *answer);

/*
 * Takes the answer to a question of this round that was sent at `sent_ns`; NULL: no answer will come.  An answer to a
 * renewal has the token that the renewal carried.  The caller drops answers to questions of other rounds, and to those
 * not announced by dm_quorum_send().
 */
void dm_quorum_take(struct dm_quorum *quorum, int server, enum dm_quorum_question question, int64_t sent_ns,
                    const struct dm_answer *answer);

/* The server says that it has broken the attempt's hold. */
void dm_quorum_lose(struct dm_quorum *quorum, int server, int64_t now_ns);

/* Lets the servers that are not certain be asked again in this round. */
void dm_quorum_ask_more(struct dm_quorum *quorum, int64_t now_ns);

/*
 * Stops waiting for the servers that are still silent, if a majority has answered: those decide.  For the first server
 * only if is_first; then a turn does not wait for it, even without a majority.  Late answers count if they come.
 */
void dm_quorum_mark_late(struct dm_quorum *quorum, bool is_first, int64_t now_ns);

/*
 * What follows from the answers so far. is_patient: waiting for the first server's answer is worthwhile, because it
 * shows whether others wait.
 */
enum dm_quorum_step dm_quorum_step(struct dm_quorum *quorum, bool is_patient, int64_t now_ns);

/* The answer for the caller that says why the servers refuse. */
struct dm_answer dm_quorum_refusal(const struct dm_quorum *quorum);

/* ---- tokens (Q6) ------------------------------------------------------------------------- */

/*
 * Decides the token of the hold, if that is possible yet; it stays until the end of the hold.  The more servers have
 * answered, the fewer of them can raise the token.  So this is called as late as possible: before the first renewal,
 * which carries the token to the servers.
 */
void dm_quorum_settle_token(struct dm_quorum *quorum, int64_t now_ns);

/*
 * The token that questions about the hold carry to the servers: the settled one, or else the lowest that a server gave,
 * which changes nothing on an honest server.  Never 0.
 */
uint64_t dm_quorum_token(const struct dm_quorum *quorum);

/* ---- giving back ------------------------------------------------------------------------- */

/* Begins the release of all that the attempt has, by a RELEASE to each touched server except `kept` (-1: to all). */
void dm_quorum_begin_release(struct dm_quorum *quorum, int kept);

/*
 * If only a minority of the servers has not done the release yet, because they are silent or refuse, nobody waits for
 * them any more.  On a server that has missed the release, the lease ends the hold, and a waiter that never asks again
 * leaves the queue.
 */
void dm_quorum_leave_silent(struct dm_quorum *quorum);

/*
 * The result so far.  NOTHING: none yet, or, if no question is open, not known.  is_all: every server that may have the
 * attempt must answer, unless it was left; otherwise a majority is enough.
 */
enum dm_verdict dm_quorum_released(const struct dm_quorum *quorum, bool is_all);

/* ---- questions --------------------------------------------------------------------------- */

/* True while an answer of this round is still to come, from this server or (-1) from any. */
bool dm_quorum_is_open(const struct dm_quorum *quorum, int server);

/* From when the lease of the hold counts: the latest moment that a majority has reached; 0: none. */
int64_t dm_quorum_from_ns(const struct dm_quorum *quorum);

/* True if the majority is certain now. */
bool dm_quorum_is_certain(const struct dm_quorum *quorum, int64_t now_ns);

/* True if open answers may still make a majority; a server that has reported a loss since `owned_ns` does not count. */
bool dm_quorum_may_be_certain(const struct dm_quorum *quorum, int64_t owned_ns, int64_t now_ns);

/* The answer about a hold: OWNED, or UNKNOWN. */
struct dm_answer dm_quorum_hold(const struct dm_quorum *quorum, int64_t now_ns);

#endif
