/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A lock and unlock of a name that no other thread wants, over a unix socket and over TCP, compared with loops of bare
 * commands; and over a unix socket while a program computes on each core.
 */
#include <dmutex/dmutex.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench/contest.h"
#include "bench/home.h"
#include "bench/own.h"
#include "bench/server.h"
#include "bench/workload.h"

enum { CORES_MAX = 64 };

static struct own own;
static struct home classic, set;
static redisContext *context;

static void library_pair(void *mutex)
{
    bench_must(dmutex_lock(mutex));
    bench_must(dmutex_unlock(mutex));
}

static void own_pair(void *unused)
{
    (void)unused;
    own_lock(&own, context);
    own_unlock(&own, context);
}

static void classic_pair(void *unused)
{
    (void)unused;
    home_classic_lock(&classic);
    home_classic_unlock(&classic);
}

static void set_pair(void *unused)
{
    (void)unused;
    if (!home_set(&set))
        bench_die("a free lock is not free");
    home_delete(&set);
}

static void measure_as(const struct bench_scene *scene, const char *when, const char *limits)
{
    static dmutex_t mutex = DMUTEX_INITIALIZER("bench/pair");
    static const struct contender contenders[] = {
        { "library", library_pair, &mutex },
        { "own scripts", own_pair, NULL },
        { "classic scripts", classic_pair, NULL },
        { "SET NX", set_pair, NULL },
        { NULL, NULL, NULL },
    };

    context = bench_connect(scene->server);
    own_load(context);
    own_init(&own, "own", 1);
    home_open(&classic, context, "bare:classic", 1);
    home_open(&set, context, "bare:set", 1);
    contest_hold(&(struct contest){ scene, when, "lock + unlock", "us", contenders, limits, 0, 0 });
    contest_count(&contenders[0], scene, when, "2");
}

static void measure(const struct bench_scene *scene)
{
    measure_as(scene, bench_way_names[scene->server->way], "<= 0.95 of classic apart, <= 1.10 anywhere");
}

static void compute(void *core)
{
    bench_pin(0, *(int *)core);
    for (;;)
        __asm__ volatile("");
}

static void measure_busy(const struct bench_scene *scene)
{
    pid_t pids[CORES_MAX];
    int online = (int)sysconf(_SC_NPROCESSORS_ONLN), cores = online < CORES_MAX ? online : CORES_MAX;

    for (int i = 0; i < cores; i++)
        pids[i] = bench_begin(scene, compute, &i);
    measure_as(scene, "busy cores", "<= 1.40 of classic, but all on one core");
    for (int i = 0; i < cores; i++)
        bench_kill(pids[i]);
}

static void run(const struct bench_scene *scene)
{
    for (enum bench_way way = 0; way < BENCH_WAYS; way++) {
        bench_server_use(scene->server, way);
        bench_apart(scene, measure);
    }
    bench_server_use(scene->server, BENCH_UNIX);
    bench_apart(scene, measure_busy);
}

const struct workload workload_uncontended = { "uncontended", "a lock and unlock of a name that no other thread wants",
                                               run, true };
