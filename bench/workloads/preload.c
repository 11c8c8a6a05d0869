/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the preload module costs programs that do not need it: a lock and unlock of a mutex that no rule names, and the
 * start of a program. Each figure comes from a separate process, with or without the module.
 */
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/workload.h"

enum { MOST_RULES = 100, SIZE_OF_MUTEX = 40, ROUNDS_MAX = 100 };

extern char **environ;

/* ---- the compared cases ------------------------------------------------------------ */

static const struct {
    const char *name;
    bool has_module;
    int rules;
    const char *more;
} ways[] = {
    { "without", false, 0, "" },
    { "no rule", true, 0, "" },
    { "1 rule", true, 1, "" },
    { "100 rules", true, MOST_RULES, "" },
    { "100 rules, map:", true, MOST_RULES, "map:/no/such/file+0x40 => bench/file" },
};
enum { WAYS = BENCH_COUNT(ways) };

static const struct {
    const char *when, *where, *how;
} cases[] = {
    { "1 thread", "beside", NULL },
    { "1 thread", "between", NULL },
    { "2 threads", "beside", "threaded" },
    { "2 threads", "between", "threaded" },
};

static char program[PATH_MAX], module[PATH_MAX];
static char map_of[WAYS][16384]; /* DMUTEX_MAP */

/* This program is bench/dmutex-bench in the build directory. */
static void find_files(void)
{
    snprintf(program, sizeof program, "%s", bench_path("preload_pairs"));
    snprintf(module, sizeof module, "%s", bench_path("../preload/.libs/libdmutex-preload.so"));
    if (access(program, X_OK) < 0 || access(module, R_OK) < 0)
        bench_die("bench/preload_pairs or the module is missing");
}

/* Writes all rules except the one in the middle. */
static void write_rules(char *map, int count, const char *more)
{
    for (int i = 0; i < count; i++)
        map += sprintf(map, "sym:preload_pairs:named+%d => bench/%d;", (i < MOST_RULES / 2 ? i : i + 1) * SIZE_OF_MUTEX,
                       i);
    strcpy(map, more);
}

/* ---- running ----------------------------------------------------------------------- */

static void set_environment(size_t way)
{
    if (!ways[way].has_module)
        return;
    setenv("LD_PRELOAD", module, 1);
    if (ways[way].rules)
        setenv("DMUTEX_MAP", map_of[way], 1);
}

static void unset_environment(void)
{
    unsetenv("LD_PRELOAD");
    unsetenv("DMUTEX_MAP");
}

static pid_t start(size_t way, const char *where, const char *how, int output)
{
    char *const arguments[] = { program, (char *)where, (char *)how, NULL };
    posix_spawn_file_actions_t actions;
    pid_t pid;

    posix_spawn_file_actions_init(&actions);
    if (output >= 0)
        posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    set_environment(way);
    if (posix_spawn(&pid, program, &actions, NULL, arguments, environ) != 0)
        bench_die("a program cannot be started");
    unset_environment();
    posix_spawn_file_actions_destroy(&actions);
    return pid;
}

static double ns_of_pair(size_t way, const char *where, const char *how)
{
    char text[64] = "";
    int ends[2];
    pid_t pid;

    if (pipe(ends) < 0)
        bench_die("no pipe");
    pid = start(way, where, how, ends[1]);
    close(ends[1]);
    if (read(ends[0], text, sizeof text - 1) <= 0)
        bench_die("a program said nothing");
    close(ends[0]);
    bench_await(pid);
    return atof(text);
}

static double ms_of_start(size_t way)
{
    double before = bench_now();

    bench_await(start(way, NULL, NULL, -1));
    return (bench_now() - before) * 1e3;
}

/* ---- figures ----------------------------------------------------------------------- */

/* Reports each way next to the same without the module. */
static void report_ways(const char *when, const char *name, const char *unit, double values[WAYS][ROUNDS_MAX],
                        int rounds, const char *budget)
{
    char text[64];
    double without = bench_median(values[0], rounds);

    for (size_t way = 1; way < WAYS; way++) {
        snprintf(text, sizeof text, "%s, %s", name, ways[way].name);
        report(&(struct figure){
            when, text, unit, ways[way].rules, bench_median(values[way], rounds), { { "without", without } }, budget });
    }
}

static void measure_pairs(int rounds)
{
    double values[WAYS][ROUNDS_MAX];

    for (size_t i = 0; i < BENCH_COUNT(cases); i++) {
        for (int round = 0; round < rounds; round++)
            for (size_t way = 0; way < WAYS; way++)
                values[way][round] = ns_of_pair(way, cases[i].where, cases[i].how);
        report_ways(cases[i].when, cases[i].where, "ns", values, rounds, cases[i].how ? "<= +1 ns" : "<= +5 ns");
    }
}

static void measure_starts(int rounds)
{
    double values[WAYS][ROUNDS_MAX];

    for (int round = 0; round < rounds; round++)
        for (size_t way = 0; way < WAYS; way++)
            values[way][round] = ms_of_start(way);
    report_ways("start and end", "program", "ms", values, rounds, "<= +3 ms");
}

static void measure(const struct bench_scene *scene)
{
    find_files();
    for (size_t way = 0; way < WAYS; way++)
        write_rules(map_of[way], ways[way].rules, ways[way].more);
    measure_pairs(scene->rounds);
    measure_starts(scene->rounds * 10 < ROUNDS_MAX ? scene->rounds * 10 : ROUNDS_MAX);
}

static void run(const struct bench_scene *scene)
{
    bench_apart(scene, measure);
}

const struct workload workload_preload = { "preload", "a pthread program under the module, without need for it", run,
                                           false, ON_REDIS };
