/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cost of the preload layer's module for programs without need for the module: a lock and unlock of a mutex that no
 * rule names, and the start of a program. Each figure is a separate process, with the module or without.
 */
#include <limits.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

#define ROUNDS 15
#define STARTS 60
#define MOST_RULES 100
#define SIZE_OF_MUTEX 40

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
    { "and map:", true, MOST_RULES, "map:/no/such/file+0x40 => bench/file" },
};
#define WAYS BENCH_COUNT(ways)

static const struct {
    const char *name, *where, *how;
} cases[] = {
    { "one thread, beside what is named", "beside", NULL },
    { "one thread, between two of these", "between", NULL },
    { "two threads, beside", "beside", "threaded" },
    { "two threads, between", "between", "threaded" },
};

static char program[PATH_MAX], module[PATH_MAX];
static char map_of[WAYS][16384]; /* DMUTEX_MAP */

/* This program is bench/preload in the build directory. */
static void find_files(void)
{
    char *slash;

    if (readlink("/proc/self/exe", program, sizeof program - 32) < 0)
        bench_die("no /proc");
    strcpy(module, program);
    *strrchr(module, '/') = '\0';
    strcpy(strrchr(module, '/'), "/preload/.libs/libdmutex-preload.so");
    slash = strrchr(program, '/');
    strcpy(slash + 1, "preload_pairs");
    if (access(program, X_OK) < 0 || access(module, R_OK) < 0)
        bench_die("bench/preload_pairs or the module is missing");
}

/* Writes all rules but the one in the middle. */
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

static void await(pid_t pid)
{
    int status;

    if (waitpid(pid, &status, 0) != pid || status != 0)
        bench_die("a program of the benchmark failed");
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
    await(pid);
    return atof(text);
}

static double ms_of_start(size_t way)
{
    double before = bench_now();

    await(start(way, NULL, NULL, -1));
    return (bench_now() - before) * 1e3;
}

/* ---- figures ----------------------------------------------------------------------- */

static void print_row(const char *name, const double *medians, const char *unit)
{
    printf("  %-34s%7.2f %s", name, medians[0], unit);
    for (size_t way = 1; way < WAYS; way++)
        printf("  %+8.2f %s", medians[way] - medians[0], unit);
    printf("\n");
}

static void measure_pairs(void)
{
    double values[WAYS][ROUNDS], medians[WAYS];

    for (size_t i = 0; i < BENCH_COUNT(cases); i++) {
        for (int round = 0; round < ROUNDS; round++)
            for (size_t way = 0; way < WAYS; way++)
                values[way][round] = ns_of_pair(way, cases[i].where, cases[i].how);
        for (size_t way = 0; way < WAYS; way++)
            medians[way] = bench_median(values[way], ROUNDS);
        print_row(cases[i].name, medians, "ns");
    }
}

static void measure_starts(void)
{
    double values[WAYS][STARTS], medians[WAYS];

    for (int round = 0; round < STARTS; round++)
        for (size_t way = 0; way < WAYS; way++)
            values[way][round] = ms_of_start(way);
    for (size_t way = 0; way < WAYS; way++)
        medians[way] = bench_median(values[way], STARTS);
    print_row("start and end of a program", medians, "ms");
}

int main(void)
{
    find_files();
    for (size_t way = 0; way < WAYS; way++)
        write_rules(map_of[way], ways[way].rules, ways[way].more);
    bench_pin(0, (int)sysconf(_SC_NPROCESSORS_ONLN) - 1);
    printf("a lock and unlock of a mutex that no rule names, without the module, and what the module adds\n"
           "budget: <= +5 ns with one thread, <= +1 ns with more, <= +3 ms for a start\n"
           "  %-34s%10s",
           "", ways[0].name);
    for (size_t way = 1; way < WAYS; way++)
        printf("%13s", ways[way].name);
    printf("\n");
    measure_pairs();
    measure_starts();
    return 0;
}
