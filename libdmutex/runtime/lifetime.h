/* SPDX-License-Identifier: BSD-2-Clause */
/* The ends that the library is told of: of a thread, of the process, and fork() in between. */
#ifndef DM_RUNTIME_LIFETIME_H
#define DM_RUNTIME_LIFETIME_H

/* runtime.c: the tables and sockets around fork(). */
void dm_runtime_fork_prepare(void);
void dm_runtime_fork_parent(void);
void dm_runtime_fork_child(void);

#endif
