/* SPDX-License-Identifier: BSD-2-Clause */
/* <dmutex/testing.h>: a hold that is abandoned as if the owner had died. */
#include <dmutex/testing.h>
#include <string.h>

#include "../lib/testlib.h"

#define LEASE 500

static dmutex_test_server_t *server; /* each test's own */
static dmutex_t mutex;

static int start(void **state)
{
    (void)state;
    return dmutex_test_server_start(&server);
}

/* Not before a thread's hold was given back at the thread's end. */
static int end(void **state)
{
    (void)state;
    wait_until(dmutex_test_server_stop(server) == 0);
    return 0;
}

/* The next robust owner gets a death, in another process or in the same thread. */
static void test_the_next_owner_learns_when_a_hold_is_abandoned(void **state)
{
    const char *url = dmutex_test_server_url(server);
    struct actor *next;
    char patient[200]; /* a trylock may have to connect first, on a busy machine */
    uint64_t token;

    (void)state;
    snprintf(patient, sizeof patient, "%s%ccommand_timeout=20000", url, strchr(url, '?') ? '&' : '?');
    next = actor_start_at(patient);
    make_robust(&mutex, "testing/died", (unsigned)late_stretched_ms(LEASE));
    actor_do(next, "0", "init testing/died robust lease=%d", LEASE);
    actor_value(next, "islocked testing/died"); /* is connected before the lease runs */
    assert_result(dmutex_lock(&mutex), 0);
    token = token_of(&mutex);
    assert_result(dmutex_test_abandon(&mutex), 0);
    assert_int_equal(holdcount_of(&mutex), 0);
    assert_result(dmutex_unlock(&mutex), EPERM);
    assert_result(dmutex_test_abandon(&mutex), EPERM);
    actor_do(next, "EBUSY", "trylock testing/died");
    actor_do(next, "EOWNERDEAD", "lock testing/died");
    actor_do(next, "0", "consistent testing/died");
    actor_do(next, "0", "unlock testing/died");

    assert_result(dmutex_lock(&mutex), 0);
    assert_true(token_of(&mutex) > token);
    assert_result(dmutex_test_abandon(&mutex), 0);
    assert_result(dmutex_lock(&mutex), EOWNERDEAD);
    assert_result(dmutex_consistent(&mutex), 0);
    assert_result(dmutex_unlock(&mutex), 0);
    actor_end(next);
}

/* All depths of a recursive mutex die at once; a hold that others wait for goes to them. */
static void test_all_of_a_hold_dies_when_it_is_abandoned(void **state)
{
    unsigned lease_ms = (unsigned)late_stretched_ms(2 * LEASE); /* the hold is not to end before the waiter is seen */
    struct errand waiter;
    dmutex_t other;

    (void)state;
    make_recursive(&mutex, "testing/deep", lease_ms);
    make_recursive(&other, "testing/deep", lease_ms);
    assert_result(dmutex_lock(&mutex), 0);
    assert_result(dmutex_lock(&mutex), 0);
    errand_begin(&waiter, dmutex_lock, &other);
    wait_until(waiters_of(&mutex) == 1);
    assert_result(dmutex_test_abandon(&mutex), 0);
    assert_result(dmutex_unlock(&mutex), EPERM);
    assert_result(errand_join(&waiter), 0);
}

/* Only the caller's own hold can be abandoned. */
static void test_abandon_is_refused_when_the_caller_does_not_hold(void **state)
{
    (void)state;
    make_normal(&mutex, "testing/others", 0);
    assert_result(dmutex_test_abandon(&mutex), EPERM);
    assert_result(dmutex_lock(&mutex), 0);
    assert_result(in_thread(dmutex_test_abandon, &mutex), EPERM);
    assert_int_equal(holdcount_of(&mutex), 1);
    assert_result(dmutex_unlock(&mutex), 0);
    assert_result(dmutex_test_abandon(&mutex), EPERM);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_the_next_owner_learns_when_a_hold_is_abandoned, start, end),
        cmocka_unit_test_setup_teardown(test_all_of_a_hold_dies_when_it_is_abandoned, start, end),
        cmocka_unit_test_setup_teardown(test_abandon_is_refused_when_the_caller_does_not_hold, start, end),
    };

    test_begin(argc, argv);
    test_put_server_into_path();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
