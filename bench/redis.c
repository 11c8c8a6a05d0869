/* SPDX-License-Identifier: BSD-2-Clause */
/* A private Redis or Valkey, and the bare locks on it. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "asked.h"
#include "bench.h"
#include "grant.h"
#include "home.h"
#include "own.h"
#include "server.h"
#include "store.h"

/* ---- bare locks ------------------------------------------------------------------ */

struct pair {
    struct own own;
    redisContext *context;
};

static void *allocate(size_t size)
{
    void *memory = calloc(1, size);

    if (!memory)
        bench_die("no memory");
    return memory;
}

static void *open_pair(const struct bench_server *server, const char *name, int owner, void *sibling)
{
    struct pair *pair = allocate(sizeof *pair);

    pair->context = sibling ? ((struct pair *)sibling)->context : bench_connect(server);
    own_load(pair->context);
    own_init(&pair->own, name, owner);
    return pair;
}

static void lock_pair(void *lock)
{
    struct pair *pair = lock;

    own_lock(&pair->own, pair->context);
}

static void unlock_pair(void *lock)
{
    struct pair *pair = lock;

    own_unlock(&pair->own, pair->context);
}

static void *open_home(const struct bench_server *server, const char *name, int owner, void *sibling)
{
    struct home *home = allocate(sizeof *home);

    home_open(home, sibling ? ((struct home *)sibling)->context : bench_connect(server), name, owner, server->lease_ms);
    return home;
}

static void lock_classic(void *home)
{
    home_classic_lock(home);
}

static void unlock_classic(void *home)
{
    home_classic_unlock(home);
}

static void lock_polled(void *home)
{
    while (!home_set(home))
        bench_pause(0.001);
}

static void unlock_polled(void *home)
{
    home_delete(home);
}

/* Of one name. */
static void *open_grant(const struct bench_server *server, const char *name, int owner, void *sibling)
{
    (void)name, (void)sibling;
    return grant_open(server, owner);
}

static void lock_grant(void *grant)
{
    grant_lock(grant);
}

static void unlock_grant(void *grant)
{
    grant_unlock(grant);
}

static void *open_asked(const struct bench_server *server, const char *name, int owner, void *sibling)
{
    (void)name, (void)sibling;
    return asked_open(server, owner);
}

static void lock_asked(void *asked)
{
    asked_lock(asked);
}

static void unlock_asked(void *asked)
{
    asked_unlock(asked);
}

/* ---- the server ------------------------------------------------------------------ */

static void serve(const struct bench_server *server, int core)
{
    const char *program = getenv("DMUTEX_TEST_SERVER");
    char port[16];

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    bench_pin(0, core);
    if (!program || !*program)
        program = "redis-server";
    snprintf(port, sizeof port, "%d", server->port);
    execlp(program, program, "--bind", "127.0.0.1", "--port", port, "--unixsocket", server->socket, "--save", "",
           "--appendonly", "no", "--loglevel", "warning", "--dir", server->directory, "--logfile", "log", (char *)NULL);
}

static void await(const struct bench_server *server)
{
    redisFree(bench_connect(server));
}

static void write_url(struct bench_server *server)
{
    if (server->way == BENCH_TCP)
        snprintf(server->url, sizeof server->url, "redis://127.0.0.1:%d?grace=off", server->port);
    else
        snprintf(server->url, sizeof server->url, "unix://%s?grace=off", server->socket);
}

static void write_version(const struct bench_server *server, char *buf, size_t size)
{
    redisContext *context = bench_connect(server);

    bench_info(context, "valkey_version", buf, size);
    if (!buf[0])
        bench_info(context, "redis_version", buf, size);
    redisFree(context);
}

/* A SET in the scripts of BARE_ASKED counts, too; no other script has one. */
static void count(const struct bench_server *server, struct bench_counts *ret_counts)
{
    redisContext *context = bench_connect(server);

    ret_counts->commands = bench_scripts_sent(context) + bench_stat(context, "set", "calls");
    ret_counts->messages = bench_stat(context, "publish", "calls");
    ret_counts->server_us = bench_stat(context, "evalsha", "usec");
    redisFree(context);
}

const struct bench_store bench_redis = {
    .name = "redis",
    .commands = "script calls",
    .bare = {
        [BARE_PAIR] = { "own scripts", open_pair, lock_pair, unlock_pair },
        [BARE_CLASSIC] = { "classic scripts", open_home, lock_classic, unlock_classic },
        [BARE_POLL] = { "SET NX", open_home, lock_polled, unlock_polled },
        [BARE_GRANT] = { "bare grant", open_grant, lock_grant, unlock_grant },
        [BARE_ASKED] = { "bare asking", open_asked, lock_asked, unlock_asked },
    },
    .serve = serve,
    .await = await,
    .write_url = write_url,
    .write_version = write_version,
    .count = count,
};
