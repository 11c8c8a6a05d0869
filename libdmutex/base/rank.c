/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/rank.h"

#include "base/clock.h"
#include "base/poll.h"
#include "base/real.h"

/*
 * How many of the library's locks the calling thread holds, is about to take or has just given back. A signal handler
 * that finds 0 has interrupted no section. It is raised before the lock and lowered after the unlock, because a handler
 * in between must not see too few; seeing one too many, it only leaves the locks alone.
 */
static __thread unsigned held_count;

static unsigned collecting;      /* threads in fork() that do not have all locks yet; atomic */
static __thread bool owes_pause; /* see dm_mutex_owe_pause() */
#define PAUSE_NS (100 * DM_NS_PER_US)
#define PAUSES_MOST 100

#ifdef DM_LOCK_CHECKS
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How many locks of each rank the calling thread holds; the two connections have the same rank. */
static __thread unsigned char held[DM_RANK_COUNT];

/* A second lock of the same rank passes: fork() takes the locks of both connections. */
static void check_order(enum dm_rank rank)
{
    for (int higher = (int)rank + 1; higher < DM_RANK_COUNT; higher++) {
        if (held[higher]) {
            fprintf(stderr, "libdmutex: lock of rank %d taken while holding rank %d\n", rank, higher);
            abort();
        }
    }
}

void dm_mutex_check_held(enum dm_rank rank, const char *function)
{
    if (held[rank])
        return;
    fprintf(stderr, "libdmutex: %s() is called without the lock of rank %d\n", function, (int)rank);
    abort();
}

static void note(enum dm_rank rank, int change)
{
    held[rank] = (unsigned char)(held[rank] + change);
}
#else
static void check_order(enum dm_rank rank)
{
    (void)rank;
}

static void note(enum dm_rank rank, int change)
{
    (void)rank;
    (void)change;
}
#endif

bool dm_mutex_holds_none(void)
{
    return held_count == 0;
}

void dm_mutex_owe_pause(void)
{
    owes_pause = true;
}

void dm_mutex_pause(void)
{
    if (!owes_pause)
        return;
    owes_pause = false;
    for (int i = 0; i < PAUSES_MOST && __atomic_load_n(&collecting, __ATOMIC_RELAXED) > 0; i++)
        dm_poll(NULL, 0, PAUSE_NS);
}

void dm_mutex_begin_collecting(void)
{
    __atomic_add_fetch(&collecting, 1, __ATOMIC_RELAXED);
}

void dm_mutex_end_collecting(void)
{
    __atomic_sub_fetch(&collecting, 1, __ATOMIC_RELAXED);
}

void dm_mutex_lock(struct dm_mutex *mutex)
{
    check_order(mutex->rank);
    held_count++;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    dm_real.mutex_lock(&mutex->mutex);
    note(mutex->rank, 1);
}

void dm_mutex_unlock(struct dm_mutex *mutex)
{
    note(mutex->rank, -1);
    dm_real.mutex_unlock(&mutex->mutex);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    held_count--;
}

void dm_mutex_reset(struct dm_mutex *mutex)
{
    static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

    dm_real.mutex_unlock(&mutex->mutex); /* for the race detector, which has seen the lock being taken */
    mutex->mutex = fresh;
}

/*
 * Not called after a bare fork in a handler that has interrupted a section: the section continues in the child, and
 * lowers the count itself.
 */
void dm_mutex_fork_child(void)
{
    held_count = 0;
    collecting = 0;
#ifdef DM_LOCK_CHECKS
    memset(held, 0, sizeof held);
#endif
}
