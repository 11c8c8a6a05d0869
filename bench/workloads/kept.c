/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Leases kept after the unlock (dmutexattr_setlinger_np): a lock of a kept name, compared with the clock reads and
 * swaps that it cannot do without; and a name that two processes keep and want in turns, compared with a bare lock that
 * is kept and asked for, and with a bare grant.
 */
#include <dmutex/dmutex.h>
#include <stdatomic.h>
#include <time.h>

#include "bench/contest.h"
#include "bench/crowd.h"
#include "bench/workload.h"

#define LINGER_MS 1000

/* Calls in a short turn; most of these turns contain no end of a tenure. */
#define SHORT 512

static dmutex_t mutex;

static void kept_pair(void *unused)
{
    (void)unused;
    bench_must(dmutex_lock(&mutex));
    bench_must(dmutex_unlock(&mutex));
}

static void read_clock(void)
{
    struct timespec now;

    clock_gettime(CLOCK_BOOTTIME, &now);
}

static void bare_pair(void *unused)
{
    static atomic_long word;
    long open = 0, taken = 1;

    (void)unused;
    atomic_compare_exchange_strong(&word, &open, 1);
    read_clock();
    read_clock();
    atomic_compare_exchange_strong(&word, &taken, 0);
}

/*
 * The numbers of a tenure are used up after 4095 holds, and the next hold asks the server for a token.  Short turns
 * show only the pair, long turns the pair with the tokens.
 */
static void measure_pair(const struct bench_scene *scene)
{
    static const struct contender contenders[] = {
        { "library", kept_pair, NULL },
        { "2 clock reads, 2 swaps", bare_pair, NULL },
        { NULL, NULL, NULL },
    };
    struct contest contest = { scene, "kept", "lock + unlock", "ns", contenders, "<= the limit + 40 ns", 0, SHORT };
    dmutexattr_t attr;

    bench_must(dmutexattr_init(&attr));
    bench_must(dmutexattr_setlinger_np(&attr, LINGER_MS));
    bench_must(dmutex_init_np(&mutex, "bench/kept", &attr));
    contest_hold(&contest);
    contest.name = "with new tokens";
    contest.calls = 0;
    contest.budget = NULL;
    contest_hold(&contest);
    contest_count(&contenders[0], scene, "kept", "0");
}

static void measure_asked_back(const struct bench_scene *scene)
{
    static const struct crowd crowds[] = {
        { .name = "library", .processes = 2, .threads = 1, .is_timed = true, .linger_ms = LINGER_MS },
        { .name = "bare asking", .lock = BARE_ASKED, .processes = 2, .threads = 1, .is_timed = true },
        { .name = "bare grant", .lock = BARE_GRANT, .processes = 2, .threads = 1, .is_timed = true },
    };
    struct crowd_figures medians[BENCH_COUNT(crowds)];

    crowd_compare(scene, crowds, BENCH_COUNT(crowds), medians);
    crowd_report(crowds, 3, medians, CROWD_P50_US, "asked back", 2, "<= 1.50 of a bare grant");
    crowd_report(crowds, 3, medians, CROWD_HANDOFFS, "asked back", 2, NULL);
    crowd_report(crowds, 3, medians, CROWD_PER_SECOND, "asked back", 2, NULL);
    crowd_report(crowds, 3, medians, CROWD_SPREAD, "asked back", 2, NULL);
}

static void run(const struct bench_scene *scene)
{
    bench_apart(scene, measure_pair);
    measure_asked_back(scene);
}

const struct workload workload_kept = { "kept", "a name that the process keeps after the unlock, with linger", run,
                                        true, ON_REDIS };
