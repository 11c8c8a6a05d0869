/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stream of bytes to the server: a non-blocking socket, closed on exec, whose death the kernel notices; with TLS
 * after dm_stream_secure(). link/race.h connects it.
 */
#ifndef DM_LINK_STREAM_H
#define DM_LINK_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/fileid.h"
#include "base/text.h"
#include "link/tls_calls.h"

/* The caller's lock guards a stream. */
struct dm_stream {
    int fd;                /* -1: closed */
    struct dm_fileid file; /* of the socket: the program may have closed it, and use the number for another file */
    struct dm_tls *tls;    /* NULL: plain */
    const struct dm_tls_calls *calls;
};

/* Makes a stream of a socket that somebody else has opened; -1 is allowed. */
struct dm_stream dm_stream_of(int fd);

/* False if the number now belongs to the program, or is closed: then only dm_stream_close() may be called. */
bool dm_stream_is_ours(const struct dm_stream *stream);

/*
 * Adds TLS to a connected stream; see dm_tls_load() and dm_tls_open().  Blocks until the deadline at most; the caller
 * holds no lock.  False with the reason.
 */
bool dm_stream_secure(struct dm_stream *stream, const struct dm_tls_options *options, int64_t deadline_ns,
                      char ret_reason[DM_REASON_ROOM]);

/* True if the other end of a connected stream is on this machine, by its address. */
bool dm_stream_is_near(const struct dm_stream *stream);

/* Returns how many bytes the kernel took, 0 if it takes none now, or -1 with errno: the stream is broken. */
ssize_t dm_stream_send(const struct dm_stream *stream, const char *bytes, size_t length);

/* Returns how many bytes came, 0 if there are none now, or -1: the stream is broken (errno), or has ended (errno 0). */
ssize_t dm_stream_receive(const struct dm_stream *stream, char *room, size_t length);

/* A sentence about the last failure that says more than its errno; "" if there is none. */
const char *dm_stream_reason(const struct dm_stream *stream);

/*
 * True if the stream holds bytes that dm_stream_receive() has not returned: the socket may not become readable for
 * them.
 */
bool dm_stream_holds(const struct dm_stream *stream);

/* True if the last receive stopped at its limit of work, and the socket may have more. */
bool dm_stream_is_cut(const struct dm_stream *stream);

/* The events to poll the socket for; has_more: the caller has bytes to send. */
short dm_stream_events(const struct dm_stream *stream, bool has_more);

/*
 * False if the stream is closed, or if the calling thread has too little stack for TLS: then it must neither send nor
 * receive, and leave both to another thread.
 */
bool dm_stream_is_for_thread(const struct dm_stream *stream);

/* Ends the connection, so that threads that sleep on the socket wake up.  The socket stays open. */
void dm_stream_end(const struct dm_stream *stream);

/* The same, and closes the socket. */
void dm_stream_close(struct dm_stream *stream);

/* In a forked child: closes the copy, and frees nothing; the parent's connection continues. */
void dm_stream_forget(struct dm_stream *stream);

#endif
