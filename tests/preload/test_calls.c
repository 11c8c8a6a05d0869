/* SPDX-License-Identifier: BSD-2-Clause */
/* Each call on a named mutex of an unchanged program, of each type, by each of its names. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "naming.h"

#define LEASE 60000
#define SHORT " lease=300"

#define test_of_program(test) cmocka_unit_test_setup(test, forget_said)

static const char rules[] = "sym:legacy:static_lock => t/x; sym:legacy:recursive_lock => t/r;"
                            "sym:legacy:errorcheck_lock => t/e; sym:legacy:adaptive_lock => t/a;"
                            "sym:legacy:made_lock => t/m; sym:legacy:c11_lock => t/c11";

static dmutex_t mutex; /* this test's mutex of libdmutex */

static int build_all(void **state)
{
    if (programs_setup(state) != 0)
        return -1;
    build("legacy", LEGACY, "");
    build_guarded();
    return 0;
}

/* ---- locks ------------------------------------------------------------------------------- */

/* A free mutex is locked after the deadline, too, if the server answers within 50 ms: a busy machine may be slower. */
static bool is_locked_late(struct actor *actor)
{
    actor_send(actor, "timedlock static_lock -1000");
    return strcmp(actor_answer(actor), "0") == 0;
}

/* Each of the four ways to lock waits for a holder in another process, and each try or timed call gives up. */
static void test_each_way_to_lock_minds_a_holder_elsewhere(void **state)
{
    struct actor *actor = start_program("legacy", rules, NULL);
    static const char *const calls[] = { "lock static_lock", "timedlock static_lock 60000",
                                         "clocklock static_lock 60000", "old lock static_lock" };

    (void)state;
    hold_here(&mutex, "t/x");
    actor_do(actor, "EBUSY", "trylock static_lock");
    actor_do(actor, "EBUSY", "old trylock static_lock");
    actor_do(actor, "ETIMEDOUT", "timedlock static_lock 20");
    actor_do(actor, "ETIMEDOUT", "timedlock static_lock -1000");
    actor_do(actor, "ETIMEDOUT", "clocklock static_lock 20");
    give_back_here(&mutex);
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        check_waits(actor, "t/x", calls[i]);
        actor_do(actor, "0", i % 2 ? "unlock static_lock" : "old unlock static_lock");
    }
    wait_until(is_locked_late(actor));
    actor_do(actor, "0", "unlock static_lock");
    actor_do(actor, "0", "trylock static_lock");
    actor_do(actor, "0", "unlock static_lock");
    actor_end(actor);
}

/* A thread of the same program waits for the holder, too. */
static void test_threads_of_one_program_exclude_each_other(void **state)
{
    struct actor *actor = start_program("legacy", rules, NULL);

    (void)state;
    actor_do(actor, "0", "lock static_lock");
    actor_do(actor, "EBUSY", "thread trylock static_lock");
    actor_do(actor, "0", "start timedlock static_lock 60000");
    actor_do(actor, "0", "unlock static_lock");
    actor_do(actor, "0", "join");
    actor_end(actor);
}

/* ---- types ------------------------------------------------------------------------------- */

static void check_recursive(struct actor *actor, const char *object, const char *name)
{
    actor_do(actor, "0", "lock %s", object);
    actor_do(actor, "0", "lock %s", object);
    actor_do(actor, "0", "trylock %s", object);
    make_normal(&mutex, name, LEASE);
    actor_do(actor, "0", "unlock %s", object);
    actor_do(actor, "0", "unlock %s", object);
    assert_result(dmutex_trylock(&mutex), EBUSY);
    actor_do(actor, "0", "unlock %s", object);
    assert_result(dmutex_lock(&mutex), 0);
    give_back_here(&mutex);
    actor_do(actor, "EPERM", "unlock %s", object);
}

static void check_errorcheck(struct actor *actor, const char *object, const char *name)
{
    actor_do(actor, "EPERM", "unlock %s", object);
    actor_do(actor, "0", "lock %s", object);
    actor_do(actor, "EDEADLK", "lock %s", object);
    actor_do(actor, "EPERM", "thread unlock %s", object);
    make_normal(&mutex, name, LEASE);
    assert_result(dmutex_trylock(&mutex), EBUSY);
    actor_do(actor, "0", "unlock %s", object);
}

/* A static initialiser, also of libc's own kinds, gives a mutex its type. */
static void test_a_mutex_is_of_its_type_when_it_was_initialised_statically(void **state)
{
    struct actor *actor = start_program("legacy", rules, NULL);

    (void)state;
    check_recursive(actor, "recursive_lock", "t/r");
    check_errorcheck(actor, "errorcheck_lock", "t/e");
    check_named(actor, "adaptive_lock", "t/a");
    actor_end(actor);
}

/* pthread_mutex_init() gives a mutex its type; after pthread_mutex_destroy(), another type may follow. */
static void test_a_mutex_is_of_its_type_when_it_was_made(void **state)
{
    struct actor *actor = start_program("legacy", rules, NULL);

    (void)state;
    actor_do(actor, "0", "init made_lock recursive");
    check_recursive(actor, "made_lock", "t/m");
    actor_do(actor, "0", "destroy made_lock");
    actor_do(actor, "0", "init made_lock errorcheck");
    check_errorcheck(actor, "made_lock", "t/m");
    actor_do(actor, "0", "destroy made_lock");
    actor_do(actor, "0", "init made_lock");
    check_named(actor, "made_lock", "t/m");
    actor_do(actor, "0", "lock made_lock");
    actor_do(actor, "EBUSY", "destroy made_lock");
    actor_do(actor, "0", "unlock made_lock");
    actor_do(actor, "0", "destroy made_lock");
    actor_end(actor);
    assert_string_equal(said(), "");
}

/* A program that keeps making and destroying a named mutex does not grow. */
static void test_memory_does_not_grow_when_a_mutex_is_made_again(void **state)
{
    struct actor *actor;
    long long before = 0;

    (void)state;
    if (is_sanitized())
        return;
    actor = start_program("legacy", rules, NULL);
    for (int i = 0; i < 2000; i++) {
        if (i == 100)
            before = actor_value(actor, "memory");
        actor_do(actor, "0", "init made_lock");
        actor_do(actor, "0", "lock made_lock");
        actor_do(actor, "0", "unlock made_lock");
        if (i % 2)
            actor_do(actor, "0", "destroy made_lock");
    }
    assert_within(actor_value(actor, "memory"), 0, before + 200);
    actor_end(actor);
}

/* If a process forks while its threads make mutexes, the children can use mutexes. */
static void test_children_make_mutexes_when_a_thread_was_making_one(void **state)
{
    struct actor *actor = start_program("legacy", rules, NULL);

    (void)state;
    actor_do(actor, "0", "start remakes 300000 made_lock");
    actor_do(actor, "0", "start remakes 300000 static_lock");
    for (int i = 0; i < 150; i++)
        actor_do(actor, "EPERM", "child unlock errorcheck_lock");
    actor_do(actor, "0", "join");
    actor_do(actor, "0", "join");
    actor_end(actor);
}

/* If a process forks while the first call opens the library, the children have the whole library, or none. */
static void test_children_have_the_library_when_a_thread_was_opening_it(void **state)
{
    (void)state;
    for (int i = 0; i < 40; i++) {
        struct actor *actor = start_program("legacy", rules, NULL);

        actor_do(actor, "0", "start remakes 300 made_lock");
        for (int child = 0; child < 5; child++)
            actor_do(actor, "EPERM", "child unlock errorcheck_lock");
        actor_do(actor, "0", "join");
        actor_end(actor);
    }
}

/* A mutex with a priority protocol is left local, and one sentence says so. */
static void test_a_mutex_is_left_local_when_it_has_a_priority_protocol(void **state)
{
    struct actor *actor = start_program("legacy", rules, NULL);

    (void)state;
    actor_do(actor, "0", "init made_lock inherit");
    check_local(actor, "made_lock");
    check_local(actor, "made_lock");
    actor_end(actor);
    assert_said("dmutex: t/m: a mutex with a priority protocol cannot be distributed; it is left local\n");
}

/* ---- robust mutexes ---------------------------------------------------------------------- */

/* Kills a program that holds the object, and checks the result of the next holder's lock. */
static void check_after_death(const char *setting, const char *make, const char *object, const char *told)
{
    char map[300];
    struct actor *a, *b;

    snprintf(map, sizeof map, "sym:legacy:static_lock => o/x%s%s; sym:legacy:made_lock => o/m%s%s", SHORT, setting,
             SHORT, setting);
    a = start_program("legacy", map, NULL);
    b = start_program("legacy", map, NULL);
    actor_do(a, "0", "init made_lock %s", make);
    actor_do(b, "0", "init made_lock %s", make);
    actor_do(a, "0", "lock %s", object);
    actor_send(b, "lock %s", object);
    actor_kill(a);
    actor_expect(b, told);
    actor_do(b, strcmp(told, "0") == 0 ? "EINVAL" : "0", "consistent %s", object);
    actor_do(b, "0", "unlock %s", object);
    actor_end(a);
    actor_end(b);
}

/*
 * After a holder's death, the next holder gets EOWNERDEAD if the mutex was made robust or the rule says robust=yes;
 * robust=no wins over the mutex's own attribute.
 */
static void test_the_next_learns_of_a_death_when_the_mutex_or_its_rule_is_robust(void **state)
{
    (void)state;
    check_after_death("", "robust", "made_lock", "EOWNERDEAD");
    check_after_death("", "errorcheck", "made_lock", "0");
    check_after_death(" robust=yes", "recursive", "made_lock", "EOWNERDEAD");
    check_after_death(" robust=yes", "", "static_lock", "EOWNERDEAD");
    check_after_death(" robust=no", "robust", "made_lock", "0");
}

/* ---- C11 and C++ ------------------------------------------------------------------------- */

/*
 * A named C11 mutex is distributed, although libc's mtx_ functions do not go through libc's exported pthread functions.
 */
static void test_c11_mutexes_are_distributed_when_they_are_named(void **state)
{
    struct actor *actor = start_program("legacy", rules, NULL);

    (void)state;
    actor_do(actor, "0", "mtx init c11_lock");
    hold_here(&mutex, "t/c11");
    actor_do(actor, "EBUSY", "mtx trylock c11_lock");
    actor_do(actor, "ETIMEDOUT", "mtx timedlock c11_lock 20");
    give_back_here(&mutex);
    check_waits(actor, "t/c11", "mtx lock c11_lock");
    make_normal(&mutex, "t/c11", LEASE);
    assert_result(dmutex_trylock(&mutex), EBUSY);
    actor_do(actor, "0", "mtx unlock c11_lock");
    check_waits(actor, "t/c11", "mtx timedlock c11_lock 60000");
    actor_do(actor, "0", "mtx unlock c11_lock");
    actor_do(actor, "0", "mtx destroy c11_lock");
    actor_do(actor, "0", "mtx init c11_lock recursive");
    actor_do(actor, "0", "mtx lock c11_lock");
    actor_do(actor, "0", "mtx trylock c11_lock");
    actor_do(actor, "0", "mtx unlock c11_lock");
    actor_do(actor, "0", "mtx unlock c11_lock");
    actor_do(actor, "error", "mtx unlock c11_lock");
    actor_end(actor);
    assert_string_equal(said(), "");
}

/* A C11 mutex without a name is libc's. */
static void test_c11_mutexes_are_local_when_they_are_not_named(void **state)
{
    struct actor *actor = start_program("legacy", "sym:legacy:static_lock => t/x", NULL);

    (void)state;
    actor_do(actor, "0", "mtx init c11_lock");
    actor_do(actor, "0", "mtx lock c11_lock");
    actor_do(actor, "EBUSY", "mtx trylock c11_lock");
    actor_do(actor, "ETIMEDOUT", "mtx timedlock c11_lock 20");
    actor_do(actor, "0", "mtx unlock c11_lock");
    actor_do(actor, "0", "mtx destroy c11_lock");
    actor_do(actor, "0 0", "has libdmutex.so");
    actor_end(actor);
}

/* A named std::timed_mutex is distributed: lock(), try_lock(), and try_lock_for() by the steady clock. */
static void test_cxx_mutexes_are_distributed_when_they_are_named(void **state)
{
    struct actor *actor;

    (void)state;
    if (!has_cxx())
        return;
    actor = start_program("guarded", "sym:guarded:_ZN3app5Shelf5guardE => t/std", NULL);
    hold_here(&mutex, "t/std");
    actor_do(actor, "EBUSY", "std try_lock");
    actor_do(actor, "ETIMEDOUT", "std try_for 20");
    give_back_here(&mutex);
    check_waits(actor, "t/std", "std lock");
    make_normal(&mutex, "t/std", LEASE);
    assert_result(dmutex_trylock(&mutex), EBUSY);
    actor_do(actor, "0", "std unlock");
    check_waits(actor, "t/std", "std try_for 60000");
    actor_do(actor, "0", "std unlock");
    actor_end(actor);
    assert_string_equal(said(), "");
}

/* ---- leases that end --------------------------------------------------------------------- */

/*
 * Stops a holder until this test has the mutex, and continues it; the holder then ends by a signal, or exits if that is
 * 0.
 */
static void check_loss(const char *setting, int signal_number)
{
    char map[200];
    struct actor *actor;
    int status;

    snprintf(map, sizeof map, "sym:legacy:static_lock => l/x%s%s", SHORT, setting);
    actor = start_program("legacy", map, NULL);
    actor_do(actor, "0", "lock static_lock");
    actor_stop(actor);
    make_normal(&mutex, "l/x", LEASE);
    assert_result(dmutex_lock(&mutex), 0);
    actor_cont(actor);
    wait_until(said_count("dmutex: the lease of l/x has ended while it was held: others may have it from now on") == 1);
    give_back_here(&mutex);
    if (signal_number == 0)
        actor_send(actor, "exit 7");
    status = actor_await(actor);
    if (signal_number == 0)
        assert_int_equal(status, 7 << 8);
    else
        assert_int_equal(WIFSIGNALED(status) ? WTERMSIG(status) : -1, signal_number);
}

/* When a lease ends, the program prints a sentence and does as OnLost= says. */
static void test_a_program_is_signalled_as_the_rule_says_when_its_lease_ends(void **state)
{
    check_loss("", 0);
    forget_said(state);
    check_loss(" onlost=log", 0);
    forget_said(state);
    check_loss(" onlost=signal:TERM", SIGTERM);
    forget_said(state);
    check_loss(" onlost=kill", SIGKILL);
}

/* ---- no server --------------------------------------------------------------------------- */

/* Locks until the server is taken for present, because a slow server may be taken for absent. */
static void await_lock(struct actor *actor)
{
    wait_until((actor_send(actor, "lock static_lock"), strcmp(actor_answer(actor), "0") == 0));
    actor_do(actor, "0", "unlock static_lock");
}

/* With OnDown=fail, a lock without a server is ENOLCK, and works again when the server is back; with a report, too. */
static void check_failure(const char *more)
{
    char url[200];
    struct actor *actor;

    snprintf(url, sizeof url, "DMUTEX_URL=%s&command_timeout=300", the_server->url);
    actor = start_program("legacy", "sym:legacy:static_lock => d/x ondown=fail", url, more, NULL);
    await_lock(actor);
    server_kill(the_server);
    actor_do(actor, "ENOLCK", "lock static_lock");
    actor_do(actor, "ENOLCK", "trylock static_lock");
    server_restart(the_server);
    await_lock(actor);
    actor_end(actor);
}

static void test_a_lock_fails_when_there_is_no_server_and_the_rule_says_so(void **state)
{
    (void)state;
    check_failure(NULL);
    check_failure("DMUTEX_REPORT=/dev/null");
}

/* Without OnDown=fail, a lock waits for the server. */
static void test_a_lock_waits_when_there_is_no_server(void **state)
{
    struct actor *actor = start_program("legacy", rules, NULL);

    (void)state;
    actor_do(actor, "0", "lock static_lock");
    actor_do(actor, "0", "unlock static_lock");
    server_kill(the_server);
    actor_send(actor, "lock static_lock");
    server_restart(the_server);
    actor_expect(actor, "0");
    actor_do(actor, "0", "unlock static_lock");
    actor_end(actor);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        test_of_program(test_each_way_to_lock_minds_a_holder_elsewhere),
        test_of_program(test_threads_of_one_program_exclude_each_other),
        test_of_program(test_a_mutex_is_of_its_type_when_it_was_initialised_statically),
        test_of_program(test_a_mutex_is_of_its_type_when_it_was_made),
        test_of_program(test_memory_does_not_grow_when_a_mutex_is_made_again),
        test_of_program(test_children_make_mutexes_when_a_thread_was_making_one),
        test_of_program(test_children_have_the_library_when_a_thread_was_opening_it),
        test_of_program(test_a_mutex_is_left_local_when_it_has_a_priority_protocol),
        test_of_program(test_the_next_learns_of_a_death_when_the_mutex_or_its_rule_is_robust),
        test_of_program(test_c11_mutexes_are_distributed_when_they_are_named),
        test_of_program(test_c11_mutexes_are_local_when_they_are_not_named),
        test_of_program(test_cxx_mutexes_are_distributed_when_they_are_named),
        test_of_program(test_a_program_is_signalled_as_the_rule_says_when_its_lease_ends),
        test_of_program(test_a_lock_fails_when_there_is_no_server_and_the_rule_says_so),
        test_of_program(test_a_lock_waits_when_there_is_no_server),
        cmocka_unit_test(test_nothing_is_left),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, build_all, programs_teardown);
}
