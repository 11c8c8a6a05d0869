/* SPDX-License-Identifier: BSD-2-Clause */
/* Waiters that are killed, or in a process that exits: a signal of a dead waiter gets to another waiter. */
#include <stdio.h>
#include <string.h>

#include "pair.h"

/* ---- processes --------------------------------------------------------------------------- */

/*
 * POSIX scenarios 37 and 42: the first of two waiters is killed, at one moment or another, and the signal
 * reaches the second.
 */
enum moment {
    WAITING,   /* before the signal */
    SIGNALLED, /* and the mutex is owned by another */
    GRANTED    /* and the waiter cannot say so: its process is stopped */
};

static void kill_first(const struct kind *kind, enum moment moment, const char *answer)
{
    static int calls; /* the dead stay on their condition for a while: another condition each time */
    struct actor *first, *second;
    char word[16];

    snprintf(word, sizeof word, "kill%d", ++calls);
    make_both(word, kind, SHORT_LEASE);
    first = start_actor(kind, SHORT_LEASE);
    second = start_actor(kind, SHORT_LEASE);
    begin_wait(first);
    begin_wait(second);
    if (moment == WAITING) {
        actor_kill(first);
        assert_result(dcond_signal(&cond), 0);
    } else if (moment == SIGNALLED) {
        assert_result(dmutex_lock(&mutex), 0);
        assert_result(dcond_signal(&cond), 0);
        assert_int_equal(in_queue(), 1);
        actor_kill(first);
        assert_result(dmutex_unlock(&mutex), 0);
    } else {
        actor_stop(first);
        assert_result(dcond_signal(&cond), 0);
        assert_true(is_locked(&mutex));
        actor_kill(first);
    }
    promise_within(AT_ONCE);
    assert_back(second, answer);
    assert_kept();
    actor_end(first);
    actor_end(second);
}

static void test_a_signal_reaches_the_second_when_the_first_is_killed(void **state)
{
    (void)state;
    for (int i = 0; i < repetitions(5); i++) {
        kill_first(&normal, WAITING, "0");
        kill_first(&robust, WAITING, "0");
    }
}

static void test_a_signal_passes_on_when_its_receiver_is_killed(void **state)
{
    (void)state;
    for (int i = 0; i < repetitions(1); i++) {
        kill_first(&normal, SIGNALLED, "0");
        kill_first(&robust, SIGNALLED, "0");
    }
}

static void test_a_signal_passes_on_when_its_receiver_is_killed_as_owner(void **state)
{
    (void)state;
    for (int i = 0; i < repetitions(1); i++) {
        kill_first(&normal, GRANTED, "0");
        kill_first(&robust, GRANTED, "EOWNERDEAD");
    }
}

/* POSIX scenario 42: a signaller that dies owning the mutex leaves the mutex to the waiter. */
static void test_wait_says_eownerdead_when_the_signaller_dies(void **state)
{
    struct actor *waiter, *caller;

    (void)state;
    make_both("caller", &robust, SHORT_LEASE);
    waiter = start_actor(&robust, SHORT_LEASE);
    caller = start_actor(&robust, SHORT_LEASE);
    begin_wait(waiter);
    actor_do(caller, "0", "lock %s", mutex_name);
    actor_do(caller, "0", "signal %s", cond_name);
    actor_kill(caller);
    promise_within(AT_ONCE);
    assert_back(waiter, "EOWNERDEAD");
    assert_kept();
    actor_end(caller);
    caller = start_actor(&robust, SHORT_LEASE);
    actor_do(waiter, "0", "lock %s", mutex_name);
    actor_send(waiter, "timedwait %s %s 300", cond_name, mutex_name);
    actor_do(caller, "0", "lock %s", mutex_name);
    actor_kill(caller);
    assert_back(waiter, "EOWNERDEAD"); /* before ETIMEDOUT */
    actor_end(caller);
    actor_end(waiter);
}

/* The mutex can no longer be recovered: all waiters get ENOTRECOVERABLE, and own nothing. */
static void test_waits_end_when_the_mutex_becomes_not_recoverable(void **state)
{
    struct actor *waiters[2], *owner;

    (void)state;
    make_both("spoiled", &robust, SHORT_LEASE);
    for (int i = 0; i < 2; i++)
        waiters[i] = start_actor(&robust, SHORT_LEASE);
    owner = start_actor(&robust, SHORT_LEASE);
    begin_wait(waiters[0]);
    begin_wait(waiters[1]);
    actor_do(owner, "0", "in-thread lock %s", mutex_name); /* and dies */
    actor_do(owner, "EOWNERDEAD", "lock %s", mutex_name);
    actor_do(owner, "0", "unlock %s", mutex_name);
    promise_within(AT_ONCE);
    actor_do(owner, "0", "broadcast %s", cond_name);
    for (int i = 0; i < 2; i++) {
        actor_expect(waiters[i], "ENOTRECOVERABLE");
        assert_int_equal(actor_value(waiters[i], "holdcount %s", mutex_name), 0);
        actor_end(waiters[i]);
    }
    assert_kept();
    actor_end(owner);
    assert_result(dmutex_destroy(&mutex), 0);
}

/* A waiter in another thread of an actor, which still answers. */
static void begin_wait_aside(struct actor *actor, const char *file)
{
    int64_t before = on_condition();

    actor_do(actor, "0", "start crowd %s 1 %s %s", file, cond_name, mutex_name);
    wait_until(on_condition() == before + 1);
}

/* A process ends while a thread inside waits: the process does not hang, and the next signal is for another process. */
static void test_a_signal_reaches_the_second_when_the_first_exits(void **state)
{
    static const char *const ends[] = { "exit", "_exit", "exec" };
    char file[64];

    (void)state;
    snprintf(file, sizeof file, "%s/exit", the_server->folder);
    for (int i = 0; i < 3; i++) {
        struct actor *first, *second;

        make_both(ends[i], &normal, SHORT_LEASE);
        first = start_actor(&normal, SHORT_LEASE);
        second = start_actor(&normal, SHORT_LEASE);

        actor_begin_count(file);
        begin_wait_aside(first, file);
        begin_wait(second);
        actor_send(first, "%s", ends[i]);
        if (strcmp(ends[i], "exec") == 0) {
            actor_expect(first, "ready");
            actor_end(first);
        } else {
            assert_int_equal(actor_await(first), 0);
        }
        promise_within(AT_ONCE);
        assert_result(dcond_signal(&cond), 0);
        assert_back(second, "0");
        assert_kept();
        assert_int_equal(actor_counted(file), 0);
        actor_end(second);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_signal_reaches_the_second_when_the_first_is_killed),
        cmocka_unit_test(test_a_signal_passes_on_when_its_receiver_is_killed),
        cmocka_unit_test(test_a_signal_passes_on_when_its_receiver_is_killed_as_owner),
        cmocka_unit_test(test_wait_says_eownerdead_when_the_signaller_dies),
        cmocka_unit_test(test_waits_end_when_the_mutex_becomes_not_recoverable),
        cmocka_unit_test(test_a_signal_reaches_the_second_when_the_first_exits),
        cmocka_unit_test(test_nothing_is_left),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, test_group_setup, test_group_teardown);
}
