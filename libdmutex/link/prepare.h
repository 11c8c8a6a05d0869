/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The part of opening a connection that may block: looking up a name, starting a server, reading a file, the TLS
 * handshake.
 */
#ifndef DM_LINK_PREPARE_H
#define DM_LINK_PREPARE_H

#include <stdbool.h>
#include <stdint.h>

#include "link/greeter.h"

enum dm_preparing {
    DM_PREPARING_NOTHING,
    DM_PREPARING_WAY,
    DM_PREPARING_LOGIN, /* only the greeter's own work: there are addresses that have not been tried */
    DM_PREPARING_HANDSHAKE
};

#define DM_PREPARED_HOST_ROOM 256
#define DM_PREPARED_PORT_ROOM 8

/* The task of one thread, and its result. */
struct dm_prepared {
    enum dm_preparing task;
    struct dm_stream stream; /* of a handshake; or opened by the hook */
    bool may_open_later;     /* the hook's failure is not permanent */
    int64_t deadline_ns;     /* of a handshake */
    /* What to look up; copies, since the options may change in the meantime.  "": a path. */
    char host[DM_PREPARED_HOST_ROOM], port[DM_PREPARED_PORT_ROOM];
    enum dm_found found;
    struct dm_addresses *addresses; /* DM_FOUND */
    char reason[DM_REASON_ROOM];    /* where nothing was found */
};

/*
 * Called in the helper thread, without the link's lock.  During a look-up the session may go on with the addresses that
 * it has; otherwise it waits, and options and greeter do not change.
 */
void dm_prepare(struct dm_prepared *prepared, const struct dm_link_options *options);

#endif
