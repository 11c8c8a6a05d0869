/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Asks the process that keeps the distributed locks of lock files (doc/design/preload.md). Starts the keeper if none
 * runs.
 *
 * All functions here may be called in a signal handler and in a forked child: no malloc, no stdio, no lock of the
 * process. Nothing stays open between two calls.
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
    int file; /* the same file by O_PATH */
    bool is_wait;
    bool is_again; /* the caller had the lock before */

    /* The cancel state during the wait for the answer; PTHREAD_CANCEL_DISABLE: do not cancel. */
    int cancel_state;
};

/*
 * Takes the distributed lock for a kernel lock that the caller has already. Returns 0; EAGAIN: another process has the
 * lock; EINTR: a signal's handler ended the wait; or an errno value, after a sentence with the reason. After any result
 * but 0 the caller drops the kernel's lock.
 */
int keeper_lock(const struct keeper_wish *wish);

/*
 * Asks if a caller with the kernel's lock would be granted the distributed lock. Returns 0; EAGAIN: no; or an errno
 * value, after a sentence with the reason.
 */
int keeper_test(const struct rule *rule, const char *name, const char *path);

/* Tells the keeper that a lock of the kernel's may have ended. A hint: the keeper looks in any case, only later. */
void keeper_look(void);

/*
 * Waits for the end of a look of the keeper, which may keep a lock of a file for a moment. False: no keeper answers.
 */
bool keeper_settle(void);

#endif
