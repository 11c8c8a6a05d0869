/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Talks to the process that keeps the distributed locks of lock files (doc/design/preload.md). Starts the keeper if
 * none is running.
 *
 * All functions here may be called in a signal handler and in a forked child: no malloc, no stdio, no process-wide
 * lock. Nothing stays open between two calls.
 */
#ifndef DM_PRELOAD_KEEPER_CALL_H
#define DM_PRELOAD_KEEPER_CALL_H

#include <stdbool.h>

#include "shared/kernel_lock.h"

struct rule;

struct keeper_wish {
    const struct rule *rule;
    const char *name; /* of the mutex */
    const char *path; /* of the file */
    struct kernel_lock lock;
    int file; /* the same file, by O_PATH */
    bool is_wait;
    bool is_again; /* the caller already had the lock */

    /* The cancellation state while waiting for the answer; PTHREAD_CANCEL_DISABLE: not cancellable. */
    int cancel_state;
};

/*
 * Acquires the distributed lock for a kernel lock that the caller already has. Returns 0; EAGAIN if another process has
 * the lock; EINTR if a signal handler ended the wait; or another errno value, after reporting the reason. Unless the
 * result is 0, the caller must drop the kernel's lock.
 */
int keeper_lock(const struct keeper_wish *wish);

/*
 * Asks whether a caller with the kernel's lock would be granted the distributed lock. Returns 0; EAGAIN if not; or
 * another errno value, after reporting the reason.
 */
int keeper_test(const struct rule *rule, const char *name, const char *path);

/* Tells the keeper that a kernel lock may have ended. This is a hint: the keeper checks in any case, but later. */
void keeper_look(void);

/* Waits for the end of a check by the keeper, which may keep a file locked for a moment. False if no keeper answers. */
bool keeper_settle(void);

#endif
