/* SPDX-License-Identifier: BSD-2-Clause */
/* The descendants of a process. */
#ifndef DM_TOOLS_TREE_H
#define DM_TOOLS_TREE_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * Sends a signal to all descendants of `root` but servants (servant.h).  Any thread.  *ret_forbidden: one that this
 * user may not signal, or 0.  False if there is no /proc, as in some containers, or one of another pid namespace, or no
 * descriptor of a process, as before Linux 5.3: then some or all have not got the signal.
 */
bool tree_signal(pid_t root, int number, pid_t *ret_forbidden);

/* True if all descendants of `root` are servants; false also if that cannot be seen. */
bool tree_has_servants_only(pid_t root);

#endif
