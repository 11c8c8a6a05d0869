/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * "local:", a private server of this user on this machine, started at first use and shared by the user's processes: no
 * TCP port, no persistence, in a directory only the user can enter.  The server keeps running; `redis-cli -s DIR/s
 * shutdown` ends it.
 *
 * Grace.  A server that is started after another one knows none of its holds, whose holders may be alive and certain.
 * So each process that has connected keeps a shared lock (flock) on the folder until it ends.  A process that starts a
 * server tries to lock the folder exclusively: if it succeeds, nobody is left who could hold anything, and it records
 * that for the new server by a file "alone" in the folder.  A process that ends a server in which nothing was held
 * leaves a file "idle", which does the same for the next server.  Without such a file the server has a grace, like any
 * other server.  If something goes wrong here, the result is an unnecessary grace: no space for the file, a cleaner
 * that deletes it, a file system without flock.
 */
#ifndef DM_SPAWN_LOCAL_H
#define DM_SPAWN_LOCAL_H

#include <stdbool.h>

#include "config/url.h"

/* Sets url->path to the local server's socket.  Nothing is created.  False with the reason. */
bool dm_local_place(struct dm_url *url, char ret_reason[DM_REASON_ROOM]);

/*
 * Connects to the server at url->path.  Any number of processes may do this at once.
 *
 * Checks the folder before each connect, and the listener's user afterwards, because another user may have created a
 * folder of that name first.  A program with more rights than its caller never connects.
 *
 * may_start: starts a server if nobody listens, and blocks for at most connect_timeout; otherwise never blocks.
 * Returns a non-blocking socket that is connected, or -1 with the reason, or DM_OPEN_LATER with the reason where no
 * process can be made now.  Sets url->has_grace if the server needs one, and never clears it: a thread that has checked
 * an earlier server must not undo it.
 */
int dm_local_open(struct dm_url *url, bool may_start, char ret_reason[DM_REASON_ROOM]);

/* Keeps everyone from starting a server until the returned descriptor is closed. -1 with the reason. */
int dm_local_bar_starts(const struct dm_url *url, char ret_reason[DM_REASON_ROOM]);

/* Called with starts barred, after the server has ended with nothing held in it: the next server needs no grace. */
void dm_local_note_idle(const struct dm_url *url);

/* Closes the child's lock on the folder: it holds nothing, whatever its parent does. */
void dm_local_fork_child(void);

#endif
