/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A crowd: many threads in several actors that wait on one condition, each once. A thread that returns counts this in a
 * file while it owns the mutex, so that two at a time are noticed.
 *
 *     struct crowd crowd;
 *
 *     crowd_begin(&crowd, the_server, "t/m", "t/c", 60000);
 *     crowd_gather(&crowd, 200);
 *     assert_result(dcond_broadcast(&cond), 0);
 *     crowd_await_return(&crowd);
 *     crowd_end(&crowd);
 */
#ifndef TEST_CROWD_H
#define TEST_CROWD_H

#include <stdint.h>

#include "actor.h"

#define CROWD_PROCESSES 4

struct crowd {
    struct server *server;
    const char *mutex, *cond; /* the names */
    struct actor *actors[CROWD_PROCESSES];
    char file[64]; /* contains the page in which the threads count */
    int count;
};

void crowd_begin(struct crowd *crowd, struct server *server, const char *mutex, const char *cond, unsigned lease_ms);
void crowd_end(struct crowd *crowd);

/* Makes `count` threads wait, in equal parts in each process; the mutex is free then. */
void crowd_gather(struct crowd *crowd, int count);

/* How many wait on the condition, and in the queue of the mutex, as the server sees it. */
int64_t crowd_on_condition(const struct crowd *crowd);
int64_t crowd_in_queue(const struct crowd *crowd);

/* How many have returned so far. */
int64_t crowd_back(const struct crowd *crowd);

/* Waits until all have returned, each owning the mutex, and no two at the same time. Nobody waits then. */
void crowd_await_return(struct crowd *crowd);

#endif
