/* SPDX-License-Identifier: BSD-2-Clause */
#include "report.h"

#include <dmutex/dmutex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"
#include "server.h"
#include "store.h"
#include "workload.h"

enum { ROWS_MAX = 1024 };

struct value {
    char name[32];
    double value;
};

struct row {
    const struct workload *workload; /* static, so it has the same address in each forked process */
    const struct bench_place *place;
    char when[32], name[40], unit[8], budget[72];
    int size, limit_count;
    double value;
    struct value limits[LIMITS_MAX];
};

struct report {
    int count, printed;
    const struct workload *workload;
    const struct bench_place *place;
    const struct bench_store *store;
    char version[64]; /* of the server */
    struct row rows[ROWS_MAX];
};

static struct report *all;

/* ---- adding ---------------------------------------------------------------------- */

void report_begin(void)
{
    all = bench_share(sizeof *all);
}

void report_enter(const struct workload *workload, const struct bench_scene *scene)
{
    all->workload = workload;
    all->place = scene->place;
    all->store = scene->server->store;
    all->store->write_version(scene->server, all->version, sizeof all->version);
    all->printed = all->count;
}

static void copy(char *to, size_t size, const char *text)
{
    snprintf(to, size, "%s", text ? text : "");
}

void report(const struct figure *figure)
{
    struct row *row = &all->rows[all->count];

    if (all->count == ROWS_MAX)
        bench_die("more figures than report.c keeps");
    row->workload = all->workload;
    row->place = all->place;
    copy(row->when, sizeof row->when, figure->when);
    copy(row->name, sizeof row->name, figure->name);
    copy(row->unit, sizeof row->unit, figure->unit);
    copy(row->budget, sizeof row->budget, figure->budget);
    row->size = figure->size;
    row->value = figure->value;
    for (int i = 0; i < LIMITS_MAX && figure->limits[i].name; i++) {
        copy(row->limits[i].name, sizeof row->limits[i].name, figure->limits[i].name);
        row->limits[i].value = figure->limits[i].value;
        row->limit_count = i + 1;
    }
    all->count++;
}

/* ---- text ------------------------------------------------------------------------ */

/* As many digits of a value as a reader needs; static. */
static const char *number(double value)
{
    static char texts[4][32];
    static int turn;
    char *text = texts[turn++ % 4];

    snprintf(text, sizeof *texts, value >= 100 ? "%.0f" : value >= 10 ? "%.1f" : "%.2f", value);
    return text;
}

static void print_row(const struct row *row)
{
    printf("    %-15s %-26s %8s %-4s", row->when, row->name, number(row->value), row->unit);
    for (int i = 0; i < row->limit_count; i++) {
        const struct value *limit = &row->limits[i];

        printf("  %s %s", limit->name, number(limit->value));
        if (limit->value > 0)
            printf(" (%.2f)", row->value / limit->value);
    }
    if (row->budget[0])
        printf("  [%s]", row->budget);
    printf("\n");
}

void report_print(void)
{
    printf("%s: %s\n  %s, %s\n", all->workload->name, all->workload->about, all->store->name, all->place->name);
    for (int i = all->printed; i < all->count; i++)
        print_row(&all->rows[i]);
    printf("\n");
    fflush(stdout);
}

/* ---- JSON ------------------------------------------------------------------------ */

static void print_text(const char *text)
{
    putchar('"');
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            putchar('\\');
        if ((unsigned char)*text >= ' ')
            putchar(*text);
    }
    putchar('"');
}

static void print_member(const char *name, const char *text)
{
    printf("\"%s\": ", name);
    print_text(text);
    printf(", ");
}

/* Copies the value of a line of /proc/cpuinfo. */
static void find_processor(char *buf, size_t size)
{
    char line[256];
    FILE *file = fopen("/proc/cpuinfo", "r");

    copy(buf, size, "unknown");
    while (file && fgets(line, sizeof line, file)) {
        char *value = strchr(line, ':');

        if (value && strncmp(line, "model name", 10) == 0) {
            copy(buf, size, value + 2);
            break;
        }
    }
    if (file)
        fclose(file);
}

static void print_machine(void)
{
    struct utsname system;
    char processor[128];
    double load[3] = { 0 };

    uname(&system);
    find_processor(processor, sizeof processor);
    if (getloadavg(load, 3) < 0)
        load[0] = 0;
    printf("\"machine\": {");
    print_member("processor", processor);
    print_member("kernel", system.release);
    printf("\"cores\": %ld, \"load\": %.2f},\n", sysconf(_SC_NPROCESSORS_ONLN), load[0]);
}

static void print_versions(void)
{
    char version[64];

    printf("\"versions\": {");
    print_member("libdmutex", dmutex_version_np());
    print_member("server", all->version);
    snprintf(version, sizeof version, "%d.%d.%d", HIREDIS_MAJOR, HIREDIS_MINOR, HIREDIS_PATCH);
    print_member("hiredis", version);
    printf("\"compiler\": ");
    print_text(__VERSION__);
    printf("},\n");
}

static void print_run(int rounds, double seconds, char **arguments)
{
    time_t now = time(NULL);
    char date[32];

    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
    print_member("date", date);
    print_member("store", all->store->name);
    printf("\"command\": [\"dmutex-bench\"");
    for (int i = 1; arguments[i]; i++) {
        printf(", ");
        print_text(arguments[i]);
    }
    printf("], \"rounds\": %d, \"seconds\": %g,\n", rounds, seconds);
}

static void print_figure(const struct row *row)
{
    printf("    {");
    print_member("place", row->place->word);
    print_member("when", row->when);
    print_member("name", row->name);
    print_member("unit", row->unit);
    print_member("budget", row->budget);
    printf("\"size\": %d, \"value\": %.9g, \"limits\": [", row->size, row->value);
    for (int i = 0; i < row->limit_count; i++) {
        printf("%s{", i ? ", " : "");
        print_member("name", row->limits[i].name);
        printf("\"value\": %.9g, \"ratio\": %.4g}", row->limits[i].value,
               row->limits[i].value > 0 ? row->value / row->limits[i].value : 0);
    }
    printf("]}");
}

/* If a workload ran at several places, its rows are not contiguous. */
static void print_workload(const struct workload *workload)
{
    int count = 0;

    printf("  {");
    print_member("name", workload->name);
    print_member("about", workload->about);
    printf("\"figures\": [");
    for (int i = 0; i < all->count; i++) {
        if (all->rows[i].workload != workload)
            continue;
        printf(count++ ? ",\n" : "\n");
        print_figure(&all->rows[i]);
    }
    printf("]}");
}

static int has_rows(const struct workload *workload)
{
    for (int i = 0; i < all->count; i++) {
        if (all->rows[i].workload == workload)
            return 1;
    }
    return 0;
}

void report_print_json(int rounds, double seconds, char **arguments)
{
    int count = 0;

    printf("{\"program\": \"dmutex-bench\",\n");
    print_machine();
    print_versions();
    print_run(rounds, seconds, arguments);
    printf("\"workloads\": [\n");
    for (size_t i = 0; workloads[i]; i++) {
        if (!has_rows(workloads[i]))
            continue;
        printf(count++ ? ",\n" : "");
        print_workload(workloads[i]);
    }
    printf("]}\n");
}
