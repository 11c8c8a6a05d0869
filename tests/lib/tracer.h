/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counts the system calls of another process with ptrace(), for all its threads.  The process runs slowly under it, but
 * the count does not depend on that.
 */
#ifndef TEST_TRACER_H
#define TEST_TRACER_H

#include <stdbool.h>
#include <sys/types.h>

#define TRACER_THREADS 16
#define TRACER_CALLS 512 /* system calls with these numbers are counted separately */

struct tracer {
    pid_t pid;
    pid_t threads[TRACER_THREADS];
    int count;
    long calls[TRACER_CALLS];
};

/* Starts with the existing threads; threads made later are counted, too. */
void tracer_start(struct tracer *tracer, pid_t pid);

/* Lets the process run and counts, until is_over(user), which is called after each system call, is true. */
void tracer_run(struct tracer *tracer, bool (*is_over)(void *user), void *user);

/* Leaves the process running. */
void tracer_stop(struct tracer *tracer);

#endif
