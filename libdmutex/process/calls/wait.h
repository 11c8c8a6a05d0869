/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One call that waits for a mutex, on the caller's stack: dmutex_lock() and similar functions, and the return from a
 * condition.  The claim says how far the call has got; dm_wait_run() goes on from there until the mutex is owned or
 * cannot be owned.
 */
#ifndef DM_PROCESS_CALLS_WAIT_H
#define DM_PROCESS_CALLS_WAIT_H

#include "process/claims/process.h"
#include "process/claims/target.h"

/* What comes next, where a step of a call has no result yet. */
enum {
    DM_GO_ON = -1, /* the next step */
    DM_SIT = -2    /* the thread sits in the line, or goes on sitting there */
};

/* The first of the growing pauses between tries while the server answers that it is not ready. */
#define DM_WAIT_PAUSE_MIN_NS (5 * DM_NS_PER_MS)

struct dm_wait {
    struct dm_runtime *runtime;
    const struct dm_target *target;
    struct dm_name *name;   /* pinned */
    struct dm_claim *claim; /* NULL: the thread sits in the line, or another thread has taken over the claim */
    bool may_wait;
    bool is_pledged; /* gave up the hold for a condition: must return with the mutex, unless nobody can have it */
    unsigned depth;  /* of the hold, once owned */
    struct dm_deadline deadline; /* the caller's */
    struct dm_deadline patience; /* how long to wait for an answer of the server */
    bool is_timed_out;           /* the deadline ended a wait on a condition */

    /*
     * sleep() is called without the state lock and returns true if woken.  settle() is called at the deadline with the
     * state lock, which it may give up for a time, and returns a result or DM_GO_ON.
     */
    bool (*sleep)(struct dm_wait *wait, const struct dm_deadline *until);
    int (*settle)(struct dm_wait *wait);

    bool has_waited;        /* the mutex was not free: for the counters */
    bool is_inbox_needed;   /* the store said busy while no message could have told us of a grant */
    int64_t grace_ms;       /* of the last answer */
    struct dm_origin asked; /* the server of an unanswered request; run 0: none */
    int64_t pause_ns;
    int64_t began_ns, explain_ns; /* see explain.h */
    int looks_in_vain;            /* see is_server_gone() */
    char reason[DM_REASON_ROOM];
};

/* A new claim of the calling thread.  State lock held.  False without memory. */
bool dm_wait_make_claim(struct dm_wait *wait);

enum dm_phase dm_wait_phase(struct dm_wait *wait);

/* Until when a thread without news sleeps before it checks the server (DMUTEX_ONDOWN=fail), or the call's deadline. */
struct dm_deadline dm_wait_limit(const struct dm_wait *wait);

/*
 * DMUTEX_ONDOWN=fail: a waiter checks now and then whether the server can be asked, and fails after two checks in vain.
 */
bool dm_wait_is_server_gone(struct dm_wait *wait);

/*
 * Waits until grants can reach us, because only then may the thread ask for a place in the queue.  Without an inbox it
 * keeps asking without a place, which is slow, but can still get the lock.  The name is pinned.  State lock held, and
 * given up during the wait.
 */
void dm_wait_for_inbox(struct dm_wait *wait, const struct dm_name *name);

/*
 * Waits a while for messages about the target's mutex to be able to reach us, if the process uses that mutex; notes the
 * reason if they cannot.  State lock held, and given up during the wait.
 */
void dm_wait_open_inbox(struct dm_wait *wait);

/* The server answers, but is not ready: leaves it some time. */
void dm_wait_rest(struct dm_wait *wait);

bool dm_wait_sleep(struct dm_wait *wait, const struct dm_deadline *until);

/*
 * Joins the line for the call.  DM_GO_ON: the thread has a claim, wait->claim, and goes on with dm_wait_run().
 * Otherwise the result of the call: 0 or an errno value, noted.  Gives up the state lock while the thread sits.
 */
int dm_wait_join(struct dm_wait *wait);

#endif
