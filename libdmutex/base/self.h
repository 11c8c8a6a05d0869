/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The library's record of the calling thread: its serial, and the semaphore on which it sleeps.
 *
 * A post means "check again", never "the lock is yours": a sleeper re-checks its condition under the lock that guards
 * it, so a spurious post costs only a check.  Only a thread inside a call of this library can be posted to: it leaves
 * every list before the call returns.
 */
#ifndef DM_BASE_SELF_H
#define DM_BASE_SELF_H

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

struct dm_claim;
struct dm_tenure;

/*
 * A serial is never reused in the process, as a kernel thread id may be.  Its low bits are that id, which people know
 * from ps(1) and gdb(1); Linux allows no id of more bits (PID_MAX_LIMIT).
 */
#define DM_SELF_TID_BITS 22

static inline uint64_t dm_self_tid(uint64_t serial)
{
    return serial & ((UINT64_C(1) << DM_SELF_TID_BITS) - 1);
}

struct dm_self {
    uint64_t serial;
    sem_t wake;
    int *bell;               /* rung with each post, for a thread that sleeps in ppoll(); NULL: none.  Atomic */
    bool has_ended;          /* the thread's end was reported: nothing may point here */
    struct dm_claim *claims; /* of this thread; the registry's, guarded by the state lock */
};

/*
 * The part of the record that the fast path uses (process/claims/fast.h), in static thread-local storage, so that no
 * function call is needed to find it.
 */
struct dm_self_fast {
    uint64_t serial;          /* as in struct dm_self; 0 before the first call and after the thread's end */
    struct dm_tenure *misled; /* entered by mistake, and to put back under the state lock; NULL: none */
    bool has_entered;         /* has entered some tenure; the end of the thread searches for it */
};
extern __thread struct dm_self_fast dm_self_fast __attribute__((__tls_model__("initial-exec")));

/* The calling thread's record, made at its first call. */
struct dm_self *dm_self_get(void);

/* Sleeps until a post or the deadline.  True if posted.  A thread sleeps only on its own semaphore. */
bool dm_self_sleep(struct dm_self *self, const struct dm_deadline *deadline);

/* The same, with the given cancellation state during the sleep; the caller has disabled cancellation. */
static inline bool dm_self_sleep_cancellably(struct dm_self *self, const struct dm_deadline *deadline, int cancel_state)
{
    bool is_posted;

    pthread_setcancelstate(cancel_state, NULL);
    is_posted = dm_self_sleep(self, deadline);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    return is_posted;
}

/*
 * Called before and after a sleep in ppoll() on a bell (base/descriptor.h): in between, posts ring the bell, too.
 * dm_self_listen() returns true if there is a post already, for which no bell was rung: then the thread must not sleep.
 */
bool dm_self_listen(struct dm_self *self, int *bell);
void dm_self_stop_listening(struct dm_self *self);

/* Takes a post of the calling thread without sleeping.  True if there was one. */
bool dm_self_take_post(struct dm_self *self);

/* Wakes a sleeping thread, or ends the next sleep of a thread that is awake. */
void dm_self_wake(struct dm_self *self);

/* The calling thread ends the process, by exit(). */
void dm_self_end_process(void);

/* True if a thread is ending the process. */
bool dm_self_is_ending(void);

/* True if a thread other than the calling one is ending the process. */
bool dm_self_must_park(void);

/*
 * Called by the thread that ends the process: gives up the questions of the other threads.  A question that has not
 * been sent yet is never sent, because the releases of all claims go out next.
 */
void dm_self_end_questions(void);

/* True if the calling thread's questions are given up; checked before each is sent. */
bool dm_self_is_given_up(void);

/* Sleeps until the process is gone; signal handlers still run.  The caller holds no lock. */
void dm_self_park(void) __attribute__((__noreturn__));

/*
 * Called once, early: sets the function to call when a thread that has used the library ends.  False: libc has no key
 * left.
 */
bool dm_self_on_thread_end(void (*report)(struct dm_self *self));

/* In a forked child: gives the calling thread a new semaphore and no claims. */
void dm_self_fork_child(void);

#endif
