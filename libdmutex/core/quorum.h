/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One attempt on several servers that know nothing of each other: the answers of each server, and the consequence for
 * the attempt.
 *
 * Q1  The attempt owns while a majority of the servers is certain: each from the sending of the last question that the
 *     server has answered "owned", for 0.8 of the lease.
 * Q2  Turns are taken in the queue of one server, the first; ownership is by the majority.
 * Q3  An attempt that has the first server, and not the majority, gives all back after a while.
 * Q5  A renewal goes only to a server that is certain at the sending; any other server gets a try.
 * Q6  The token of a hold is above all that were told before: of m servers that own, it is the (m - K + 1)-th highest
 *     of their tokens (K: the majority).  It is firm, and may be told, once a majority has it or a higher one.  A token
 *     that is DM_QUORUM_AHEAD_US ahead of the clock that K servers have reached is not believed, and is neither.
 * Q8  The death of an earlier owner is told if one server of the majority tells it; refusals need as many servers as
 *     keep the others from a majority.
 *
 * A question belongs to a round; the release of what the attempt had ends the round, and answers to questions of an
 * earlier round count no more, because the release goes behind these questions on the same connection.
 *
 * Pure, as core/hold.h: no clock, socket, thread or lock; the caller serialises the calls about an attempt.
 */
#ifndef DM_CORE_QUORUM_H
#define DM_CORE_QUORUM_H

#include <stdbool.h>
#include <stdint.h>

#include "core/answer.h"

#define DM_QUORUM_MOST 7

/* A day, so that a clock which shows the local time for UTC is near enough. */
#define DM_QUORUM_AHEAD_US (INT64_C(24) * 3600 * 1000000)

enum dm_quorum_question {
    DM_QUORUM_NONE,
    DM_QUORUM_TRY,   /* own, or be busy */
    DM_QUORUM_QUEUE, /* own, or wait in the queue */
    DM_QUORUM_RENEW,
    DM_QUORUM_RELEASE
};

/* The servers that a round asks to own. */
enum dm_quorum_manner {
    DM_QUORUM_DASH,    /* all at once, as if nobody waited */
    DM_QUORUM_TURN,    /* the first server's queue alone */
    DM_QUORUM_CONFIRM, /* the first server's queue, where the attempt seems to have had its turn, and all others */
    DM_QUORUM_PASS     /* the same, and the others are enough: the attempt passes a holder without a majority */
};

enum dm_quorum_step {
    DM_QUORUM_OPEN,    /* answers are to come */
    DM_QUORUM_OWNED,   /* the attempt owns */
    DM_QUORUM_QUEUED,  /* the attempt waits at the first server: give the others back */
    DM_QUORUM_MORE,    /* the first server is the attempt's, and the majority is not yet: dm_quorum_ask_more() */
    DM_QUORUM_BEHIND,  /* others come first: give all back, then take a turn */
    DM_QUORUM_REFUSED, /* give all back; dm_quorum_refusal() says why */
    DM_QUORUM_SILENT   /* fewer servers than a majority have answered: give all back */
};

/* A server, as far as the attempt is concerned. */
struct dm_leg {
    int64_t from_ns;    /* the sending of the last question that was answered "owned"; 0: the server is not certain */
    int64_t lost_ns;    /* of the last question that was answered otherwise: "owned" to an earlier one is no news */
    uint64_t token;     /* the server's; it gives no token up to this one again */
    int64_t ahead_us;   /* the server's clock, as far as it is ahead of ours */
    bool has_clock;     /* it has told its clock */
    bool is_owner_dead; /* the server tells a death */
    bool is_touched;    /* the server may have the attempt, in the lock or in the queue */
    bool had_hold;      /* when a release began */

    /* Of the round. */
    bool is_asked, is_open; /* a question went out; its answer is to come */
    bool is_late;           /* open, and not waited for any more */
    uint8_t agains;         /* so often the server has done nothing, and was asked once more */
    struct dm_answer said;  /* NOTHING: no answer */
};

struct dm_quorum {
    int count; /* servers */
    uint32_t lease_ms;
    uint64_t round;
    enum dm_quorum_manner manner;
    bool may_queue;
    int first;      /* the server where turns are taken */
    bool is_owned;  /* the attempt has come to own in this round */
    uint64_t token; /* of the hold, by dm_quorum_settle_token(); 0: not settled */
    struct dm_leg legs[DM_QUORUM_MOST];
};

/* Rounds are numbered from `round` on; an attempt that comes again must not have the numbers of before. */
void dm_quorum_init(struct dm_quorum *quorum, int count, uint32_t lease_ms, uint64_t round);

/* So many servers are a majority. */
int dm_quorum_majority(const struct dm_quorum *quorum);

/* ---- asking ------------------------------------------------------------------------------ */

/* A round begins; what the attempt has on the servers stays. */
void dm_quorum_begin(struct dm_quorum *quorum, enum dm_quorum_manner manner, bool may_queue, int first);

/* The question that the round has for a server now; NONE: none, or the answer is to come. */
enum dm_quorum_question dm_quorum_ask(const struct dm_quorum *quorum, int server, int64_t now_ns);

/* The same for the renewal of a hold (Q5). */
enum dm_quorum_question dm_quorum_renewal(const struct dm_quorum *quorum, int server, int64_t now_ns);

/* The question goes out. */
void dm_quorum_send(struct dm_quorum *quorum, int server, enum dm_quorum_question question);

/*
 * A server that is new grants nothing for a lease, its grace.  "Owned" to a try is by a copy of the data then, which
 * may be older than the attempt's own release: the answer becomes BUSY.  The answer about a hold that the server has
 * lost gets the rest of the grace, in which the server stays as certain as it was.
 */
void dm_quorum_doubt(const struct dm_quorum *quorum, enum dm_quorum_question question, struct dm_answer *answer);

/*
 * The answer to a question of this round that was sent then; NULL: no answer will come.  An answer to a renewal has the
 * token that the renewal carried.  The caller leaves out an answer to a question of another round, or to one that was
 * not sent by dm_quorum_send().
 */
void dm_quorum_take(struct dm_quorum *quorum, int server, enum dm_quorum_question question, int64_t sent_ns,
                    const struct dm_answer *answer);

/* The server says that the attempt's hold was broken there. */
void dm_quorum_lose(struct dm_quorum *quorum, int server, int64_t now_ns);

/* The servers that are not certain are to be asked once more in this round. */
void dm_quorum_ask_more(struct dm_quorum *quorum, int64_t now_ns);

/*
 * Nobody waits any more for the servers that are still silent, if a majority has answered: these decide.  For the first
 * server only if is_first; a turn does not wait for it then, whoever has answered.  Late answers count if they come.
 */
void dm_quorum_mark_late(struct dm_quorum *quorum, bool is_first, int64_t now_ns);

/*
 * The consequence of the answers so far.  is_patient: the answer of the first server is worth waiting for, because it
 * tells whether others wait.
 */
enum dm_quorum_step dm_quorum_step(struct dm_quorum *quorum, bool is_patient, int64_t now_ns);

/* Why the servers refuse: the answer for the caller. */
struct dm_answer dm_quorum_refusal(const struct dm_quorum *quorum);

/* ---- tokens (Q6) ------------------------------------------------------------------------- */

/*
 * Decides the token of the hold, if that is possible by now; it stays until the end of the hold.  The more servers have
 * answered, the fewer of them can raise the token; so this comes as late as possible, ahead of the first renewal, which
 * carries the token to the servers.
 */
void dm_quorum_settle_token(struct dm_quorum *quorum, int64_t now_ns);

/*
 * The token that questions about the hold carry to the servers: the settled one, or the lowest of a server, which is no
 * news to an honest server.  Never 0.
 */
uint64_t dm_quorum_token(const struct dm_quorum *quorum);

/* ---- giving back ------------------------------------------------------------------------- */

/*
 * The release of all that the attempt has on the servers begins, by RELEASE to each touched server; `kept`: not on this
 * server; -1: on all.
 */
void dm_quorum_begin_release(struct dm_quorum *quorum, int kept);

/*
 * If only a minority of the servers has not answered the release yet, nobody waits for them any more.  On a server that
 * has missed the release, the lease ends the hold, and a waiter that never asks again leaves the queue.
 */
void dm_quorum_leave_silent(struct dm_quorum *quorum);

/*
 * The answer to the caller as of now.  NOTHING: not yet, or, with no question open, not known.  is_all: every server
 * has to answer that may have the attempt, unless it was left; else a majority is enough.
 */
enum dm_verdict dm_quorum_released(const struct dm_quorum *quorum, bool is_all);

/* ---- questions --------------------------------------------------------------------------- */

/* True while an answer of this round is to come, from this server or (-1) from any. */
bool dm_quorum_is_open(const struct dm_quorum *quorum, int server);

/* The moment from which the lease of the hold counts: the majority's latest; 0: there is none. */
int64_t dm_quorum_from_ns(const struct dm_quorum *quorum);

/* True if the majority is certain now. */
bool dm_quorum_is_certain(const struct dm_quorum *quorum, int64_t now_ns);

/* True if answers to come may make a majority; not of a server that has told a loss since `owned_ns`. */
bool dm_quorum_may_be_certain(const struct dm_quorum *quorum, int64_t owned_ns, int64_t now_ns);

/* The answer about a hold: OWNED, or UNKNOWN. */
struct dm_answer dm_quorum_hold(const struct dm_quorum *quorum, int64_t now_ns);

#endif
