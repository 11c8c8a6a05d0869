/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One attempt of one thread to hold one name: the whole life, from the first request until the store has confirmed the
 * release.
 *
 * Pure: step(hold, event, now) changes the hold, and dm_hold_wants() names the next thing to do for the hold.  No
 * clock, socket, thread or lock is seen here; the caller serialises the steps of a hold.  Only core/ writes the fields.
 *
 *      ASKING --answer--> QUEUED --grant--> HELD --deadline, told--> LOST
 *        ^  |              |  ^             ^  |                       |
 *        |  |              |  | signal      |  +----- given back ------+--> RETURNING --answer, lease over--> OVER
 *        |  +---answer--> WAITING     stays |  | leaves                            ^
 *        +--unknown, hint--+                LEAVING --the store ended the hold-----|--------------------------> OVER
 *
 * A hold that no thread is inside is HELD, not entered and not attended: the process keeps the lease for its threads
 * (core/tenure.h), and the end of such a hold is nobody's loss.
 *
 * An attempt that waits on a condition is WAITING until a signal puts the attempt into the mutex's queue.  The hold
 * that the thread gives up for the wait is LEAVING while the store is asked to do both.  From any phase the thread may
 * give back; a refusal ends an attempt that asks or waits.
 *
 * Certainty (I1).  A hold is certain until `certain_until_ns` = the sending of a request that was answered "owned",
 * plus 0.8 of the lease in the request; the store's lease began no earlier.  A grant message counts from the sending of
 * the request that the message names, for the same reason.  A message that names a request which is not remembered, or
 * is read too late, is only a hint: ask again.  A store of several servers knows the moments at which each of them
 * confirmed the hold, and tells from when the lease counts: from_ns of the answer, maybe earlier than before.
 *
 * Release (I4).  A release goes out behind all other requests of the attempt: not while the thread's question is under
 * way, and not before the application has been told of a loss.  A release is repeated until the store has answered, or
 * the lease has ended the hold.
 */
#ifndef DM_CORE_HOLD_H
#define DM_CORE_HOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "core/answer.h"

#define DM_LEASE_DEFAULT_MS 10000
#define DM_LEASE_MIN_MS 100
#define DM_LEASE_MAX_MS 3600000
#define DM_DEPTH_MAX 65535

/* Local holds per token of the store: a fencing token is the store's token times this number, plus a number. */
#define DM_TOKEN_SHIFT 12

/*
 * Tokens of the store begin as the microseconds of the store's clock since this moment: 2020-01-01T00:00:00Z, in us
 * since 1970.
 */
#define DM_TOKEN_EPOCH_US INT64_C(1577836800000000)

/* Tokens that a store can have given are below this limit; any other token is refused where the token is read. */
#define DM_TOKEN_LIMIT (UINT64_C(1) << (64 - DM_TOKEN_SHIFT))

/* Requests go out every third of a lease: four requests cover all certainty that can still hold. */
#define DM_REQUESTS_REMEMBERED 4

enum dm_phase {
    DM_ASKING,    /* the thread is to ask the store, or to ask again */
    DM_WAITING,   /* waits on a condition */
    DM_QUEUED,    /* waits in the store's queue */
    DM_HELD,      /* owns the lock while now < certain_until_ns */
    DM_LEAVING,   /* HELD, and a wait on a condition asks the store to end the hold: not renewed */
    DM_LOST,      /* owned before, not any more; the thread has not acknowledged the loss yet */
    DM_RETURNING, /* given back by the thread; the store has not confirmed the release */
    DM_OVER       /* the store has nothing of the attempt; no message makes the attempt hold again (I4) */
};

/* How a hold ends. */
enum dm_end { DM_END_UNLOCKED, DM_END_DIED, DM_END_NOT_RECOVERABLE };

struct dm_request {
    uint64_t serial; /* 1, 2, 3 ... within the attempt; 0: none */
    int64_t sent_ns;
};

/* The release of a hold: LOST or RETURNING. */
struct dm_giving_back {
    bool is_pending; /* the store has not confirmed the release */
    bool is_named;   /* an acquire has had the store release the hold, maybe before the hold's own release */
    enum dm_end end;
    int64_t held_ms; /* since the grant; 0: none was */
    unsigned sends;
    int64_t due_ns;   /* when to send (again); DM_NEVER while the release is on the way */
    int64_t until_ns; /* when the lease has ended the hold */
};

struct dm_hold {
    /* Set by dm_hold_init(), then constant. */
    uint64_t thread;
    uint32_t lease_ms;
    uint32_t maxhold_ms;
    bool is_robust;

    uint64_t serial; /* changes when the store has forgotten the attempt */
    enum dm_phase phase;
    enum dm_verdict refusal; /* OVER, or RETURNING: the reason of the refusal */
    uint64_t arrival;        /* the place in the queue that the store gave, 0 none */
    struct dm_request requests[DM_REQUESTS_REMEMBERED];
    uint64_t last_request;
    int64_t poll_ns; /* WAITING, QUEUED: when to poll; DM_NEVER while a poll is on the way */

    bool is_attended; /* the thread is in a call about the attempt: news wake the thread, and the record stays */
    bool is_asked;    /* the thread's question is under way: a release would overtake the question */
    bool is_entered;  /* the thread has returned from lock: a loss must be told */
    bool is_untold;   /* the application is to be told of the loss */
    bool is_wanted;   /* HELD: another attempt waits at the store, as far as the store has told */
    bool is_marked;   /* the store is to tell of waiters: renewals say so */
    uint8_t agains;   /* counts the answers AGAIN, up to the pause */

    /* From HELD on. */
    bool is_owner_dead; /* EOWNERDEAD is to be told, or was and is not mended yet */
    bool is_token_soft; /* the token is not to be told: a renewal decides it */
    unsigned depth;
    uint64_t token;  /* the store's */
    uint64_t server; /* the server that confirmed the hold last, as the caller counts servers */
    int64_t granted_ns;
    int64_t certain_until_ns;
    int64_t hold_ends_ns; /* max-hold, once is_entered */
    int64_t renew_ns;     /* when to renew; DM_NEVER while a renewal is on the way */
    int64_t look_ns;      /* when to look whether the hold is idle; DM_NEVER: not to be looked at */
    struct dm_giving_back back;
};

enum dm_event_kind {
    /* Answers; `request`, `answer` and `server`. */
    DM_EV_ANSWER,            /* to the thread's question; NOTHING: no answer, or an answer without news */
    DM_EV_POLLED,            /* to a poll */
    DM_EV_RENEWED,           /* to a renewal: OWNED, UNKNOWN; AGAIN or any other: no answer */
    DM_EV_RENEWED_BY_THREAD, /* the same, to the renewal of dm_hold_ask() */
    DM_EV_RELEASED,          /* to a release: DONE, NOT_OWNER; AGAIN or any other: no answer */

    /* Messages. */
    DM_EV_GRANTED,   /* `request`, `answer` (token, is_owner_dead) and `server` */
    DM_EV_SIGNALLED, /* from the condition to the queue; `answer` (position, remaining) */
    DM_EV_TOLD_LOST, /* the lock was broken by force */
    DM_EV_TOLD_ASK,  /* things may have changed, ask now */
    DM_EV_WANTED,    /* another attempt waits for the lock */

    /* The world. */
    DM_EV_CONNECTED,  /* the connection is there again: requests without an answer may not have arrived */
    DM_EV_SUBSCRIBED, /* the inbox is there again: messages may have been missed */
    DM_EV_TIME,       /* nothing but time has passed */
    DM_EV_NAMED,      /* an acquire goes out that names the release */
    DM_EV_TOLD,       /* the application has been told of the loss */

    /* The thread. */
    DM_EV_ENTERED,     /* returns from lock with the hold */
    DM_EV_LEFT,        /* has unlocked, and the process keeps the hold */
    DM_EV_MENDED,      /* has made the data consistent, and the store has noted so */
    DM_EV_LEAVE,       /* is about to give the hold back by a wait on a condition */
    DM_EV_STAY,        /* did not leave */
    DM_EV_GIVEN_BACK,  /* has no use for the attempt any more: the store is to be told; `end` */
    DM_EV_CLOSED,      /* is done with the attempt, and has nothing to tell the store */
    DM_EV_THREAD_ENDS, /* the thread ends: given back, a hold as a death */
    DM_EV_PROCESS_ENDS /* the same, by exit() in any thread: the thread may be in a call about the attempt */
};

struct dm_event {
    enum dm_event_kind kind;
    uint64_t request;
    const struct dm_answer *answer;
    uint64_t server;
    enum dm_end end;
};

/* Actions, a set.  The woken thread acts by the new phase. */
enum {
    DM_DO_WAKE = 1,      /* wake the attempt's thread, because the phase has changed */
    DM_DO_NEW_SERIAL = 2 /* the store has forgotten the attempt: dm_hold_rename() before the next request */
};

/* The things that a hold wants of the world; of two that are due, the first counts. */
enum dm_want {
    DM_WANTS_TELL,    /* tell the application of the loss, then DM_EV_TOLD */
    DM_WANTS_RELEASE, /* send the release */
    DM_WANTS_TIME,    /* DM_EV_TIME: the hold may be lost */
    DM_WANTS_RENEW,   /* send a renewal */
    DM_WANTS_POLL,    /* send a poll */
    DM_WANTS_LOOK,    /* look whether the hold is idle */
    DM_WANTS_ACQUIRE, /* the thread is to ask */
    DM_WANTS_NOTHING
};

/* A new attempt of a thread that is in a call about the attempt. */
void dm_hold_init(struct dm_hold *hold, uint64_t serial, uint64_t thread, uint32_t lease_ms, uint32_t maxhold_ms,
                  bool is_robust);

/* The attempt goes on under another serial; requests of the old serial are forgotten. */
void dm_hold_rename(struct dm_hold *hold, uint64_t serial);

/*
 * The wanted thing goes out now: remembers when, and returns the request's serial and time.  The answer plans the next
 * sending.  ACQUIRE: any question of the thread that may queue the attempt or own; the answer is DM_EV_ANSWER.
 * RELEASE: has no number.  NOTHING: a question beside the plan, such as a cancel.
 */
struct dm_request dm_hold_send(struct dm_hold *hold, enum dm_want want, int64_t now_ns);

/*
 * The thread itself sends the renewal of dm_hold_send() and awaits the answer, DM_EV_RENEWED_BY_THREAD.  No release
 * goes out before the answer, except by the end of the thread or of the process.
 */
void dm_hold_ask(struct dm_hold *hold);

/* Takes the event in and returns the actions to do. */
unsigned dm_hold_step(struct dm_hold *hold, const struct dm_event *event, int64_t now_ns);

/* The max-hold begins anew. */
void dm_hold_restart_maxhold(struct dm_hold *hold, int64_t now_ns);

/*
 * The store is to tell of waiters from now on: a renewal that says so goes out at once.  No effect on a hold that is
 * marked already.
 */
void dm_hold_mark(struct dm_hold *hold, int64_t now_ns);

/* Sets when to look whether the hold is idle; DM_NEVER: not to be looked at. */
void dm_hold_look_at(struct dm_hold *hold, int64_t look_ns);

/* Sets how often a thread that holds must unlock, from 1 on. */
void dm_hold_set_depth(struct dm_hold *hold, unsigned depth);

/* ---- questions --------------------------------------------------------------------------- */

/* The want of this moment; DM_WANTS_NOTHING: none. */
enum dm_want dm_hold_wants(const struct dm_hold *hold, int64_t now_ns);

/* When the hold wants this; DM_NEVER: not wanted, or on the way. */
int64_t dm_hold_due_ns(const struct dm_hold *hold, enum dm_want want);

/* When the hold wants anything that is not the thread's to do; DM_NEVER: nothing. */
int64_t dm_hold_next_ns(const struct dm_hold *hold);

/*
 * When a hold that a request sent then has confirmed is renewed: a third of the lease later, or by the attempt's number
 * up to a 24th of the lease before that, so that holds which began together are not renewed together for ever.
 */
int64_t dm_hold_renewal_ns(const struct dm_hold *hold, int64_t sent_ns);

/* True if the attempt owns the lock at this moment. */
bool dm_hold_is_certain(const struct dm_hold *hold, int64_t now_ns);

/* HELD: when the hold ends without a renewal. */
int64_t dm_hold_end_ns(const struct dm_hold *hold);

/* True if a renewal may be sent: a renewal of a hold that is not certain could bring the hold back on a new server. */
bool dm_hold_may_renew(const struct dm_hold *hold, int64_t now_ns);

/* True if the attempt waits for a message of the store, in the queue or on a condition. */
bool dm_hold_is_waiting(const struct dm_hold *hold);

/* True if the thread has returned from lock with the hold, and has not given the hold back: HELD or LOST. */
bool dm_hold_is_owned(const struct dm_hold *hold);

/* True if a release is pending that an acquire of the same name may name, so that the store does the release first. */
bool dm_hold_is_nameable(const struct dm_hold *hold);

/* True if a release is pending, and no question of the thread keeps the release back. */
bool dm_hold_is_returning(const struct dm_hold *hold);

/* True if a question of the thread decides the end of the attempt: a release would be in vain. */
bool dm_hold_is_in_question(const struct dm_hold *hold);

/* True if an object with these attributes would make the same hold. */
bool dm_hold_is_like(const struct dm_hold *hold, uint32_t lease_ms, uint32_t maxhold_ms, bool is_robust);

/* True if a thread holds by the attempt, or is in a call about the attempt: not for a hold that is only kept. */
bool dm_hold_is_in_use(const struct dm_hold *hold);

/* True if the process has the hold and no thread is inside or about to enter. */
bool dm_hold_is_idle(const struct dm_hold *hold);

/* True if the record of the attempt may go. */
bool dm_hold_is_done(const struct dm_hold *hold);

#endif
