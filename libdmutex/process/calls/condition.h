/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiting on conditions, and signalling them.
 *
 * A wait gives back the thread's hold of a mutex and enqueues a new attempt on the condition, in one script.  A signal
 * moves the attempt to the mutex's queue, where it is granted like any other: the thread sleeps until it owns the
 * mutex.
 */
#ifndef DM_PROCESS_CALLS_CONDITION_H
#define DM_PROCESS_CALLS_CONDITION_H

#include "process/calls/acquire.h"

/* Room for the registry's key of a condition: an anonymous condition has two ids and a group in its key. */
#define DM_CONDITION_KEY_ROOM (80 + DM_MUTEX_KEY_ROOM)

/* A condition object, read and checked; the object itself is not touched again. */
struct dm_condition {
    char key[DM_CONDITION_KEY_ROOM]; /* as in struct dm_name */
    char mutex[DM_MUTEX_KEY_ROOM];   /* the key of the bound mutex, if the object says so; else "" */
    bool is_anonymous;
};

/*
 * As dcond_wait() and similar functions: 0 or an errno value, noted.  cancel_state: the thread's own state, in which it
 * sleeps; a thread that is cancelled there owns the mutex again before it unwinds.
 */
int dm_condition_wait(struct dm_runtime *runtime, const struct dm_condition *condition, const struct dm_target *target,
                      const struct dm_deadline *deadline, int cancel_state);

/* True if the calling thread owns the mutex, or believes that it does. */
bool dm_condition_is_owned(struct dm_runtime *runtime, const char *mutex);

/* As dcond_signal() and dcond_broadcast(). */
int dm_condition_signal(struct dm_runtime *runtime, const struct dm_condition *condition, bool is_broadcast);

/*
 * Forgets a condition here and, if it is anonymous, on the server too.  DM_SAYS_DONE; DM_SAYS_BUSY if a thread waits on
 * it; or another answer of the server, with a reason.
 */
enum dm_verdict dm_condition_drop(struct dm_runtime *runtime, const struct dm_condition *condition,
                                  char ret_reason[DM_REASON_ROOM]);

/* Destroys a condition: 0, or EBUSY, noted. */
int dm_condition_end(struct dm_runtime *runtime, const struct dm_condition *condition);

#endif
