/* SPDX-License-Identifier: BSD-2-Clause */
/* Seats of a line: which threads sit, in which order they enter, and the way of the asker's claim. */
#include <stdio.h>
#include <unistd.h>

#include "kept.h"
#include "line_state.h"
#include "stops.h"
#include "warm.h"

#define LONG_LEASE 60000 /* no poll and no renewal within the time of a test */
#define AT_ONCE 8000
#define THREADS 6
#define WHILE 400 /* ms of a timed lock, during which others sit down */

static const char *name;
static dmutex_t mutex;
static struct errand errands[THREADS];

/* The threads in the order in which they were inside; written under the mutex. */
static pid_t entered[THREADS];
static int entries;

static void begin(const char *word, const struct kind *kind, unsigned linger_ms)
{
    name = word;
    entries = 0;
    make_handed(&mutex, name, kind, LONG_LEASE, linger_ms);
}

static int enter_and_leave(dmutex_t *at)
{
    int result = dmutex_lock(at);

    if (result)
        return result;
    entered[entries++ % THREADS] = gettid();
    return dmutex_unlock(at);
}

static int timedlock_for(dmutex_t *at, int ms)
{
    struct timespec until = wait_time_in_ms(CLOCK_MONOTONIC, ms);
    int result = dmutex_clocklock(at, CLOCK_MONOTONIC, &until);

    return result ? result : dmutex_unlock(at);
}

static int timedlock_a_while(dmutex_t *at)
{
    return timedlock_for(at, WHILE);
}

static int timedlock_longer(dmutex_t *at)
{
    return timedlock_for(at, 5 * WHILE);
}

/* Makes `count` threads sit down, one after the other. */
static void sit(int count, mutex_call call)
{
    int before = seats_of(name);

    for (int i = 0; i < count; i++) {
        errand_begin(&errands[i], call, &mutex);
        wait_until(seats_of(name) == before + i + 1);
    }
}

static void assert_free(void)
{
    wait_until(!is_locked(&mutex));
    assert_int_equal(waiters_of(&mutex), 0);
    assert_int_equal(seats_of(name), 0);
}

/* A process that holds the name. */
static struct actor *start_owner(void)
{
    struct actor *owner = start_warm(name, LONG_LEASE, "");

    actor_do(owner, "0", "lock %s", name);
    return owner;
}

static void end_owner(struct actor *owner)
{
    actor_do(owner, "0", "unlock %s", name);
    actor_end(owner);
}

/* The thread of errand `i` asks, and waits in the server's queue. */
static void queue_asker(int i, mutex_call call)
{
    errand_begin(&errands[i], call, &mutex);
    wait_until(line_state_of(name).has_claim && line_state_of(name).phase == DM_QUEUED);
}

/* ---- order ------------------------------------------------------------------------------- */

/* First come, first served, while no newcomer competes. */
static void test_seats_enter_in_the_order_of_their_coming(void **state)
{
    (void)state;
    for (int is_robust = 0; is_robust < 2; is_robust++) {
        begin(is_robust ? "seats/order-robust" : "seats/order", &kinds[4 * is_robust], 0);
        assert_result(dmutex_lock(&mutex), 0);
        sit(THREADS, enter_and_leave);
        assert_result(dmutex_unlock(&mutex), 0);
        for (int i = 0; i < THREADS; i++)
            assert_result(errand_join(&errands[i]), 0);
        for (int i = 0; i < THREADS; i++)
            assert_int_equal(entered[i], errands[i].tid);
        assert_free();
    }
}

static int lock_and_unlock_with_stops(dmutex_t *at)
{
    stop_at(STOP_WOKEN);
    return enter_and_leave(at);
}

/* A seat that was woken without success after a millisecond is handed the next hold: no newcomer is faster. */
static void test_a_starving_seat_is_inside_before_it_runs(void **state)
{
    (void)state;
    begin("seats/starving", &kinds[0], 0);
    assert_result(dmutex_lock(&mutex), 0);
    sit(1, lock_and_unlock_with_stops);
    assert_result(dmutex_unlock(&mutex), 0);
    stop_await();
    assert_result(dmutex_trylock(&mutex), 0); /* the hold was open for all */
    let_pass(5);
    stop_end();
    wait_until(line_state_of(name).is_starving);
    assert_result(dmutex_unlock(&mutex), 0);
    stop_await();
    assert_result(dmutex_trylock(&mutex), EBUSY);
    assert_false(errand_is_over(&errands[0]));
    stop_end_all();
    assert_result(errand_join(&errands[0]), 0);
    assert_free();
}

/* The linger time restarts when the last seat leaves, and ends. */
static void test_the_lease_goes_back_after_the_linger_time_when_a_seat_was_last(void **state)
{
    (void)state;
    begin("seats/linger", &kinds[0], 50);
    assert_result(dmutex_lock(&mutex), 0);
    sit(1, enter_and_leave);
    assert_result(dmutex_unlock(&mutex), 0);
    assert_result(errand_join(&errands[0]), 0);
    promise_within(AT_ONCE);
    assert_free();
    assert_kept();
}

/* ---- which threads join ------------------------------------------------------------------ */

static int change_type(dmutexattr_t *attr)
{
    return dmutexattr_settype(attr, PTHREAD_MUTEX_RECURSIVE);
}

static int change_linger(dmutexattr_t *attr)
{
    return dmutexattr_setlinger_np(attr, 1);
}

static int change_lease(dmutexattr_t *attr)
{
    return dmutexattr_setlease_np(attr, LONG_LEASE + 1);
}

static int change_maxhold(dmutexattr_t *attr)
{
    return dmutexattr_setmaxhold_np(attr, LONG_LEASE);
}

static int change_robustness(dmutexattr_t *attr)
{
    return dmutexattr_setrobust(attr, PTHREAD_MUTEX_ROBUST);
}

static int change_fairness(dmutexattr_t *attr)
{
    return dmutexattr_setfairness_np(attr, DMUTEX_FAIR_NP);
}

static const struct {
    int (*change)(dmutexattr_t *attr);
    bool is_like;
} changes[] = {
    { change_type, true },     { change_linger, true },      { change_lease, false },
    { change_maxhold, false }, { change_robustness, false }, { change_fairness, false },
};

/* An object of the same name that differs from `mutex` in one attribute. */
static void make_like(dmutex_t *like, int (*change)(dmutexattr_t *attr))
{
    dmutexattr_t attr;

    assert_result(dmutexattr_init(&attr), 0);
    assert_result(dmutexattr_setlease_np(&attr, LONG_LEASE), 0);
    assert_result(change(&attr), 0);
    assert_result(dmutex_init_np(like, name, &attr), 0);
    assert_result(dmutexattr_destroy(&attr), 0);
}

/* A thread sits if its object makes the same hold; with any other object it asks the server for itself. */
static void test_threads_with_like_objects_sit_and_others_ask(void **state)
{
    dmutex_t like;

    (void)state;
    begin("seats/like", &kinds[0], 0);
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        make_like(&like, changes[i].change);
        assert_result(dmutex_lock(&mutex), 0);
        errand_begin(&errands[0], enter_and_leave, &like);
        wait_until(waiters_of(&mutex) == 1);
        assert_int_equal(seats_of(name), changes[i].is_like);
        promise_within(AT_ONCE);
        assert_result(dmutex_unlock(&mutex), 0);
        assert_result(errand_join(&errands[0]), 0);
        assert_kept();
        assert_free();
    }
}

/* A kept lease is used by like objects only; any other has the lease given back, and asks for its own. */
static void test_a_kept_lease_is_for_like_objects(void **state)
{
    dmutex_t like;

    (void)state;
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        uint64_t before;

        begin("seats/kept", &kinds[0], LONG_LEASE);
        make_like(&like, changes[i].change);
        assert_result(dmutex_lock(&mutex), 0);
        before = token_of(&mutex);
        assert_result(dmutex_unlock(&mutex), 0);
        assert_true(is_locked(&mutex));
        assert_result(dmutex_lock(&like), 0);
        assert_int_equal(token_of(&like) >> 12 == before >> 12, changes[i].is_like);
        assert_true(token_of(&like) > before);
        assert_result(dmutex_unlock(&like), 0);
        assert_result(dmutex_destroy(&mutex), 0);
    }
}

static int lock_and_stop_at_the_answer(dmutex_t *at)
{
    stop_at(STOP_ANSWERED);
    return enter_and_leave(at);
}

/* The result of a try, and how many commands the try costs. */
static void assert_try(int wanted, int cost)
{
    int64_t before = client_commands();

    assert_result(dmutex_trylock(&mutex), wanted);
    if (wanted == 0)
        assert_int_equal(in_thread(dmutex_trylock, &mutex), EBUSY);
    assert_int_equal(client_commands() - before, cost);
}

/* While the line does not own, a try asks the server; while it owns, the process knows the answer. */
static void test_a_try_asks_the_server_only_while_the_line_does_not_own(void **state)
{
    struct actor *owner;

    (void)state;
    begin("seats/try", &kinds[0], LONG_LEASE);
    errand_begin(&errands[0], lock_and_stop_at_the_answer, &mutex);
    stop_await();
    assert_int_equal(line_state_of(name).phase, DM_ASKING);
    assert_try(EBUSY, 1);
    stop_end_all();
    assert_result(errand_join(&errands[0]), 0);
    assert_true(is_locked(&mutex)); /* kept */
    wait_until(kept_is_marked(name));
    assert_try(0, 0);
    assert_result(dmutex_unlock(&mutex), 0);
    assert_result(dmutex_destroy(&mutex), 0);

    begin("seats/try", &kinds[0], 0);
    owner = start_owner();
    queue_asker(0, enter_and_leave);
    assert_try(EBUSY, 1);
    assert_int_equal(waiters_of(&mutex), 1);
    end_owner(owner);
    assert_result(errand_join(&errands[0]), 0);
    assert_free();
}

/* ---- deadlines --------------------------------------------------------------------------- */

/* The last thread of the line settles with the server: one cancel takes the place in the queue away. */
static void test_the_last_seat_leaves_the_queue_when_it_times_out(void **state)
{
    struct actor *owner;
    int64_t before;

    (void)state;
    begin("seats/last", &kinds[0], 0);
    owner = start_owner();
    queue_asker(0, timedlock_a_while);
    errand_begin(&errands[1], timedlock_longer, &mutex);
    wait_until(seats_of(name) == 1);
    before = side_calls(the_server->side, "ZREM");
    assert_result(errand_join(&errands[0]), ETIMEDOUT);
    assert_int_equal(line_state_of(name).phase, DM_QUEUED);
    assert_int_equal(side_calls(the_server->side, "ZREM"), before);
    assert_result(errand_join(&errands[1]), ETIMEDOUT);
    assert_true(side_calls(the_server->side, "ZREM") > before);
    end_owner(owner);
    assert_free();
}

/* A question without an answer is given up with its asker: the next thread of the line asks again, and gets in. */
static void test_a_line_goes_on_when_its_asker_times_out_without_an_answer(void **state)
{
    (void)state;
    for (int seats = 0; seats < 2; seats++) {
        begin("seats/asking", &kinds[0], 0);
        promise_within(AT_ONCE);
        server_stop(the_server);
        errand_begin(&errands[0], timedlock_a_while, &mutex);
        wait_until(line_state_of(name).has_claim);
        assert_int_equal(line_state_of(name).phase, DM_ASKING);
        for (int i = 1; i <= seats; i++) {
            errand_begin(&errands[i], enter_and_leave, &mutex);
            wait_until(seats_of(name) == i);
        }
        assert_result(errand_join(&errands[0]), ETIMEDOUT);
        server_cont(the_server);
        for (int i = 1; i <= seats; i++)
            assert_result(errand_join(&errands[i]), 0);
        assert_free();
        assert_kept();
    }
}

/* The server has granted the place in the queue, and the message is on its way, when the asker's time is over. */
static void test_a_grant_on_its_way_is_used_when_the_asker_times_out(void **state)
{
    (void)state;
    for (int seats = 0; seats < 2; seats++) {
        struct actor *owner;

        begin("seats/grant", &kinds[0], 0);
        owner = start_owner();
        message_keep();
        queue_asker(0, timedlock_a_while);
        for (int i = 1; i <= seats; i++) {
            errand_begin(&errands[i], enter_and_leave, &mutex);
            wait_until(seats_of(name) == i);
        }
        end_owner(owner);
        wait_until(message_is_kept());
        promise_within(AT_ONCE);
        assert_result(errand_join(&errands[0]), seats ? ETIMEDOUT : 0);
        message_deliver();
        for (int i = 1; i <= seats; i++)
            assert_result(errand_join(&errands[i]), 0);
        assert_kept();
        assert_free();
    }
}

static int timedlock_with_stops(dmutex_t *at)
{
    stop_at(STOP_WOKEN);
    return timedlock_a_while(at);
}

/* Set by the test: the thread inside leaves; and by that thread. */
static bool may_leave, is_inside, is_leaving;

/* Enters, and leaves when the test says so. */
static int stay_inside(dmutex_t *at)
{
    int result = dmutex_lock(at);

    __atomic_store_n(&is_inside, true, __ATOMIC_RELEASE);
    while (!result && !__atomic_load_n(&may_leave, __ATOMIC_ACQUIRE))
        wait_nap();
    __atomic_store_n(&is_leaving, true, __ATOMIC_RELEASE);
    return result ? result : dmutex_unlock(at);
}

static void await_end_or_sleep(const struct errand *errand)
{
    int looks = 0;

    wait_until(errand_is_over(errand) || (looks = proc_state(errand->tid) == 'S' ? looks + 1 : 0) == 20);
}

static int lock_and_stop_before_the_seat(dmutex_t *at)
{
    stop_at(STOP_SEAT);
    return enter_and_leave(at);
}

/*
 * Finding 71: the thread inside leaves while another thread, which has found the hold in use, sits down.  Either the
 * thread inside waits for the seat, and wakes the seat's thread, or that thread looks again.
 */
static void test_a_seat_enters_when_the_hold_was_left_while_the_thread_sat_down(void **state)
{
    (void)state;
    begin("seats/left", &kinds[0], LONG_LEASE);
    wait_until(enter_and_leave(&mutex) == 0 && is_locked(&mutex)); /* kept: the next lock takes the fast path */
    may_leave = is_inside = is_leaving = false;
    errand_begin(&errands[0], stay_inside, &mutex);
    wait_until(__atomic_load_n(&is_inside, __ATOMIC_ACQUIRE));
    errand_begin(&errands[1], lock_and_stop_before_the_seat, &mutex);
    stop_await();
    __atomic_store_n(&may_leave, true, __ATOMIC_RELEASE);
    wait_until(__atomic_load_n(&is_leaving, __ATOMIC_ACQUIRE));
    await_end_or_sleep(&errands[0]);
    promise_within(AT_ONCE);
    stop_end_all();
    assert_result(errand_join(&errands[1]), 0);
    assert_kept();
    assert_result(errand_join(&errands[0]), 0);
    assert_result(dmutex_destroy(&mutex), 0);
}

/* A hold that comes at the very deadline is had, whether passed to the seat or open for all. */
static void test_a_seat_has_the_hold_that_comes_at_its_deadline(void **state)
{
    (void)state;
    for (int is_robust = 0; is_robust < 2; is_robust++) {
        begin(is_robust ? "seats/deadline-robust" : "seats/deadline", &kinds[4 * is_robust], 0);
        assert_result(dmutex_lock(&mutex), 0);
        sit(1, timedlock_with_stops);
        stop_await();
        assert_result(dmutex_unlock(&mutex), 0);
        assert_int_equal(dmutex_trylock(&mutex), is_robust ? EBUSY : 0);
        if (!is_robust)
            assert_result(dmutex_unlock(&mutex), 0);
        stop_end_all();
        assert_result(errand_join(&errands[0]), 0);
        assert_free();
    }
}

/* A wake-up that reached a seat at its deadline, too late for it, passes to the next seat. */
static void test_the_next_seat_enters_when_the_woken_seat_times_out(void **state)
{
    (void)state;
    begin("seats/woken", &kinds[0], 0);
    assert_result(dmutex_lock(&mutex), 0);
    sit(1, timedlock_with_stops);
    errand_begin(&errands[1], enter_and_leave, &mutex);
    wait_until(seats_of(name) == 2);
    stop_await();
    assert_result(dmutex_unlock(&mutex), 0);
    assert_result(dmutex_trylock(&mutex), 0);
    stop_end_all();
    assert_result(errand_join(&errands[0]), ETIMEDOUT);
    promise_within(AT_ONCE);
    assert_result(dmutex_unlock(&mutex), 0);
    assert_result(errand_join(&errands[1]), 0);
    assert_kept();
    assert_free();
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_seats_enter_in_the_order_of_their_coming),
        cmocka_unit_test(test_a_starving_seat_is_inside_before_it_runs),
        cmocka_unit_test(test_the_lease_goes_back_after_the_linger_time_when_a_seat_was_last),
        cmocka_unit_test(test_threads_with_like_objects_sit_and_others_ask),
        cmocka_unit_test(test_a_kept_lease_is_for_like_objects),
        cmocka_unit_test(test_a_try_asks_the_server_only_while_the_line_does_not_own),
        cmocka_unit_test(test_the_last_seat_leaves_the_queue_when_it_times_out),
        cmocka_unit_test(test_a_line_goes_on_when_its_asker_times_out_without_an_answer),
        cmocka_unit_test(test_a_grant_on_its_way_is_used_when_the_asker_times_out),
        cmocka_unit_test(test_a_seat_enters_when_the_hold_was_left_while_the_thread_sat_down),
        cmocka_unit_test(test_a_seat_has_the_hold_that_comes_at_its_deadline),
        cmocka_unit_test(test_the_next_seat_enters_when_the_woken_seat_times_out),
        cmocka_unit_test(test_nothing_is_left),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, test_group_setup, test_group_teardown);
}
