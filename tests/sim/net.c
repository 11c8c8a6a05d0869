/* SPDX-License-Identifier: BSD-2-Clause */
#include "net.h"

#include <stdlib.h>
#include <string.h>

#include "process.h"
#include "server.h"
#include "sockets.h"
#include "world.h"

#define KEEPALIVE_NS (3000 * MS) /* then a silent peer is noticed; a real socket takes 11 s */

static int64_t usual_ns, most_ns;
static struct link *newest;

/* Bytes on the way. */
struct segment {
    struct link *link;
    enum way way;
    size_t length;
    char bytes[];
};

void net_set_delay(int64_t usual, int64_t most)
{
    usual_ns = usual;
    most_ns = most;
}

int64_t net_delay(void)
{
    return chance_delay(CHANCE_NETWORK, usual_ns, most_ns);
}

/* ---- bytes ------------------------------------------------------------------------------- */

static void arrive(void *object, uint64_t number)
{
    struct segment *segment = object;
    struct link *link = segment->link;

    (void)number;
    if (link->is_black || link->streams[segment->way].is_dry)
        return;
    if (segment->way == TO_SERVER) {
        server_bytes(link, segment->bytes, segment->length);
    } else if (link->is_shut_by_client) {
        net_reset(link); /* the receiver is gone */
    } else {
        bytes_add(&link->received, segment->bytes, segment->length);
        sockets_ring(link);
    }
}

static void send_piece(struct link *link, enum way way, const char *bytes, size_t length)
{
    struct segment *segment = world_new(sizeof *segment + length);
    struct stream *stream = &link->streams[way];
    int64_t arrival_ns = world_now() + net_delay();

    if (arrival_ns < stream->last_arrival_ns)
        arrival_ns = stream->last_arrival_ns;
    stream->last_arrival_ns = arrival_ns;
    segment->link = link;
    segment->way = way;
    segment->length = length;
    memcpy(segment->bytes, bytes, length);
    world_at(arrival_ns, arrive, segment, 0);
}

static void reset_now(void *object, uint64_t number)
{
    (void)number;
    net_reset(object);
}

/* Bytes after the cut never arrive; the ends notice the cut after the bytes before it. */
static size_t cut_short(struct link *link, struct stream *stream, size_t length)
{
    if (stream->bytes_left < 0)
        return length;
    if ((int64_t)length < stream->bytes_left) {
        stream->bytes_left -= (int64_t)length;
        return length;
    }
    length = (size_t)stream->bytes_left;
    stream->bytes_left = 0;
    world_at(world_now() + most_ns, reset_now, link, 0);
    return length;
}

void net_send(struct link *link, enum way way, const char *bytes, size_t length)
{
    struct stream *stream = &link->streams[way];
    size_t first;

    if (stream->is_dry || link->is_black)
        return;
    length = cut_short(link, stream, length);
    first = length > 1 && chance_one_in(CHANCE_NETWORK, 16) ? 1 + chance_below(CHANCE_NETWORK, (uint32_t)length - 1)
                                                            : length;
    if (first)
        send_piece(link, way, bytes, first);
    if (first < length)
        send_piece(link, way, bytes + first, length - first);
}

/* ---- beginning and end of a link --------------------------------------------------------- */

static void connected(void *object, uint64_t number)
{
    struct link *link = object;

    (void)number;
    if (link->is_black || link->is_shut_by_client)
        return;
    link->is_connected = true;
    sockets_ring(link);
}

static void closed(void *object, uint64_t number)
{
    struct link *link = object;

    (void)number;
    if (link->is_shut_by_client)
        return;
    link->is_closed = true;
    sockets_ring(link);
}

static void reach_server(void *object, uint64_t number)
{
    struct link *link = object;

    (void)number;
    if (link->is_black)
        return;
    if (server_accept(link))
        world_at(world_now() + net_delay(), connected, link, 0);
    else
        world_at(world_now() + net_delay(), closed, link, 0);
}

struct link *net_connect(struct process *process, int server)
{
    struct link *link = world_new(sizeof *link);

    link->process = process;
    link->fd = sockets_add(link);
    link->server = server;
    link->older = newest;
    newest = link;
    link->streams[TO_SERVER].bytes_left = link->streams[TO_CLIENT].bytes_left = -1;
    world_at(world_now() + net_delay(), reach_server, link, 0);
    world_note("p%d connects %d to server %d", process->number, link->fd, server);
    return link;
}

/* The client's end arrives after all bytes, on the same way. */
static void server_hears_end(void *object, uint64_t number)
{
    struct link *link = object;

    (void)number;
    if (!link->is_black)
        server_gone(link);
}

void net_shut(struct link *link)
{
    int64_t when_ns = world_now() + net_delay();

    world_note("p%d closes %d", link->process->number, link->fd);
    link->is_shut_by_client = true;
    if (when_ns < link->streams[TO_SERVER].last_arrival_ns)
        when_ns = link->streams[TO_SERVER].last_arrival_ns;
    world_at(when_ns, server_hears_end, link, 0);
}

void net_reset(struct link *link)
{
    link->streams[TO_SERVER].is_dry = link->streams[TO_CLIENT].is_dry = true;
    server_gone(link);
    if (!link->is_shut_by_client)
        world_at(world_now() + net_delay(), closed, link, 0);
}

void net_blacken(struct link *link)
{
    link->is_black = true;
    world_at(world_now() + KEEPALIVE_NS, closed, link, 0);
}

void net_blacken_all(const struct process *process)
{
    for (struct link *link = newest; link; link = link->older) {
        if (link->process == process && !link->is_shut_by_client)
            net_blacken(link);
    }
}

void net_cut(struct link *link, enum way way, int64_t bytes)
{
    if (link->streams[way].bytes_left < 0) /* the first cut stays: no byte may follow a gap */
        link->streams[way].bytes_left = bytes;
}

void net_begin(void)
{
    newest = NULL;
    sockets_begin();
}

void net_end(void)
{
    for (; newest; newest = newest->older) {
        free(newest->in.data);
        free(newest->received.data);
    }
}
