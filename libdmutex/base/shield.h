/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Protects a write to a destination that others choose: standard error, a log, a file of metrics.  A pipe without a
 * reader (SIGPIPE) or the limit on file sizes (SIGXFSZ) then makes the write fail, and does not end the program.
 *
 * Not nested.  Async-signal-safe, no cancellation point.  The preload module is built with this file, too.
 */
#ifndef DM_BASE_SHIELD_H
#define DM_BASE_SHIELD_H

#include <signal.h>

struct dm_shield {
    sigset_t mask;  /* of the thread, to be restored */
    sigset_t owned; /* those signals that were not pending before the write */
};

void dm_shield_raise(struct dm_shield *ret_shield);

/* Keeps errno. */
void dm_shield_lower(const struct dm_shield *shield);

#endif
