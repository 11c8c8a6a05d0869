/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process that holds many locks: the cost of keeping the locks for the server and the process, and the library's cost
 * for any program that uses the library.
 */
#include <dlfcn.h>
#include <dmutex/dmutex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"

#define LEASE_MS 6000 /* renewed every third of the lease */
#define ROUNDS 3

/* ---- renewals -------------------------------------------------------------------- */

struct holding {
    const struct bench_server *server;
    int count;
    int script_budget; /* calls per round */
};

static dmutex_t *lock_all(int count)
{
    dmutex_t *mutexes = calloc((size_t)count, sizeof *mutexes);
    dmutexattr_t attr;
    char name[64];

    bench_must(dmutexattr_init(&attr));
    bench_must(dmutexattr_setlease_np(&attr, LEASE_MS));
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof name, "bench/held-%d", i);
        bench_must(dmutex_init_np(&mutexes[i], name, &attr));
    }
    bench_must(dmutex_lock(&mutexes[0])); /* all costs of the first lock */
    bench_must(dmutex_unlock(&mutexes[0]));
    return mutexes;
}

/*
 * Each renewal of a lock is one PEXPIRE, and no other command here is a PEXPIRE, so the number of PEXPIREs gives the
 * number of rounds.
 */
static void count_rounds(const struct holding *holding)
{
    redisContext *context = bench_connect(holding->server);
    double rounds, scripts, usec;

    bench_pause(LEASE_MS / 3e3 * 1.5); /* the first round may still be as ragged as the locking was */
    bench_stats_reset(context);
    bench_pause(LEASE_MS / 3e3 * ROUNDS);
    rounds = bench_stat(context, "pexpire", "calls") / holding->count;
    scripts = bench_scripts_sent(context) / rounds;
    usec = bench_stat(context, "evalsha", "usec") / rounds;
    printf("%9d  %9.1f (<= %3d)   %9.2f ms  %9.2f us", holding->count, scripts, holding->script_budget, usec / 1e3,
           usec / holding->count);
    redisFree(context);
}

static void measure(void *user)
{
    const struct holding *holding = user;
    dmutex_t *mutexes = lock_all(holding->count);
    double before = bench_memory(getpid(), "VmRSS"), start = bench_now();

    for (int i = 0; i < holding->count; i++)
        bench_must(dmutex_lock(&mutexes[i]));
    start = bench_now() - start;
    count_rounds(holding);
    printf("   %7.2f KiB (<= 2)  %7.1f ms\n", (bench_memory(getpid(), "VmRSS") - before) / holding->count / 1024,
           start * 1e3);
    for (int i = 0; i < holding->count; i++)
        bench_must(dmutex_unlock(&mutexes[i]));
    free(mutexes);
}

/* ---- the library's own cost ------------------------------------------------------ */

/* Runs the program beside this program, which is linked to nothing; the other program prints. */
static void run_footprint(void *user)
{
    char path[4096];
    Dl_info info;
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 16);
    char *slash;

    (void)user;
    path[length > 0 ? length : 0] = '\0';
    slash = strrchr(path, '/');
    if (!slash || !dladdr((void *)(size_t)dmutex_lock, &info))
        bench_die("the program does not know where it is");
    strcpy(slash + 1, "footprint");
    execl(path, path, info.dli_fname, (char *)NULL);
    bench_die("bench/footprint is missing");
}

int main(void)
{
    struct bench_server server = bench_server_start();
    struct holding some = { &server, 1000, 16 }, many = { &server, 10000, 100 };

    printf("locks held by one process, lease %d ms\n"
           "    locks  scripts a round       server, a round  of one lock   memory a lock   to take them\n",
           LEASE_MS);
    bench_apart(&server, -1, measure, &some);
    bench_apart(&server, -1, measure, &many);
    bench_apart(&server, -1, run_footprint, NULL);
    bench_server_stop(&server);
    return 0;
}
