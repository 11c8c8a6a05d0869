/* SPDX-License-Identifier: BSD-2-Clause */
/* The part of an opening that may block: a name is looked up, a server started, a file read, hands are shaken. */
#ifndef DM_LINK_PREPARE_H
#define DM_LINK_PREPARE_H

#include <stdbool.h>
#include <stdint.h>

#include "link/greeter.h"

/* The task of one thread, and its result. */
struct dm_prepared {
    struct dm_stream stream; /* of a handshake; or opened by the hook */
    int64_t deadline_ns;     /* of a handshake */
    bool is_handshake;
    struct dm_addresses *addresses;
    char reason[DM_REASON_ROOM]; /* where nothing was found */
};

/* In the helper thread, without the link's lock: the options and the greeter are constant. */
void dm_prepare(struct dm_prepared *prepared, const struct dm_link_options *options, const struct dm_greeter *greeter);

#endif
