/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The figures of all workloads: printed as text after each workload, or as one JSON object at the end.
 *
 * The report is memory shared with forked processes, so that a process that measures can add its figures. Only one
 * process adds at a time.
 */
#ifndef DM_BENCH_REPORT_H
#define DM_BENCH_REPORT_H

#include <stdbool.h>

struct bench_scene;
struct workload;

enum { LIMITS_MAX = 4 };

/* A figure of the library, with the same figure of bare means. */
struct figure {
    const char *when; /* "TCP", "8 threads": distinguishes figures with the same name */
    const char *name;
    const char *unit;
    int size; /* the number in `when`, for plots: waiters, threads, names */
    double value;
    struct {
        const char *name; /* NULL ends the list */
        double value;
    } limits[LIMITS_MAX];
    const char *budget; /* "<= 1.40 of a bare grant" */
};

void report_begin(void);

/* From now on, figures belong to this workload at this place. */
void report_enter(const struct workload *workload, const struct bench_scene *scene);

/* Copies the figure. */
void report(const struct figure *figure);

/* Prints the figures added since report_enter(). */
void report_print(void);

/* Prints everything: machine, versions, date, the arguments, and the figures of each workload. */
void report_print_json(int rounds, double seconds, char **arguments);

#endif
