/* SPDX-License-Identifier: BSD-2-Clause */
/* dmutex_stats_np(): each counter, compared with how often the events have happened. */
#include <pthread.h>
#include <semaphore.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <dmutex/testing.h>

#include "../lib/testlib.h"

#define LONG_LEASE 60000 /* no poll and no renewal within the time of a test */
#define SHORT_LEASE 900
#define THREADS 5
#define PAIRS 100

static dmutex_t mutex;
static dmutex_stats_t before, after;
static struct errand errands[THREADS];

static dmutex_stats_t read_stats(void)
{
    dmutex_stats_t stats = { .struct_size = sizeof stats };

    assert_result(dmutex_stats_np(&stats), 0);
    return stats;
}

static void begin(void)
{
    before = read_stats();
}

static void end(void)
{
    after = read_stats();
}

/* How far a counter has come since begin(). */
#define GREW(field) ((int)(after.field - before.field))

static uint64_t sum_of(const uint64_t *counts)
{
    uint64_t sum = 0;

    for (int i = 0; i < DMUTEX_STATS_BUCKETS_NP; i++)
        sum += counts[i];
    return sum;
}

static int timed_locks(void)
{
    return (int)(sum_of(after.lock_times) - sum_of(before.lock_times));
}

static int timed_holds(void)
{
    return (int)(sum_of(after.hold_times) - sum_of(before.hold_times));
}

/* The counters of rare events. */
static void assert_nothing_else(void)
{
    assert_int_equal(GREW(timeouts), 0);
    assert_int_equal(GREW(losses), 0);
    assert_int_equal(GREW(owner_deaths), 0);
    assert_int_equal(GREW(reconnects), 0);
}

/* The inbox of this process is open, and the server knows all scripts of a wait. */
static void open_inbox(void)
{
    struct actor *holder = actor_start(the_server);
    dmutex_t busy;

    make_normal(&busy, "stats/busy", LONG_LEASE);
    actor_do(holder, "0", "init stats/busy fair lease=%d", LONG_LEASE);
    actor_do(holder, "0", "lock stats/busy");
    assert_int_equal(timedlock_soon(&busy), ETIMEDOUT);
    actor_do(holder, "0", "unlock stats/busy");
    assert_result(lock_and_unlock(&busy), 0);
    actor_end(holder);
}

/* ---- acquisitions ------------------------------------------------------------------------ */

/* An uncontended pair is two commands and one hold of the server, and has a time to lock and a time of the hold. */
static void test_stats_count_two_commands_and_one_hold_for_a_pair(void **state)
{
    (void)state;
    make_normal(&mutex, "stats/pair", LONG_LEASE);
    assert_result(lock_and_unlock(&mutex), 0);
    begin();
    for (int i = 0; i < PAIRS; i++)
        assert_result(lock_and_unlock(&mutex), 0);
    end();
    assert_int_equal(GREW(acquired_from_server), PAIRS);
    assert_int_equal(GREW(acquired_in_process), 0);
    assert_int_equal(GREW(commands), 2 * PAIRS);
    assert_int_equal(GREW(waits), 0);
    assert_int_equal(GREW(handoffs), 0);
    assert_int_equal(GREW(messages), 0);
    assert_int_equal(timed_locks(), PAIRS);
    assert_int_equal(timed_holds(), PAIRS);
    assert_true(after.lock_ns > before.lock_ns);
    assert_nothing_else();
}

/* Levels of a recursive mutex and failed tries are no acquisitions. */
static void test_stats_count_nothing_for_levels_and_failed_tries(void **state)
{
    (void)state;
    make_recursive(&mutex, "stats/levels", LONG_LEASE);
    begin();
    assert_result(dmutex_lock(&mutex), 0);
    assert_result(dmutex_lock(&mutex), 0);
    assert_int_equal(in_thread(dmutex_trylock, &mutex), EBUSY);
    assert_result(dmutex_unlock(&mutex), 0);
    assert_result(dmutex_unlock(&mutex), 0);
    end();
    assert_int_equal(GREW(acquired_from_server), 1);
    assert_int_equal(timed_locks(), 1);
    assert_int_equal(timed_holds(), 1);
    assert_nothing_else();
}

/* A thread waits for another process: one message brings the mutex. */
static void test_stats_count_a_wait_and_a_message_when_another_process_held(void **state)
{
    struct actor *holder = actor_start(the_server);

    (void)state;
    open_inbox();
    make_normal(&mutex, "stats/wait", LONG_LEASE);
    actor_do(holder, "0", "init stats/wait fair lease=%d", LONG_LEASE);
    actor_do(holder, "0", "lock stats/wait");
    begin();
    errand_begin(&errands[0], lock_and_unlock, &mutex);
    wait_until(waiters_of(&mutex) == 1);
    errand_await_sleep(&errands[0]); /* a grant that overtakes the answer is no wait */
    actor_do(holder, "0", "unlock stats/wait");
    assert_int_equal(errand_join(&errands[0]), 0);
    end();
    assert_int_equal(GREW(acquired_from_server), 1);
    assert_int_equal(GREW(waits), 1);
    assert_int_equal(GREW(messages), 1);
    assert_int_equal(timed_locks(), 1);
    assert_int_equal(timed_holds(), 1);
    assert_nothing_else();
    actor_end(holder);
}

/* A deadline that ends the call is a timeout, and no wait; the time of the call counts. */
static void test_stats_count_a_timeout_when_the_deadline_ends_a_call(void **state)
{
    struct actor *holder = actor_start(the_server);

    (void)state;
    open_inbox();
    make_normal(&mutex, "stats/timeout", LONG_LEASE);
    actor_do(holder, "0", "init stats/timeout fair lease=%d", LONG_LEASE);
    actor_do(holder, "0", "lock stats/timeout");
    begin();
    assert_int_equal(timedlock_soon(&mutex), ETIMEDOUT);
    assert_int_equal(clocklock_soon(&mutex), ETIMEDOUT);
    end();
    assert_int_equal(GREW(timeouts), 2);
    assert_int_equal(GREW(waits), 0);
    assert_int_equal(GREW(acquired_from_server), 0);
    assert_int_equal(timed_locks(), 2);
    assert_true(GREW(lock_ns) >= 2 * 20 * 1000 * 1000);
    actor_end(holder);
}

/* Relocks of a kept lease need neither the server nor the state lock, and are counted by the number of the hold. */
static void test_stats_count_holds_in_the_process_when_the_lease_is_kept(void **state)
{
    dmutex_t again;

    (void)state;
    open_inbox();
    make_handed(&mutex, "stats/kept", &kinds[0], LONG_LEASE, LONG_LEASE);
    begin();
    for (int i = 0; i < PAIRS; i++)
        assert_result(lock_and_unlock(&mutex), 0);
    make_handed(&again, "stats/kept", &kinds[0], LONG_LEASE, LONG_LEASE);
    assert_result(lock_and_unlock(&again), 0); /* the first lock of an object takes the state lock */
    end();
    assert_true(is_locked(&mutex));
    assert_int_equal(GREW(acquired_from_server), 1);
    assert_int_equal(GREW(acquired_in_process), PAIRS);
    assert_int_equal(GREW(handoffs), 0);
    assert_int_equal(GREW(waits), 0);
    assert_true(timed_locks() < PAIRS); /* most by the fast path */
    assert_result(dmutex_destroy(&mutex), 0);
    end();
    assert_false(is_locked(&mutex));
    assert_int_equal(GREW(acquired_in_process), PAIRS); /* the tenure is over */
    assert_nothing_else();
}

/* ---- lines ------------------------------------------------------------------------------- */

/* This process's threads line up after this thread, and each gets its turn. */
static void hand_to_threads(void)
{
    assert_result(dmutex_lock(&mutex), 0);
    begin();
    for (int i = 0; i < THREADS; i++) {
        errand_begin(&errands[i], lock_and_unlock, &mutex);
        errand_await_sleep(&errands[i]);
    }
    assert_result(dmutex_unlock(&mutex), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(errand_join(&errands[i]), 0);
    end();
    assert_int_equal(GREW(acquired_from_server), 0);
    assert_int_equal(GREW(acquired_in_process), THREADS);
    assert_int_equal(GREW(handoffs), THREADS);
    assert_int_equal(GREW(waits), THREADS);
    assert_int_equal(timed_locks(), THREADS);
    assert_nothing_else();
}

/* A robust mutex is passed from seat to seat, and each hold begins and ends by the state lock. */
static void test_stats_count_a_handoff_for_each_seat_when_robust(void **state)
{
    (void)state;
    make_handed(&mutex, "stats/passed", &kinds[4], LONG_LEASE, 0);
    hand_to_threads();
    assert_int_equal(timed_holds(), 1 + THREADS);
}

/* Any other mutex is left open for the first seat, which is woken. */
static void test_stats_count_a_handoff_for_each_seat_when_woken(void **state)
{
    (void)state;
    make_handed(&mutex, "stats/woken", &kinds[0], LONG_LEASE, 0);
    hand_to_threads();
}

/* ---- rare events ------------------------------------------------------------------------- */

/* A hold that is broken by force is a loss, counted before the unlock says so. */
static void test_stats_count_a_loss_when_the_hold_is_broken(void **state)
{
    struct actor *breaker = actor_start(the_server);

    (void)state;
    make_normal(&mutex, "stats/broken", LONG_LEASE);
    assert_result(dmutex_lock(&mutex), 0);
    begin();
    actor_do(breaker, "0", "forceunlock stats/broken");
    assert_result(dmutex_unlock(&mutex), EPERM);
    end();
    assert_int_equal(GREW(losses), 1);
    actor_end(breaker);
}

static sem_t is_told, may_go_on;

static void wait_in_callback(const char *name, uint64_t token, void *user)
{
    (void)name;
    (void)token;
    (void)user;
    sem_post(&is_told);
    sem_wait(&may_go_on);
}

/* The core sees a loss again and again until the callback has returned. */
static void test_stats_count_a_loss_once_when_the_callback_takes_long(void **state)
{
    struct actor *breaker = actor_start(the_server);
    int64_t left_ms;

    (void)state;
    open_inbox();
    assert_int_equal(sem_init(&is_told, 0, 0) | sem_init(&may_go_on, 0, 0), 0);
    assert_result(dmutex_setlost_np(wait_in_callback, NULL), 0);
    make_normal(&mutex, "stats/told", LONG_LEASE);
    assert_result(dmutex_lock(&mutex), 0);
    begin();
    actor_do(breaker, "0", "forceunlock stats/told");
    sem_wait(&is_told);
    assert_result(dmutex_remaining_np(&mutex, &left_ms), 0);
    assert_int_equal(left_ms, 0);
    end();
    sem_post(&may_go_on);
    assert_int_equal(GREW(losses), 1);
    assert_result(dmutex_unlock(&mutex), EPERM);
    assert_result(dmutex_setlost_np(NULL, NULL), 0);
    actor_end(breaker);
}

/* Each EOWNERDEAD is a death. */
static void test_stats_count_a_death_when_an_owner_was_killed(void **state)
{
    struct actor *owner = actor_start(the_server);

    (void)state;
    make_robust(&mutex, "stats/death", SHORT_LEASE);
    actor_do(owner, "0", "init stats/death robust lease=%d", SHORT_LEASE);
    actor_do(owner, "0", "lock stats/death");
    begin();
    actor_kill(owner);
    assert_result(dmutex_lock(&mutex), EOWNERDEAD);
    assert_result(dmutex_consistent(&mutex), 0);
    assert_result(dmutex_unlock(&mutex), 0);
    end();
    assert_int_equal(GREW(owner_deaths), 1);
    assert_int_equal(GREW(acquired_from_server), 1);
    assert_int_equal(GREW(waits), 1);
    assert_int_equal(timed_locks(), 1);
    actor_end(owner);
}

/* Each connection that the server has closed is opened again once. */
static void test_stats_count_a_reconnect_for_each_connection(void **state)
{
    (void)state;
    open_inbox();
    make_normal(&mutex, "stats/reconnect", LONG_LEASE);
    begin();
    side_int(the_server->side, "CLIENT KILL TYPE normal SKIPME yes");
    assert_result(dmutex_lock(&mutex), 0);
    end();
    assert_int_equal(GREW(reconnects), 1);
    side_int(the_server->side, "CLIENT KILL TYPE pubsub");
    wait_until(read_stats().reconnects == before.reconnects + 2);
    assert_result(dmutex_unlock(&mutex), 0);
}

/* The mutex that comes back from a wait on a condition is the server's, and is no wait for a mutex. */
static void test_stats_count_an_acquisition_and_no_wait_when_a_condition_returns(void **state)
{
    struct timespec now;
    dcond_t cond;

    (void)state;
    open_inbox();
    make_normal(&mutex, "stats/cond", LONG_LEASE);
    assert_result(dcond_init_np(&cond, "stats/condition", NULL), 0);
    clock_gettime(CLOCK_REALTIME, &now);
    begin();
    assert_result(dmutex_lock(&mutex), 0);
    assert_result(dcond_timedwait(&cond, &mutex, &now), ETIMEDOUT);
    assert_result(dmutex_unlock(&mutex), 0);
    end();
    assert_int_equal(GREW(acquired_from_server), 2);
    assert_int_equal(GREW(waits), 0);
    assert_int_equal(GREW(timeouts), 0);
    assert_int_equal(timed_locks(), 1);
    assert_int_equal(timed_holds(), 2);
}

/* ---- processes --------------------------------------------------------------------------- */

/* The child's exit status: 0 if it starts with zeros, and counts only its own pair. */
static int count_in_child(void)
{
    dmutex_stats_t zeros = { .struct_size = sizeof zeros }, own = zeros;

    if (dmutex_stats_np(&own) || memcmp(&own, &zeros, sizeof zeros) != 0)
        return 1;
    if (lock_and_unlock(&mutex) || dmutex_stats_np(&own))
        return 2;
    return own.acquired_from_server == 1 && own.commands == 2 && own.reconnects == 0 && sum_of(own.lock_times) == 1 ? 0
                                                                                                                    : 3;
}

/* A child of fork() has counted nothing, whatever its parent has. */
static void test_stats_begin_with_zeros_in_a_forked_child(void **state)
{
    pid_t child;
    int status;

    (void)state;
    if (IS_THREAD_SANITIZED)
        return; /* the forked child starts threads */
    make_normal(&mutex, "stats/child", LONG_LEASE);
    assert_result(lock_and_unlock(&mutex), 0);
    begin();
    child = keeper_fork();
    if (child == 0)
        _exit(count_in_child());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    end();
    assert_int_equal(GREW(acquired_from_server), 0);
    assert_int_equal(GREW(commands), 0);
}

/* A process that goes to another server keeps what it has counted; its child has none of it. */
static void test_stats_stay_when_the_process_changes_the_server(void **state)
{
    dmutex_test_server_t *server;
    pid_t child;
    int status;

    (void)state;
    test_put_server_into_path();
    begin();
    assert_int_equal(dmutex_test_server_start(&server), 0);
    make_normal(&mutex, "stats/switched", LONG_LEASE);
    assert_result(lock_and_unlock(&mutex), 0);
    end();
    assert_int_equal(GREW(acquired_from_server), 1);
    assert_int_equal(GREW(commands), 2 * 2); /* the new server knows neither script, and is sent the text */
    assert_int_equal(dmutex_test_server_stop(server), 0);
    end();
    assert_int_equal(GREW(acquired_from_server), 1);
    assert_int_equal(GREW(commands), 2 * 2);
    assert_int_equal(GREW(reconnects), 0);
    child = keeper_fork();
    if (child == 0)
        _exit(read_stats().acquired_from_server != 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* A structure of another size may be of another version: nothing is written. */
static void test_stats_fail_when_the_size_is_another(void **state)
{
    dmutex_stats_t stats;

    (void)state;
    memset(&stats, 7, sizeof stats);
    assert_result(dmutex_stats_np(NULL), EINVAL);
    stats.struct_size = sizeof stats - 8;
    assert_result(dmutex_stats_np(&stats), EINVAL);
    stats.struct_size = sizeof stats + 8;
    assert_result(dmutex_stats_np(&stats), EINVAL);
    assert_int_equal(stats.struct_size, sizeof stats + 8);
    assert_int_equal(stats.reserved, 0x07070707);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stats_count_two_commands_and_one_hold_for_a_pair),
        cmocka_unit_test(test_stats_count_nothing_for_levels_and_failed_tries),
        cmocka_unit_test(test_stats_count_a_wait_and_a_message_when_another_process_held),
        cmocka_unit_test(test_stats_count_a_timeout_when_the_deadline_ends_a_call),
        cmocka_unit_test(test_stats_count_holds_in_the_process_when_the_lease_is_kept),
        cmocka_unit_test(test_stats_count_a_handoff_for_each_seat_when_robust),
        cmocka_unit_test(test_stats_count_a_handoff_for_each_seat_when_woken),
        cmocka_unit_test(test_stats_count_a_loss_when_the_hold_is_broken),
        cmocka_unit_test(test_stats_count_a_loss_once_when_the_callback_takes_long),
        cmocka_unit_test(test_stats_count_a_death_when_an_owner_was_killed),
        cmocka_unit_test(test_stats_count_a_reconnect_for_each_connection),
        cmocka_unit_test(test_stats_count_an_acquisition_and_no_wait_when_a_condition_returns),
        cmocka_unit_test(test_stats_begin_with_zeros_in_a_forked_child),
        cmocka_unit_test(test_stats_fail_when_the_size_is_another),
        cmocka_unit_test(test_nothing_is_left),
        cmocka_unit_test(test_stats_stay_when_the_process_changes_the_server),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, test_group_setup, test_group_teardown);
}
