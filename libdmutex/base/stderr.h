/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whether descriptor 2 is standard error.
 *
 * A program may close 2 and open a file of its data, or a connection, which then gets that number; a line of ours would
 * spoil it.  So the library notes what 2 is when it is loaded, before main() of a program that is linked to it, and
 * writes to that file, whatever it is: the shell has opened it for messages.  What the program has put there since must
 * be made for messages: a terminal, a pipe, or a regular file that is open for appending only.
 *
 * Async-signal-safe.  The preload module is built with this file, too.
 */
#ifndef DM_BASE_STDERR_H
#define DM_BASE_STDERR_H

#include <stdbool.h>

/* True if a line may be written to descriptor 2.  Ask before each line. */
bool dm_stderr_is_usable(void);

#endif
