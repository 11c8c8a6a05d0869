/* SPDX-License-Identifier: BSD-2-Clause */
/* The threads of one process hand a mutex on without the server. */
#include <stdio.h>

#include "warm.h"

#define LONG_LEASE 60000 /* no poll and no renewal within the time of a test */
#define AT_ONCE 8000
#define THREADS 8
#define PER_TENURE 4096 /* holds by one token of the server */

static dmutex_t mutex;
static struct errand errands[THREADS];

/* The file in which actors count under a mutex. */
static const char *count_file(void)
{
    static char file[64];

    snprintf(file, sizeof file, "%s/lines", the_server->folder);
    actor_begin_count(file);
    return file;
}

/* ---- cost -------------------------------------------------------------------------------- */

/* Eight threads of one process, and nobody else.  Returns the commands. */
static int64_t cost_of_threads(const char *words, int rounds)
{
    struct actor *actor = start_warm("line/count", LONG_LEASE, words);
    const char *file = count_file();
    int64_t before;

    actor_do(actor, "0", "lock line/count");
    actor_do(actor, "0", "unlock line/count");
    before = client_commands();
    actor_do(actor, "0", "count %s %d line/count %d", file, rounds, THREADS);
    assert_int_equal(actor_counted(file), THREADS * rounds);
    before = client_commands() - before;
    print_message("# %lld commands for %d acquisitions\n", (long long)before, THREADS * rounds);
    actor_end(actor);
    return before;
}

/* Of each 4096 acquisitions of a kept mutex the server hears of one lock, one mark, and one unlock. */
static void test_threads_need_three_commands_for_a_tenure_when_kept(void **state)
{
    int rounds = repetitions(4000);

    (void)state;
    assert_within(cost_of_threads("linger=60000", rounds), 3, 3 * (THREADS * rounds / PER_TENURE + 2));
}

/* A thread that would wait for another thread of its process sits down without a command, and leaves without one. */
static void test_timedlock_asks_nobody_when_a_thread_of_the_process_holds(void **state)
{
    int64_t before;

    (void)state;
    make_handed(&mutex, "line/timed", &kinds[0], LONG_LEASE, 0);
    assert_result(dmutex_lock(&mutex), 0);
    before = client_commands();
    assert_int_equal(in_thread(timedlock_soon, &mutex), ETIMEDOUT);
    assert_int_equal(in_thread(clocklock_soon, &mutex), ETIMEDOUT);
    assert_int_equal(in_thread(dmutex_trylock, &mutex), EBUSY);
    assert_int_equal(client_commands(), before);
    assert_result(dmutex_unlock(&mutex), 0);
    assert_false(is_locked(&mutex));
}

/* A fair mutex goes to the server for each acquisition. */
static void test_fair_threads_ask_the_server(void **state)
{
    struct actor *actor = start_warm("line/fair", LONG_LEASE, "fair");
    const char *file = count_file();
    int64_t before = client_commands();

    (void)state;
    actor_do(actor, "0", "count %s 100 line/fair %d", file, THREADS);
    assert_true(client_commands() - before >= 2 * 100 * THREADS);
    actor_end(actor);
}

/* ---- order ------------------------------------------------------------------------------- */

static void begin_waiting(int count)
{
    for (int i = 0; i < count; i++) {
        errand_begin(&errands[i], lock_and_unlock, &mutex);
        errand_await_sleep(&errands[i]);
    }
}

/*
 * All seats get their turn after one unlock, for one release, and one mark unless all is over before the loop thread
 * comes by; nobody else waits.
 */
static void test_all_seats_get_through_after_an_unlock(void **state)
{
    int64_t before;

    (void)state;
    for (int is_robust = 0; is_robust < 2; is_robust++) {
        make_handed(&mutex, is_robust ? "line/all-robust" : "line/all", &kinds[4 * is_robust], LONG_LEASE, 0);
        assert_result(dmutex_lock(&mutex), 0);
        begin_waiting(THREADS);
        assert_int_equal(waiters_of(&mutex), THREADS); /* of this process; the server knows of none */
        before = client_commands();
        assert_result(dmutex_unlock(&mutex), 0);
        for (int i = 0; i < THREADS; i++)
            assert_result(errand_join(&errands[i]), 0);
        assert_within(client_commands() - before, 1, 2);
        assert_false(is_locked(&mutex));
    }
}

/* The asker's deadline passes the place in the server's queue on, with its rank, and costs no command. */
static void test_the_place_in_the_queue_stays_when_the_asker_times_out(void **state)
{
    struct actor *owner = start_warm("line/asker", LONG_LEASE, ""), *later = start_warm("line/asker", LONG_LEASE, "");
    int64_t before;

    (void)state;
    make_handed(&mutex, "line/asker", &kinds[0], LONG_LEASE, 0);
    actor_do(owner, "0", "lock line/asker");
    errand_begin(&errands[0], timedlock_soon, &mutex);
    wait_until(waiters_of(&mutex) == 1);
    errand_begin(&errands[1], lock_and_unlock, &mutex);
    actor_send(later, "lock line/asker");
    wait_until(waiters_of(&mutex) == 2);
    before = client_commands();
    assert_int_equal(errand_join(&errands[0]), ETIMEDOUT);
    if (errand_is_over(&errands[1]))
        fail_msg("the second thread has the mutex of the owner");
    assert_int_equal(waiters_of(&mutex), 2);
    print_message("# %lld commands\n", (long long)(client_commands() - before));
    actor_do(owner, "0", "unlock line/asker");
    assert_result(errand_join(&errands[1]), 0);
    actor_expect(later, "0");
    actor_end(owner);
    actor_end(later);
}

/* A token never falls, whether the hold comes from the server or from a thread of the process. */
static void test_tokens_rise_with_each_hold(void **state)
{
    struct actor *actors[] = { start_warm("line/token", LONG_LEASE, ""),
                               start_warm("line/token", LONG_LEASE, "linger=60000") };
    long long before = 0, token;

    (void)state;
    for (int i = 0; i < 200; i++) {
        struct actor *actor = actors[i / 3 % 2];

        actor_do(actor, "0", "lock line/token");
        token = actor_value(actor, "token line/token");
        assert_true(token > before);
        before = token;
        actor_do(actor, "0", "unlock line/token");
    }
    actor_end(actors[0]);
    actor_end(actors[1]);
}

static dcond_t cond = DCOND_INITIALIZER("line/c");
static bool is_waiting, is_told;

static int wait_to_be_told(dmutex_t *at)
{
    int result = dmutex_lock(at);

    is_waiting = true;
    while (!result && !is_told)
        result = dcond_wait(&cond, at);
    return result ? result : dmutex_unlock(at);
}

static bool is_someone_waiting(void)
{
    bool is_seen;

    assert_result(dmutex_lock(&mutex), 0);
    is_seen = is_waiting;
    assert_result(dmutex_unlock(&mutex), 0);
    return is_seen;
}

/* A thread gives a hold up for a condition that another thread of the process has asked the server for. */
static void test_a_wait_gives_up_a_hold_that_was_handed_on(void **state)
{
    (void)state;
    make_handed(&mutex, "line/m", &kinds[0], LONG_LEASE, LONG_LEASE);
    for (int i = 0; i < 20; i++) {
        is_waiting = is_told = false;
        assert_result(dmutex_lock(&mutex), 0); /* this thread asks the server */
        errand_begin(&errands[0], wait_to_be_told, &mutex);
        errand_await_sleep(&errands[0]);
        assert_result(dmutex_unlock(&mutex), 0);
        wait_until(is_someone_waiting());
        assert_result(dmutex_lock(&mutex), 0);
        is_told = true;
        assert_result(dmutex_unlock(&mutex), 0);
        assert_result(dcond_signal(&cond), 0);
        assert_result(errand_join(&errands[0]), 0);
    }
    assert_result(dmutex_destroy(&mutex), 0);
}

/* ---- other processes --------------------------------------------------------------------- */

/* A process whose threads hand on all the time lets another process in. */
static void test_another_process_gets_in_while_threads_hand_on(void **state)
{
    struct actor *crowd = start_warm("line/bound", LONG_LEASE, ""), *other = start_warm("line/bound", LONG_LEASE, "");
    const char *file = count_file();

    (void)state;
    actor_send(crowd, "count %s %d line/bound %d", file, 1000000, THREADS);
    for (int i = 0; i < 20; i++) {
        promise_within(AT_ONCE);
        actor_do(other, "0", "lock line/bound");
        actor_do(other, "0", "unlock line/bound");
        assert_kept();
    }
    actor_kill(crowd);
    make_handed(&mutex, "line/bound", &kinds[0], LONG_LEASE, 0);
    assert_result(dmutex_forceunlock_np(&mutex), 0);
    actor_end(crowd);
    actor_end(other);
}

/* ---- ends -------------------------------------------------------------------------------- */

/* A thread that ends with the mutex leaves a death to the next thread of its process. */
static void test_a_seat_learns_of_a_death_in_its_process(void **state)
{
    (void)state;
    make_handed(&mutex, "line/death", &kinds[4], LONG_LEASE, 0);
    for (int way = 0; way < 2; way++) {
        assert_int_equal(in_thread(dmutex_lock, &mutex), 0); /* and the thread ends */
        assert_int_equal(dmutex_lock(&mutex), EOWNERDEAD);
        assert_result(dmutex_consistent(&mutex), 0);
        assert_result(dmutex_unlock(&mutex), 0);
    }
}

/* A thread that has entered without the server, and ends inside, leaves the mutex to the next. */
static void test_the_mutex_goes_on_when_a_thread_ends_inside(void **state)
{
    (void)state;
    make_handed(&mutex, "line/ends", &kinds[0], LONG_LEASE, LONG_LEASE);
    for (int i = 0; i < 3; i++)
        assert_result(lock_and_unlock(&mutex), 0);
    assert_int_equal(in_thread(dmutex_lock, &mutex), 0);
    promise_within(AT_ONCE);
    assert_result(dmutex_lock(&mutex), 0);
    assert_kept();
    assert_result(dmutex_unlock(&mutex), 0);
    assert_result(dmutex_destroy(&mutex), 0);
}

/* All seats hear that the mutex is not recoverable. */
static void test_all_seats_fail_when_the_mutex_is_not_recoverable(void **state)
{
    (void)state;
    make_handed(&mutex, "line/broken", &kinds[4], LONG_LEASE, 0);
    assert_int_equal(in_thread(dmutex_lock, &mutex), 0);
    assert_int_equal(dmutex_lock(&mutex), EOWNERDEAD);
    begin_waiting(THREADS);
    assert_result(dmutex_unlock(&mutex), 0); /* without dmutex_consistent() */
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(errand_join(&errands[i]), ENOTRECOVERABLE);
    assert_result(dmutex_destroy(&mutex), 0);
}

/* A hold that is lost inside is reported to its thread; the seats ask again. */
static void test_seats_ask_again_when_the_hold_is_broken(void **state)
{
    (void)state;
    make_handed(&mutex, "line/force", &kinds[0], LONG_LEASE, 0);
    assert_result(dmutex_lock(&mutex), 0);
    begin_waiting(2);
    promise_within(AT_ONCE);
    assert_result(dmutex_forceunlock_np(&mutex), 0);
    assert_result(errand_join(&errands[0]), 0);
    assert_result(errand_join(&errands[1]), 0);
    assert_kept();
    assert_int_equal(dmutex_unlock(&mutex), EPERM);
    wait_until(!is_locked(&mutex));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads_need_three_commands_for_a_tenure_when_kept),
        cmocka_unit_test(test_timedlock_asks_nobody_when_a_thread_of_the_process_holds),
        cmocka_unit_test(test_fair_threads_ask_the_server),
        cmocka_unit_test(test_all_seats_get_through_after_an_unlock),
        cmocka_unit_test(test_the_place_in_the_queue_stays_when_the_asker_times_out),
        cmocka_unit_test(test_tokens_rise_with_each_hold),
        cmocka_unit_test(test_a_wait_gives_up_a_hold_that_was_handed_on),
        cmocka_unit_test(test_another_process_gets_in_while_threads_hand_on),
        cmocka_unit_test(test_a_seat_learns_of_a_death_in_its_process),
        cmocka_unit_test(test_the_mutex_goes_on_when_a_thread_ends_inside),
        cmocka_unit_test(test_all_seats_fail_when_the_mutex_is_not_recoverable),
        cmocka_unit_test(test_seats_ask_again_when_the_hold_is_broken),
        cmocka_unit_test(test_nothing_is_left),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, test_group_setup, test_group_teardown);
}
