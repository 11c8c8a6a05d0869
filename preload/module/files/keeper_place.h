/* SPDX-License-Identifier: BSD-2-Clause */
/* The place where the keeper of this process listens, and the start of a keeper. Async-signal-safe, all of it. */
#ifndef DM_PRELOAD_KEEPER_PLACE_H
#define DM_PRELOAD_KEEPER_PLACE_H

#include <stdbool.h>
#include <sys/un.h>

#include "base/place.h"

struct keeper_place {
    char folder[sizeof((struct sockaddr_un *)0)->sun_path];
    char name[32]; /* of the socket in the folder */
};

/*
 * The socket of the keeper for this user, pid and network namespace and server.  False, said: the
 * path is too long, or relative.
 */
bool keeper_find_place(struct keeper_place *ret_place);

/* A connection to a keeper of this user, or -1 with the fault: DM_FAULT_ABSENT says that no keeper runs. */
int keeper_connect(const struct keeper_place *place, struct dm_fault *ret_fault);

/* Starts a keeper, unless another process is quicker. A connection, or -1, said. */
int keeper_start(const struct keeper_place *place);

#endif
