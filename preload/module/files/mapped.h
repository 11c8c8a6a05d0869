/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lock commands on a file that a rule names: the kernel's lock first, then the distributed lock, and either both or
 * none. May be called in a signal handler and in a forked child.
 *
 * All return 0, or -1 with errno, as the program's own call does.
 */
#ifndef DM_PRELOAD_MAPPED_H
#define DM_PRELOAD_MAPPED_H

#include <limits.h>
#include <stdbool.h>

#include "shared/kernel_lock.h"
#include "shared/rules.h"

#define MAPPED_NAME_ROOM 201

struct mapped {
    int fd;
    enum kernel_lock_kind kind;
    const struct rule *rule;
    char name[MAPPED_NAME_ROOM]; /* of the mutex */
    char path[PATH_MAX];
};

/* Waiting is a cancellation point if the program's own call is one; flock() is not. */
int mapped_lock(const struct mapped *file, bool is_wait);

int mapped_unlock(const struct mapped *file);

/*
 * Asks whether another host has locked the file; the kernel has already been asked about this host. *ret_held: true if
 * so.
 */
int mapped_test(const struct mapped *file, bool *ret_held);

/* Refuses a request that cannot be distributed: returns -1 with ENOLCK. Prints each reason once per process. */
enum mapped_refusal { MAPPED_SHARED, MAPPED_PART };
int mapped_refuse(const struct mapped *file, enum mapped_refusal refusal);

#endif
