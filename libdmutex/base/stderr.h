/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tells whether descriptor 2 is still standard error.
 *
 * A program may close 2, and a data file or connection that it opens next gets the number; a message of ours would
 * corrupt it.  So the library notes which file 2 is when it is loaded, before main() of a program that is linked to it.
 * It writes to that file, whatever its type, because the shell opened it for messages.  A file that has been put there
 * since must be of a kind used for messages: a terminal, a pipe, or a regular file that is open for appending only.
 *
 * Async-signal-safe.  The preload module is built with this file, too.
 */
#ifndef DM_BASE_STDERR_H
#define DM_BASE_STDERR_H

#include <stdbool.h>

/* True if a line may be written to descriptor 2.  Call it before each line. */
bool dm_stderr_is_usable(void);

#endif
