/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One attempt of one thread to own one name, from the first request until the hold is given back.
 *
 * Pure: step(attempt, event, now) -> actions.  No clock, socket, thread or lock is seen here; the caller serialises the
 * steps of an attempt and carries out the actions.
 *
 *      ASKING --answer--> QUEUED --grant--> HELD --deadline, told--> LOST
 *        ^  |              |  ^               |                        |
 *        |  |              |  | signal        +------ given back ------+--> OVER
 *        |  +---answer--> WAITING
 *        +--unknown, hint--+
 *
 * An attempt that waits on a condition is WAITING until a signal puts the attempt into the mutex's queue.  The hold
 * that the thread gives up for the wait is LEAVING while the store is asked to do both.
 *
 * Certainty (I1).  A hold is certain until `certain_until_ns` = the sending of a request that was answered "owned",
 * plus 0.8 of the lease in the request; the store's lease began no earlier.  A grant message counts from the sending of
 * the request that the message names, for the same reason.  A message that names a request which is not remembered, or
 * is read too late, is only a hint: ask again.
 */
#ifndef DM_CORE_ATTEMPT_H
#define DM_CORE_ATTEMPT_H

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
    DM_ASKING,  /* the store is to be asked, or asked again */
    DM_WAITING, /* waits on a condition */
    DM_QUEUED,  /* waits in the store's queue */
    DM_HELD,    /* owns the lock while now < certain_until_ns */
    DM_LEAVING, /* HELD, and a wait on a condition asks the store to end the hold: not renewed */
    DM_LOST,    /* owned before, not any more; the thread has not acknowledged the loss yet */
    DM_OVER     /* refused or given back; no message of the store makes the attempt hold again (I4) */
};

struct dm_request {
    uint64_t serial; /* 1, 2, 3 ... within the attempt; 0: none */
    int64_t sent_ns;
};

struct dm_attempt {
    /* Set by dm_attempt_init(), then constant. */
    uint64_t thread;
    uint32_t lease_ms;
    uint32_t maxhold_ms;
    bool is_robust;

    uint64_t serial; /* changes when the store has forgotten the attempt */
    enum dm_phase phase;
    enum dm_verdict refusal; /* OVER: the reason of the refusal */
    uint64_t arrival;        /* the place in the queue that the store gave, 0 none */
    struct dm_request requests[DM_REQUESTS_REMEMBERED];
    uint64_t last_request;
    int64_t poll_ns; /* WAITING, QUEUED: when to poll */

    /* HELD and LOST. */
    bool is_entered;    /* the thread has returned from lock: a loss must be told */
    bool is_owner_dead; /* EOWNERDEAD is to be told, or was and is not mended yet */
    unsigned depth;
    uint64_t token; /* the store's */
    int64_t certain_until_ns;
    int64_t hold_ends_ns; /* max-hold, once is_entered */
    int64_t renew_ns;     /* when to renew; DM_NEVER while a renewal is on the way */
};

enum dm_event_kind {
    DM_EV_ANSWER,    /* the answer to an acquire, poll or cancel; `request` and `answer` */
    DM_EV_GRANTED,   /* a message; `request` and `answer` (token, is_owner_dead) */
    DM_EV_SIGNALLED, /* a message: from the condition to the queue; `answer` (position, remaining)
                      */
    DM_EV_TOLD_LOST, /* a message: the lock was broken by force */
    DM_EV_TOLD_ASK,  /* a message, or a break of the connection: things may have changed, ask now */
    DM_EV_RENEWED,   /* the answer to a renewal; `request` and `answer` (OWNED, UNKNOWN, NOTHING) */
    DM_EV_LEAVE,     /* the thread is about to give the hold back by a wait on a condition */
    DM_EV_STAY,      /* the thread did not leave */
    DM_EV_TIME,      /* nothing but time has passed */
    DM_EV_GIVEN_BACK /* the thread has no use for the hold any more */
};

struct dm_event {
    enum dm_event_kind kind;
    uint64_t request;
    const struct dm_answer *answer;
};

/* Actions, a set.  The new phase says what the woken thread does. */
enum {
    DM_DO_WAKE = 1,      /* the attempt's thread, because the phase has changed */
    DM_DO_GIVE_BACK = 2, /* release the attempt on the store */
    DM_DO_TELL_LOST = 4, /* the application */
    DM_DO_POLL = 8,
    DM_DO_RENEW = 16,
    DM_DO_NEW_SERIAL = 32 /* the store has forgotten the attempt: take another serial before the next request */
};

void dm_attempt_init(struct dm_attempt *attempt, uint64_t serial, uint64_t thread, uint32_t lease_ms,
                     uint32_t maxhold_ms, bool is_robust);

/* The attempt goes on under another serial; requests of the old serial are forgotten. */
void dm_attempt_rename(struct dm_attempt *attempt, uint64_t serial);

/* A request goes out now: remembers when, and returns the request's serial and time. */
struct dm_request dm_attempt_send(struct dm_attempt *attempt, int64_t now_ns);

/* The same for a poll or renewal that was due: the answer plans the next poll or renewal. */
struct dm_request dm_attempt_send_due(struct dm_attempt *attempt, int64_t now_ns);

/*
 * Takes the event in and returns the actions to do.  Every DM_EV_TIME returns DM_DO_POLL and DM_DO_RENEW again until
 * dm_attempt_send_due(): a caller that only wants the time to pass may leave polls and renewals to the schedule.
 */
unsigned dm_attempt_step(struct dm_attempt *attempt, const struct dm_event *event, int64_t now_ns);

/* The next moment at which DM_EV_TIME may have something to do; DM_NEVER if none. */
int64_t dm_attempt_next_ns(const struct dm_attempt *attempt);

/* HELD: when the hold ends without a renewal. */
int64_t dm_attempt_end_ns(const struct dm_attempt *attempt);

/* True if the attempt owns the lock at this moment. */
bool dm_attempt_is_certain(const struct dm_attempt *attempt, int64_t now_ns);

/* True if the attempt waits for a message of the store, in the queue or on a condition. */
bool dm_attempt_is_waiting(const struct dm_attempt *attempt);

/* The max-hold begins anew. */
void dm_attempt_restart_maxhold(struct dm_attempt *attempt, int64_t now_ns);

#endif
