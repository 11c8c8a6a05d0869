/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Around a write to what others have named: standard error, a log, a file of counters.  A pipe without a reader
 * (SIGPIPE) or a limit of the size of files (SIGXFSZ) is then an error of the write, and not the end of the program.
 *
 * Not nested.  Async-signal-safe, no cancellation point.  The preload module is built with this file, too.
 */
#ifndef DM_BASE_SHIELD_H
#define DM_BASE_SHIELD_H

#include <signal.h>

struct dm_shield {
    sigset_t mask;  /* of the thread, to be restored */
    sigset_t owned; /* signals that the write may raise: those that were not pending before */
};

void dm_shield_raise(struct dm_shield *ret_shield);

/* Leaves errno alone. */
void dm_shield_lower(const struct dm_shield *shield);

#endif
