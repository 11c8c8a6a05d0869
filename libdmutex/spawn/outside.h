/* SPDX-License-Identifier: BSD-2-Clause */
/* What the machine around tells about a local server: one that is out of reach, and what will end one. */
#ifndef DM_SPAWN_OUTSIDE_H
#define DM_SPAWN_OUTSIDE_H

#include <stdbool.h>

/*
 * True if this user listens, in this network namespace, on a socket that was bound to this path, whatever it leads to
 * now and here: the file may have been deleted, or be in another mount namespace.  Anybody counts for this user if the
 * kernel has no sock_diag(7) or tells no users.  False also if that cannot be known.
 */
bool dm_outside_has_listener(const char *path);

#define DM_OUTSIDE_UNIT_ROOM 80

/* The systemd service that a process with these lines in /proc/PID/cgroup is a part of.  False: it is in none. */
bool dm_outside_read_unit(const char *cgroups, char ret_unit[DM_OUTSIDE_UNIT_ROOM]);

/* The same for this process. */
bool dm_outside_unit(char ret_unit[DM_OUTSIDE_UNIT_ROOM]);

#endif
