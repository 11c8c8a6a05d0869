/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opens a stream to a server in a thread of its own, because a look-up of the name blocks, and the handshake of TLS
 * needs time and stack.  The caller learns of the end by a descriptor.  For stores that speak to their server over a
 * stream; the session of Redis has its own steps (link/prepare.h).
 */
#ifndef DM_LINK_DIAL_H
#define DM_LINK_DIAL_H

#include "link/address.h"
#include "link/stream.h"

/* Where to, and how.  The texts are needed only during dm_dial_begin(). */
struct dm_dial_options {
    struct dm_address address;
    struct dm_tls_options tls;
    unsigned connect_timeout_ms; /* for all steps together */
    unsigned user_timeout_ms;    /* for how long the server may acknowledge no bytes, later */
};

struct dm_dial;

/* NULL without memory, thread or descriptor. */
struct dm_dial *dm_dial_begin(const struct dm_dial_options *options);

/* Becomes readable at the end.  A program may have closed it: look again after a while in any case. */
int dm_dial_fd(const struct dm_dial *dial);

/* False if the dial has not ended.  Else frees it; the stream is closed (fd -1), with the reason, if it has failed. */
bool dm_dial_take(struct dm_dial *dial, struct dm_stream *ret_stream, char ret_reason[DM_REASON_ROOM]);

/* Nobody wants the stream any more.  Does not wait for the thread, which frees the rest. */
void dm_dial_abandon(struct dm_dial *dial);

/* In a forked child: closes the descriptors, and leaks what the thread of the parent was using. */
void dm_dial_forget(struct dm_dial *dial);

#endif
