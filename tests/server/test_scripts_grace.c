/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The Lua scripts on a server that is new and has an older copy of the data: for one lease nothing in the copy is
 * enough to own by, but a lock with a running lease, and a renewal.
 */
#include <stdio.h>
#include <string.h>

#include "scripts.h"

/* The server is new from here on. */
static void begin_grace(void)
{
    static char born[32];

    snprintf(born, sizeof born, "%s", run_script("local t = redis.call('TIME') return t[1] .. '000000'", 0, NULL));
    server_born = born;
}

static void end_grace(void)
{
    server_born = "0";
}

static int begin(void **state)
{
    end_grace();
    return scripts_setup(state);
}

/* The copy says that `a` owns the lock, but the lease has ended since. */
static struct who begin_with_a_stale_owner(void)
{
    struct who a = who("a");

    acquire(&a, QUEUE);
    end_lease("x");
    begin_grace();
    return a;
}

static const char *poll_answer(const struct who *who)
{
    return strchr(poll_of(who), '\n') + 1;
}

/* When the grace is over the attempt owns after all; nobody died. */
static void assert_owns_after_the_grace(const struct who *a)
{
    const char *answer;

    end_grace();
    answer = poll_answer(a);
    assert_answer(answer, "owned");
    assert_int_equal(number_of(answer, 2), 0);
}

/* ---- an attempt that the copy names ------------------------------------------------------ */

static void test_a_repeated_acquire_waits_when_its_lease_ended_in_the_copy(void **state)
{
    struct who a = begin_with_a_stale_owner();
    const char *answer = acquire(&a, QUEUE);

    (void)state;
    assert_answer(answer, "queued");
    assert_within(number_of(answer, 2), LEASE / 2, LEASE);
    assert_string_equal(owner("x"), "");
    assert_owns_after_the_grace(&a);
}

static void test_a_repeated_try_is_busy_when_its_lease_ended_in_the_copy(void **state)
{
    struct who a = begin_with_a_stale_owner();

    (void)state;
    assert_answer(acquire(&a, TRY), "busy");
    assert_string_equal(owner("x"), "");
    assert_int_equal(size_of("queue", "x"), 0);
    assert_owns_after_the_grace(&a);
}

static void test_a_poll_waits_when_the_lease_ended_in_the_copy(void **state)
{
    struct who a = begin_with_a_stale_owner();

    (void)state;
    assert_answer(poll_answer(&a), "queued");
    assert_string_equal(owner("x"), "");
    assert_owns_after_the_grace(&a);
}

static void test_a_timeout_leaves_when_the_lease_ended_in_the_copy(void **state)
{
    struct who a = begin_with_a_stale_owner(), b = who("b");

    (void)state;
    assert_answer(cancel(&a), "left");
    end_grace();
    assert_answer(acquire(&b, TRY), "owned");
}

/* The lease is still running: nobody can have owned since. */
static void test_a_repeated_acquire_owns_when_its_lease_goes_on(void **state)
{
    struct who a = who("a");

    (void)state;
    acquire(&a, QUEUE);
    begin_grace();
    assert_answer(acquire(&a, QUEUE), "owned");
    assert_answer(poll_answer(&a), "owned");
    assert_answer(cancel(&a), "owned");
}

static void test_a_repeated_wait_queues_when_it_was_granted_and_its_lease_ended_in_the_copy(void **state)
{
    struct who a = who("a");

    (void)state;
    fall_asleep(&a);
    cond_signal("c", "x", 1, "");
    assert_answer(poll_answer(&a), "owned");
    end_lease("x");
    begin_grace();
    assert_answer(cond_wait(&a, 1), "queued");
    assert_string_equal(owner("x"), "");
    assert_owns_after_the_grace(&a);
}

/* The attempt was woken by a signal, and still has the signal when it owns. */
static void test_a_cancelled_wait_keeps_its_signal_when_its_lease_ended_in_the_copy(void **state)
{
    struct who a = who("a");
    const char *answer;

    (void)state;
    fall_asleep(&a);
    cond_signal("c", "x", 1, "");
    assert_answer(poll_answer(&a), "owned");
    end_lease("x");
    begin_grace();
    answer = cond_cancel(&a);
    assert_answer(answer, "queued");
    assert_int_equal(number_of(answer, 6), 1);
    end_grace();
    answer = cond_cancel(&a);
    assert_answer(answer, "owned");
    assert_int_equal(number_of(answer, 4), 1);
}

/*
 * After the grace, too, the attempt owns by a new token: a renewal that the owner before the failover sent, and that
 * was under way for long, has a higher token than the copy knows.
 */
static void test_a_stale_owner_has_a_new_token_when_the_grace_is_over(void **state)
{
    (void)state;
    for (int way = 0; way < 2; way++) {
        struct who a = who("a"), b = who("b");
        char late[24], born[24];
        const char *answer;
        long long now;

        begin(state);
        now = number_of(acquire(&a, QUEUE), 1);
        command("HINCRBY %s token -7200000000", key("state", "x"));
        end_lease("x");
        snprintf(born, sizeof born, "%lld", now + 1577836800000000 - 3600000000); /* tokens begin in 2020 */
        snprintf(late, sizeof late, "%lld", now - 3600000000);
        server_born = born;
        answer = way == 0 ? acquire(&a, QUEUE) : poll_answer(&a);
        assert_answer(answer, "owned");
        assert_true(number_of(answer, 1) > now - 3600000000);
        assert_int_equal(number_of(answer, 2), 0);
        assert_int_equal(number_of(renew(&b, 1, late), 1), 0);
        assert_string_equal(owner("x"), "a:1");
    }
    end_grace();
}

/* ---- an owner that the copy names -------------------------------------------------------- */

/* The release may have been done before, and another may own since: the waiters continue to wait. */
static void check_that_a_release_grants_nothing(long long age_ms)
{
    struct who a = who("a"), b = who("b");
    struct inbox *inbox = inbox_open("b");
    const char *answer;

    acquire(&a, TRY);
    acquire(&b, QUEUE);
    age(&b, age_ms); /* just now: the usual case, written out */
    begin_grace();
    answer = release(&a, UNLOCKED);
    assert_answer(answer, "released");
    assert_int_equal(number_of(answer, 1), 0);
    assert_string_equal(owner("x"), "");
    assert_string_equal(inbox_messages(inbox), "");
    end_grace();
    assert_answer(poll_answer(&b), "owned");
    inbox_close(inbox);
}

static void test_a_release_grants_nothing_in_the_grace(void **state)
{
    (void)state;
    check_that_a_release_grants_nothing(0);
    begin(state);
    check_that_a_release_grants_nothing(2000);
}

static void test_a_wait_grants_nothing_in_the_grace(void **state)
{
    struct who a = who("a"), b = who("b");
    const char *answer;

    (void)state;
    acquire(&a, TRY);
    acquire(&b, QUEUE);
    begin_grace();
    a.attempt++;
    answer = cond_wait(&a, 1);
    assert_answer(answer, "waiting");
    assert_int_equal(number_of(answer, 1), 0);
    assert_string_equal(owner("x"), "");
    end_grace();
    assert_answer(poll_answer(&b), "owned");
}

/* The copy is from before the grant: the owner comes back, and no longer waits there. */
static void test_a_renewal_leaves_the_queue_when_the_copy_has_it_waiting(void **state)
{
    struct who a = who("a"), b = who("b");

    (void)state;
    acquire(&a, TRY);
    acquire(&b, QUEUE);
    begin_grace();
    assert_answer(strchr(renew(&b, 1, "4000000000000000"), '\n') + 1, "2");
    assert_string_equal(owner("x"), "b:1");
    assert_int_equal(size_of("queue", "x"), 0);
    assert_int_equal(size_of("waiter", "x"), 0);
}

/* The same of a copy from before the signal. */
static void test_a_renewal_leaves_the_condition_when_the_copy_has_it_waiting(void **state)
{
    struct who a = who("a");

    (void)state;
    fall_asleep(&a);
    begin_grace();
    assert_int_equal(number_of(cond_renew(&a, "4000000000000000"), 1), 1);
    assert_string_equal(owner("x"), "a:1");
    assert_int_equal(size_of("cond", "c"), 0);
    assert_null(strstr(side_text(the_server->side, "HKEYS %s", key("sleeper", "c")), "a:"));
}

/* The signal came when the thread had the mutex already, for all that is known: it goes to another waiter. */
static void test_a_renewal_passes_on_a_signal_that_its_attempt_got_in_the_copy(void **state)
{
    struct who a = who("a"), b = who("b");

    (void)state;
    fall_asleep(&a);
    fall_asleep(&b);
    begin_grace();
    signal_one();
    assert_int_equal(size_of("cond", "c"), 1);
    assert_int_equal(number_of(cond_renew(&a, "4000000000000000"), 1), 2);
    assert_string_equal(owner("x"), "a:1");
    assert_answer(strchr(cond_poll(&b), '\n') + 1, "queued");
}

/* The copy's owner may have died since, without saying what became of its signal. */
static void test_a_renewal_passes_on_the_signal_of_the_owner_in_the_copy(void **state)
{
    struct who a = who("a"), b = who("b"), c = who("c");

    (void)state;
    fall_asleep(&a);
    fall_asleep(&b);
    signal_one();
    assert_answer(poll_answer(&a), "owned");
    begin_grace();
    assert_true(number_of(renew(&c, 1, "4000000000000000"), 1) > 0);
    assert_string_equal(owner("x"), "c:1");
    assert_answer(strchr(cond_poll(&b), '\n') + 1, "queued");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_a_repeated_acquire_waits_when_its_lease_ended_in_the_copy, begin),
        cmocka_unit_test_setup(test_a_repeated_try_is_busy_when_its_lease_ended_in_the_copy, begin),
        cmocka_unit_test_setup(test_a_poll_waits_when_the_lease_ended_in_the_copy, begin),
        cmocka_unit_test_setup(test_a_timeout_leaves_when_the_lease_ended_in_the_copy, begin),
        cmocka_unit_test_setup(test_a_repeated_acquire_owns_when_its_lease_goes_on, begin),
        cmocka_unit_test_setup(test_a_repeated_wait_queues_when_it_was_granted_and_its_lease_ended_in_the_copy, begin),
        cmocka_unit_test_setup(test_a_cancelled_wait_keeps_its_signal_when_its_lease_ended_in_the_copy, begin),
        cmocka_unit_test_setup(test_a_stale_owner_has_a_new_token_when_the_grace_is_over, begin),
        cmocka_unit_test_setup(test_a_release_grants_nothing_in_the_grace, begin),
        cmocka_unit_test_setup(test_a_wait_grants_nothing_in_the_grace, begin),
        cmocka_unit_test_setup(test_a_renewal_leaves_the_queue_when_the_copy_has_it_waiting, begin),
        cmocka_unit_test_setup(test_a_renewal_leaves_the_condition_when_the_copy_has_it_waiting, begin),
        cmocka_unit_test_setup(test_a_renewal_passes_on_a_signal_that_its_attempt_got_in_the_copy, begin),
        cmocka_unit_test_setup(test_a_renewal_passes_on_the_signal_of_the_owner_in_the_copy, begin),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, scripts_group_setup, scripts_group_teardown);
}
