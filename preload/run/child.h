/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The command as a child, for --list: as near to having become it as a parent can be.
 */
#ifndef DM_RUN_CHILD_H
#define DM_RUN_CHILD_H

#include <stdbool.h>

#include <glib.h>

/*
 * Runs the program until it ends.  Signals that are sent to this process are passed on; it stops when
 * the program stops.  Refuses (126) when it cannot be executed.  *ret_status: as of wait(2).
 */
bool child_run(const char *path, char *const *command, char *const *environment, int *ret_status, GError **error);

/* Ends this process as the child has ended, by the same signal if it was one. */
void child_end_likewise(int status) G_GNUC_NORETURN;

#endif
