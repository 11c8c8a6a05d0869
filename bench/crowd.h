/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads of some processes that do nothing but lock and unlock one name, each in a loop, for a while. */
#ifndef DM_BENCH_CROWD_H
#define DM_BENCH_CROWD_H

#include <stdbool.h>

#include "bench.h"

#define CROWD_MAX 128

/* The lock under test: the library's, or one of grant.h, asked.h, home.h: SET NX PX tried each millisecond. */
enum crowd_lock { CROWD_LIBRARY, CROWD_GRANT, CROWD_ASKED, CROWD_POLL };

struct crowd {
    const char *name; /* in reports */
    enum crowd_lock lock;
    int processes, threads; /* threads of each process; CROWD_MAX in all */
    bool is_timed;          /* also time each wait and handoff: three more clock reads */
    /* Of the library's mutex. */
    int fairness;
    unsigned linger_ms;
};

enum crowd_figure {
    CROWD_PER_SECOND, /* acquisitions of all */
    CROWD_HANDOFFS,   /* a second: acquisitions after another thread's */
    CROWD_COMMANDS,   /* of clients, for an acquisition */
    CROWD_MESSAGES,   /* to inboxes, for an acquisition: each wakes one process */
    CROWD_SLEEPS,     /* of threads, for an acquisition */
    CROWD_SERVER_US,  /* in scripts, for an acquisition */
    CROWD_SPREAD,     /* acquisitions of the luckiest thread over those of the unluckiest, or over 1 if it had none */
    CROWD_SHARES,     /* the same of the processes */
    CROWD_P50_US,     /* of a handoff, from before the unlock to after the lock; if timed */
    CROWD_P99_US,
    CROWD_MAX_US,
    CROWD_WAIT_MS, /* the longest wait of a thread for the lock; if timed */
    CROWD_FIGURES
};

struct crowd_figures {
    double of[CROWD_FIGURES];
};

/* Starts the processes, lets them run for so long once all are there, and ends them. */
struct crowd_figures crowd_run(const struct bench_scene *scene, const struct crowd *crowd);

/* Runs the crowds in turns; the medians of the rounds. */
void crowd_compare(const struct bench_scene *scene, const struct crowd *crowds, int count,
                   struct crowd_figures *ret_medians);

/* Reports a figure of the first crowd beside the same of the others. */
void crowd_report(const struct crowd *crowds, int count, const struct crowd_figures *medians, enum crowd_figure which,
                  const char *when, int size, const char *budget);

#endif
