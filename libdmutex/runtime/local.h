/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * "local:", a private server of this user on this machine, started when it is first wanted and
 * shared by the user's processes: no TCP port, no persistence, in a directory only the user can
 * enter.  It goes on running; `redis-cli -s DIR/s shutdown` ends it.
 */
#ifndef DM_RUNTIME_LOCAL_H
#define DM_RUNTIME_LOCAL_H

#include <stdbool.h>

#include "redis/url.h"

/* Sets url->path to the local server's socket.  Nothing is created.  False with the reason. */
bool dm_local_place(struct dm_url *url, char ret_reason[DM_REASON_ROOM]);

/*
 * Makes sure that the server of url->path answers, starting it if nobody has.  Any number of
 * processes may do this at once.  Blocks, up to connect_timeout.  False with the reason.
 */
bool dm_local_start(struct dm_url *url, char ret_reason[DM_REASON_ROOM]);

#endif
