/* SPDX-License-Identifier: BSD-2-Clause */
/* A process keeps the lease after its last unlock, until the linger time is over or another process asks. */
#include <stdio.h>
#include <string.h>

#include "kept.h"

/* ---- cost -------------------------------------------------------------------------------- */

/* A relock of a kept lease, and its unlock, ask the server nothing. */
static void test_relock_costs_no_command_when_the_lease_is_kept(void **state)
{
    int64_t before;

    (void)state;
    kept_begin(NULL, "kept/cost", LONG_LEASE);
    before = client_commands();
    for (int i = 0; i < 100; i++)
        kept_use(keeper, "kept/cost");
    assert_int_equal(client_commands(), before);
    kept_end();
}

/* Without a linger time an unlock gives the mutex back at once. */
static void test_unlock_gives_back_when_nothing_lingers(void **state)
{
    (void)state;
    make_handed(&kept_mutex, "kept/none", &kinds[0], LONG_LEASE, 0);
    assert_result(dmutex_lock(&kept_mutex), 0);
    assert_result(dmutex_unlock(&kept_mutex), 0);
    assert_false(is_locked(&kept_mutex));
}

/* DMUTEX_LINGER is the linger time of objects that have none. */
static void test_environment_sets_the_linger_time(void **state)
{
    struct actor *actor = actor_start_with(the_server, "DMUTEX_LINGER=60000", NULL);

    (void)state;
    make_normal(&kept_mutex, "kept/environment", LONG_LEASE);
    actor_do(actor, "0", "init kept/environment lease=%d", LONG_LEASE);
    actor_open_inbox(actor); /* after that the lease is kept */
    kept_use(actor, "kept/environment");
    assert_true(is_locked(&kept_mutex));
    actor_end(actor);
    assert_false(is_locked(&kept_mutex));
}

/* A robust mutex keeps nothing: a kill between unlock and relock would count as a death. */
static void test_robust_mutex_is_never_kept(void **state)
{
    struct actor *actor = actor_start(the_server);

    (void)state;
    make_robust(&kept_mutex, "kept/robust", LONG_LEASE);
    actor_do(actor, "0", "init kept/robust robust lease=%d linger=60000", LONG_LEASE);
    kept_use(actor, "kept/robust");
    assert_false(is_locked(&kept_mutex));
    actor_end(actor);
}

/* ---- asked back -------------------------------------------------------------------------- */

/* Another process gets a kept lease by one message, not by the end of a lease. */
static void test_lock_gets_a_kept_lease_at_once(void **state)
{
    (void)state;
    kept_begin(NULL, "kept/asked", LONG_LEASE);
    promise_within(AT_ONCE);
    actor_do(other, "0", "lock kept/asked");
    assert_kept();
    actor_do(other, "0", "unlock kept/asked");
    kept_end();
}

/* The same while a thread of the keeper is inside: the unlock gives back. */
static void test_lock_gets_a_kept_lease_when_the_thread_inside_unlocks(void **state)
{
    (void)state;
    kept_begin(NULL, "kept/inside", LONG_LEASE);
    actor_do(keeper, "0", "lock kept/inside");
    actor_send(other, "lock kept/inside");
    wait_until(waiters_of(&kept_mutex) == 1);
    promise_within(AT_ONCE);
    actor_do(keeper, "0", "unlock kept/inside");
    actor_expect(other, "0");
    assert_kept();
    actor_do(other, "0", "unlock kept/inside");
    kept_end();
}

/* The answer to the mark reports a waiter that came before it. */
static void test_lock_gets_the_lease_when_it_came_before_the_mark(void **state)
{
    (void)state;
    keeper = actor_start(the_server);
    other = actor_start(the_server);
    make_normal(&kept_mutex, "kept/before", LONG_LEASE);
    actor_do(keeper, "0", "init kept/before lease=%d linger=60000", LONG_LEASE);
    actor_do(other, "0", "init kept/before lease=%d", LONG_LEASE);
    actor_do(keeper, "0", "lock kept/before");
    actor_send(other, "lock kept/before");
    wait_until(waiters_of(&kept_mutex) == 1);
    promise_within(AT_ONCE);
    actor_do(keeper, "0", "unlock kept/before");
    actor_expect(other, "0");
    assert_kept();
    actor_do(other, "0", "unlock kept/before");
    kept_end();
}

/* A trylock finds a kept lease busy; a fair lock of the same process gives the lease back and queues. */
static void test_fair_lock_gives_a_kept_lease_back(void **state)
{
    dmutex_t fair;
    uint64_t before;

    (void)state;
    make_handed(&kept_mutex, "kept/fair", &kinds[0], LONG_LEASE, LONG_LEASE);
    make_normal(&fair, "kept/fair", LONG_LEASE);
    assert_result(dmutex_lock(&kept_mutex), 0);
    before = token_of(&kept_mutex) >> 12;
    assert_result(dmutex_unlock(&kept_mutex), 0);
    promise_within(AT_ONCE);
    assert_result(dmutex_lock(&fair), 0);
    assert_kept();
    assert_true(token_of(&fair) >> 12 > before);
    assert_result(dmutex_unlock(&fair), 0);
    assert_false(is_locked(&kept_mutex));
}

/* A trylock of another process finds a kept lease busy, and asks the lease back for a later try. */
static void test_trylock_of_another_process_asks_a_kept_lease_back(void **state)
{
    (void)state;
    kept_begin(NULL, "kept/tried", LONG_LEASE);
    promise_within(AT_ONCE);
    actor_do(other, "EBUSY", "trylock kept/tried");
    wait_until(!kept_is_locked("kept/tried"));
    assert_kept();
    actor_do(other, "0", "trylock kept/tried");
    actor_do(other, "0", "unlock kept/tried");
    kept_end();
}

/* ---- ends -------------------------------------------------------------------------------- */

/* After the linger time the server has the mutex back. */
static void test_lease_goes_back_when_the_linger_time_is_over(void **state)
{
    (void)state;
    make_handed(&kept_mutex, "kept/linger", &kinds[0], LONG_LEASE, 50);
    assert_result(dmutex_lock(&kept_mutex), 0);
    assert_result(dmutex_unlock(&kept_mutex), 0);
    assert_true(is_locked(&kept_mutex));
    promise_within(AT_ONCE);
    wait_until(!is_locked(&kept_mutex));
    assert_kept();
}

/* exit() gives kept leases back. */
static void test_exit_gives_a_kept_lease_back(void **state)
{
    (void)state;
    kept_begin(NULL, "kept/exit", LONG_LEASE);
    actor_send(keeper, "exit 0");
    promise_within(AT_ONCE);
    actor_do(other, "0", "lock kept/exit");
    assert_kept();
    actor_do(other, "0", "unlock kept/exit");
    assert_int_equal(actor_await(keeper), 0);
    actor_end(other);
}

/* So does dmutex_destroy(). */
static void test_destroy_gives_a_kept_lease_back(void **state)
{
    dmutex_t same;

    (void)state;
    make_handed(&kept_mutex, "kept/destroy", &kinds[0], LONG_LEASE, LONG_LEASE);
    make_normal(&same, "kept/destroy", LONG_LEASE);
    assert_result(dmutex_lock(&kept_mutex), 0);
    assert_result(dmutex_unlock(&kept_mutex), 0);
    assert_true(is_locked(&same));
    assert_result(dmutex_destroy(&kept_mutex), 0);
    assert_false(is_locked(&same));
}

/* A killed keeper costs the others the rest of a lease, and is no death: nobody was inside. */
static void test_kill_of_a_keeper_is_no_death(void **state)
{
    struct actor *heir = actor_start(the_server);

    (void)state;
    kept_begin(NULL, "kept/kill", SHORT_LEASE);
    actor_do(heir, "0", "init kept/kill robust lease=%d", SHORT_LEASE);
    actor_kill(keeper);
    promise_within(AT_ONCE);
    actor_do(heir, "0", "lock kept/kill");
    assert_kept();
    actor_do(heir, "0", "unlock kept/kill");
    actor_end(heir);
    kept_end();
}

/* A kept lease that is broken by force is nobody's loss; the next lock is a fresh one. */
static void test_force_on_a_kept_lease_is_silent(void **state)
{
    (void)state;
    kept_begin(NULL, "kept/force", LONG_LEASE);
    actor_do(keeper, "0", "init kept/later lease=%d linger=%d", LONG_LEASE, LONG_LEASE);
    actor_do(other, "0", "init kept/later lease=%d", LONG_LEASE);
    kept_use(keeper, "kept/later");
    assert_result(dmutex_forceunlock_np(&kept_mutex), 0);
    kept_use(other, "kept/force");
    kept_use(other, "kept/later"); /* the keeper has heard that this one is wanted, and so of the force before */
    kept_use(keeper, "kept/force");
    assert_int_equal(actor_losses(keeper), 0);
    kept_end();
}

/* A keeper that was stopped for longer than its lease does not believe in the lease afterwards. */
static void test_keeper_asks_again_when_the_lease_ended_in_a_pause(void **state)
{
    uint64_t before, after;
    int losses; /* on a busy machine a hold with a short lease may be lost, too */

    (void)state;
    kept_begin(NULL, "kept/stop", SHORT_LEASE);
    before = (uint64_t)actor_value(other, "islocked kept/stop");
    assert_int_equal(before, 1);
    actor_do(keeper, "0", "lock kept/stop");
    before = (uint64_t)actor_value(keeper, "token kept/stop") >> 12;
    actor_do(keeper, "0", "unlock kept/stop");
    losses = actor_losses(keeper);
    actor_stop(keeper);
    promise_within(AT_ONCE);
    actor_do(other, "0", "lock kept/stop");
    assert_kept();
    actor_cont(keeper);
    actor_do(keeper, "EBUSY", "trylock kept/stop");
    assert_int_equal(actor_losses(keeper), losses);
    actor_do(other, "0", "unlock kept/stop");
    actor_do(keeper, "0", "lock kept/stop");
    after = (uint64_t)actor_value(keeper, "token kept/stop") >> 12;
    assert_true(after > before);
    actor_do(keeper, "0", "unlock kept/stop");
    kept_end();
}

/* The server's view: locked, by nobody in particular. */
static void test_info_shows_a_kept_lease_as_locked_without_a_hold(void **state)
{
    dmutex_info_t info = { .struct_size = sizeof info };

    (void)state;
    kept_begin(NULL, "kept/info", LONG_LEASE);
    assert_result(dmutex_getinfo_np(&kept_mutex, &info), 0);
    assert_int_equal(info.locked, 1);
    assert_int_equal(info.hold_count, 0);
    assert_int_equal(actor_value(keeper, "holdcount kept/info"), 0);
    actor_do(keeper, "EPERM", "unlock kept/info");
    kept_end();
}

/* ---- conditions -------------------------------------------------------------------------- */

/* A wait with a kept mutex gives the mutex to the server; a signal by a process that keeps it wakes the waiter. */
static void test_signal_wakes_when_the_mutex_is_kept(void **state)
{
    (void)state;
    kept_begin(NULL, "kept/cond", LONG_LEASE);
    for (int i = 0; i < 5; i++) {
        promise_within(AT_ONCE);
        actor_do(other, "0", "lock kept/cond");
        actor_send(other, "wait kept/cond kept/cond");
        wait_until(side_int(the_server->side, "ZCARD %s", key_of("cond", "kept/cond")) == 1);
        kept_use(keeper, "kept/cond");
        kept_use(keeper, "kept/cond");
        actor_do(keeper, "0", "signal kept/cond");
        actor_expect(other, "0");
        assert_kept();
        actor_do(other, "0", "unlock kept/cond");
    }
    kept_end();
}

/* ---- loaded late ------------------------------------------------------------------------- */

#define PAIRS 100000

/* A program that loads the library by dlopen() relocks without the server, in a thread that was there before, too. */
static void test_a_program_keeps_when_it_has_loaded_the_library_late(void **state)
{
    char library[4096], program[4096];
    int64_t before = client_commands();

    (void)state;
    test_build_path(library, sizeof library, "libdmutex/.libs/libdmutex.so.0");
    test_build_path(program, sizeof program, "tests/server/loads_late");
    command_run("exec %s %s kept/late %d", program, library, PAIRS);
    assert_string_equal(ran.errors, "");
    assert_status(0);
    assert_within(client_commands() - before, 1, PAIRS - 1);
    assert_false(kept_is_locked("kept/late"));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_relock_costs_no_command_when_the_lease_is_kept),
        cmocka_unit_test(test_unlock_gives_back_when_nothing_lingers),
        cmocka_unit_test(test_environment_sets_the_linger_time),
        cmocka_unit_test(test_robust_mutex_is_never_kept),
        cmocka_unit_test(test_lock_gets_a_kept_lease_at_once),
        cmocka_unit_test(test_lock_gets_a_kept_lease_when_the_thread_inside_unlocks),
        cmocka_unit_test(test_lock_gets_the_lease_when_it_came_before_the_mark),
        cmocka_unit_test(test_fair_lock_gives_a_kept_lease_back),
        cmocka_unit_test(test_trylock_of_another_process_asks_a_kept_lease_back),
        cmocka_unit_test(test_lease_goes_back_when_the_linger_time_is_over),
        cmocka_unit_test(test_exit_gives_a_kept_lease_back),
        cmocka_unit_test(test_destroy_gives_a_kept_lease_back),
        cmocka_unit_test(test_kill_of_a_keeper_is_no_death),
        cmocka_unit_test(test_force_on_a_kept_lease_is_silent),
        cmocka_unit_test(test_keeper_asks_again_when_the_lease_ended_in_a_pause),
        cmocka_unit_test(test_info_shows_a_kept_lease_as_locked_without_a_hold),
        cmocka_unit_test(test_signal_wakes_when_the_mutex_is_kept),
        cmocka_unit_test(test_a_program_keeps_when_it_has_loaded_the_library_late),
        cmocka_unit_test(test_nothing_is_left),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, test_group_setup, test_group_teardown);
}
