/* SPDX-License-Identifier: BSD-2-Clause */
/* What the machine knows about a local server: whether one runs out of our reach, and what will end one. */
#ifndef DM_SPAWN_OUTSIDE_H
#define DM_SPAWN_OUTSIDE_H

#include <stdbool.h>

/*
 * True if this user listens, in this network namespace, on a socket that was bound to this path, whatever is at the
 * path now: the file may have been deleted, or be in another mount namespace.  If the kernel has no sock_diag(7), or it
 * does not report users, anybody's listener counts.  False if this cannot be found out.
 */
bool dm_outside_has_listener(const char *path);

#define DM_OUTSIDE_UNIT_ROOM 80

/* The systemd service of a process with these lines in /proc/PID/cgroup.  False: it is in none. */
bool dm_outside_read_unit(const char *cgroups, char ret_unit[DM_OUTSIDE_UNIT_ROOM]);

/* The same for this process. */
bool dm_outside_unit(char ret_unit[DM_OUTSIDE_UNIT_ROOM]);

#endif
