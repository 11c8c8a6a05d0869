/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The calling thread as the library knows the thread: the serial and the semaphore that the thread sleeps on.
 *
 * A post to the semaphore means "look again", never "the lock is yours": every sleeper checks the sleeper's own
 * condition under the lock that guards the condition, so a post too many costs one look.  Only a thread inside a call
 * of this library can be posted to; the thread leaves every list before the call returns.
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
 * A serial is never used again in the process, as a thread id of the kernel may be; its low bits are that id, which
 * people know from ps(1) and gdb(1).  Linux allows no id of more bits (PID_MAX_LIMIT).
 */
#define DM_SELF_TID_BITS 22

static inline uint64_t dm_self_tid(uint64_t serial)
{
    return serial & ((UINT64_C(1) << DM_SELF_TID_BITS) - 1);
}

struct dm_self {
    uint64_t serial;
    sem_t wake;
    int *bell;      /* to be rung with each post, for a thread that sleeps in ppoll() instead; NULL: none.  Atomic */
    bool has_ended; /* the thread's end was reported: nothing may point here any more */
    struct dm_claim *claims; /* of this thread; the registry's, guarded by the state lock */
};

/*
 * The part of a thread's record that the fast path reads (process/claims/fast.h): in the thread's static storage, found
 * without a call.
 */
struct dm_self_fast {
    uint64_t serial;          /* as in struct dm_self; 0 before the first call and after the thread's end */
    struct dm_tenure *misled; /* entered by mistake, to be put back under the state lock; NULL: none */
    bool has_entered;         /* entered some tenure; the end of the thread looks for it */
};
extern __thread struct dm_self_fast dm_self_fast __attribute__((__tls_model__("initial-exec")));

/* The calling thread; set up at the thread's first call. */
struct dm_self *dm_self_get(void);

/* Sleeps until posted or until the deadline.  True if posted.  A thread sleeps on the thread's own semaphore only. */
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
 * Around a sleep in ppoll() on a bell (base/descriptor.h): posts ring the bell too.  dm_self_listen() returns true if
 * there is a post already, for which no bell was rung: then the thread must not sleep.
 */
bool dm_self_listen(struct dm_self *self, int *bell);
void dm_self_stop_listening(struct dm_self *self);

/* Takes a post of the calling thread without sleeping.  True if there was one. */
bool dm_self_take_post(struct dm_self *self);

/* Wakes a sleeping thread, or ends the next sleep of a thread that is awake. */
void dm_self_wake(struct dm_self *self);

/* The process ends, by exit() in the calling thread. */
void dm_self_end_process(void);

/* True if the process ends, by any thread. */
bool dm_self_is_ending(void);

/* True if the process ends, and not by the calling thread. */
bool dm_self_must_park(void);

/*
 * Questions of other threads are given up, by the thread that ends the process: a question that has not been sent is
 * never sent, because the releases of all claims go out next.
 */
void dm_self_end_questions(void);

/* True if the calling thread's questions are given up.  A thread looks before each sending. */
bool dm_self_is_given_up(void);

/* Sleeps until the process is gone; handlers of signals run.  No lock held. */
void dm_self_park(void) __attribute__((__noreturn__));

/* Called once, early: sets the function to run when a thread that used the library ends.  False: no key is left. */
bool dm_self_on_thread_end(void (*report)(struct dm_self *self));

/* In a forked child: the calling thread's semaphore is new, the thread has no claims. */
void dm_self_fork_child(void);

#endif
