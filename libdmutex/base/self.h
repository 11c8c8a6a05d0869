/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The calling thread as the library knows it: its serial and the semaphore it sleeps on.
 *
 * A post to the semaphore means "look again", never "it is yours": every sleeper checks its own
 * condition under the lock that guards it, so a post too many costs one look.  Only a thread that
 * is inside a call of this library can be posted to; it takes itself out of every list before it
 * leaves.
 */
#ifndef DM_BASE_SELF_H
#define DM_BASE_SELF_H

#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

struct dm_claim;

struct dm_self {
    uint64_t serial; /* 1, 2, 3, ... in the process; never used again */
    sem_t wake;
    bool has_ended;          /* its end was reported: nothing may point here any more */
    struct dm_claim *claims; /* of this thread; the registry's, guarded by the state lock */
};

/* The calling thread; set up at its first call. */
struct dm_self *dm_self_get(void);

/* Sleeps until posted or until the deadline.  True if posted.  Any thread of its own only. */
bool dm_self_sleep(struct dm_self *self, const struct dm_deadline *deadline);

/* Wakes a sleeping thread, or the next sleep of one that is awake. */
void dm_self_wake(struct dm_self *self);

/* The process ends, by exit() in the calling thread. */
void dm_self_end_process(void);

/* True if the process ends, and not by the calling thread. */
bool dm_self_must_park(void);

/* Sleeps until the process is gone; handlers of signals run.  No lock held. */
void dm_self_park(void) __attribute__((__noreturn__));

/* Called once, early: what to run when a thread that used the library ends. */
void dm_self_on_thread_end(void (*report)(struct dm_self *self));

/* In a forked child: the calling thread's semaphore is new, it has no claims. */
void dm_self_fork_child(void);

#endif
