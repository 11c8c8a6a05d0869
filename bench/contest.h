/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls of the library, timed in turns with bare calls. */
#ifndef DM_BENCH_CONTEST_H
#define DM_BENCH_CONTEST_H

#include "bench.h"
#include "report.h"

struct contender {
    const char *name; /* in the report; NULL ends a list */
    void (*call)(void *user);
    void *user;
};

/* The first contender is the library; the others are its limits. */
struct contest {
    const struct bench_scene *scene;
    const char *when, *name, *unit; /* "ms", "us" or "ns" per call */
    const struct contender *contenders;
    const char *budget;
    int size;
    long calls; /* at most this many per turn, in many turns; 0: as many as there is time for */
};

/* Reports the median times. */
void contest_hold(const struct contest *contest);

/* Reports how many commands clients sent per call. */
void contest_count(const struct contender *contender, const struct bench_scene *scene, const char *when,
                   const char *budget);

#endif
