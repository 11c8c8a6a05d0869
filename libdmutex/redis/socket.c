/* SPDX-License-Identifier: BSD-2-Clause */
#include "redis/socket.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
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

static struct dm_addresses *unix_address(const char *path)
{
    struct dm_addresses *addresses = calloc(1, sizeof *addresses);

    if (addresses) {
        addresses->path.sun_family = AF_UNIX;
        strncpy(addresses->path.sun_path, path, sizeof addresses->path.sun_path - 1);
    }
    return addresses;
}

static struct dm_addresses *tcp_addresses(const struct dm_url *url, bool may_block, char *ret_reason)
{
    struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
    struct dm_addresses *addresses = calloc(1, sizeof *addresses);
    int error;

    if (!addresses)
        return NULL;
    hints.ai_flags = may_block ? AI_ADDRCONFIG : AI_NUMERICHOST;
    error = getaddrinfo(url->host, url->port, &hints, &addresses->found);
    addresses->next = addresses->found;
    if (error == 0)
        return addresses;
    if (may_block || error != EAI_NONAME)
        snprintf(ret_reason, DM_REASON_ROOM, "the host name %.80s cannot be looked up: %s", url->host,
                 gai_strerror(error));
    free(addresses);
    return NULL;
}

struct dm_addresses *dm_addresses_find(const struct dm_url *url, bool may_block, char ret_reason[DM_REASON_ROOM])
{
    ret_reason[0] = '\0';
    if (url->kind == DM_URL_TCP)
        return tcp_addresses(url, may_block, ret_reason);
    return unix_address(url->path);
}

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

int dm_socket_connect(struct dm_addresses *addresses, unsigned user_timeout_ms)
{
    const struct addrinfo *next;

    if (!addresses->found)
        return connect_to((const struct sockaddr *)&addresses->path, sizeof addresses->path, user_timeout_ms);
    next = addresses->next;
    addresses->next = next->ai_next;
    return connect_to(next->ai_addr, next->ai_addrlen, user_timeout_ms);
}

int dm_socket_error(int fd)
{
    int error = 0;
    socklen_t length = sizeof error;

    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) < 0)
        return errno;
    return error;
}
