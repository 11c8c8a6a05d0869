/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * "local:", a private server of this user on this machine, started at first use and shared by the user's processes: no
 * TCP port, no persistence, in a directory only the user can enter.  The server goes on running; `redis-cli -s DIR/s
 * shutdown` ends the server.
 *
 * Grace.  A server that is started after another one has lost all holds, and their holders may be alive and certain.
 * So each process that has connected keeps a shared lock (flock) on the folder until it ends.  Whoever starts a server
 * tries to lock the folder alone: if that succeeds, nobody is left who could hold anything, and a file "alone" in the
 * folder says so of the new server.  Whoever ends a server in which nothing was held leaves a file "idle", which says
 * the same of the next server.  Without a file the server has a grace, as any other server.  Whatever goes wrong here
 * makes a grace too many: no room for the file, a cleaner that deletes it, a filesystem without flock.
 */
#ifndef DM_SPAWN_LOCAL_H
#define DM_SPAWN_LOCAL_H

#include <stdbool.h>

#include "config/url.h"

/* Sets url->path to the local server's socket.  Nothing is created.  False with the reason. */
bool dm_local_place(struct dm_url *url, char ret_reason[DM_REASON_ROOM]);

/*
 * Connects to the server of url->path.  Any number of processes may do this at once.
 *
 * The function checks the folder before every connect and the listener's user after the connect, because another user
 * may have made a folder of that name first.  A program with more rights than the caller never connects.
 *
 * may_start: starts a server if nobody listens, and blocks up to connect_timeout; else never blocks.
 * Returns a non-blocking socket that is connected, or -1 with the reason, or DM_OPEN_LATER with the reason
 * where no process can be made now.  Sets url->has_grace if the server needs one,
 * and never takes that back: a thread that has looked at the server before must not undo it.
 */
int dm_local_open(struct dm_url *url, bool may_start, char ret_reason[DM_REASON_ROOM]);

/* Until the descriptor is closed, nobody starts a server.  -1 with the reason. */
int dm_local_bar_starts(const struct dm_url *url, char ret_reason[DM_REASON_ROOM]);

/* Starts are barred, and the server has ended with nothing held in it: the next server needs no grace. */
void dm_local_note_idle(const struct dm_url *url);

/* A forked child holds nothing, whatever its parent does. */
void dm_local_fork_child(void);

#endif
