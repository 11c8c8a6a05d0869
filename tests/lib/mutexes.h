/* SPDX-License-Identifier: BSD-2-Clause */
/* Mutexes of every kind, and calls in other threads of this process. */
#ifndef TEST_MUTEXES_H
#define TEST_MUTEXES_H

#include <pthread.h>
#include <stdbool.h>

#include <dmutex/dmutex.h>

#include "side.h"

/* One type with one robustness. */
struct kind {
    int type;
    int robust;
    const char *words; /* for an actor's init */
};

/* All eight; PTHREAD_MUTEX_DEFAULT is one of them, although it equals PTHREAD_MUTEX_NORMAL. */
#define KIND_COUNT 8
extern const struct kind kinds[KIND_COUNT];

/*
 * True if the test runs once more with mutexes that threads of a process hand on to each other, and that the process
 * keeps: DMUTEX_TEST_HANDED and DMUTEX_LINGER are set.
 */
bool mutexes_are_handed(void);

/*
 * Sets up a mutex. name NULL: anonymous. lease_ms 0: the default.  The mutex is fair, unless mutexes_are_handed(): each
 * acquisition by each thread asks the server, which is what most tests are about.
 */
void make_mutex(dmutex_t *mutex, const char *name, const struct kind *kind, unsigned lease_ms);

/* The same for a mutex that is always fair. */
void make_fair(dmutex_t *mutex, const char *name, const struct kind *kind, unsigned lease_ms);

/* The same for a mutex that threads of one process hand on to each other, and that the process keeps. */
void make_handed(dmutex_t *mutex, const char *name, const struct kind *kind, unsigned lease_ms, unsigned linger_ms);
void make_normal(dmutex_t *mutex, const char *name, unsigned lease_ms);
void make_recursive(dmutex_t *mutex, const char *name, unsigned lease_ms);
void make_errorcheck(dmutex_t *mutex, const char *name, unsigned lease_ms);
void make_robust(dmutex_t *mutex, const char *name, unsigned lease_ms);

typedef int (*mutex_call)(dmutex_t *mutex);

/* The first result that is not 0; 0 if the mutex was locked and given back. */
int lock_and_unlock(dmutex_t *mutex);

/* Until 20 ms from now, so that no further argument is needed. */
int timedlock_soon(dmutex_t *mutex);
int clocklock_soon(dmutex_t *mutex);

/* The four ways to lock. */
struct way {
    const char *name;
    mutex_call lock;
    bool is_try;
};
#define WAY_COUNT 4
extern const struct way ways_to_lock[WAY_COUNT];

/* The result of a call in a new thread, which then ends. */
int in_thread(mutex_call call, dmutex_t *mutex);

/* A call that may block, in its own thread. */
struct errand {
    mutex_call call; /* NULL: dmutex_clocklock() on `clock` until `until` */
    dmutex_t *mutex;
    clockid_t clock;
    struct timespec until;
    pthread_t thread;
    pid_t tid;
    int result;
    bool is_over;
};
void errand_begin(struct errand *errand, mutex_call call, dmutex_t *mutex);
void errand_begin_until(struct errand *errand, dmutex_t *mutex, clockid_t clock, const struct timespec *until);
bool errand_is_over(const struct errand *errand);

/* Waits until the errand's thread has been asleep in the kernel for some time. */
void errand_await_sleep(const struct errand *errand);

/* Waits for the errand's result; its thread has ended. */
int errand_join(struct errand *errand);

/* The calling thread's hold count of the mutex; asserts that the call succeeds. */
unsigned holdcount_of(dmutex_t *mutex);
uint64_t token_of(dmutex_t *mutex);
int64_t remaining_of(dmutex_t *mutex);

/* The server's key of one kind (lock, state, queue, waiter) for a name made of letters, "group/leaf". */
const char *key_of(const char *kind, const char *name);

/*
 * The waiters of the mutex on the server, in the queue or alone in `state`: how many, -1 without an answer; and the
 * first one, "<id> <words>", or "", valid until the next call.
 */
int waiters_at(struct side *side, const char *name);
const char *first_waiter_at(struct side *side, const char *name);

#endif
