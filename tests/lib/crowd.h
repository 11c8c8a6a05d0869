/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A crowd: many threads in several actors that wait on one condition, each once. A thread that comes back counts the
 * return in a file while owning the mutex, so that two at a time are seen.
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
    const char *mutex, *cond; /* names of the two */
    struct actor *actors[CROWD_PROCESSES];
    char file[64]; /* the page that the threads count in */
    int count;
};

void crowd_begin(struct crowd *crowd, struct server *server, const char *mutex, const char *cond, unsigned lease_ms);
void crowd_end(struct crowd *crowd);

/* So many wait, in equal parts in each process; the mutex is free then. */
void crowd_gather(struct crowd *crowd, int count);

/* The number of waiters on the condition, and in the queue of the mutex, as the server sees both. */
int64_t crowd_on_condition(const struct crowd *crowd);
int64_t crowd_in_queue(const struct crowd *crowd);

/* How many have come back so far. */
int64_t crowd_back(const struct crowd *crowd);

/* All come back, each owning the mutex, nobody at the same time as another; nobody waits then. */
void crowd_await_return(struct crowd *crowd);

#endif
