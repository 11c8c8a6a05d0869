/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the keeper of this process listens, and how one is started.  Async-signal-safe, all of it. */
#ifndef DM_PRELOAD_KEEPER_PLACE_H
#define DM_PRELOAD_KEEPER_PLACE_H

#include <stdbool.h>
#include <sys/un.h>

/*
 * The socket of the keeper for this user, pid and network namespace and server.  False, said: the
 * path is too long.
 */
bool keeper_find_place(struct sockaddr_un *ret_address);

/* A connection, or -1 with errno: ENOENT and ECONNREFUSED say that nobody listens there. */
int keeper_connect(const struct sockaddr_un *address);

/* Starts one, unless somebody else is quicker.  A connection, or -1, said. */
int keeper_start(const struct sockaddr_un *address);

#endif
