/* SPDX-License-Identifier: BSD-2-Clause */
#include "contest.h"

#include <string.h>

#include "server.h"
#include "store.h"

enum { ROUNDS_MAX = 1000, CALLS_COUNTED = 1000 };

/* Turns are short, so that a burst of other work affects all contenders, or only one of many turns. */
#define TURNS_A_ROUND 10

static double time_calls(const struct contender *contender, long calls)
{
    double start = bench_now();

    for (long i = 0; i < calls; i++)
        contender->call(contender->user);
    return bench_now() - start;
}

/* How many calls take `seconds`, or `most` if fewer: found by doubling, which also warms everything up. */
static long calls_in(const struct contender *contender, double seconds, long most)
{
    long calls = 1;

    while (time_calls(contender, calls) < seconds && (most == 0 || calls < most))
        calls *= 2;
    return calls;
}

static double factor_of(const char *unit)
{
    return strcmp(unit, "ns") == 0 ? 1e9 : strcmp(unit, "us") == 0 ? 1e6 : 1e3;
}

void contest_hold(const struct contest *contest)
{
    double times[1 + LIMITS_MAX][ROUNDS_MAX], factor = factor_of(contest->unit);
    int turns = contest->scene->rounds * TURNS_A_ROUND;
    const struct contender *contenders = contest->contenders;
    struct figure figure = {
        contest->when, contest->name, contest->unit, contest->size, 0, { { 0 } }, contest->budget
    };
    long calls[1 + LIMITS_MAX];

    turns = contest->calls || turns > ROUNDS_MAX ? ROUNDS_MAX : turns;
    for (int i = 0; contenders[i].name; i++)
        calls[i] = calls_in(&contenders[i], contest->scene->seconds / TURNS_A_ROUND, contest->calls);
    for (int turn = 0; turn < turns; turn++) {
        for (int i = 0; contenders[i].name; i++)
            times[i][turn] = time_calls(&contenders[i], calls[i]) / (double)calls[i];
    }
    figure.value = bench_median(times[0], turns) * factor;
    for (int i = 1; contenders[i].name; i++) {
        figure.limits[i - 1].name = contenders[i].name;
        figure.limits[i - 1].value = bench_median(times[i], turns) * factor;
    }
    report(&figure);
}

void contest_count(const struct contender *contender, const struct bench_scene *scene, const char *when,
                   const char *budget)
{
    const struct bench_store *store = scene->server->store;
    struct figure figure = { .when = when, .name = store->commands, .budget = budget };
    struct bench_counts before, after;

    store->count(scene->server, &before);
    time_calls(contender, CALLS_COUNTED);
    store->count(scene->server, &after);
    figure.value = (after.commands - before.commands) / CALLS_COUNTED;
    report(&figure);
}
