/* SPDX-License-Identifier: BSD-2-Clause */
#include "mutexes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "testlib.h"

const struct kind kinds[KIND_COUNT] = {
    { PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_STALLED, "" },
    { PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_STALLED, " errorcheck" },
    { PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_STALLED, " recursive" },
    { PTHREAD_MUTEX_DEFAULT, PTHREAD_MUTEX_STALLED, "" },
    { PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_ROBUST, " robust" },
    { PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_ROBUST, " errorcheck robust" },
    { PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ROBUST, " recursive robust" },
    { PTHREAD_MUTEX_DEFAULT, PTHREAD_MUTEX_ROBUST, " robust" },
};

enum { NORMAL, ERRORCHECK, RECURSIVE, ROBUST = 4 };

static void make(dmutex_t *mutex, const char *name, const struct kind *kind, unsigned lease_ms, unsigned linger_ms,
                 int fairness)
{
    dmutexattr_t attr;

    assert_result(dmutexattr_init(&attr), 0);
    assert_result(dmutexattr_settype(&attr, kind->type), 0);
    assert_result(dmutexattr_setrobust(&attr, kind->robust), 0);
    assert_result(dmutexattr_setname_np(&attr, name), 0);
    if (lease_ms)
        assert_result(dmutexattr_setlease_np(&attr, lease_ms), 0);
    if (linger_ms)
        assert_result(dmutexattr_setlinger_np(&attr, linger_ms), 0);
    assert_result(dmutexattr_setfairness_np(&attr, fairness), 0);
    assert_result(dmutex_init(mutex, &attr), 0);
    assert_result(dmutexattr_destroy(&attr), 0);
}

bool mutexes_are_handed(void)
{
    const char *said = getenv("DMUTEX_TEST_HANDED");

    return said && *said;
}

void make_mutex(dmutex_t *mutex, const char *name, const struct kind *kind, unsigned lease_ms)
{
    make(mutex, name, kind, lease_ms, 0, mutexes_are_handed() ? DMUTEX_THROUGHPUT_NP : DMUTEX_FAIR_NP);
}

void make_fair(dmutex_t *mutex, const char *name, const struct kind *kind, unsigned lease_ms)
{
    make(mutex, name, kind, lease_ms, 0, DMUTEX_FAIR_NP);
}

void make_handed(dmutex_t *mutex, const char *name, const struct kind *kind, unsigned lease_ms, unsigned linger_ms)
{
    make(mutex, name, kind, lease_ms, linger_ms, DMUTEX_THROUGHPUT_NP);
}

void make_normal(dmutex_t *mutex, const char *name, unsigned lease_ms)
{
    make_mutex(mutex, name, &kinds[NORMAL], lease_ms);
}

void make_recursive(dmutex_t *mutex, const char *name, unsigned lease_ms)
{
    make_mutex(mutex, name, &kinds[RECURSIVE], lease_ms);
}

void make_errorcheck(dmutex_t *mutex, const char *name, unsigned lease_ms)
{
    make_mutex(mutex, name, &kinds[ERRORCHECK], lease_ms);
}

void make_robust(dmutex_t *mutex, const char *name, unsigned lease_ms)
{
    make_mutex(mutex, name, &kinds[ROBUST], lease_ms);
}

int lock_and_unlock(dmutex_t *mutex)
{
    int result = dmutex_lock(mutex);

    return result ? result : dmutex_unlock(mutex);
}

int timedlock_soon(dmutex_t *mutex)
{
    struct timespec until = wait_time_in_ms(CLOCK_REALTIME, 20);

    return dmutex_timedlock(mutex, &until);
}

int clocklock_soon(dmutex_t *mutex)
{
    struct timespec until = wait_time_in_ms(CLOCK_MONOTONIC, 20);

    return dmutex_clocklock(mutex, CLOCK_MONOTONIC, &until);
}

const struct way ways_to_lock[WAY_COUNT] = {
    { "lock", dmutex_lock, false },
    { "trylock", dmutex_trylock, true },
    { "timedlock", timedlock_soon, false },
    { "clocklock", clocklock_soon, false },
};

static void *run(void *user)
{
    struct errand *errand = user;

    __atomic_store_n(&errand->tid, gettid(), __ATOMIC_RELEASE);
    if (errand->call)
        errand->result = errand->call(errand->mutex);
    else
        errand->result = dmutex_clocklock(errand->mutex, errand->clock, &errand->until);
    __atomic_store_n(&errand->is_over, true, __ATOMIC_RELEASE);
    return NULL;
}

void errand_begin(struct errand *errand, mutex_call call, dmutex_t *mutex)
{
    *errand = (struct errand){ .call = call, .mutex = mutex };
    assert_int_equal(pthread_create(&errand->thread, NULL, run, errand), 0);
}

void errand_begin_until(struct errand *errand, dmutex_t *mutex, clockid_t clock, const struct timespec *until)
{
    *errand = (struct errand){ .mutex = mutex, .clock = clock, .until = *until };
    assert_int_equal(pthread_create(&errand->thread, NULL, run, errand), 0);
}

bool errand_is_over(const struct errand *errand)
{
    return __atomic_load_n(&errand->is_over, __ATOMIC_ACQUIRE);
}

void errand_await_sleep(const struct errand *errand)
{
    int looks = 0;

    wait_until(__atomic_load_n(&errand->tid, __ATOMIC_ACQUIRE) != 0);
    wait_until((looks = proc_state(errand->tid) == 'S' ? looks + 1 : 0) == 20);
}

int errand_join(struct errand *errand)
{
    wait_until(errand_is_over(errand));
    assert_int_equal(pthread_join(errand->thread, NULL), 0);
    return errand->result;
}

int in_thread(mutex_call call, dmutex_t *mutex)
{
    struct errand errand;

    errand_begin(&errand, call, mutex);
    return errand_join(&errand);
}

unsigned holdcount_of(dmutex_t *mutex)
{
    unsigned count;

    assert_result(dmutex_holdcount_np(mutex, &count), 0);
    return count;
}

uint64_t token_of(dmutex_t *mutex)
{
    uint64_t token;

    assert_result(dmutex_token_np(mutex, &token), 0);
    return token;
}

int64_t remaining_of(dmutex_t *mutex)
{
    int64_t left_ms;

    assert_result(dmutex_remaining_np(mutex, &left_ms), 0);
    return left_ms;
}

const char *key_of(const char *kind, const char *name)
{
    static char room[4][512];
    static unsigned last;
    char *key = room[last++ % 4];
    size_t group = strcspn(name, "/");

    snprintf(key, sizeof room[0], "dmutex:{%.*s}:%s:%s", (int)group, name, kind, name[group] ? name + group + 1 : "");
    return key;
}

#define ONE_ALONE                                                \
    "local alone = redis.call('HGET', KEYS[1], 'wanted') or '' " \
    "alone = #alone > 1 and alone "

int waiters_at(struct side *side, const char *name)
{
    static const char script[] = ONE_ALONE "return redis.call('ZCARD', KEYS[2]) + (alone and 1 or 0)";
    const char *state = key_of("state", name), *queue = key_of("queue", name);

    if (!side_try(side, "EXISTS %s", state))
        return -1;
    return (int)side_int(side, "EVAL %s 2 %s %s", script, state, queue);
}

const char *first_waiter_at(struct side *side, const char *name)
{
    static const char script[] = ONE_ALONE "local id = redis.call('ZRANGE', KEYS[2], 0, 0)[1] "
                                           "return alone or id and id .. ' ' .. redis.call('HGET', KEYS[3], id) or ''";

    return side_text(side, "EVAL %s 3 %s %s %s", script, key_of("state", name), key_of("queue", name),
                     key_of("waiter", name));
}
