/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The Lua scripts of conditions: a signal whose receiver dies passes to another waiter. The script that finds the
 * receiver dead writes a debt into `state`; the next poll of a waiter of that condition pays the debt.
 *
 * In these tests "a" is signalled and dies, "b" owns the mutex, and "c" waits on.
 */
#include <stdio.h>
#include <string.h>

#include "scripts.h"

#define GONE (2 * LEASE + 1000)
#define MARK " @dmutex:{t}:cond:c "

static struct who a, b, c;

/* How many signals are owed to the waiters of a condition, "" for none. */
static const char *debt_to(const char *cond)
{
    char field[80];

    snprintf(field, sizeof field, "debt %s", key("cond", cond));
    return command("HGET %s %s", key("state", "x"), field);
}

/* a is in the queue of the mutex, signalled; b owns the mutex; c waits on the condition. */
static void begin(void)
{
    command("FLUSHALL");
    a = who("a");
    b = who("b");
    c = who("c");
    fall_asleep(&a);
    fall_asleep(&c);
    acquire(&b, TRY);
    assert_answer(signal_one(), "moved");
    assert_int_equal(sleepers(), 1);
}

/* a owns the mutex by the signal, and dies. */
static void begin_with_a_dead_owner(void)
{
    begin();
    release(&b, UNLOCKED);
    assert_string_equal(line_of(cond_poll(&a), 1), "owned");
    end_lease("x");
}

/* ---- the signal passes on ---------------------------------------------------------------- */

/* The receiver died in the queue; the other waiter is signalled by its own poll. */
static void test_a_signal_goes_on_when_its_receiver_died_in_the_queue(void **state)
{
    (void)state;
    begin();
    age(&a, GONE);
    release(&b, UNLOCKED);
    assert_string_equal(debt_to("c"), "1");
    assert_string_equal(line_of(cond_poll(&c), 1), "owned");
    assert_string_equal(debt_to("c"), "");
    assert_int_equal(sleepers(), 0);
    assert_non_null(strstr(command("HGET %s hold", key("state", "x")), MARK)); /* c carries the signal */
}

/* The receiver died as the owner before the server heard of the receiver again. */
static void test_a_signal_goes_on_when_its_receiver_died_as_the_owner(void **state)
{
    const char *answer;

    (void)state;
    begin_with_a_dead_owner();
    answer = cond_poll(&c);
    assert_string_equal(line_of(answer, 1), "owned");
    assert_string_equal(line_of(answer, 3), "1"); /* and the death is reported */
    assert_string_equal(debt_to("c"), "");
}

/* The same when the receiver's process reported the death at its end. */
static void test_a_signal_goes_on_when_its_receiver_said_that_it_died(void **state)
{
    (void)state;
    for (int keys = 4; keys <= 6; keys += 2) {
        begin();
        release(&b, UNLOCKED);
        cond_poll(&a);
        assert_answer(keys == 4 ? release(&a, DIED) : cond_release(&a, DIED), "released");
        assert_string_equal(debt_to("c"), "1");
        assert_answer(release(&a, DIED), "notowner");
        assert_string_equal(debt_to("c"), "1");
        assert_string_equal(line_of(cond_poll(&c), 1), "owned");
    }
}

/* While another owns the mutex the heir of the signal is put into the queue. */
static void test_a_signal_goes_on_when_the_mutex_is_held_by_another(void **state)
{
    struct who d = who("d");

    (void)state;
    begin();
    age(&a, GONE);
    release(&b, UNLOCKED);
    acquire(&d, TRY);
    assert_string_equal(line_of(cond_poll(&c), 1), "queued");
    assert_non_null(strstr(command("HGET %s c:1:2", key("waiter", "x")), MARK));
    assert_string_equal(debt_to("c"), "");
    assert_string_equal(owner("x"), "d:1");
}

/* The poll of any waiter pays, and the signal goes to the first waiter that hears. */
static void test_a_signal_goes_on_to_the_first_that_hears(void **state)
{
    struct who d = who("d");
    struct inbox *inbox;

    (void)state;
    begin();
    age(&a, GONE);
    release(&b, UNLOCKED);
    fall_asleep(&d);
    inbox = inbox_open("c");
    assert_string_equal(line_of(cond_poll(&d), 1), "waiting");
    assert_string_equal(owner("x"), "c:1");
    assert_memory_equal(inbox_messages(inbox), "signalled 2 1 0\ngranted 2 ", 26);
    assert_string_equal(debt_to("c"), "");
    assert_string_equal(line_of(cond_poll(&d), 1), "waiting");
    inbox_close(inbox);
}

/* A signal's receiver may die several times; the signal passes on each time. */
static void test_a_signal_goes_on_when_its_next_receiver_died_too(void **state)
{
    struct who d = who("d");

    (void)state;
    begin();
    age(&a, GONE);
    release(&b, UNLOCKED);
    fall_asleep(&d);
    assert_string_equal(line_of(cond_poll(&c), 1), "owned");
    end_lease("x");
    assert_string_equal(line_of(cond_poll(&d), 1), "owned");
    assert_string_equal(debt_to("c"), "");
}

/* Two signals that died are two: both waiters wake, by the poll of one. */
static void test_two_signals_go_on_when_both_receivers_died(void **state)
{
    struct who d = who("d"), other = who("a");

    (void)state;
    begin();
    release(&b, UNLOCKED);
    other.thread = 2;
    fall_asleep(&other);
    fall_asleep(&d);
    b.attempt = 2;
    acquire(&b, TRY);
    signal_one(); /* c */
    signal_one(); /* the other thread of a */
    b.attempt = 3;
    cond_wait(&b, 2);
    age(&a, GONE);
    age(&other, GONE);
    poll_serving("x");
    assert_string_equal(debt_to("c"), "2");
    assert_string_equal(line_of(cond_poll(&b), 1), "owned");
    assert_string_equal(command("ZRANGE %s 0 -1", key("queue", "x")), "c:1:2\nd:1:2");
    assert_int_equal(sleepers(), 0);
    assert_string_equal(debt_to("c"), "");
}

/* A mutex with two conditions: each signal passes to a waiter of the same condition. */
static void test_signals_go_to_their_own_condition_when_a_mutex_has_two(void **state)
{
    struct who d = who("d"), e = who("e");

    (void)state;
    begin();
    release(&b, UNLOCKED);
    d.cond = e.cond = "d";
    fall_asleep(&d);
    fall_asleep(&e);
    b.attempt = 2;
    acquire(&b, TRY);
    cond_signal("d", "x", 1, "");
    age(&a, GONE);
    age(&d, GONE);
    release(&b, UNLOCKED);
    assert_string_equal(debt_to("c"), "1");
    assert_string_equal(debt_to("d"), "1");
    assert_string_equal(line_of(cond_poll(&e), 1), "owned");
    assert_string_equal(debt_to("c"), "1");
    assert_string_equal(debt_to("d"), "");
    assert_int_equal(sleepers(), 1);
    assert_string_equal(line_of(cond_poll(&c), 1), "queued");
    assert_string_equal(debt_to("c"), "");
}

/* A waiter that cancels is no receiver: the debt is left to the remaining waiters. */
static void test_a_signal_is_still_owed_when_a_waiter_cancels(void **state)
{
    struct who d = who("d");

    (void)state;
    begin();
    age(&a, GONE);
    release(&b, UNLOCKED);
    fall_asleep(&d);
    assert_int_equal(number_of(cond_cancel(&c), 4), 0);
    assert_string_equal(debt_to("c"), "1");
    assert_string_equal(line_of(cond_poll(&d), 1), "queued");
    assert_string_equal(debt_to("c"), "");
}

/* ---- scripts that find the receiver dead ------------------------------------------------- */

enum finder { TRIER, QUEUER, POLLER, CANCELLER, SIGNALLER, BREAKER, FINDERS };

static void find(enum finder finder)
{
    struct who d = who("d");

    switch (finder) {
    case TRIER:
        acquire(&d, TRY);
        return;
    case QUEUER:
        acquire(&d, QUEUE);
        return;
    case POLLER:
        poll_serving("x");
        return;
    case CANCELLER:
        cond_cancel(&c);
        return;
    case SIGNALLER:
        signal_one();
        return;
    default:
        force("x");
    }
}

/* Any script that meets the dead owner's hold owes the hold's signal, once. */
static void test_a_signal_is_owed_once_no_matter_who_finds_its_receiver_dead(void **state)
{
    (void)state;
    for (int finder = 0; finder < FINDERS; finder++) {
        begin_with_a_dead_owner();
        find((enum finder)finder);
        assert_string_equal(debt_to("c"), "1");
        find((enum finder)finder);
        assert_string_equal(debt_to("c"), "1");
    }
}

/* Any script that forgets the dead waiter of the queue owes the waiter's signal, once. */
static void test_a_signal_is_owed_once_no_matter_who_forgets_its_receiver(void **state)
{
    (void)state;
    for (int finder = 0; finder < FINDERS; finder++) {
        begin();
        age(&a, GONE);
        end_lease("x");
        find((enum finder)finder);
        assert_string_equal(debt_to("c"), "1");
        find((enum finder)finder);
        assert_string_equal(debt_to("c"), "1");
    }
}

/* So does a wait, by which the mutex becomes free. */
static void test_a_signal_is_owed_when_a_wait_forgets_its_receiver(void **state)
{
    (void)state;
    begin();
    age(&a, GONE);
    b.attempt = 2;
    assert_answer(cond_wait(&b, 1), "waiting");
    assert_string_equal(debt_to("c"), "1");
    assert_string_equal(line_of(cond_poll(&c), 1), "owned");
    assert_string_equal(line_of(cond_poll(&b), 1), "waiting");
}

/* A waiter that is heard from still carries the signal, for any request. */
static void test_a_carrier_keeps_its_signal_when_it_asks_again(void **state)
{
    (void)state;
    begin();
    for (int way = 0; way < 4; way++) {
        age(&a, GONE);
        a.request++;
        if (way == 0)
            cond_poll(&a);
        else if (way == 1)
            poll_of(&a);
        else if (way == 2)
            acquire(&a, QUEUE);
        else
            cond_wait(&a, 1);
        assert_non_null(strstr(command("HGET %s a:1:2", key("waiter", "x")), MARK));
    }
    age(&a, LEASE);
    poll_serving("x");
    assert_string_equal(debt_to("c"), ""); /* silent, not gone */
    age(&a, GONE);
    release(&b, UNLOCKED);
    assert_string_equal(debt_to("c"), "1");
}

/* Given back from the queue, by a thread that never got to use the signal: the signal passes on, once. */
static void test_a_signal_is_owed_when_its_receiver_is_given_back(void **state)
{
    (void)state;
    for (int keys = 4; keys <= 6; keys += 2) {
        begin();
        assert_answer(keys == 4 ? release(&a, UNLOCKED) : cond_release(&a, UNLOCKED), "left");
        assert_string_equal(debt_to("c"), "1");
        assert_answer(cond_release(&a, UNLOCKED), "notowner");
        assert_string_equal(debt_to("c"), "1");
        assert_string_equal(line_of(cond_poll(&c), 1), "queued");
        assert_string_equal(debt_to("c"), "");
    }
}

/* The same when an acquire of the receiver's process names that release first. */
static void test_a_signal_is_owed_when_an_acquire_names_the_release_of_its_receiver(void **state)
{
    struct who thread;

    (void)state;
    begin();
    thread = a;
    thread.thread = 2;
    assert_answer(acquire_naming(&thread, QUEUE, "1:2:0"), "queued");
    assert_string_equal(debt_to("c"), "1");
    assert_answer(acquire_naming(&thread, QUEUE, "1:2:0"), "queued");
    assert_string_equal(debt_to("c"), "1");
}

/* And when the acquire names the death of a receiver that owned the mutex already. */
static void test_a_signal_is_owed_when_an_acquire_names_the_death_of_its_receiver(void **state)
{
    struct who thread;

    (void)state;
    begin();
    release(&b, UNLOCKED);
    cond_poll(&a);
    thread = a;
    thread.thread = 2;
    assert_answer(acquire_naming(&thread, TRY, "1:2:1"), "owned");
    assert_string_equal(debt_to("c"), "1");
    assert_string_equal(line_of(cond_poll(&c), 1), "queued");
}

/* A poll that met no living waiter pays nothing: the next poll looks further. */
static void test_a_signal_is_owed_on_when_all_that_one_poll_looks_at_are_gone(void **state)
{
    (void)state;
    a = who("a");
    b = who("b");
    c = who("c");
    fall_asleep(&a);
    enter_sleepers("gone", "c", 600, GONE);
    fall_asleep(&c);
    acquire(&b, TRY);
    signal_one();
    age(&a, GONE);
    release(&b, UNLOCKED);
    assert_string_equal(line_of(cond_poll(&c), 1), "waiting");
    assert_string_equal(debt_to("c"), "1");
    assert_string_equal(line_of(cond_poll(&c), 1), "owned");
    assert_string_equal(debt_to("c"), "");
}

/* More is owed than one poll passes on: the rest stays owed. */
static void test_signals_go_on_when_more_are_owed_than_one_poll_passes(void **state)
{
    (void)state;
    begin();
    enter_sleepers("g", "c", 300, 0);
    run_script("return redis.call('HSET', KEYS[1], 'debt ' .. KEYS[2], 300)", 2, key("state", "x"), key("cond", "c"),
               NULL);
    cond_poll(&c);
    assert_int_equal(sleepers(), 301 - 256);
    assert_string_equal(debt_to("c"), "44");
    c.uuid = "g";
    c.thread = 300;
    c.attempt = 1;
    assert_string_equal(line_of(cond_poll(&c), 1), "waiting");
    assert_int_equal(sleepers(), 1);
    assert_string_equal(debt_to("c"), "");
}

/* ---- no signal passes on ----------------------------------------------------------------- */

/* An owner that gives the lock back has woken: the owner's acts are its own affair. */
static void test_no_signal_is_owed_when_its_receiver_has_used_it(void **state)
{
    (void)state;
    for (int way = 0; way < 2; way++) {
        struct who d = who("d");

        begin();
        release(&b, UNLOCKED);
        cond_poll(&a);
        renew(&a, 1, "1");
        assert_answer(release(&a, way == 0 ? UNLOCKED : NOT_RECOVERABLE), "released");
        acquire(&d, TRY);
        assert_string_equal(debt_to("c"), "");
        assert_int_equal(sleepers(), 1);
    }
}

/*
 * A renewal says that the process lives, not that the thread has returned: until the lock is given back the signal is
 * the thread's own, also for a cancel that is repeated.
 */
static void test_a_signal_stays_with_its_receiver_when_its_hold_is_renewed(void **state)
{
    struct who d = who("d");

    (void)state;
    begin();
    release(&b, UNLOCKED);
    cond_poll(&a);
    a.lease_ms = LEASE / 2; /* `hold` is rewritten */
    assert_true(number_of(renew(&a, 1, "1"), 1) > 0);
    assert_int_equal(number_of(cond_cancel(&a), 4), 1);
    assert_true(number_of(renew(&a, 1, "1"), 1) > 0);
    end_lease("x");
    acquire(&d, TRY);
    assert_string_equal(debt_to("c"), "1");
}

/* A dead waiter without a signal owes none: in the queue after a cancel, or wanting only the mutex. */
static void test_no_signal_is_owed_when_the_dead_had_none(void **state)
{
    struct who d = who("d");

    (void)state;
    begin();
    cond_poll(&a);
    cond_cancel(&c);
    acquire(&d, QUEUE);
    age(&c, GONE);
    age(&d, GONE);
    end_lease("x");
    assert_string_equal(line_of(cond_poll(&a), 1), "owned");
    renew(&a, 1, "1");
    release(&a, UNLOCKED);
    assert_int_equal(size_of("queue", "x"), 0);
    assert_string_equal(debt_to("c"), "");
}

/* A debt is owed to the waiters of that time: the first later waiter waits for its own signal. */
static void test_a_signal_is_dropped_when_all_who_waited_have_left(void **state)
{
    (void)state;
    begin();
    age(&a, GONE);
    cond_cancel(&c);
    release(&b, UNLOCKED);
    assert_string_equal(debt_to("c"), "1");
    assert_string_equal(line_of(cond_poll(&c), 1), "owned");
    c.attempt = 3;
    assert_answer(cond_wait(&c, 2), "waiting");
    assert_string_equal(debt_to("c"), "");
    assert_string_equal(line_of(cond_poll(&c), 1), "waiting");
}

/* More signals died than wait: all wake, and the rest is not kept for later. */
static void test_signals_are_dropped_when_more_are_owed_than_wait(void **state)
{
    struct who d = who("d");

    (void)state;
    begin();
    age(&a, GONE);
    release(&b, UNLOCKED);
    fall_asleep(&d);
    run_script("return redis.call('HSET', KEYS[1], 'debt ' .. KEYS[2], 5)", 2, key("state", "x"), key("cond", "c"),
               NULL);
    assert_string_equal(debt_to("c"), "5");
    assert_string_equal(line_of(cond_poll(&d), 1), "owned");
    assert_int_equal(sleepers(), 0);
    assert_string_equal(debt_to("c"), "");
    cond_release(&d, UNLOCKED);
    assert_string_equal(line_of(cond_poll(&c), 1), "owned");
    c.attempt = 3;
    cond_wait(&c, 2);
    assert_string_equal(line_of(cond_poll(&c), 1), "waiting");
}

/* No thread can own the mutex: the waiters learn it, and after consistent nothing is owed. */
static void test_no_signal_goes_on_when_the_mutex_is_not_recoverable(void **state)
{
    (void)state;
    begin();
    age(&a, GONE);
    b.attempt = 2;
    cond_wait(&b, 1);
    acquire(&a, TRY);
    release(&a, NOT_RECOVERABLE);
    assert_string_equal(line_of(cond_poll(&c), 1), "notrecoverable");
    assert_string_equal(line_of(cond_poll(&b), 1), "notrecoverable");
    assert_int_equal(sleepers(), 0);
    assert_string_equal(drop("x", "clean"), "1");
    c.attempt = 3;
    fall_asleep(&c);
    assert_string_equal(debt_to("c"), "");
    assert_string_equal(line_of(cond_poll(&c), 1), "waiting");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        SCRIPT_TEST(test_a_signal_goes_on_when_its_receiver_died_in_the_queue),
        SCRIPT_TEST(test_a_signal_goes_on_when_its_receiver_died_as_the_owner),
        SCRIPT_TEST(test_a_signal_goes_on_when_its_receiver_said_that_it_died),
        SCRIPT_TEST(test_a_signal_goes_on_when_the_mutex_is_held_by_another),
        SCRIPT_TEST(test_a_signal_goes_on_to_the_first_that_hears),
        SCRIPT_TEST(test_a_signal_goes_on_when_its_next_receiver_died_too),
        SCRIPT_TEST(test_two_signals_go_on_when_both_receivers_died),
        SCRIPT_TEST(test_signals_go_to_their_own_condition_when_a_mutex_has_two),
        SCRIPT_TEST(test_a_signal_is_still_owed_when_a_waiter_cancels),
        SCRIPT_TEST(test_a_signal_is_owed_once_no_matter_who_finds_its_receiver_dead),
        SCRIPT_TEST(test_a_signal_is_owed_once_no_matter_who_forgets_its_receiver),
        SCRIPT_TEST(test_a_signal_is_owed_when_a_wait_forgets_its_receiver),
        SCRIPT_TEST(test_a_carrier_keeps_its_signal_when_it_asks_again),
        SCRIPT_TEST(test_a_signal_is_owed_when_its_receiver_is_given_back),
        SCRIPT_TEST(test_a_signal_is_owed_when_an_acquire_names_the_release_of_its_receiver),
        SCRIPT_TEST(test_a_signal_is_owed_when_an_acquire_names_the_death_of_its_receiver),
        SCRIPT_TEST(test_a_signal_is_owed_on_when_all_that_one_poll_looks_at_are_gone),
        SCRIPT_TEST(test_signals_go_on_when_more_are_owed_than_one_poll_passes),
        SCRIPT_TEST(test_no_signal_is_owed_when_its_receiver_has_used_it),
        SCRIPT_TEST(test_a_signal_stays_with_its_receiver_when_its_hold_is_renewed),
        SCRIPT_TEST(test_no_signal_is_owed_when_the_dead_had_none),
        SCRIPT_TEST(test_a_signal_is_dropped_when_all_who_waited_have_left),
        SCRIPT_TEST(test_signals_are_dropped_when_more_are_owed_than_wait),
        SCRIPT_TEST(test_no_signal_goes_on_when_the_mutex_is_not_recoverable),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, scripts_group_setup, scripts_group_teardown);
}
