/* SPDX-License-Identifier: BSD-2-Clause */
/* The tables, sockets and locks of the library around fork(): its three handlers. */
#ifndef DM_PROCESS_LIFE_FORK_H
#define DM_PROCESS_LIFE_FORK_H

void dm_runtime_fork_prepare(void);
void dm_runtime_fork_parent(void);
void dm_runtime_fork_child(void);

#endif
