/* SPDX-License-Identifier: BSD-2-Clause */
/* Measures workloads of the library, each next to the bare limit of the same machine, server and minute. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server.h"
#include "store.h"
#include "workload.h"

static const char usage_text[] =
    "usage: dmutex-bench [OPTION]... [WORKLOAD]...\n"
    "Measures the workloads, or all, in rounds that alternate with bare limits; prints medians and, in brackets, the\n"
    "ratio of the library to each limit.\n"
    "\n"
    "  --store STORE    redis, unless given; postgres; postgres-async: the same with synchronous_commit=off;\n"
    "                   etcd: one member\n"
    "  --list           print the workloads of all stores\n"
    "  --json           print one JSON object: machine, versions, date, workloads\n"
    "  --rounds N       5 rounds, unless given\n"
    "  --seconds S      0.25 s for each measurement in a round, unless given\n"
    "  --place PLACE    apart, together or anywhere: one place of server and clients on the cores, not all\n"
    "\n"
    "Starts a server of its own: redis-server, or the program that DMUTEX_TEST_SERVER names; or postgres of PATH, or\n"
    "else of the newest version in /usr/lib/postgresql; or etcd of PATH.\n";

struct options {
    bool is_json;
    int rounds;
    double seconds;
    const char *place; /* NULL: all */
    const struct bench_store *store;
};

static void fail(const char *what, const char *word)
{
    fprintf(stderr, "dmutex-bench: %s%s\n%s", what, word, usage_text);
    exit(2);
}

static void list(void)
{
    for (int i = 0; workloads[i]; i++)
        printf("%-12s  %s\n", workloads[i]->name, workloads[i]->about);
    exit(0);
}

static const struct bench_store *find_store(const char *name)
{
    for (int i = 0; bench_stores[i]; i++) {
        if (strcmp(bench_stores[i]->name, name) == 0)
            return bench_stores[i];
    }
    fail("not a store of this build: ", name);
    return NULL;
}

static void check_place(const char *word)
{
    for (const struct bench_place *place = bench_places(); place->word; place++) {
        if (strcmp(place->word, word) == 0)
            return;
    }
    fail("not a place of this machine: ", word);
}

static struct options read_options(int count, char **arguments)
{
    static const struct option names[] = {
        { "list", no_argument, NULL, 'l' },         { "json", no_argument, NULL, 'j' },
        { "rounds", required_argument, NULL, 'r' }, { "seconds", required_argument, NULL, 's' },
        { "place", required_argument, NULL, 'p' },  { "store", required_argument, NULL, 'S' },
        { "help", no_argument, NULL, 'h' },         { NULL, 0, NULL, 0 },
    };
    struct options options = { false, 5, 0.25, NULL, &bench_redis };

    for (int option; (option = getopt_long(count, arguments, "", names, NULL)) != -1;) {
        if (option == 'l')
            list();
        else if (option == 'j')
            options.is_json = true;
        else if (option == 'r')
            options.rounds = atoi(optarg);
        else if (option == 's')
            options.seconds = atof(optarg);
        else if (option == 'p')
            options.place = optarg;
        else if (option == 'S')
            options.store = find_store(optarg);
        else if (option == 'h')
            exit(fputs(usage_text, stdout) < 0);
        else
            exit(2);
    }
    if (options.rounds < 1 || options.rounds > 100 || options.seconds <= 0 || options.seconds > 60)
        fail("1 to 100 rounds, and more than 0 but at most 60 seconds", "");
    if (options.place)
        check_place(options.place);
    return options;
}

/* ---- measuring ------------------------------------------------------------------- */

static void measure_at(const struct workload *workload, const struct options *options, const struct bench_place *place)
{
    struct bench_server server = bench_server_start(options->store, place->server_core);
    struct bench_scene scene = { &server, place, options->rounds, options->seconds };

    report_enter(workload, &scene);
    workload->run(&scene);
    if (!options->is_json)
        report_print();
    bench_server_stop(&server);
}

static void measure(const struct workload *workload, const struct options *options)
{
    for (const struct bench_place *place = bench_places(); place->word; place++) {
        if (options->place && strcmp(options->place, place->word) != 0)
            continue;
        measure_at(workload, options, place);
        if (!workload->is_placed)
            return;
    }
}

static bool runs_on(const struct workload *workload, const struct bench_store *store)
{
    if (workload->stores == ON_POSTGRES)
        return store->table_bytes != NULL;
    return workload->stores == ON_ALL || store == &bench_redis;
}

static const struct workload *find(const char *name, const struct bench_store *store)
{
    for (int i = 0; workloads[i]; i++) {
        if (strcmp(workloads[i]->name, name) != 0)
            continue;
        if (!runs_on(workloads[i], store))
            fail("a workload of another store: ", name);
        return workloads[i];
    }
    fail("not a workload: ", name);
    return NULL;
}

int main(int count, char **arguments)
{
    struct options options = read_options(count, arguments);

    report_begin();
    for (int i = optind; i < count; i++)
        find(arguments[i], options.store);
    for (int i = optind; i < count; i++)
        measure(find(arguments[i], options.store), &options);
    for (int i = 0; optind == count && workloads[i]; i++) {
        if (runs_on(workloads[i], options.store))
            measure(workloads[i], &options);
    }
    if (options.is_json)
        report_print_json(options.rounds, options.seconds, arguments);
    return 0;
}
