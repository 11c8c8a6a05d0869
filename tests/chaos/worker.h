/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process that uses the mutexes, and writes down all that it does.
 *
 * Two of its threads lock and unlock whatever comes, one puts things on the table, one takes them.
 * Who puts waits, without a timeout, while the table is full, and who takes while it is empty: so a
 * lost wake-up stops both.
 */
#ifndef CHAOS_WORKER_H
#define CHAOS_WORKER_H

#include <stdint.h>

#include "clocks.h"
#include "history.h"
#include "resource.h"

#define WORKER_THREADS 4
#define TABLE_ROOM 2 /* things on the table at most */

enum phase {
    PHASE_FLOW,  /* all do what they do */
    PHASE_DRAIN, /* things are taken only, nothing else begins */
    PHASE_OVER,  /* no more calls */
    PHASE_GONE   /* the processes end */
};

/* What a process tells of itself, in shared memory. */
struct card {
    int holding[WORKER_THREADS]; /* a mutex, now */
    int is_done;                 /* it makes no more calls; then: */
    int threads, descriptors;    /* that the library has now */
};

struct worker {
    struct history *history;
    const struct resource *resource;
    int *phase;
    struct card *card;
    char url[128];
    char host[16];
    struct clocks clocks;
    unsigned lease_ms;
    uint64_t seed;
    int process; /* a number that no other one has in the history */
};

/* In a forked child, which has not used the library.  Do not return. */
void worker_run(const struct worker *worker) __attribute__((__noreturn__));

/*
 * Begins the end: looks whether an owner has died, waits until nothing is on the table, and says
 * that it is over.  `must_wake`: wakes all first, where the server may have lost a signal.
 */
void worker_close(const struct worker *worker, bool must_wake) __attribute__((__noreturn__));

#endif
