/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the kernel itself says about a file's lock, asked through a descriptor of the keeper's own: /proc may hide a
 * lock or the process that has it, but a lock that nobody has can be taken. Main loop only.
 */
#ifndef DM_PRELOAD_KEEPER_WITNESS_H
#define DM_PRELOAD_KEEPER_WITNESS_H

#include "shared/kernel_lock.h"

/* Starts with the file only. 0: none. */
struct witness {
    int file; /* by O_PATH, from the process that took the lock: keeps neither the file open nor the lock alive */
    int own;  /* the keeper's own open file, from the first question on */
};

enum witness_word {
    WITNESS_LOCKED, /* a process has an exclusive lock of this kind */
    WITNESS_FREE,
    WITNESS_SILENT /* the keeper cannot open the file, or must not, because it is a device for example */
};

/*
 * If a flock() lock is free, takes it shared and drops it at once. A process that tries to lock at this moment finds it
 * taken, so check /proc first.
 */
enum witness_word witness_ask(struct witness *witness, enum kernel_lock_kind kind);

/* Closes both descriptors. */
void witness_dismiss(struct witness *witness);

#endif
