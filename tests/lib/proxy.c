/* SPDX-License-Identifier: BSD-2-Clause */
/* The test's side of a proxy. */
#include "proxy.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "keeper.h"
#include "proxy_orders.h"
#include "testlib.h"

extern char **environ;

struct proxy {
    pid_t pid;
    int bell;
    struct proxy_orders *orders;
    char path[64];
    char url[112];
    char tcp_url[64];
    int port;
};

/* Moves a descriptor above the numbers that the proxy process gets. */
static int lift(int fd)
{
    int lifted = fcntl(fd, F_DUPFD_CLOEXEC, 20);

    assert_return_code(lifted, errno);
    close(fd);
    return lifted;
}

static int listen_at(int family, const void *address, socklen_t size)
{
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    assert_return_code(fd, errno);
    assert_return_code(bind(fd, address, size), errno);
    assert_return_code(listen(fd, 128), errno);
    return lift(fd);
}

static int listen_unix(struct proxy *proxy, const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };

    snprintf(proxy->path, sizeof proxy->path, "%s", path);
    snprintf(proxy->url, sizeof proxy->url, "unix://%s?grace=off", proxy->path);
    strncpy(address.sun_path, proxy->path, sizeof address.sun_path - 1);
    return listen_at(AF_UNIX, &address, sizeof address);
}

static int listen_tcp(struct proxy *proxy)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
    socklen_t size = sizeof address;
    int fd = listen_at(AF_INET, &address, size);

    assert_return_code(getsockname(fd, (struct sockaddr *)&address, &size), errno);
    proxy->port = ntohs(address.sin_port);
    snprintf(proxy->tcp_url, sizeof proxy->tcp_url, "redis://127.0.0.1:%d?grace=off", proxy->port);
    return fd;
}

static int make_orders(struct proxy *proxy)
{
    int fd = memfd_create("orders", MFD_CLOEXEC);

    assert_return_code(fd, errno);
    assert_return_code(ftruncate(fd, sizeof *proxy->orders), errno);
    proxy->orders = mmap(NULL, sizeof *proxy->orders, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(proxy->orders, MAP_FAILED);
    proxy->orders->cut_after[0] = proxy->orders->cut_after[1] = -1;
    return lift(fd);
}

static void spawn(struct proxy *proxy, const int fds[4])
{
    char *const arguments[] = { program_path, (char *)"--role", (char *)"proxy", NULL };
    posix_spawn_file_actions_t actions;

    posix_spawn_file_actions_init(&actions);
    for (int i = 0; i < 4; i++)
        posix_spawn_file_actions_adddup2(&actions, fds[i], PROXY_FD_ORDERS + i);
    assert_int_equal(posix_spawn(&proxy->pid, program_path, &actions, NULL, arguments, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    keeper_watch(proxy->pid);
}

/* The proxy may read the path at any time, so the new path is written where the proxy is not reading. */
static void name_server(struct proxy *proxy, const char *server_path)
{
    struct proxy_orders *orders = proxy->orders;
    int other = 1 - orders->server;

    snprintf(orders->servers[other], sizeof orders->servers[other], "%s", server_path);
    proxy_set(orders->server, other);
}

static struct proxy *start(const char *path, const char *server_path, int port, bool is_postgres)
{
    struct proxy *proxy = calloc(1, sizeof *proxy);
    int bell[2], fds[4];

    assert_non_null(proxy);
    assert_return_code(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, bell), errno);
    fds[0] = make_orders(proxy);
    fds[1] = listen_unix(proxy, path);
    fds[2] = listen_tcp(proxy);
    fds[3] = lift(bell[1]);
    proxy->bell = bell[0];
    name_server(proxy, server_path);
    proxy->orders->port = port;
    proxy->orders->is_postgres = is_postgres;
    spawn(proxy, fds);
    for (int i = 0; i < 4; i++)
        close(fds[i]);
    return proxy;
}

static struct proxy *start_in_folder(const struct server *server, int port)
{
    static int last;
    char path[64];

    snprintf(path, sizeof path, "%s/p%d", server->folder, ++last);
    return start(path, server->path, port, false);
}

struct proxy *proxy_start(const struct server *server)
{
    return start_in_folder(server, 0);
}

struct proxy *proxy_start_raw(const struct server *server, int port)
{
    return start_in_folder(server, port);
}

struct proxy *proxy_start_postgres(const char *path, const char *server_path)
{
    return start(path, server_path, 0, true);
}

int proxy_port(const struct proxy *proxy)
{
    return proxy->port;
}

void proxy_end(struct proxy *proxy)
{
    close(proxy->bell);
    assert_int_equal(keeper_reap(proxy->pid), 0);
    munmap(proxy->orders, sizeof *proxy->orders);
    unlink(proxy->path);
    free(proxy);
}

const char *proxy_url(const struct proxy *proxy)
{
    return proxy->url;
}

const char *proxy_tcp_url(const struct proxy *proxy)
{
    return proxy->tcp_url;
}

static void ring(struct proxy *proxy)
{
    assert_int_equal(send(proxy->bell, "", 1, MSG_NOSIGNAL), 1);
}

void proxy_break(struct proxy *proxy, enum proxy_fault fault, enum proxy_side side, const char *match, int times)
{
    struct proxy_orders *orders = proxy->orders;

    proxy_set(orders->times, 0);
    proxy_set(orders->hits, 0);
    proxy_set(orders->fault, fault);
    proxy_set(orders->side, side);
    snprintf(orders->match, sizeof orders->match, "%s", match);
    proxy_set(orders->times, times);
}

int proxy_hits(const struct proxy *proxy)
{
    return proxy_get(proxy->orders->hits);
}

void proxy_hold(struct proxy *proxy, enum proxy_way ways, enum proxy_side side)
{
    for (int way = 0; way < 2; way++) {
        if (ways & (1 << way))
            proxy_set(proxy->orders->hold[way], side);
    }
}

void proxy_pass(struct proxy *proxy)
{
    struct proxy_orders *orders = proxy->orders;

    proxy_set(orders->times, 0);
    for (int way = 0; way < 2; way++) {
        proxy_set(orders->hold[way], 0);
        proxy_set(orders->cut_after[way], -1);
    }
    proxy_set(orders->is_refusing, 0);
    proxy_set(orders->pass_order, orders->pass_order + 1);
    ring(proxy);
    wait_until(proxy_get(orders->pass_done) == orders->pass_order);
}

void proxy_delay(struct proxy *proxy, enum proxy_way ways, int ms)
{
    for (int way = 0; way < 2; way++) {
        if (ways & (1 << way))
            proxy_set(proxy->orders->delay_ms[way], ms);
    }
}

void proxy_trickle(struct proxy *proxy, enum proxy_way ways, int bytes)
{
    for (int way = 0; way < 2; way++) {
        if (ways & (1 << way))
            proxy_set(proxy->orders->trickle[way], bytes);
    }
}

void proxy_cut_after(struct proxy *proxy, enum proxy_way way, int64_t bytes)
{
    proxy_set(proxy->orders->cut_after[way - 1], bytes);
}

void proxy_cut(struct proxy *proxy)
{
    struct proxy_orders *orders = proxy->orders;

    proxy_set(orders->cut_order, orders->cut_order + 1);
    ring(proxy);
    wait_until(proxy_get(orders->cut_done) == orders->cut_order);
}

void proxy_lead_to(struct proxy *proxy, const struct server *server)
{
    name_server(proxy, server->path);
    proxy_cut(proxy);
}

void proxy_lead_new_to(struct proxy *proxy, const struct server *server)
{
    name_server(proxy, server->path);
}

void proxy_lead_new_to_path(struct proxy *proxy, const char *server_path)
{
    name_server(proxy, server_path);
}

void proxy_refuse(struct proxy *proxy)
{
    proxy_set(proxy->orders->is_refusing, 1);
}

int proxy_open(const struct proxy *proxy)
{
    return proxy_get(proxy->orders->open);
}

int proxy_accepted(const struct proxy *proxy)
{
    return proxy_get(proxy->orders->accepted);
}
