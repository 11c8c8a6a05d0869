/* SPDX-License-Identifier: BSD-2-Clause */
#include "distance.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

enum { WAYS_MAX = 128, CHUNKS_MAX = 64, CHUNK_SIZE = 4096 };

/* Bytes that arrived together. */
struct chunk {
    double due; /* bench_now() */
    size_t size;
    char bytes[CHUNK_SIZE];
};

/* One direction of a connection. */
struct way {
    int from, to;
    int first, count; /* of the ring */
    struct chunk chunks[CHUNKS_MAX];
};

/* The two ways of a connection are neighbours, the first at an even index. */
static struct way *ways[WAYS_MAX];
static int way_count;
static double delay;

static int connect_to(int port)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) < 0)
        bench_die("a server cannot be reached by the relay");
    return fd;
}

static int listen_at(int *ret_port)
{
    struct sockaddr_in address = { .sin_family = AF_INET };
    socklen_t length = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, length) < 0 || listen(fd, 64) < 0 ||
        getsockname(fd, (struct sockaddr *)&address, &length) < 0)
        bench_die("the relay has no port");
    *ret_port = ntohs(address.sin_port);
    return fd;
}

static void add_way(int from, int to)
{
    struct way *way = calloc(1, sizeof *way);
    int on = 1;

    if (!way || way_count == WAYS_MAX)
        bench_die("too many connections for the relay");
    setsockopt(to, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    way->from = from;
    way->to = to;
    ways[way_count++] = way;
}

static void accept_from(int listener, int port)
{
    int client = accept(listener, NULL, NULL), server = connect_to(port);

    if (client < 0)
        bench_die("the relay cannot accept");
    add_way(client, server);
    add_way(server, client);
}

/* The other end has closed: the connection ends in both directions. */
static void end_way(struct way *way)
{
    shutdown(way->from, SHUT_RDWR);
    shutdown(way->to, SHUT_RDWR);
    way->from = -1;
    way->count = 0;
}

/* Frees connections that have ended in both directions. */
static void sweep(void)
{
    for (int i = way_count - 2; i >= 0; i -= 2) {
        struct way *there = ways[i], *back = ways[i + 1];

        if (there->from >= 0 || back->from >= 0)
            continue;
        close(there->to);
        close(back->to);
        free(there);
        free(back);
        way_count -= 2;
        ways[i] = ways[way_count];
        ways[i + 1] = ways[way_count + 1];
    }
}

/* If the ring is full, the bytes stay in the socket. */
static void take_in(struct way *way)
{
    struct chunk *chunk = &way->chunks[(way->first + way->count) % CHUNKS_MAX];
    ssize_t got;

    if (way->count == CHUNKS_MAX)
        return;
    got = recv(way->from, chunk->bytes, sizeof chunk->bytes, MSG_DONTWAIT);
    if (got <= 0) {
        end_way(way);
        return;
    }
    chunk->size = (size_t)got;
    chunk->due = bench_now() + delay;
    way->count++;
}

static void pass_on(struct way *way)
{
    while (way->count > 0 && way->chunks[way->first].due <= bench_now()) {
        const struct chunk *chunk = &way->chunks[way->first];

        if (send(way->to, chunk->bytes, chunk->size, MSG_NOSIGNAL) < 0) {
            end_way(way);
            return;
        }
        way->first = (way->first + 1) % CHUNKS_MAX;
        way->count--;
    }
}

/* How long until something is due; a long time if nothing is on the way. */
static struct timespec rest(void)
{
    double soonest = bench_now() + 1, left;

    for (int i = 0; i < way_count; i++) {
        if (ways[i]->count > 0 && ways[i]->chunks[ways[i]->first].due < soonest)
            soonest = ways[i]->chunks[ways[i]->first].due;
    }
    left = soonest - bench_now();
    return (struct timespec){ .tv_nsec = left > 0 ? (long)(left * 1e9) % 1000000000 : 0 };
}

static void serve(const int *listeners, const int *ports, int count)
{
    struct pollfd pollers[DISTANCE_MAX + WAYS_MAX];

    for (;;) {
        int seen = way_count;
        struct timespec until;

        for (int i = 0; i < count; i++)
            pollers[i] = (struct pollfd){ .fd = listeners[i], .events = POLLIN };
        for (int i = 0; i < seen; i++)
            pollers[count + i] = (struct pollfd){ .fd = ways[i]->from, .events = POLLIN };
        until = rest();
        ppoll(pollers, (nfds_t)(count + seen), &until, NULL);
        for (int i = 0; i < seen; i++) {
            if (pollers[count + i].revents)
                take_in(ways[i]);
            pass_on(ways[i]);
        }
        sweep();
        for (int i = 0; i < count; i++) {
            if (pollers[i].revents)
                accept_from(listeners[i], ports[i]);
        }
    }
}

pid_t distance_begin(const int *ports, int count, double round_trip_ms, int *ret_ports)
{
    int listeners[DISTANCE_MAX];
    pid_t pid;

    for (int i = 0; i < count; i++)
        listeners[i] = listen_at(&ret_ports[i]);
    pid = fork();
    if (pid < 0)
        bench_die("no process");
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        prctl(PR_SET_TIMERSLACK, 1L);
        delay = round_trip_ms / 2e3;
        serve(listeners, ports, count);
    }
    for (int i = 0; i < count; i++)
        close(listeners[i]);
    return pid;
}
