/* SPDX-License-Identifier: BSD-2-Clause */
/* The command as a child, for --list: behaves as nearly like the command as a parent can. */
#ifndef DM_RUN_CHILD_H
#define DM_RUN_CHILD_H

#include <stdbool.h>

#include <glib.h>

/*
 * Runs the program until the program ends. Signals to this process are passed on; this process stops when the program
 * stops. Refuses (126) when the program cannot be executed. *ret_status: as of wait(2).
 */
bool child_run(const char *path, char *const *command, char *const *environment, int *ret_status, GError **error);

#endif
