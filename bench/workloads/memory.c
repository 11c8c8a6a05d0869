/* SPDX-License-Identifier: BSD-2-Clause */
/* The library's memory in a small program that loads the library, then locks and unlocks: bench/footprint. */
#include <dlfcn.h>
#include <dmutex/dmutex.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/workload.h"

/* footprint prints KiB of RAM, and the part that belongs to this process alone. */
struct size {
    double all, own;
};

static void read_sizes(struct size *sizes, size_t count)
{
    char command[4096];
    Dl_info info;
    FILE *output;

    if (!dladdr((void *)(size_t)dmutex_lock, &info))
        bench_die("the library does not know where it is");
    snprintf(command, sizeof command, "'%s' '%s'", bench_path("footprint"), info.dli_fname);
    output = popen(command, "r");
    for (size_t i = 0; i < count; i++) {
        if (!output || fscanf(output, "%lf %lf", &sizes[i].all, &sizes[i].own) != 2)
            bench_die("bench/footprint is missing, or has failed");
    }
    if (pclose(output) != 0)
        bench_die("bench/footprint has failed");
}

static void report_added(const char *when, struct size now, struct size before, const char *budget)
{
    report(&(struct figure){
        when, "memory added", "KiB", 0, now.all - before.all, { { "the program", before.all } }, budget });
    report(&(struct figure){
        when, "of it private", "KiB", 0, now.own - before.own, { { "the program", before.own } }, NULL });
}

static void measure(const struct bench_scene *scene)
{
    struct size sizes[3];

    (void)scene;
    read_sizes(sizes, BENCH_COUNT(sizes));
    report_added("loaded", sizes[1], sizes[0], NULL);
    report_added("used once", sizes[2], sizes[0], "<= 3072 KiB");
}

static void run(const struct bench_scene *scene)
{
    bench_apart(scene, measure);
}

const struct workload workload_memory = { "memory", "the library in a small program", run, false, ON_REDIS };
