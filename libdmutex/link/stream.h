/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stream of bytes to the server: a socket, non-blocking, closed on exec, noticed dead by the kernel.  Addresses are
 * found beforehand, because a name look-up can block for long.
 */
#ifndef DM_LINK_STREAM_H
#define DM_LINK_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/text.h"

/* Where a server listens: TCP if there is a host, else the path of a unix socket.  Borrowed texts. */
struct dm_address {
    const char *host, *port;
    const char *path;
};

/* An address may have many of these: all addresses of a host name. */
struct dm_addresses;

/*
 * The addresses of the server, to be given to dm_addresses_free().  With may_block false only addresses that need no
 * look-up.  NULL with the reason; *ret_reason is "" when a look-up is needed.
 */
struct dm_addresses *dm_addresses_find(const struct dm_address *address, bool may_block,
                                       char ret_reason[DM_REASON_ROOM]);
void dm_addresses_free(struct dm_addresses *addresses);

/* True if there is an address that dm_stream_connect() has not tried yet. */
bool dm_addresses_has_more(const struct dm_addresses *addresses);

/* The caller's lock guards a stream. */
struct dm_stream {
    int fd; /* -1: closed */
};

/*
 * Begins to connect to the next address in turn; ask dm_stream_error() when the socket is writable.
 * False with errno; the stream stays closed then.
 */
bool dm_stream_connect(struct dm_stream *stream, struct dm_addresses *addresses, unsigned user_timeout_ms);

/* The errno value of a connect that has ended, 0 for success; EINPROGRESS while it goes on.  Never blocks. */
int dm_stream_error(const struct dm_stream *stream);

/* Returns how many bytes the kernel took, 0 if none at this moment, or -1 with errno: the stream is broken. */
ssize_t dm_stream_send(const struct dm_stream *stream, const char *bytes, size_t length);

/* Returns how many bytes came, 0 if none are there, or -1: the stream is broken by errno, or ended with errno 0. */
ssize_t dm_stream_receive(const struct dm_stream *stream, char *room, size_t length);

/* Wakes threads that sleep on the socket, and closes the socket. */
void dm_stream_close(struct dm_stream *stream);

/* In a forked child: closes the copy; the parent's connection goes on. */
void dm_stream_forget(struct dm_stream *stream);

#endif
