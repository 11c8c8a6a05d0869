/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * "local:", a private server of this user on this machine, started at first use and shared by the user's processes: no
 * TCP port, no persistence, in a directory only the user can enter.  The server goes on running; `redis-cli -s DIR/s
 * shutdown` ends the server.
 */
#ifndef DM_SPAWN_LOCAL_H
#define DM_SPAWN_LOCAL_H

#include <stdbool.h>

#include "store/url.h"

/* Sets url->path to the local server's socket.  Nothing is created.  False with the reason. */
bool dm_local_place(struct dm_url *url, char ret_reason[DM_REASON_ROOM]);

/*
 * Connects to the server of url->path.  Any number of processes may do this at once.
 *
 * The function checks the folder before every connect and the listener's user after the connect, because another user
 * may have made a folder of that name first.  A program with more rights than the caller never connects.
 *
 * may_start: starts a server if nobody listens, and blocks up to connect_timeout; else never blocks.
 * Returns a non-blocking socket that is connected, or -1 with the reason.
 */
int dm_local_open(struct dm_url *url, bool may_start, char ret_reason[DM_REASON_ROOM]);

#endif
