/* SPDX-License-Identifier: BSD-2-Clause */
/* The command as a child, for --list: it behaves as much like the command itself as a parent can. */
#ifndef DM_RUN_CHILD_H
#define DM_RUN_CHILD_H

#include <stdbool.h>

#include <glib.h>

/*
 * Runs the program until it ends. Signals to this process are passed on; this process stops when the program stops.
 * Refuses (126) if the program cannot be executed. *ret_status: as from wait(2).
 */
bool child_run(const char *path, char *const *command, char *const *environment, int *ret_status, GError **error);

#endif
