/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Conditions with many waiters in several processes, and many signals: each waiter is woken once, the waiters own the
 * mutex one after the other, and the server's work grows with their number only.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/testlib.h"

#define LONG_LEASE 60000 /* nobody polls */
#define MANY 200

static struct crowd crowd;
static dmutex_t mutex;
static dcond_t cond = DCOND_INITIALIZER("crowd/c");

static int begin_test(void **state)
{
    (void)state;
    make_normal(&mutex, "crowd/m", LONG_LEASE);
    crowd_begin(&crowd, the_server, "crowd/m", "crowd/c", LONG_LEASE);
    return 0;
}

static int end_test(void **state)
{
    (void)state;
    crowd_end(&crowd);
    return 0;
}

/* Commands that the server ran, commands inside scripts as well. */
static int64_t all_commands(void)
{
    const char *line = strstr(side_text(the_server->side, "INFO stats"), "total_commands_processed:");

    assert_non_null(line);
    return strtoll(strchr(line, ':') + 1, NULL, 10);
}

/* POSIX scenario 33: 200 waiters in four processes, one broadcast, 200 returns. */
static void test_a_broadcast_wakes_each_once_when_a_crowd_waits(void **state)
{
    (void)state;
    crowd_gather(&crowd, MANY);
    assert_result(dcond_broadcast(&cond), 0);
    crowd_await_return(&crowd);
}

/* The same while the broadcaster owns the mutex: no waiter comes back before the mutex is given back. */
static void test_a_broadcast_wakes_nobody_when_the_mutex_is_owned(void **state)
{
    (void)state;
    crowd_gather(&crowd, MANY);
    assert_result(dmutex_lock(&mutex), 0);
    assert_result(dcond_broadcast(&cond), 0);
    assert_int_equal(crowd_on_condition(&crowd), 0);
    assert_int_equal(crowd_in_queue(&crowd), MANY);
    assert_int_equal(crowd_back(&crowd), 0);
    assert_result(dmutex_unlock(&mutex), 0);
    crowd_await_return(&crowd);
}

/* As many signals as waiters do the same, one by one. */
static void test_signals_wake_one_each_when_a_crowd_waits(void **state)
{
    (void)state;
    crowd_gather(&crowd, MANY);
    assert_result(dmutex_lock(&mutex), 0);
    for (int i = 1; i <= MANY; i++) {
        assert_result(dcond_signal(&cond), 0);
        assert_int_equal(crowd_in_queue(&crowd), i);
        assert_int_equal(crowd_on_condition(&crowd), MANY - i);
    }
    assert_result(dmutex_unlock(&mutex), 0);
    crowd_await_return(&crowd);
}

/*
 * Failure B34: a wake-up costs the same in a small crowd and in a large one.  Each waiter gives the mutex back (1), and
 * gets two messages: signalled, granted.
 */
static void test_the_servers_work_is_linear_when_the_crowd_grows(void **state)
{
    static const int sizes[] = { 52, 100, MANY };
    int64_t per_waiter = 0;

    (void)state;
    for (int i = 0; i < 3; i++) {
        int64_t sent, told, done;

        crowd_gather(&crowd, sizes[i]);
        sent = client_commands();
        told = side_calls(the_server->side, "publish");
        done = all_commands();
        assert_result(dcond_broadcast(&cond), 0);
        crowd_await_return(&crowd);
        done = all_commands() - done;
        assert_within(client_commands() - sent, sizes[i], sizes[i] + 20);
        assert_within(side_calls(the_server->side, "publish") - told, 2 * sizes[i], 2 * sizes[i] + 4);
        per_waiter = per_waiter ? per_waiter : done / sizes[i] + 1;
        assert_within(done, sizes[i], 2 * per_waiter * sizes[i]); /* work on all pairs would be four times */
    }
}

/* Grants go out one at a time: no waiter gets one before the earlier owner has come and gone. */
static void test_one_grant_is_outstanding_when_a_crowd_is_woken(void **state)
{
    int64_t before, granted, back;

    (void)state;
    crowd_gather(&crowd, MANY);
    before = side_calls(the_server->side, "publish") + MANY; /* each gets "signalled", at once */
    assert_result(dcond_broadcast(&cond), 0);
    do {
        granted = side_calls(the_server->side, "publish") - before;
        back = crowd_back(&crowd);
        assert_within(granted, 1, back + 1);
        assert_within(side_int(the_server->side, "HLEN %s", key_of("lock", "crowd/m")), 0, 1);
    } while (back < MANY);
    crowd_await_return(&crowd);
}

/* POSIX scenario 26: a signal is for the waiters at the time of the signal, not for a later waiter. */
static void test_a_signal_is_not_stolen_when_another_waits_after_it(void **state)
{
    struct actor *early = crowd.actors[0], *late = crowd.actors[1];

    (void)state;
    for (int i = 0; i < repetitions(100); i++) {
        actor_do(early, "0", "lock crowd/m");
        actor_send(early, "wait crowd/c crowd/m");
        wait_until(crowd_on_condition(&crowd) == 1);
        actor_do(late, "0", "lock crowd/m");
        assert_result(dcond_signal(&cond), 0);
        actor_send(late, "wait crowd/c crowd/m");
        actor_expect(early, "0");
        assert_int_equal(crowd_on_condition(&crowd), 1);
        assert_true(actor_is_silent(late));
        actor_do(early, "0", "unlock crowd/m");
        assert_result(dcond_signal(&cond), 0);
        actor_expect(late, "0");
        actor_do(late, "0", "unlock crowd/m");
    }
}

/* POSIX scenario 23: two processes take turns by signals without a timeout: one lost signal would stop both forever. */
static void test_no_signal_is_lost_when_two_processes_take_turns(void **state)
{
    long turns = count_from("DMUTEX_TEST_TURNS", 10000, 100000) / 2;

    (void)state;
    actor_begin_count(crowd.file);
    for (int i = 0; i < 2; i++)
        actor_send(crowd.actors[i], "turns %s %ld crowd/c crowd/m %d", crowd.file, turns, i);
    for (int i = 0; i < 2; i++)
        assert_string_equal(actor_answer_of_count(crowd.actors[i], crowd.file), "0");
    assert_int_equal(crowd_back(&crowd), 2 * turns);
}

#define CROWD_TEST(test) cmocka_unit_test_setup_teardown(test, begin_test, end_test)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CROWD_TEST(test_a_broadcast_wakes_each_once_when_a_crowd_waits),
        CROWD_TEST(test_a_broadcast_wakes_nobody_when_the_mutex_is_owned),
        CROWD_TEST(test_signals_wake_one_each_when_a_crowd_waits),
        CROWD_TEST(test_the_servers_work_is_linear_when_the_crowd_grows),
        CROWD_TEST(test_one_grant_is_outstanding_when_a_crowd_is_woken),
        CROWD_TEST(test_a_signal_is_not_stolen_when_another_waits_after_it),
        CROWD_TEST(test_no_signal_is_lost_when_two_processes_take_turns),
        cmocka_unit_test(test_nothing_is_left),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, test_group_setup, test_group_teardown);
}
