/* SPDX-License-Identifier: BSD-2-Clause */
/* Processes that do nothing but lock and unlock one name, each in a loop, for a while. */
#ifndef DM_BENCH_CROWD_H
#define DM_BENCH_CROWD_H

#include <stdbool.h>

#include "bench.h"

#define CROWD_MAX 128

/* The lock under test. */
enum crowd_lock { CROWD_LIBRARY, CROWD_BARE };

struct crowd {
    enum crowd_lock lock;
    int size;
    int core; /* of all processes */
};

/* The counts of a run; the rates are per acquisition. */
struct crowd_figures {
    double per_second; /* acquisitions of all */
    double scripts;    /* script calls by clients */
    double messages;   /* sent to inboxes: each wakes one process */
    double sleeps;     /* of threads, until woken */
    double server_us;  /* in the scripts */
    double spread;     /* acquisitions of the luckiest process over the acquisitions of the unluckiest */
};

/* Starts the processes, lets them run for so long once all are there, and ends them. */
struct crowd_figures crowd_run(const struct bench_server *server, const struct crowd *crowd, double seconds);

#endif
