/* SPDX-License-Identifier: BSD-2-Clause */
/* The three handlers of fork(), for the tables, sockets and locks of the library. */
#ifndef DM_PROCESS_LIFE_FORK_H
#define DM_PROCESS_LIFE_FORK_H

void dm_runtime_fork_prepare(void);
void dm_runtime_fork_parent(void);
void dm_runtime_fork_child(void);

#endif
