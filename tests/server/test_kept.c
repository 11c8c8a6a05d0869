/* SPDX-License-Identifier: BSD-2-Clause */
/* A process keeps the lease after its last unlock, until the linger time is over or another process asks. */
#include <stdio.h>
#include <string.h>

#include "../lib/testlib.h"

#define LONG_LEASE 60000 /* no poll and no renewal within the time of a test */
#define SHORT_LEASE 900
#define AT_ONCE 8000

static dmutex_t mutex;
static struct actor *keeper; /* a process that keeps */
static struct actor *other;

static int64_t commands(void)
{
    return side_client_commands(the_server->side);
}

static void lock_and_unlock(struct actor *actor, const char *name)
{
    actor_do(actor, "0", "lock %s", name);
    actor_do(actor, "0", "unlock %s", name);
}

static bool is_marked(const char *name)
{
    const char *hold = side_text(the_server->side, "HGET %s hold", key_of("state", name));

    return hold && strstr(hold, " - ") != NULL;
}

/* Both processes know the name; the first keeps, after a lock and an unlock whose mark has arrived. */
static void begin_kept(const char *name, unsigned lease_ms, unsigned linger_ms)
{
    int64_t channels = side_count_channels(the_server->side);

    keeper = actor_start(the_server);
    other = actor_start(the_server);
    make_normal(&mutex, name, lease_ms);
    actor_do(keeper, "0", "init %s lease=%u linger=%u", name, lease_ms, linger_ms);
    actor_do(other, "0", "init %s lease=%u", name, lease_ms);
    lock_and_unlock(keeper, name); /* opens the inbox: keeping begins when the inbox is open */
    wait_until(side_count_channels(the_server->side) == channels + 1);
    actor_do(other, "0", "lock %s", name);
    actor_do(keeper, "ETIMEDOUT", "timedlock %s 10", name);
    actor_do(other, "0", "unlock %s", name);
    lock_and_unlock(keeper, name);
    wait_until(is_marked(name));
}

static void end_kept(void)
{
    actor_end(keeper);
    actor_end(other);
}

/* ---- cost -------------------------------------------------------------------------------- */

/* A relock of a kept lease, and its unlock, ask the server nothing. */
static void test_relock_costs_no_command_when_the_lease_is_kept(void **state)
{
    int64_t before;

    (void)state;
    begin_kept("kept/cost", LONG_LEASE, LONG_LEASE);
    before = commands();
    for (int i = 0; i < 100; i++)
        lock_and_unlock(keeper, "kept/cost");
    assert_int_equal(commands(), before);
    end_kept();
}

/* Without a linger time an unlock gives the mutex back at once. */
static void test_unlock_gives_back_when_nothing_lingers(void **state)
{
    (void)state;
    make_handed(&mutex, "kept/none", &kinds[0], LONG_LEASE, 0);
    assert_result(dmutex_lock(&mutex), 0);
    assert_result(dmutex_unlock(&mutex), 0);
    assert_false(is_locked(&mutex));
}

/* DMUTEX_LINGER is the linger time of objects that have none. */
static void test_environment_sets_the_linger_time(void **state)
{
    struct actor *actor = actor_start_with(the_server, "DMUTEX_LINGER=60000", NULL);

    (void)state;
    make_normal(&mutex, "kept/environment", LONG_LEASE);
    actor_do(actor, "0", "init kept/environment lease=%d", LONG_LEASE);
    assert_result(dmutex_lock(&mutex), 0);
    actor_do(actor, "ETIMEDOUT", "timedlock kept/environment 10"); /* opens the inbox */
    assert_result(dmutex_unlock(&mutex), 0);
    lock_and_unlock(actor, "kept/environment");
    assert_true(is_locked(&mutex));
    actor_end(actor);
    assert_false(is_locked(&mutex));
}

/* A robust mutex keeps nothing: a kill between unlock and relock would count as a death. */
static void test_robust_mutex_is_never_kept(void **state)
{
    struct actor *actor = actor_start(the_server);

    (void)state;
    make_robust(&mutex, "kept/robust", LONG_LEASE);
    actor_do(actor, "0", "init kept/robust robust lease=%d linger=60000", LONG_LEASE);
    lock_and_unlock(actor, "kept/robust");
    assert_false(is_locked(&mutex));
    actor_end(actor);
}

/* ---- asked back -------------------------------------------------------------------------- */

/* Another process gets a kept lease by one message, not by the end of a lease. */
static void test_lock_gets_a_kept_lease_at_once(void **state)
{
    (void)state;
    begin_kept("kept/asked", LONG_LEASE, LONG_LEASE);
    promise_within(AT_ONCE);
    actor_do(other, "0", "lock kept/asked");
    assert_kept();
    actor_do(other, "0", "unlock kept/asked");
    end_kept();
}

/* The same while a thread of the keeper is inside: the unlock gives back. */
static void test_lock_gets_a_kept_lease_when_the_thread_inside_unlocks(void **state)
{
    (void)state;
    begin_kept("kept/inside", LONG_LEASE, LONG_LEASE);
    actor_do(keeper, "0", "lock kept/inside");
    actor_send(other, "lock kept/inside");
    wait_until(waiters_of(&mutex) == 1);
    promise_within(AT_ONCE);
    actor_do(keeper, "0", "unlock kept/inside");
    actor_expect(other, "0");
    assert_kept();
    actor_do(other, "0", "unlock kept/inside");
    end_kept();
}

/* A waiter that came before the mark is told by the answer to the mark. */
static void test_lock_gets_the_lease_when_it_came_before_the_mark(void **state)
{
    (void)state;
    keeper = actor_start(the_server);
    other = actor_start(the_server);
    make_normal(&mutex, "kept/before", LONG_LEASE);
    actor_do(keeper, "0", "init kept/before lease=%d linger=60000", LONG_LEASE);
    actor_do(other, "0", "init kept/before lease=%d", LONG_LEASE);
    actor_do(keeper, "0", "lock kept/before");
    actor_send(other, "lock kept/before");
    wait_until(waiters_of(&mutex) == 1);
    promise_within(AT_ONCE);
    actor_do(keeper, "0", "unlock kept/before");
    actor_expect(other, "0");
    assert_kept();
    actor_do(other, "0", "unlock kept/before");
    end_kept();
}

/* A trylock finds a kept lease busy; a fair lock of the same process gives the lease back and queues. */
static void test_fair_lock_gives_a_kept_lease_back(void **state)
{
    dmutex_t fair;
    uint64_t before;

    (void)state;
    make_handed(&mutex, "kept/fair", &kinds[0], LONG_LEASE, LONG_LEASE);
    make_normal(&fair, "kept/fair", LONG_LEASE);
    assert_result(dmutex_lock(&mutex), 0);
    before = token_of(&mutex) >> 12;
    assert_result(dmutex_unlock(&mutex), 0);
    promise_within(AT_ONCE);
    assert_result(dmutex_lock(&fair), 0);
    assert_kept();
    assert_true(token_of(&fair) >> 12 > before);
    assert_result(dmutex_unlock(&fair), 0);
    assert_false(is_locked(&mutex));
}

/* A trylock of another process finds a kept lease busy, and asks the lease back for a later try. */
static void test_trylock_of_another_process_asks_a_kept_lease_back(void **state)
{
    (void)state;
    begin_kept("kept/tried", LONG_LEASE, LONG_LEASE);
    lock_and_unlock(keeper, "kept/tried");
    assert_true(is_locked(&mutex));
    promise_within(AT_ONCE);
    actor_do(other, "EBUSY", "trylock kept/tried");
    wait_until(!is_locked(&mutex));
    assert_kept();
    actor_do(other, "0", "trylock kept/tried");
    actor_do(other, "0", "unlock kept/tried");
    end_kept();
}

/* A lease that is asked back again and again, unused, is not kept the next times. */
static void test_lease_is_not_kept_when_asked_back_too_soon(void **state)
{
    int kept = 0;

    (void)state;
    begin_kept("kept/back-off", LONG_LEASE, LONG_LEASE);
    for (int i = 0; i < 40; i++) {
        lock_and_unlock(keeper, "kept/back-off");
        kept += is_locked(&mutex);
        lock_and_unlock(other, "kept/back-off");
    }
    print_message("# kept %d of 40 times\n", kept);
    assert_in_range(kept, 1, 10);
    end_kept();
}

/* ---- ends -------------------------------------------------------------------------------- */

/* After the linger time the server has the mutex back. */
static void test_lease_goes_back_when_the_linger_time_is_over(void **state)
{
    (void)state;
    make_handed(&mutex, "kept/linger", &kinds[0], LONG_LEASE, 50);
    assert_result(dmutex_lock(&mutex), 0);
    assert_result(dmutex_unlock(&mutex), 0);
    assert_true(is_locked(&mutex));
    promise_within(AT_ONCE);
    wait_until(!is_locked(&mutex));
    assert_kept();
}

/* exit() gives kept leases back. */
static void test_exit_gives_a_kept_lease_back(void **state)
{
    (void)state;
    begin_kept("kept/exit", LONG_LEASE, LONG_LEASE);
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
    make_handed(&mutex, "kept/destroy", &kinds[0], LONG_LEASE, LONG_LEASE);
    make_normal(&same, "kept/destroy", LONG_LEASE);
    assert_result(dmutex_lock(&mutex), 0);
    assert_result(dmutex_unlock(&mutex), 0);
    assert_true(is_locked(&same));
    assert_result(dmutex_destroy(&mutex), 0);
    assert_false(is_locked(&same));
}

/* A killed keeper costs the others the rest of a lease, and is no death: nobody was inside. */
static void test_kill_of_a_keeper_is_no_death(void **state)
{
    struct actor *heir = actor_start(the_server);

    (void)state;
    begin_kept("kept/kill", SHORT_LEASE, LONG_LEASE);
    actor_do(heir, "0", "init kept/kill robust lease=%d", SHORT_LEASE);
    actor_kill(keeper);
    promise_within(AT_ONCE);
    actor_do(heir, "0", "lock kept/kill");
    assert_kept();
    actor_do(heir, "0", "unlock kept/kill");
    actor_end(heir);
    end_kept();
}

/* A kept lease that is broken by force is nobody's loss; the next lock is a fresh one. */
static void test_force_on_a_kept_lease_is_silent(void **state)
{
    (void)state;
    begin_kept("kept/force", LONG_LEASE, LONG_LEASE);
    assert_result(dmutex_forceunlock_np(&mutex), 0);
    actor_do(other, "0", "lock kept/force");
    actor_do(other, "0", "unlock kept/force");
    lock_and_unlock(keeper, "kept/force");
    assert_int_equal(actor_losses(keeper), 0);
    end_kept();
}

/* A keeper that was stopped for longer than its lease does not believe in the lease afterwards. */
static void test_keeper_asks_anew_when_the_lease_ended_in_a_pause(void **state)
{
    uint64_t before, after;

    (void)state;
    begin_kept("kept/stop", SHORT_LEASE, LONG_LEASE);
    before = (uint64_t)actor_value(other, "islocked kept/stop");
    assert_int_equal(before, 1);
    actor_do(keeper, "0", "lock kept/stop");
    before = (uint64_t)actor_value(keeper, "token kept/stop") >> 12;
    actor_do(keeper, "0", "unlock kept/stop");
    actor_stop(keeper);
    promise_within(AT_ONCE);
    actor_do(other, "0", "lock kept/stop");
    assert_kept();
    actor_cont(keeper);
    actor_do(keeper, "EBUSY", "trylock kept/stop");
    actor_do(other, "0", "unlock kept/stop");
    actor_do(keeper, "0", "lock kept/stop");
    after = (uint64_t)actor_value(keeper, "token kept/stop") >> 12;
    assert_true(after > before);
    actor_do(keeper, "0", "unlock kept/stop");
    assert_int_equal(actor_losses(keeper), 0);
    end_kept();
}

/* The server's view: locked, by nobody in particular. */
static void test_info_shows_a_kept_lease_as_locked_without_a_hold(void **state)
{
    dmutex_info_t info = { .struct_size = sizeof info };

    (void)state;
    begin_kept("kept/info", LONG_LEASE, LONG_LEASE);
    assert_result(dmutex_getinfo_np(&mutex, &info), 0);
    assert_int_equal(info.locked, 1);
    assert_int_equal(info.hold_count, 0);
    assert_int_equal(actor_value(keeper, "holdcount kept/info"), 0);
    actor_do(keeper, "EPERM", "unlock kept/info");
    end_kept();
}

/* ---- conditions -------------------------------------------------------------------------- */

/* A wait with a kept mutex gives the mutex to the server; a signal by a process that keeps it wakes the waiter. */
static void test_signal_wakes_when_the_mutex_is_kept(void **state)
{
    (void)state;
    begin_kept("kept/cond", LONG_LEASE, LONG_LEASE);
    for (int i = 0; i < 5; i++) {
        promise_within(AT_ONCE);
        actor_do(other, "0", "lock kept/cond");
        actor_send(other, "wait kept/cond kept/cond");
        wait_until(side_int(the_server->side, "ZCARD %s", key_of("cond", "kept/cond")) == 1);
        lock_and_unlock(keeper, "kept/cond");
        lock_and_unlock(keeper, "kept/cond");
        actor_do(keeper, "0", "signal kept/cond");
        actor_expect(other, "0");
        assert_kept();
        actor_do(other, "0", "unlock kept/cond");
    }
    end_kept();
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
        cmocka_unit_test(test_lease_is_not_kept_when_asked_back_too_soon),
        cmocka_unit_test(test_lease_goes_back_when_the_linger_time_is_over),
        cmocka_unit_test(test_exit_gives_a_kept_lease_back),
        cmocka_unit_test(test_destroy_gives_a_kept_lease_back),
        cmocka_unit_test(test_kill_of_a_keeper_is_no_death),
        cmocka_unit_test(test_force_on_a_kept_lease_is_silent),
        cmocka_unit_test(test_keeper_asks_anew_when_the_lease_ended_in_a_pause),
        cmocka_unit_test(test_info_shows_a_kept_lease_as_locked_without_a_hold),
        cmocka_unit_test(test_signal_wakes_when_the_mutex_is_kept),
        cmocka_unit_test(test_nothing_is_left),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, test_group_setup, test_group_teardown);
}
