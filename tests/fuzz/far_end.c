/* SPDX-License-Identifier: BSD-2-Clause */
#include "far_end.h"

#include <errno.h>
#include <sys/socket.h>

#include "fuzz.h"
#include "link/link_parts.h"

int server_fd;

int open_ends(void)
{
    int ends[2];

    must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
    server_fd = ends[1];
    return ends[0];
}

void send_bytes(const uint8_t *bytes, size_t length)
{
    if (server_fd >= 0 && length)
        must(send(server_fd, bytes, length, MSG_NOSIGNAL) == (ssize_t)length || errno == EPIPE);
}

void free_link(struct dm_link *link)
{
    struct dm_pipe *pipe = &link->session.pipe;
    struct dm_slot *slot;

    must(!pipe->first && !pipe->reader.hiredis && !pipe->out && pipe->stream.fd < 0);
    must(!link->session.finished && !link->finished && link->leader_bell < 0);
    while ((slot = pipe->spare)) {
        pipe->spare = slot->next;
        free(slot);
    }
    free(link);
}
