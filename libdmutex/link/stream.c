/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/stream.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

struct dm_stream dm_stream_of(int fd)
{
    return (struct dm_stream){ .fd = fd, .file = dm_fileid_of(fd) };
}

bool dm_stream_is_ours(const struct dm_stream *stream)
{
    return dm_fileid_has(&stream->file, stream->fd);
}

bool dm_stream_is_near(const struct dm_stream *stream)
{
    struct sockaddr_storage peer = { .ss_family = AF_UNSPEC };
    socklen_t length = sizeof peer;

    if (getpeername(stream->fd, (struct sockaddr *)&peer, &length) < 0)
        return false;
    if (peer.ss_family == AF_INET)
        return ntohl(((struct sockaddr_in *)&peer)->sin_addr.s_addr) >> IN_CLASSA_NSHIFT == IN_LOOPBACKNET;
    if (peer.ss_family == AF_INET6)
        return IN6_IS_ADDR_LOOPBACK(&((struct sockaddr_in6 *)&peer)->sin6_addr);
    return peer.ss_family == AF_UNIX;
}

bool dm_stream_secure(struct dm_stream *stream, const struct dm_tls_options *options, int64_t deadline_ns,
                      char ret_reason[DM_REASON_ROOM])
{
    stream->calls = dm_tls_load(deadline_ns, ret_reason);
    if (stream->calls)
        stream->tls = stream->calls->open(stream->fd, options, deadline_ns, ret_reason);
    return stream->tls != NULL;
}

/* ---- bytes ------------------------------------------------------------------------------- */

/* MSG_NOSIGNAL, because SIGPIPE would hit the program.  A full buffer gives 0, and the caller keeps the rest. */
ssize_t dm_stream_send(const struct dm_stream *stream, const char *bytes, size_t length)
{
    ssize_t sent;

    if (stream->tls)
        return stream->calls->send(stream->tls, bytes, length);
    sent = send(stream->fd, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0)
        return sent;
    return errno == EAGAIN || errno == EINTR ? 0 : -1;
}

/* 0 means "nothing yet", -1 with errno 0 that the server has closed, and -1 with another errno a failure. */
ssize_t dm_stream_receive(const struct dm_stream *stream, char *room, size_t length)
{
    ssize_t got;

    if (stream->tls)
        return stream->calls->receive(stream->tls, room, length);
    got = recv(stream->fd, room, length, MSG_DONTWAIT);
    if (got > 0)
        return got;
    if (got < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -1;
    errno = 0;
    return -1;
}

const char *dm_stream_reason(const struct dm_stream *stream)
{
    return stream->tls ? stream->calls->reason(stream->tls) : "";
}

bool dm_stream_holds(const struct dm_stream *stream)
{
    return stream->tls && stream->calls->holds(stream->tls);
}

bool dm_stream_is_cut(const struct dm_stream *stream)
{
    return stream->tls && stream->calls->is_cut(stream->tls);
}

short dm_stream_events(const struct dm_stream *stream, bool has_more)
{
    if (stream->tls)
        return stream->calls->events(stream->tls, has_more);
    return (short)(POLLIN | (has_more ? POLLOUT : 0));
}

bool dm_stream_is_for_thread(const struct dm_stream *stream)
{
    return stream->fd >= 0 && (!stream->tls || stream->calls->has_stack());
}

/* close() alone does not wake a thread that sleeps in poll() on the socket. */
void dm_stream_end(const struct dm_stream *stream)
{
    if (dm_stream_is_ours(stream))
        shutdown(stream->fd, SHUT_RDWR);
}

void dm_stream_close(struct dm_stream *stream)
{
    dm_stream_end(stream);
    if (stream->tls)
        stream->calls->free(stream->tls);
    dm_stream_forget(stream);
}

/*
 * No shutdown() in a forked child: the parent shares the socket, and goes on using it.  The TLS state may have been in
 * use by another thread of the parent, so its memory is not freed.
 */
void dm_stream_forget(struct dm_stream *stream)
{
    dm_fileid_close(&stream->file, stream->fd);
    stream->fd = -1;
    stream->tls = NULL;
}
