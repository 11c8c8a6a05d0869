/* SPDX-License-Identifier: BSD-2-Clause */
/* The descendants of a process. */
#ifndef DM_TOOLS_TREE_H
#define DM_TOOLS_TREE_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * Sends a signal to all descendants of `root` except servants (servant.h).  Any thread.  *ret_forbidden: one that this
 * user may not signal, or 0.  Returns false if some or all may not have got the signal: there is no /proc, as in some
 * containers, or it is that of another pid namespace, or there are no process descriptors, as before Linux 5.3.
 */
bool tree_signal(pid_t root, int number, pid_t *ret_forbidden);

/* True if all descendants of `root` are servants.  False also if that cannot be determined. */
bool tree_has_servants_only(pid_t root);

#endif
