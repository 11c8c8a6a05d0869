/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Questions to the process that keeps the distributed locks of lock files (doc/design/preload.md).
 * It is started when there is none.
 *
 * Everything here may be called in a signal handler and in a forked child: no malloc, no stdio, no
 * lock of this process.  Nothing stays open between two calls.
 */
#ifndef DM_PRELOAD_KEEPER_CALL_H
#define DM_PRELOAD_KEEPER_CALL_H

#include <stdbool.h>

#include "kernel_lock.h"

struct rule;

struct keeper_wish {
    const struct rule *rule;
    const char *name; /* of the mutex */
    const char *path; /* of the file */
    struct kernel_lock lock;
    bool is_wait;
    bool is_again; /* the caller had this lock before */

    /* The cancel state in which it waits for the answer; PTHREAD_CANCEL_DISABLE: not to be cancelled. */
    int cancel_state;
};

/*
 * Takes the distributed lock for one that the caller has from the kernel already.  Returns 0; EAGAIN:
 * somebody else has it; EINTR: a signal's handler ended the wait; or an errno value, and why has been
 * said.  After anything but 0 the caller drops the kernel's lock.
 */
int keeper_lock(const struct keeper_wish *wish);

/*
 * Would it be granted to somebody who has the kernel's lock?  Returns 0; EAGAIN: no; or an errno value, and
 * why has been said.
 */
int keeper_test(const struct rule *rule, const char *name, const char *path);

/* A lock of the kernel's may have ended.  A hint: the keeper looks for itself, only sooner. */
void keeper_look(void);

#endif
