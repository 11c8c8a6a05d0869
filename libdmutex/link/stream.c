/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/stream.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/descriptor.h"

struct dm_addresses {
    struct addrinfo *found; /* TCP, else NULL */
    struct addrinfo *next;  /* to be tried; NULL after the last */
    struct sockaddr_un path;
};

/* ---- addresses --------------------------------------------------------------------------- */

/* The path fits: the reader of URLs has compared the length, and calloc() has put the NUL behind. */
static struct dm_addresses *unix_address(const char *path)
{
    struct dm_addresses *addresses = calloc(1, sizeof *addresses);

    if (addresses) {
        addresses->path.sun_family = AF_UNIX;
        strncpy(addresses->path.sun_path, path, sizeof addresses->path.sun_path - 1);
    }
    return addresses;
}

/*
 * Without may_block a numeric address alone is found.  A name is no failure then, and has no reason: the caller looks
 * the name up in a thread.
 */
static struct dm_addresses *tcp_addresses(const struct dm_address *address, bool may_block, char *ret_reason)
{
    struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
    struct dm_addresses *addresses = calloc(1, sizeof *addresses);
    int error;

    if (!addresses)
        return NULL;
    hints.ai_flags = may_block ? AI_ADDRCONFIG : AI_NUMERICHOST;
    error = getaddrinfo(address->host, address->port, &hints, &addresses->found);
    addresses->next = addresses->found;
    if (error == 0)
        return addresses;
    if (may_block || error != EAI_NONAME)
        snprintf(ret_reason, DM_REASON_ROOM, "the host name %.80s cannot be looked up: %s", address->host,
                 gai_strerror(error));
    free(addresses);
    return NULL;
}

struct dm_addresses *dm_addresses_find(const struct dm_address *address, bool may_block,
                                       char ret_reason[DM_REASON_ROOM])
{
    ret_reason[0] = '\0';
    if (address->host)
        return tcp_addresses(address, may_block, ret_reason);
    return unix_address(address->path);
}

/* NULL is allowed, as for free(). */
void dm_addresses_free(struct dm_addresses *addresses)
{
    if (addresses && addresses->found)
        freeaddrinfo(addresses->found);
    free(addresses);
}

bool dm_addresses_has_more(const struct dm_addresses *addresses)
{
    return addresses && addresses->next;
}

/* ---- connecting -------------------------------------------------------------------------- */

/*
 * Commands are small and awaited: no Nagle.  Keepalive notices a peer that has silently gone when we only listen, and
 * the user timeout when we have sent bytes.
 */
static void tune(int fd, unsigned user_timeout_ms)
{
    const struct {
        int level, option, value;
    } settings[] = {
        { IPPROTO_TCP, TCP_NODELAY, 1 },   { IPPROTO_TCP, TCP_USER_TIMEOUT, (int)user_timeout_ms },
        { SOL_SOCKET, SO_KEEPALIVE, 1 },   { IPPROTO_TCP, TCP_KEEPIDLE, 5 },
        { IPPROTO_TCP, TCP_KEEPINTVL, 2 }, { IPPROTO_TCP, TCP_KEEPCNT, 3 },
    };

    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++)
        setsockopt(fd, settings[i].level, settings[i].option, &settings[i].value, sizeof settings[i].value);
}

/*
 * The connect goes on in the background, and POLLOUT says the end.  Non-blocking also for a unix socket, where a full
 * backlog is EAGAIN and would block.
 */
static int connect_to(const struct sockaddr *address, socklen_t length, unsigned user_timeout_ms)
{
    int fd = dm_descriptor_move_up(socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));

    if (fd < 0)
        return -1;
    if (address->sa_family != AF_UNIX)
        tune(fd, user_timeout_ms);
    if (connect(fd, address, length) < 0 && errno != EINPROGRESS) {
        int error = errno;

        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

struct dm_stream dm_stream_of(int fd)
{
    return (struct dm_stream){ .fd = fd, .file = dm_fileid_of(fd) };
}

bool dm_stream_is_ours(const struct dm_stream *stream)
{
    return dm_fileid_has(&stream->file, stream->fd);
}

/* Moves on to the next address before trying this one, so that each address is tried once, whatever comes of it. */
bool dm_stream_connect(struct dm_stream *stream, struct dm_addresses *addresses, unsigned user_timeout_ms)
{
    const struct addrinfo *next = addresses->next;

    if (!addresses->found) {
        *stream = dm_stream_of(
            connect_to((const struct sockaddr *)&addresses->path, sizeof addresses->path, user_timeout_ms));
    } else {
        addresses->next = next->ai_next;
        *stream = dm_stream_of(connect_to(next->ai_addr, next->ai_addrlen, user_timeout_ms));
    }
    return stream->fd >= 0;
}

/* SO_ERROR is read only after POLLOUT: before the end of the connect the value would be 0, and say that all is well. */
int dm_stream_error(const struct dm_stream *stream)
{
    struct pollfd poller = { .fd = stream->fd, .events = POLLOUT };
    int error = 0;
    socklen_t length = sizeof error;

    if (poll(&poller, 1, 0) <= 0)
        return EINPROGRESS;
    if (getsockopt(stream->fd, SOL_SOCKET, SO_ERROR, &error, &length) < 0)
        return errno;
    return error;
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
    stream->tls = dm_tls_open(stream->fd, options, deadline_ns, ret_reason);
    return stream->tls != NULL;
}

/* ---- bytes ------------------------------------------------------------------------------- */

/* MSG_NOSIGNAL, because SIGPIPE would be the program's; a full buffer is 0 bytes, and the caller keeps the rest. */
ssize_t dm_stream_send(const struct dm_stream *stream, const char *bytes, size_t length)
{
    ssize_t sent;

    if (stream->tls)
        return dm_tls_send(stream->tls, bytes, length);
    sent = send(stream->fd, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0)
        return sent;
    return errno == EAGAIN || errno == EINTR ? 0 : -1;
}

/*
 * Tells three cases by two values: 0 is "nothing yet", -1 with errno 0 the server's end, -1 with another errno a
 * failure.
 */
ssize_t dm_stream_receive(const struct dm_stream *stream, char *room, size_t length)
{
    ssize_t got;

    if (stream->tls)
        return dm_tls_receive(stream->tls, room, length);
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
    return stream->tls ? dm_tls_reason(stream->tls) : "";
}

bool dm_stream_holds(const struct dm_stream *stream)
{
    return stream->tls && dm_tls_holds(stream->tls);
}

short dm_stream_events(const struct dm_stream *stream, bool has_more)
{
    if (stream->tls)
        return dm_tls_events(stream->tls, has_more);
    return (short)(POLLIN | (has_more ? POLLOUT : 0));
}

bool dm_stream_is_for_thread(const struct dm_stream *stream)
{
    return stream->fd >= 0 && (!stream->tls || dm_tls_has_stack());
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
    dm_tls_free(stream->tls);
    dm_stream_forget(stream);
}

/*
 * In a forked child, without shutdown(): the socket is the parent's, too, and goes on there.  The TLS may have been in
 * use by another thread of the parent: its memory stays.
 */
void dm_stream_forget(struct dm_stream *stream)
{
    dm_fileid_close(&stream->file, stream->fd);
    stream->fd = -1;
    stream->tls = NULL;
}
