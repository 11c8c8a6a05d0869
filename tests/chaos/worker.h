/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process that uses the mutexes, and records each call.
 *
 * Two threads, or four, lock and unlock random mutexes; a maker puts things on the table, and a taker takes things
 * away.  The maker waits, without a timeout, while the table is full, and the taker while the table is empty: so a lost
 * wake-up stops both.
 */
#ifndef CHAOS_WORKER_H
#define CHAOS_WORKER_H

#include <stdint.h>

#include "clocks.h"
#include "history.h"
#include "resource.h"

#define WORKER_THREADS 6 /* at most */
#define TABLE_ROOM 2     /* things on the table at most */

enum phase {
    PHASE_FLOW,  /* all threads work */
    PHASE_DRAIN, /* things are taken only, nothing else begins */
    PHASE_OVER,  /* no more calls */
    PHASE_GONE   /* the processes end */
};

/* A process's report to the test, in shared memory. */
struct card {
    int holding[WORKER_THREADS]; /* not 0: the thread holds a mutex now */
    int is_done;                 /* the process makes no more calls; then: */
    int threads, descriptors;    /* of the library, now */
};

struct worker {
    struct history *history;
    const struct resource *resource;
    int *phase;
    struct card *card;
    char url[256];
    char host[16];
    struct clocks clocks;
    unsigned lease_ms;
    uint64_t seed;
    int process;     /* a number, unique in the history */
    bool locks_only; /* the store has no conditions */
    bool hands_on;   /* six threads, which hand mutexes on, and keep leases; else four with fair mutexes */
};

/* Runs the process in a forked child that has not used the library.  Does not return. */
void worker_run(const struct worker *worker) __attribute__((__noreturn__));

/*
 * Closes the round: repairs the table if an owner has died, waits until the table is empty, and sets PHASE_OVER.
 * `must_wake`: first wakes all waiters, because the server may have lost a signal.  Does not return.
 */
void worker_close(const struct worker *worker, bool must_wake) __attribute__((__noreturn__));

#endif
