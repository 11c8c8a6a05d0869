/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads of several processes that lock and unlock one name in a loop, and do nothing else. */
#ifndef DM_BENCH_CROWD_H
#define DM_BENCH_CROWD_H

#include <stdbool.h>

#include "bench.h"
#include "store.h"

#define CROWD_MAX 512

struct crowd {
    const char *name;       /* in reports */
    enum bare_kind lock;    /* under test; BARE_NONE is the library's */
    int processes, threads; /* threads of each process; at most CROWD_MAX in all */
    bool is_timed;          /* also time each wait and handoff, with three more clock reads */
    /* For the library's mutex. */
    int fairness;
    unsigned linger_ms;
};

enum crowd_figure {
    CROWD_PER_SECOND, /* acquisitions of all threads */
    CROWD_HANDOFFS,   /* per second: acquisitions after another thread's */
    CROWD_COMMANDS,   /* of clients, per acquisition; in others what their stores count */
    CROWD_ROWS,       /* or revisions, written per acquisition; not in Redis */
    CROWD_MESSAGES,   /* to inboxes, per acquisition: each wakes one process */
    CROWD_SLEEPS,     /* of threads, per acquisition */
    CROWD_SERVER_US,  /* in scripts, per acquisition */
    CROWD_SPREAD,     /* acquisitions of the luckiest thread over those of the unluckiest, or over 1 if it had none */
    CROWD_SHARES,     /* the same for processes */
    CROWD_P50_US,     /* of a handoff, from before the unlock to after the lock; if timed */
    CROWD_P99_US,
    CROWD_MAX_US,
    CROWD_WAIT_MS, /* a thread's longest wait for the lock; if timed */
    CROWD_FIGURES
};

struct crowd_figures {
    double of[CROWD_FIGURES];
};

/* Starts the processes, lets them run for the scene's time once all are ready, and ends them. */
struct crowd_figures crowd_run(const struct bench_scene *scene, const struct crowd *crowd);

/* Runs the crowds in turns, and returns the medians of the rounds. */
void crowd_compare(const struct bench_scene *scene, const struct crowd *crowds, int count,
                   struct crowd_figures *ret_medians);

/* Reports a figure of the first crowd next to the same figure of the others, unless the store does not count it. */
void crowd_report(const struct crowd *crowds, int count, const struct crowd_figures *medians, enum crowd_figure which,
                  const char *when, int size, const char *budget);

#endif
