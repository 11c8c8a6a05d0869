/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One attempt of one thread to hold one name: its whole life, from the first request until the store has confirmed the
 * release.
 *
 * Pure: dm_hold_step(hold, event, now) changes the hold, and dm_hold_wants() says what to do for it next.  There is no
 * clock, socket, thread or lock here; the caller serialises the steps of a hold.  Only core/ writes the fields.
 *
 *      ASKING --answer--> QUEUED --grant--> HELD --deadline, told--> LOST
 *        ^  |              |  ^             ^  |                       |
 *        |  |              |  | signal      |  +----- given back ------+--> RETURNING --answer, lease over--> OVER
 *        |  +---answer--> WAITING     stays |  | leaves                            ^
 *        +--unknown, hint--+                LEAVING --the store ended the hold-----|--------------------------> OVER
 *
 * A hold with no thread inside is HELD, not entered and not attended: the process keeps the lease for its threads
 * (core/tenure.h).  If such a hold ends, nobody has lost it.
 *
 * An attempt that waits on a condition is WAITING until a signal puts it into the mutex's queue.  The hold that the
 * thread gives up for the wait is LEAVING while the store is asked to do both.  The thread may give back from any
 * phase; a refusal ends an attempt that asks or waits.
 *
 * Certainty (I1).  A hold is certain until `certain_until_ns` = the sending of a request that was answered "owned",
 * plus 0.8 of the lease in the request; the store's lease began no earlier.  A grant message counts from the sending of
 * the request that it names, for the same reason.  If that request is not remembered, or the message is read too late,
 * it is only a hint to ask again.  A store of several servers knows when each of them confirmed the hold, and says from
 * when the lease counts: the answer's from_ns, which may be earlier than before.
 *
 * Release (I4).  A release goes out after all other requests of the attempt: not while the thread's question is under
 * way, and not before the application has been told of a loss.  It is repeated until the store has answered, or the
 * lease has ended the hold.
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

/* A fencing token is the store's token, shifted left by this many bits, plus the number of the local hold. */
#define DM_TOKEN_SHIFT 12

/*
 * A store's tokens begin with the microseconds of its clock since this moment: 2020-01-01T00:00:00Z, in us since 1970.
 */
#define DM_TOKEN_EPOCH_US INT64_C(1577836800000000)

/* A store's tokens are below this limit; the code that reads one refuses any other. */
#define DM_TOKEN_LIMIT (UINT64_C(1) << (64 - DM_TOKEN_SHIFT))

/* Requests go out every third of a lease, so four cover all the certainty that can still count. */
#define DM_REQUESTS_REMEMBERED 4

enum dm_phase {
    DM_ASKING,    /* the thread must ask the store, perhaps again */
    DM_WAITING,   /* waits on a condition */
    DM_QUEUED,    /* waits in the store's queue */
    DM_HELD,      /* owns the lock while now < certain_until_ns */
    DM_LEAVING,   /* HELD, but a wait on a condition is asking the store to end the hold: not renewed */
    DM_LOST,      /* no longer owned; the thread has not acknowledged the loss yet */
    DM_RETURNING, /* given back by the thread; the store has not confirmed the release */
    DM_OVER       /* the store has nothing of the attempt; no message makes it hold again (I4) */
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
    bool is_named;   /* an acquire has asked the store for the release, so the hold's own one may come second */
    enum dm_end end;
    int64_t held_ms; /* since the grant; 0: there was none */
    unsigned sends;
    int64_t due_ns;   /* when to send it, perhaps again; DM_NEVER while it is on the way */
    int64_t until_ns; /* when the lease has ended the hold */
};

struct dm_hold {
    /* Set by dm_hold_init(), constant afterwards. */
    uint64_t thread;
    uint32_t lease_ms;
    uint32_t maxhold_ms;
    bool is_robust;

    uint64_t serial; /* changes when the store has forgotten the attempt */
    enum dm_phase phase;
    enum dm_verdict refusal; /* OVER, or RETURNING: the reason of the refusal */
    uint64_t arrival;        /* the place in the queue that the store gave; 0: none */
    struct dm_request requests[DM_REQUESTS_REMEMBERED];
    uint64_t last_request;
    int64_t poll_ns; /* WAITING, QUEUED: when to poll; DM_NEVER while a poll is on the way */

    bool is_attended; /* the thread is in a call about the attempt: news wakes it, and the record stays */
    bool is_asked;    /* the thread's question is under way: a release must not overtake it */
    bool is_entered;  /* the thread has returned from lock: a loss must be reported */
    bool is_untold;   /* the loss must still be reported to the application */
    bool is_wanted;   /* HELD: another attempt waits, according to the store's last news */
    bool is_marked;   /* renewals ask the store to report waiters */
    bool is_last;     /* the process ends, and exit() waits for the release */
    uint8_t agains;   /* counts the answers AGAIN, up to the pause */

    /* From HELD on. */
    bool is_owner_dead; /* EOWNERDEAD must be returned, or was, and the state is not consistent yet */
    bool is_token_soft; /* the token must not be handed out yet: a renewal decides it */
    unsigned depth;
    uint64_t token;  /* the store's */
    uint64_t server; /* the server that last confirmed the hold, as numbered by the caller */
    int64_t granted_ns;
    int64_t certain_until_ns;
    int64_t hold_ends_ns; /* the end of the max-hold; counts once is_entered */
    int64_t renew_ns;     /* when to renew; DM_NEVER while a renewal is on the way */
    int64_t look_ns;      /* when to check whether the hold is idle; DM_NEVER: no check */
    struct dm_giving_back back;
};

enum dm_event_kind {
    /* Answers; `request`, `answer` and `server`. */
    DM_EV_ANSWER,            /* to the thread's question; NOTHING: no answer, or one without news */
    DM_EV_POLLED,            /* to a poll */
    DM_EV_RENEWED,           /* to a renewal: OWNED or UNKNOWN; AGAIN; any other: no answer */
    DM_EV_RENEWED_BY_THREAD, /* the same, to the renewal of dm_hold_ask() */
    DM_EV_RELEASED,          /* to a release: DONE or NOT_OWNER; AGAIN; any other: no answer */

    /* Messages. */
    DM_EV_GRANTED,   /* `request`, `answer` (token, is_owner_dead) and `server` */
    DM_EV_SIGNALLED, /* from the condition to the queue; `answer` (position, remaining) */
    DM_EV_TOLD_LOST, /* the lock was broken by force */
    DM_EV_TOLD_ASK,  /* things may have changed, ask now */
    DM_EV_WANTED,    /* another attempt waits for the lock */

    /* The world. */
    DM_EV_CONNECTED,  /* the connection is back: requests without an answer may not have arrived */
    DM_EV_SUBSCRIBED, /* the inbox is open again: messages may have been missed */
    DM_EV_TIME,       /* only time has passed */
    DM_EV_NAMED,      /* an acquire that names the release is sent */
    DM_EV_TOLD,       /* the application has been told of the loss */

    /* The thread. */
    DM_EV_ENTERED,     /* returns from lock with the hold */
    DM_EV_LEFT,        /* has unlocked, and the process keeps the hold */
    DM_EV_MENDED,      /* has made the state consistent, and the store knows */
    DM_EV_LEAVE,       /* is about to give the hold back for a wait on a condition */
    DM_EV_STAY,        /* did not leave */
    DM_EV_GIVEN_BACK,  /* has no more use for the attempt: a release is needed; `end` */
    DM_EV_CLOSED,      /* is done with the attempt, and needs no release */
    DM_EV_THREAD_ENDS, /* the thread ends: given back; a hold counts as a death */
    DM_EV_PROCESS_ENDS /* the same for exit() in any thread: the attempt's thread may still be in a call about it */
};

struct dm_event {
    enum dm_event_kind kind;
    uint64_t request;
    const struct dm_answer *answer;
    uint64_t server;
    enum dm_end end;
};

/* A set of actions.  The woken thread acts on the new phase. */
enum {
    DM_DO_WAKE = 1,      /* wake the attempt's thread: the phase has changed */
    DM_DO_NEW_SERIAL = 2 /* the store has forgotten the attempt: call dm_hold_rename() before the next request */
};

/* What a hold wants done next.  If several are due, the first counts. */
enum dm_want {
    DM_WANTS_TELL,    /* report the loss to the application, then DM_EV_TOLD */
    DM_WANTS_RELEASE, /* send the release */
    DM_WANTS_TIME,    /* DM_EV_TIME: the hold may be lost */
    DM_WANTS_RENEW,   /* send a renewal */
    DM_WANTS_POLL,    /* send a poll */
    DM_WANTS_LOOK,    /* check whether the hold is idle */
    DM_WANTS_ACQUIRE, /* the thread must ask */
    DM_WANTS_NOTHING
};

/* A new attempt, whose thread is in a call about it. */
void dm_hold_init(struct dm_hold *hold, uint64_t serial, uint64_t thread, uint32_t lease_ms, uint32_t maxhold_ms,
                  bool is_robust);

/* Continues the attempt under another serial; requests with the old one are forgotten. */
void dm_hold_rename(struct dm_hold *hold, uint64_t serial);

/*
 * Call this when the wanted request is sent: it remembers the time, and returns the request's serial and time.  The
 * answer schedules the next request.  ACQUIRE: any question of the thread that may queue the attempt or make it own the
 * lock; its answer is DM_EV_ANSWER.  RELEASE: has no number.  NOTHING: a question that is not a want, such as a cancel.
 */
struct dm_request dm_hold_send(struct dm_hold *hold, enum dm_want want, int64_t now_ns);

/*
 * The thread itself sends the renewal of dm_hold_send() and awaits the answer, DM_EV_RENEWED_BY_THREAD.  No release
 * goes out before the answer, unless the thread or the process ends.
 */
void dm_hold_ask(struct dm_hold *hold);

/* Processes the event and returns the actions to take. */
unsigned dm_hold_step(struct dm_hold *hold, const struct dm_event *event, int64_t now_ns);

/* Starts the max-hold again. */
void dm_hold_restart_maxhold(struct dm_hold *hold, int64_t now_ns);

/* Makes the store report waiters from now on: schedules a renewal that says so at once.  No effect on a marked hold. */
void dm_hold_mark(struct dm_hold *hold, int64_t now_ns);

/* Sets when to check whether the hold is idle; DM_NEVER: no check. */
void dm_hold_look_at(struct dm_hold *hold, int64_t look_ns);

/* Sets how often the holder must unlock, at least 1. */
void dm_hold_set_depth(struct dm_hold *hold, unsigned depth);

/* ---- questions --------------------------------------------------------------------------- */

/* What the hold wants now. */
enum dm_want dm_hold_wants(const struct dm_hold *hold, int64_t now_ns);

/* When the hold wants this; DM_NEVER: not at all, or it is on the way. */
int64_t dm_hold_due_ns(const struct dm_hold *hold, enum dm_want want);

/*
 * When to renew a hold that was confirmed by a request sent at `sent_ns`: a third of the lease later, minus up to a
 * 24th of the lease that depends on the attempt's serial, so that holds which began together do not stay together.
 */
int64_t dm_hold_renewal_ns(const struct dm_hold *hold, int64_t sent_ns);

/* True if the attempt owns the lock at this moment. */
bool dm_hold_is_certain(const struct dm_hold *hold, int64_t now_ns);

/* HELD: when the hold ends if it is not renewed. */
int64_t dm_hold_end_ns(const struct dm_hold *hold);

/* True if a renewal may be sent: if the hold is not certain, a renewal could revive it on a new server. */
bool dm_hold_may_renew(const struct dm_hold *hold, int64_t now_ns);

/* True if the attempt waits for a message, in the queue or on a condition. */
bool dm_hold_is_waiting(const struct dm_hold *hold);

/* True if the thread has returned from lock with the hold, and has not given it back: HELD or LOST. */
bool dm_hold_is_owned(const struct dm_hold *hold);

/* True if a release is pending that an acquire of the same name may name; the store then executes the release first. */
bool dm_hold_is_nameable(const struct dm_hold *hold);

/* True if a release is pending, and no question of the thread delays it. */
bool dm_hold_is_returning(const struct dm_hold *hold);

/* True if the end of the attempt depends on a question of the thread: a release would be useless. */
bool dm_hold_is_in_question(const struct dm_hold *hold);

/* True if an object with these attributes would make the same hold. */
bool dm_hold_is_like(const struct dm_hold *hold, uint32_t lease_ms, uint32_t maxhold_ms, bool is_robust);

/* True if a thread holds the lock by this attempt, or is in a call about it.  False for a hold that is only kept. */
bool dm_hold_is_in_use(const struct dm_hold *hold);

/* True if the process has the hold, and no thread is inside or about to enter. */
bool dm_hold_is_idle(const struct dm_hold *hold);

/* True if the record may be freed. */
bool dm_hold_is_done(const struct dm_hold *hold);

#endif
