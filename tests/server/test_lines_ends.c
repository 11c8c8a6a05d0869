/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads of a line that lock twice, end, are cancelled or refused, and objects that are destroyed while there are
 * seats.
 */
#include <pthread.h>
#include <stdio.h>

#include "line_state.h"
#include "process/life/runtime.h"
#include "stops.h"
#include "warm.h"

#define LONG_LEASE 60000 /* no poll and no renewal within the time of a test */
#define AT_ONCE 8000
#define SEATS 2

enum { NORMAL, ERRORCHECK, RECURSIVE, ROBUST = 4 }; /* of `kinds` */

static const char *name;
static dmutex_t mutex;
static struct errand errands[SEATS + 1], holder;
static bool is_inside, may_go; /* of the errand `holder`; atomic */

static void begin(const char *word, int kind, unsigned linger_ms)
{
    name = word;
    __atomic_store_n(&is_inside, false, __ATOMIC_RELEASE);
    __atomic_store_n(&may_go, false, __ATOMIC_RELEASE);
    make_handed(&mutex, name, &kinds[kind], LONG_LEASE, linger_ms);
}

/* EOWNERDEAD if the thread has made the mutex consistent. */
static int lock_mend_and_unlock(dmutex_t *at)
{
    int locked = dmutex_lock(at), result = locked;

    if (locked == EOWNERDEAD)
        result = dmutex_consistent(at);
    if (result == 0)
        result = dmutex_unlock(at);
    return result ? result : locked;
}

static void begin_seat(int i, mutex_call call)
{
    int before = seats_of(name);

    errand_begin(&errands[i], call, &mutex);
    wait_until(seats_of(name) == before + 1);
}

static void sit(int count, mutex_call call)
{
    for (int i = 0; i < count; i++)
        begin_seat(i, call);
}

static void join_all(int count)
{
    promise_within(AT_ONCE);
    for (int i = 0; i < count; i++)
        assert_result(errand_join(&errands[i]), 0);
    assert_kept();
}

static void assert_free(void)
{
    wait_until(!is_locked(&mutex));
    assert_int_equal(waiters_of(&mutex), 0);
    assert_int_equal(seats_of(name), 0);
}

/* ---- locking twice ----------------------------------------------------------------------- */

static int lock_twice_in_vain(dmutex_t *at)
{
    int result = dmutex_lock(at);

    if (result == 0 && dmutex_lock(at) != EDEADLK)
        return EINVAL;
    if (result == 0 && dmutex_trylock(at) != EBUSY)
        return EINVAL;
    return result ? result : dmutex_unlock(at);
}

/* EDEADLK while others wait: for the thread that has asked the server, and for threads that were handed the hold. */
static void test_a_second_lock_is_a_deadlock_when_others_wait(void **state)
{
    int64_t before;

    (void)state;
    begin("ends/deadlock", ERRORCHECK, 0);
    assert_result(dmutex_lock(&mutex), 0);
    sit(SEATS, lock_twice_in_vain);
    before = client_commands();
    assert_result(dmutex_lock(&mutex), EDEADLK);
    assert_result(timedlock_soon(&mutex), EDEADLK);
    assert_result(dmutex_trylock(&mutex), EBUSY);
    assert_int_equal(client_commands(), before);
    assert_int_equal(seats_of(name), SEATS);
    assert_result(dmutex_unlock(&mutex), 0);
    join_all(SEATS);
    assert_free();
}

#define DEPTH 3

/* The result of the first call that is wrong; the other threads must stay outside until the last unlock. */
static int lock_deeply(dmutex_t *at)
{
    unsigned depth = 0;
    int result = 0;

    for (int i = 0; i < DEPTH && !result; i++)
        result = dmutex_lock(at);
    if (!result)
        result = dmutex_holdcount_np(at, &depth);
    if (!result && depth != DEPTH)
        result = EINVAL;
    for (int i = 0; i < DEPTH && !result; i++)
        result = dmutex_unlock(at);
    return result;
}

/* On a recursive mutex only the last unlock lets a seat in. */
static void test_seats_wait_for_the_last_unlock_of_a_recursive_mutex(void **state)
{
    (void)state;
    for (unsigned linger_ms = 0; linger_ms <= LONG_LEASE; linger_ms += LONG_LEASE) {
        begin("ends/recursive", RECURSIVE, linger_ms);
        assert_result(lock_deeply(&mutex), 0); /* with a linger time the rest is without the server */
        assert_result(dmutex_lock(&mutex), 0);
        assert_result(dmutex_lock(&mutex), 0);
        sit(SEATS, lock_deeply);
        assert_result(dmutex_lock(&mutex), 0);
        for (unsigned depth = 3; depth > 1; depth--) {
            assert_int_equal(holdcount_of(&mutex), depth);
            assert_result(dmutex_unlock(&mutex), 0);
            assert_int_equal(in_thread(dmutex_trylock, &mutex), EBUSY);
            assert_int_equal(seats_of(name), SEATS);
        }
        assert_result(dmutex_unlock(&mutex), 0);
        join_all(SEATS);
        assert_result(dmutex_destroy(&mutex), 0);
        assert_int_equal(side_int(the_server->side, "EXISTS %s", key_of("lock", name)), 0);
    }
}

static int lock_twice_and_unlock(dmutex_t *at)
{
    int result = dmutex_lock(at);

    return result ? result : lock_mend_and_unlock(at);
}

/*
 * The holder of a normal mutex that locks again waits for itself: a timed lock leaves, a lock waits until the hold is
 * broken, and owns then.
 */
static void test_a_thread_waits_for_itself_until_its_hold_is_broken(void **state)
{
    int64_t before;

    (void)state;
    begin("ends/relock", NORMAL, 0);
    assert_result(dmutex_lock(&mutex), 0);
    before = client_commands();
    assert_result(timedlock_soon(&mutex), ETIMEDOUT);
    assert_result(dmutex_trylock(&mutex), EBUSY);
    assert_int_equal(client_commands(), before);
    assert_result(dmutex_unlock(&mutex), 0);

    errand_begin(&errands[0], lock_twice_and_unlock, &mutex);
    wait_until(seats_of(name) == 1);
    begin_seat(1, lock_mend_and_unlock);
    assert_result(dmutex_forceunlock_np(&mutex), 0);
    join_all(2);
    assert_free();
}

/* ---- threads that end inside ------------------------------------------------------------- */

static int lock_and_stay(dmutex_t *at)
{
    int result = dmutex_lock(at);

    __atomic_store_n(&is_inside, true, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&may_go, __ATOMIC_ACQUIRE))
        wait_nap();
    return result;
}

/* The holder is inside; handed: by the hold of this thread. */
static void begin_holder(bool is_handed)
{
    if (is_handed)
        assert_result(dmutex_lock(&mutex), 0);
    errand_begin(&holder, lock_and_stay, &mutex);
    if (is_handed) {
        wait_until(seats_of(name) == 1);
        assert_result(dmutex_unlock(&mutex), 0);
    }
    wait_until(__atomic_load_n(&is_inside, __ATOMIC_ACQUIRE));
}

static void end_holder(void)
{
    __atomic_store_n(&may_go, true, __ATOMIC_RELEASE);
    assert_result(errand_join(&holder), 0);
}

/* The first thread after one that has ended inside gets the death if the mutex is robust, and no other does. */
static void check_death(bool is_robust, bool is_handed, int seats)
{
    int told = is_robust ? EOWNERDEAD : 0;

    begin(is_robust ? "ends/death-robust" : "ends/death", is_robust ? ROBUST : NORMAL, 0);
    begin_holder(is_handed);
    sit(seats, lock_mend_and_unlock);
    promise_within(AT_ONCE);
    end_holder();
    for (int i = 0; i < seats; i++)
        assert_result(errand_join(&errands[i]), i ? 0 : told);
    assert_result(lock_mend_and_unlock(&mutex), seats ? 0 : told);
    assert_kept();
    assert_free();
}

static void test_the_next_thread_learns_when_a_thread_ends_inside(void **state)
{
    (void)state;
    for (int way = 0; way < 4; way++) {
        for (int seats = 0; seats <= SEATS; seats++)
            check_death(way & 1, way & 2, seats);
    }
}

/* ---- cancelled threads ------------------------------------------------------------------- */

static struct victim {
    pthread_t thread;
    int type; /* PTHREAD_CANCEL_DEFERRED, ..._ASYNCHRONOUS */
    int unlocked;
    bool has_gone_on;
} victim;

static void unlock_cancelled(void *user)
{
    struct victim *self = user;

    self->unlocked = dmutex_unlock(&mutex);
}

static void *lock_and_be_cancelled(void *user)
{
    struct victim *self = user;

    pthread_setcanceltype(self->type, NULL);
    pthread_cleanup_push(unlock_cancelled, self);
    dmutex_lock(&mutex);
    pthread_testcancel();
    self->has_gone_on = true;
    pthread_cleanup_pop(0);
    return NULL;
}

/* A seat is no cancellation point: the cancelled thread stays, enters, and ends then, its handlers with the mutex. */
static void test_a_cancelled_seat_ends_with_the_mutex(void **state)
{
    static const int types[] = { PTHREAD_CANCEL_DEFERRED, PTHREAD_CANCEL_ASYNCHRONOUS };

    (void)state;
    if (IS_THREAD_SANITIZED)
        return; /* a thread is cancelled */
    for (int i = 0; i < 4; i++) {
        begin(i < 2 ? "ends/cancel" : "ends/cancel-robust", i < 2 ? NORMAL : ROBUST, 0);
        victim = (struct victim){ .type = types[i % 2], .unlocked = -1 };
        assert_result(dmutex_lock(&mutex), 0);
        assert_int_equal(pthread_create(&victim.thread, NULL, lock_and_be_cancelled, &victim), 0);
        wait_until(seats_of(name) == 1);
        begin_seat(0, lock_mend_and_unlock);
        assert_int_equal(pthread_cancel(victim.thread), 0);
        assert_int_equal(seats_of(name), 2);
        assert_result(dmutex_unlock(&mutex), 0);
        assert_int_equal(pthread_join(victim.thread, NULL), 0);
        assert_false(victim.has_gone_on);
        assert_result(victim.unlocked, 0);
        join_all(1);
        assert_free();
    }
}

/* ---- refusals ---------------------------------------------------------------------------- */

static int lock_and_stop_at_the_answer(dmutex_t *at)
{
    stop_at(STOP_ANSWERED);
    return dmutex_lock(at);
}

/* Each thread of the line asks the server that refuses, and returns with the refusal; nothing is left. */
static void test_each_seat_is_refused_when_the_server_is_full(void **state)
{
    (void)state;
    begin("ends/full", NORMAL, 0);
    side_text(the_server->side, "CONFIG SET maxmemory 1");
    errand_begin(&errands[SEATS], lock_and_stop_at_the_answer, &mutex);
    stop_await();
    sit(SEATS, lock_mend_and_unlock);
    stop_end_all();
    for (int i = 0; i <= SEATS; i++)
        assert_result(errand_join(&errands[i]), EAGAIN);
    side_text(the_server->side, "CONFIG SET maxmemory 0");
    assert_free();
    assert_result(lock_mend_and_unlock(&mutex), 0);
}

/* ---- destroy ----------------------------------------------------------------------------- */

/* An object of a name is in use while threads of the process sit, also by other objects, and while a seat is woken. */
static void test_destroy_is_refused_while_threads_sit(void **state)
{
    dmutex_t same;

    (void)state;
    begin("ends/destroy", NORMAL, 0);
    make_handed(&same, name, &kinds[NORMAL], LONG_LEASE, 0);
    begin_holder(false);
    sit(SEATS, lock_mend_and_unlock);
    assert_result(dmutex_destroy(&same), EBUSY);
    end_holder(); /* ends inside */
    join_all(SEATS);
    assert_result(dmutex_destroy(&same), 0);
    assert_result(lock_mend_and_unlock(&mutex), 0);
}

static int lock_and_unlock_with_stops(dmutex_t *at)
{
    stop_at(STOP_WOKEN);
    return lock_mend_and_unlock(at);
}

/* Between an unlock and the entry of the woken seat nobody is inside. */
static void test_destroy_is_refused_when_a_seat_is_about_to_enter(void **state)
{
    (void)state;
    begin("ends/gap", NORMAL, LONG_LEASE);
    assert_result(dmutex_lock(&mutex), 0);
    sit(1, lock_and_unlock_with_stops);
    assert_result(dmutex_unlock(&mutex), 0);
    stop_await();
    assert_result(dmutex_destroy(&mutex), EBUSY);
    stop_end_all();
    join_all(1);
    assert_result(dmutex_destroy(&mutex), 0);
}

/* Likewise for another server: the seats would sleep forever in a line that the process has forgotten. */
static void test_another_server_is_refused_while_threads_sit(void **state)
{
    (void)state;
    begin("ends/switch", NORMAL, 0);
    assert_result(dmutex_lock(&mutex), 0);
    sit(1, lock_and_unlock_with_stops);
    begin_seat(1, lock_mend_and_unlock);
    assert_result(dmutex_unlock(&mutex), 0);
    stop_await();
    assert_result(dm_runtime_switch(NULL, 0), EBUSY);
    stop_end_all();
    join_all(SEATS);
    assert_free();
}

/* Threads that sit in another process are that process's affair. */
static void test_destroy_leaves_the_seats_of_another_process_alone(void **state)
{
    struct actor *owner, *line;

    (void)state;
    begin("ends/elsewhere", NORMAL, 0);
    assert_result(lock_mend_and_unlock(&mutex), 0);
    owner = start_warm(name, LONG_LEASE, "");
    line = start_warm(name, LONG_LEASE, "");
    actor_do(owner, "0", "lock %s", name);
    actor_do(line, "0", "start lock %s", name); /* the thread ends inside */
    wait_until(waiters_of(&mutex) == 1);
    actor_send(line, "lock %s", name);
    assert_result(dmutex_destroy(&mutex), 0);
    promise_within(AT_ONCE);
    actor_do(owner, "0", "unlock %s", name);
    actor_expect(line, "0");
    assert_kept();
    actor_do(line, "0", "unlock %s", name);
    actor_do(line, "0", "join");
    actor_end(owner);
    actor_end(line);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_second_lock_is_a_deadlock_when_others_wait),
        cmocka_unit_test(test_seats_wait_for_the_last_unlock_of_a_recursive_mutex),
        cmocka_unit_test(test_a_thread_waits_for_itself_until_its_hold_is_broken),
        cmocka_unit_test(test_the_next_thread_learns_when_a_thread_ends_inside),
        cmocka_unit_test(test_a_cancelled_seat_ends_with_the_mutex),
        cmocka_unit_test(test_each_seat_is_refused_when_the_server_is_full),
        cmocka_unit_test(test_destroy_is_refused_while_threads_sit),
        cmocka_unit_test(test_destroy_is_refused_when_a_seat_is_about_to_enter),
        cmocka_unit_test(test_another_server_is_refused_while_threads_sit),
        cmocka_unit_test(test_destroy_leaves_the_seats_of_another_process_alone),
        cmocka_unit_test(test_nothing_is_left),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, test_group_setup, test_group_teardown);
}
