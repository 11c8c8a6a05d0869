/* SPDX-License-Identifier: BSD-2-Clause */
/* Two names that share a place in the table of the fast path do not disturb each other. */
#include <pthread.h>
#include <stdio.h>

#include "../lib/testlib.h"

#define LINGER 60000
#define NAMES_MOST 400 /* of 1024 places: two names share one long before */
#define PLACES 1024u
#define THREADS 3
#define TRIES 3000000

static dmutex_t mutexes[NAMES_MOST];
static bool is_over;

static void make_used(int i)
{
    char name[32];

    snprintf(name, sizeof name, "place/m%d", i);
    make_handed(&mutexes[i], name, &kinds[0], 0, LINGER);
    assert_result(dmutex_lock(&mutexes[i]), 0);
    assert_result(dmutex_unlock(&mutexes[i]), 0);
}

static bool share_a_place(int i, int other)
{
    return mutexes[i].dm_hash % PLACES == mutexes[other].dm_hash % PLACES;
}

/* Makes names until two share a place; the number of names. */
static int find_two(int *ret_one, int *ret_other)
{
    for (int i = 0; i < NAMES_MOST; i++) {
        make_used(i);
        for (int other = 0; other < i; other++) {
            if (share_a_place(i, other)) {
                *ret_one = i;
                *ret_other = other;
                return i + 1;
            }
        }
    }
    fail_msg("no two of %d names share a place", NAMES_MOST);
    return 0;
}

static void *lock_on_and_on(void *user)
{
    dmutex_t *mutex = user;
    int result = 0;

    while (!result && !__atomic_load_n(&is_over, __ATOMIC_ACQUIRE)) {
        result = dmutex_lock(mutex);
        if (!result)
            result = dmutex_unlock(mutex);
    }
    return (void *)(intptr_t)result;
}

static int count_refusals(dmutex_t *mutex)
{
    int refused = 0;

    for (int i = 0; i < TRIES; i++) {
        int result = dmutex_trylock(mutex);

        refused += result == EBUSY;
        if (!result)
            assert_result(dmutex_unlock(mutex), 0);
    }
    return refused;
}

/* Nobody else locks the tried mutex, so no try is refused. */
static void test_a_free_mutex_is_never_busy_when_another_name_has_its_place(void **state)
{
    int one = 0, other = 0, count = find_two(&one, &other), refused;
    pthread_t threads[THREADS];
    void *result;

    (void)state;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, lock_on_and_on, &mutexes[other]), 0);
    refused = count_refusals(&mutexes[one]);
    __atomic_store_n(&is_over, true, __ATOMIC_RELEASE);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], &result), 0);
        assert_null(result);
    }
    for (int i = 0; i < count; i++)
        assert_result(dmutex_destroy(&mutexes[i]), 0);
    assert_int_equal(refused, 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_free_mutex_is_never_busy_when_another_name_has_its_place),
        cmocka_unit_test(test_nothing_is_left),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, test_group_setup, test_group_teardown);
}
