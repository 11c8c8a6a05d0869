/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Condition variables of an unchanged program, with a named mutex: conditions with a name are distributed; waits on
 * conditions without a name wake up from time to time.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "naming.h"

#define LEASE 60000
#define LONG_MS 20000 /* longer than any wait here may last */

#define test_of_program(test) cmocka_unit_test_setup(test, begin_test)

static const char rules[] =
    "sym:legacy:static_lock => c/x; cond:sym:legacy:ready => c/c; sym:legacy:recursive_lock => c/r;"
    "sym:legacy:errorcheck_lock => c/e; cond:sym:legacy:made_ready => c/made;"
    "sym:legacy:c11_lock => c/x11; cond:sym:legacy:c11_ready => c/c11";

static const char explanation[] =
    ": a condition variable without a name is used with this mutex; its waits wake up ten times a second, and signals "
    "of other processes do not reach it. Name it by Cond=; dmutex-run --list shows it\n";

static char number[80]; /* the file that represents the data guarded by the mutex */
static dmutex_t mutex;

static int begin_test(void **state)
{
    FILE *file = fopen(number, "w");

    fputs("0", file);
    assert_int_equal(fclose(file), 0);
    return forget_said(state);
}

static int build_all(void **state)
{
    if (programs_setup(state) != 0)
        return -1;
    snprintf(number, sizeof number, "%s/number", folder);
    build("legacy", LEGACY, "");
    build_guarded();
    return 0;
}

static int64_t waiters(const char *condition)
{
    return side_int(the_server->side, "ZCARD dmutex:{c}:cond:%s", condition);
}

/* ---- conditions with a name -------------------------------------------------------------- */

/* A signal of one process wakes the waiter of another process, and the wait returns with the mutex. */
static void test_a_signal_wakes_another_process_when_the_condition_is_named(void **state)
{
    struct actor *a = start_program("legacy", rules, NULL), *b = start_program("legacy", rules, NULL);
    static const char *const waits[] = { "wait ready static_lock", "timedwait ready static_lock 60000",
                                         "clockwait ready static_lock 60000" };

    (void)state;
    for (size_t i = 0; i < sizeof waits / sizeof waits[0]; i++) {
        actor_do(a, "0", "lock static_lock");
        actor_send(a, "%s", waits[i]);
        wait_until(waiters("c") == 1);
        actor_do(b, "0", "lock static_lock");
        actor_do(b, "0", i == 1 ? "broadcast ready" : "signal ready");
        assert_true(actor_is_silent(a));
        actor_do(b, "0", "unlock static_lock");
        actor_expect(a, "0");
        actor_do(b, "EBUSY", "trylock static_lock");
        actor_do(a, "0", "unlock static_lock");
    }
    actor_end(a);
    actor_end(b);
    assert_string_equal(said(), "");
}

/* A broadcast wakes all waiters, in every process and thread. */
static void test_a_broadcast_wakes_all_when_the_condition_is_named(void **state)
{
    struct actor *a = start_program("legacy", rules, NULL), *b = start_program("legacy", rules, NULL);

    (void)state;
    actor_do(a, "0", "start until ready static_lock %s 1", number);
    actor_do(a, "0", "start until ready static_lock %s 1", number);
    actor_send(b, "until ready static_lock %s 1", number);
    wait_until(waiters("c") == 3);
    actor_do(a, "0", "put ready static_lock %s 1", number);
    actor_expect(b, "0");
    actor_do(a, "0", "join");
    actor_do(a, "0", "join");
    actor_end(a);
    actor_end(b);
}

/* A timed wait without a signal ends at its time, by the condition's own clock, and returns with the mutex. */
static void test_a_timed_wait_ends_when_nobody_signals_a_named_condition(void **state)
{
    struct actor *actor = start_program("legacy", rules, NULL);

    (void)state;
    actor_do(actor, "0", "lock static_lock");
    actor_do(actor, "ETIMEDOUT", "timedwait ready static_lock -1000");
    actor_do(actor, "0", "unlock static_lock");
    actor_do(actor, "ETIMEDOUT", "timeout ready static_lock 150");
    actor_do(actor, "0", "cinit made_ready monotonic");
    actor_do(actor, "ETIMEDOUT", "timeout made_ready static_lock 150 monotonic");
    actor_do(actor, "0", "cdestroy made_ready");
    actor_do(actor, "0", "cinit made_ready");
    actor_do(actor, "ETIMEDOUT", "timeout made_ready static_lock 150");
    actor_do(actor, "0", "cdestroy made_ready");
    actor_end(actor);
}

/* A thread that is cancelled in a wait has the mutex when its handlers run. */
static void test_a_cancelled_wait_has_the_mutex_when_the_condition_is_named(void **state)
{
    struct actor *actor = start_program("legacy", rules, NULL);

    (void)state;
    actor_do(actor, "0", "start guarded ready static_lock");
    wait_until(waiters("c") == 1);
    actor_do(actor, "0", "cancel");
    actor_do(actor, "0", "join");
    check_named(actor, "static_lock", "c/x");
    actor_end(actor);
}

/* A thread that does not own an error-checking mutex cannot wait with the mutex. */
static void test_a_wait_is_refused_when_the_mutex_is_not_owned(void **state)
{
    struct actor *actor = start_program("legacy", rules, NULL);

    (void)state;
    actor_do(actor, "EPERM", "wait ready errorcheck_lock");
    actor_do(actor, "EPERM", "wait other_ready errorcheck_lock");
    actor_end(actor);
}

/*
 * A wait on a condition of another group than the mutex's is EINVAL, and is said once, because a program may ignore
 * results.
 */
static void test_a_sentence_is_said_when_a_condition_is_of_another_group(void **state)
{
    struct actor *actor =
        start_program("legacy", "sym:legacy:static_lock => one/x; cond:sym:legacy:ready => two/c", NULL);

    (void)state;
    actor_do(actor, "0", "lock static_lock");
    actor_do(actor, "EINVAL", "wait ready static_lock");
    actor_do(actor, "EINVAL", "wait ready static_lock");
    actor_do(actor, "0", "unlock static_lock");
    actor_end(actor);
    assert_said("dmutex: two/c: cannot be waited on with one/x: ");
}

/* A named C11 condition wakes a waiter of another process, and a timed wait ends. */
static void test_c11_conditions_are_distributed_when_they_are_named(void **state)
{
    struct actor *a = start_program("legacy", rules, NULL), *b = start_program("legacy", rules, NULL);

    (void)state;
    actor_do(a, "0", "mtx init c11_lock");
    actor_do(b, "0", "mtx init c11_lock");
    actor_do(a, "0", "cnd init c11_ready");
    actor_do(b, "0", "cnd init c11_ready");
    for (int i = 0; i < 2; i++) {
        actor_do(a, "0", "mtx lock c11_lock");
        actor_send(a, i ? "cnd timedwait c11_ready c11_lock 60000" : "cnd wait c11_ready c11_lock");
        wait_until(waiters("c11") == 1);
        actor_do(b, "0", i ? "cnd signal c11_ready" : "cnd broadcast c11_ready");
        actor_expect(a, "0");
        actor_do(b, "EBUSY", "mtx trylock c11_lock");
        actor_do(a, "0", "mtx unlock c11_lock");
    }
    actor_do(a, "0", "mtx lock c11_lock");
    actor_do(a, "ETIMEDOUT", "cnd timedwait c11_ready c11_lock 30");
    actor_do(a, "0", "mtx unlock c11_lock");
    actor_do(a, "0", "cnd destroy c11_ready");
    actor_end(a);
    actor_end(b);
}

/* A named std::condition_variable wakes a waiter of another process, although the wait is inside C++'s own library. */
static void test_cxx_conditions_are_distributed_when_they_are_named(void **state)
{
    static const char names[] =
        "sym:guarded:_ZN3app5Shelf4doorE => c/door; cond:sym:guarded:_ZN3app5Shelf6filledE => c/filled";
    struct actor *a, *b;

    (void)state;
    if (!has_cxx())
        return;
    a = start_program("guarded", names, NULL);
    b = start_program("guarded", names, NULL);
    for (int i = 0; i < 2; i++) {
        actor_send(a, i ? "std wait_for 60000" : "std wait");
        wait_until(waiters("filled") == 1);
        actor_do(b, "0", "std notify");
        actor_expect(a, "0");
        actor_do(a, "0", "std leave");
    }
    actor_do(a, "ETIMEDOUT", "std wait_for 30");
    actor_do(a, "0", "std leave");
    actor_end(a);
    actor_end(b);
    assert_string_equal(said(), "");
}

/* ---- a mutex with a name, a condition without -------------------------------------------- */

/* One sentence is said for all conditions without a name and all waits with a mutex. */
static void test_a_sentence_is_said_once_when_a_condition_has_no_name(void **state)
{
    struct actor *actor = start_program("legacy", rules, NULL);
    char sentence[sizeof explanation + 20];

    (void)state;
    snprintf(sentence, sizeof sentence, "dmutex: c/x%s", explanation);
    actor_do(actor, "0", "lock static_lock");
    for (int i = 0; i < 2; i++)
        actor_do(actor, "0", "wait other_ready static_lock"); /* nobody signals */
    actor_do(actor, "0", "unlock static_lock");
    assert_said(sentence);
    actor_end(actor);
}

/* Signals inside a process wake a waiter as ever, and signals of another process are noticed a little later. */
static void test_a_wait_ends_when_a_condition_has_no_name_and_anybody_signals(void **state)
{
    struct actor *a = start_program("legacy", rules, NULL), *b = start_program("legacy", rules, NULL);

    (void)state;
    actor_do(a, "0", "start until other_ready static_lock %s 1", number);
    actor_do(a, "0", "put other_ready static_lock %s 1", number);
    actor_do(a, "0", "join");
    actor_send(a, "until other_ready static_lock %s 2", number);
    wait_until(said_count(explanation) == 1);
    actor_do(b, "0", "put other_ready static_lock %s 2", number);
    actor_expect(a, "0");
    actor_end(a);
    actor_end(b);
}

/* The mutex is free while a thread waits, and is held again, as often as before, when the wait returns. */
static void test_a_wait_gives_the_mutex_up_when_the_condition_has_no_name(void **state)
{
    struct actor *actor = start_program("legacy", rules, NULL);

    (void)state;
    make_normal(&mutex, "c/r", LEASE);
    actor_do(actor, "0", "lock recursive_lock");
    actor_do(actor, "0", "lock recursive_lock");
    actor_send(actor, "wait other_ready recursive_lock");
    assert_result(dmutex_lock(&mutex), 0);
    wait_until(waiters_of(&mutex) == 1);
    assert_true(actor_is_silent(actor));
    assert_result(dmutex_unlock(&mutex), 0);
    actor_expect(actor, "0");
    actor_do(actor, "0", "unlock recursive_lock");
    assert_result(dmutex_trylock(&mutex), EBUSY);
    actor_do(actor, "0", "unlock recursive_lock");
    actor_do(actor, "EPERM", "unlock recursive_lock");
    actor_end(actor);
    assert_result(dmutex_destroy(&mutex), 0);
}

/* A timed wait that wakes up from time to time ends on time, by the condition's clock, not earlier. */
static void test_a_timed_wait_ends_when_a_condition_has_no_name(void **state)
{
    struct actor *actor = start_program("legacy", rules, NULL);

    (void)state;
    side_set_bound(the_server->side, "waits", LONG_MS);
    actor_do(actor, "0", "lock static_lock");
    actor_do(actor, "ETIMEDOUT", "timedwait other_ready static_lock -1000");
    actor_do(actor, "ETIMEDOUT", "timedwait other_ready static_lock 20");
    actor_do(actor, "ETIMEDOUT", "clockwait other_ready static_lock 20");
    actor_do(actor, "0", "timedwait other_ready static_lock 60000");
    actor_do(actor, "0", "clockwait other_ready static_lock 60000");
    actor_do(actor, "0", "unlock static_lock");
    actor_do(actor, "ETIMEDOUT", "timeout other_ready static_lock 250");
    assert_false(side_is_control_over(the_server->side, "waits"));
    actor_end(actor);
    actor = start_program("legacy", "sym:legacy:static_lock => c/x", NULL);
    actor_do(actor, "0", "cinit made_ready monotonic");
    actor_do(actor, "ETIMEDOUT", "timeout made_ready static_lock 250 monotonic");
    actor_do(actor, "0", "cdestroy made_ready");
    actor_end(actor);
}

/* A thread that is cancelled between two wake-ups has the mutex when its handlers run. */
static void test_a_cancelled_wait_has_the_mutex_when_the_condition_has_no_name(void **state)
{
    struct actor *actor = start_program("legacy", rules, NULL);

    (void)state;
    actor_do(actor, "0", "start guarded other_ready static_lock");
    wait_until(said_count(explanation) == 1);
    actor_do(actor, "0", "cancel");
    actor_do(actor, "0", "join");
    check_named(actor, "static_lock", "c/x");
    actor_end(actor);
}

/*
 * If a holder of a robust mutex dies while another thread waits, the wait returns EOWNERDEAD.  That holder is in the
 * queue before the wait begins: a wait that woke up by itself in between would return 0 and keep the mutex.
 */
static void test_a_wait_reports_a_death_when_the_condition_has_no_name(void **state)
{
    static const char robust[] = "sym:legacy:static_lock => c/robust robust=yes lease=300";
    struct actor *a = start_program("legacy", robust, NULL), *b = start_program("legacy", robust, NULL);

    (void)state;
    actor_do(a, "0", "lock static_lock");
    actor_send(b, "lock static_lock");
    wait_until(waiters_at(the_server->side, "c/robust") == 1);
    actor_send(a, "wait other_ready static_lock");
    actor_expect(b, "0");
    actor_kill(b);
    actor_expect(a, "EOWNERDEAD");
    actor_do(a, "0", "consistent static_lock");
    actor_do(a, "0", "unlock static_lock");
    actor_end(a);
    actor_end(b);
}

/* Waits of C11 and C++ with a named mutex wake up and time out in the same way. */
static void test_other_waits_end_when_a_condition_has_no_name(void **state)
{
    struct actor *actor = start_program("legacy", "sym:legacy:c11_lock => c/x11", NULL);

    (void)state;
    actor_do(actor, "0", "mtx init c11_lock");
    actor_do(actor, "0", "cnd init c11_ready");
    actor_do(actor, "0", "mtx lock c11_lock");
    actor_do(actor, "0", "cnd wait c11_ready c11_lock");
    actor_do(actor, "0", "cnd timedwait c11_ready c11_lock 60000");
    actor_do(actor, "ETIMEDOUT", "cnd timedwait c11_ready c11_lock 20");
    actor_do(actor, "0", "mtx unlock c11_lock");
    actor_end(actor);
    if (!has_cxx())
        return;
    actor = start_program("guarded", "sym:guarded:_ZN3app5Shelf4doorE => c/door", NULL);
    actor_do(actor, "0", "std wait");
    actor_do(actor, "0", "std leave");
    actor_do(actor, "ETIMEDOUT", "std wait_for 20");
    actor_do(actor, "0", "std leave");
    actor_end(actor);
}

/* ---- a condition with a name, a mutex without -------------------------------------------- */

/*
 * A named condition with a mutex without a name is local: signals of the process work as ever, and one sentence says
 * so.
 */
static void test_a_named_condition_is_local_when_its_mutex_has_no_name(void **state)
{
    struct actor *actor = start_program("legacy", rules, NULL);

    (void)state;
    for (int i = 1; i < 3; i++) {
        actor_do(actor, "0", "start until ready other_lock %s %d", number, i);
        actor_do(actor, "0", "put ready other_lock %s %d", number, i);
        actor_do(actor, "0", "join");
    }
    actor_do(actor, "ETIMEDOUT", "timeout ready other_lock 30");
    actor_end(actor);
    assert_said("dmutex: c/c: this condition variable is waited on with a mutex that has no name: "
                "only signals of this process wake it\n");
}

/* A condition and a mutex without names are libc's own. */
static void test_a_condition_is_local_when_nothing_has_a_name(void **state)
{
    struct actor *actor = start_program("legacy", rules, NULL);

    (void)state;
    actor_do(actor, "0", "start until other_ready other_lock %s 1", number);
    actor_do(actor, "0", "put other_ready other_lock %s 1", number);
    actor_do(actor, "0", "join");
    actor_do(actor, "ETIMEDOUT", "timeout other_ready other_lock 30");
    actor_do(actor, "0 0", "has libdmutex.so");
    actor_end(actor);
    assert_string_equal(said(), "");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        test_of_program(test_a_signal_wakes_another_process_when_the_condition_is_named),
        test_of_program(test_a_broadcast_wakes_all_when_the_condition_is_named),
        test_of_program(test_a_timed_wait_ends_when_nobody_signals_a_named_condition),
        test_of_program(test_a_cancelled_wait_has_the_mutex_when_the_condition_is_named),
        test_of_program(test_a_wait_is_refused_when_the_mutex_is_not_owned),
        test_of_program(test_a_sentence_is_said_when_a_condition_is_of_another_group),
        test_of_program(test_c11_conditions_are_distributed_when_they_are_named),
        test_of_program(test_cxx_conditions_are_distributed_when_they_are_named),
        test_of_program(test_a_sentence_is_said_once_when_a_condition_has_no_name),
        test_of_program(test_a_wait_ends_when_a_condition_has_no_name_and_anybody_signals),
        test_of_program(test_a_wait_gives_the_mutex_up_when_the_condition_has_no_name),
        test_of_program(test_a_timed_wait_ends_when_a_condition_has_no_name),
        test_of_program(test_a_cancelled_wait_has_the_mutex_when_the_condition_has_no_name),
        test_of_program(test_a_wait_reports_a_death_when_the_condition_has_no_name),
        test_of_program(test_other_waits_end_when_a_condition_has_no_name),
        test_of_program(test_a_named_condition_is_local_when_its_mutex_has_no_name),
        test_of_program(test_a_condition_is_local_when_nothing_has_a_name),
        cmocka_unit_test(test_nothing_is_left),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, build_all, programs_teardown);
}
