/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the keeper of this process listens, and how a keeper is started. Everything here is async-signal-safe. */
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
 * Finds the socket of the keeper for this user, these pid and network namespaces and this server. False, reported, if
 * the path is too long or relative.
 */
bool keeper_find_place(struct keeper_place *ret_place);

/* Connects to a keeper of this user. Returns -1 with the fault; DM_FAULT_ABSENT: no keeper is running. */
int keeper_connect(const struct keeper_place *place, struct dm_fault *ret_fault);

/* Starts a keeper, unless another process is faster. Returns a connection, or -1, reported. */
int keeper_start(const struct keeper_place *place);

#endif
