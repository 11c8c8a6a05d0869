/* SPDX-License-Identifier: BSD-2-Clause */
/* A build without OpenSSL.  The reader of URLs refuses TLS, so no connection has a struct dm_tls. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>

#include "link/tls.h"

struct dm_tls *dm_tls_open(int fd, const struct dm_tls_options *options, int64_t deadline_ns,
                           char ret_reason[DM_REASON_ROOM])
{
    (void)fd;
    (void)options;
    (void)deadline_ns;
    snprintf(ret_reason, DM_REASON_ROOM, "this libdmutex was built without TLS");
    return NULL;
}

void dm_tls_free(struct dm_tls *tls)
{
    (void)tls;
}

ssize_t dm_tls_send(struct dm_tls *tls, const char *bytes, size_t length)
{
    (void)tls;
    (void)bytes;
    (void)length;
    errno = EPROTO;
    return -1;
}

ssize_t dm_tls_receive(struct dm_tls *tls, char *room, size_t length)
{
    (void)tls;
    (void)room;
    (void)length;
    errno = EPROTO;
    return -1;
}

bool dm_tls_has_stack(void)
{
    return true;
}

const char *dm_tls_reason(const struct dm_tls *tls)
{
    (void)tls;
    return "";
}

bool dm_tls_holds(const struct dm_tls *tls)
{
    (void)tls;
    return false;
}

short dm_tls_events(const struct dm_tls *tls, bool has_more)
{
    (void)tls;
    return has_more ? POLLIN | POLLOUT : POLLIN;
}

void dm_tls_fork_prepare(void)
{
}

void dm_tls_fork_parent(void)
{
}

void dm_tls_fork_child(void)
{
}
