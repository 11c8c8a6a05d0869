/* SPDX-License-Identifier: BSD-2-Clause */
/* The descendants of a process. */
#ifndef DM_TOOLS_TREE_H
#define DM_TOOLS_TREE_H

#include <sys/types.h>

/* Sends a signal to all descendants of `root`.  Any thread.  Returns one that this user may not signal, or 0. */
pid_t tree_signal(pid_t root, int number);

#endif
