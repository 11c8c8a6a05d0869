/* SPDX-License-Identifier: BSD-2-Clause */
/* Mutual exclusion, lost leases, tokens, and which waiter is woken: scenarios 1 to 4, 10 and 11. */
#include <stdlib.h>
#include <string.h>

#include "../lib/testlib.h"

#define PROCESSES 4
#define THREADS 4
#define ROUNDS 10000

/* The number in an actor's answer "CALLS TOKEN" to `lost`. */
static int losses_of(struct actor *actor)
{
    actor_send(actor, "lost");
    return atoi(actor_answer(actor));
}

/*
 * POSIX scenario 1: 4 processes of 4 threads count in a file; nothing is lost, nobody is inside
 * twice.
 */
static void test_lock_excludes_when_many_threads_count(void **state)
{
    struct actor *actors[PROCESSES];
    char path[64];

    (void)state;
    snprintf(path, sizeof path, "%s/counter", the_server->folder);
    for (int i = 0; i < PROCESSES; i++)
        actors[i] = actor_start(the_server);
    for (int i = 0; i < PROCESSES; i++)
        actor_send(actors[i], "count %s %d exclusion/count %d", path, ROUNDS / PROCESSES / THREADS, THREADS);
    for (int i = 0; i < PROCESSES; i++)
        actor_expect(actors[i], "0");
    assert_int_equal(actor_counted(path), ROUNDS);
    for (int i = 0; i < PROCESSES; i++) {
        assert_int_equal(losses_of(actors[i]), 0);
        actor_end(actors[i]);
    }
}

/* The same through objects of different types of one name, two processes. */
static void test_lock_excludes_when_objects_of_one_name_differ(void **state)
{
    struct actor *a = actor_start(the_server), *b = actor_start(the_server);
    char path[64];

    (void)state;
    snprintf(path, sizeof path, "%s/types", the_server->folder);
    actor_do(a, "0", "init exclusion/types recursive robust lease=1000");
    actor_do(b, "0", "init exclusion/types errorcheck lease=60000 fair");
    actor_send(a, "count %s 300 exclusion/types 2", path);
    actor_do(b, "0", "count %s 300 exclusion/types 2", path);
    actor_expect(a, "0");
    assert_int_equal(actor_counted(path), 1200);
    actor_end(a);
    actor_end(b);
}

/*
 * POSIX scenario 2: A's hold ends by its max-hold, B owns the mutex.  A's unlock is EPERM and does
 * not disturb B.  Bound: max-hold 300 ms, so the lease is 376 ms and B owns before 1376 ms.
 */
static void test_unlock_refuses_when_the_hold_was_lost(void **state)
{
    struct actor *a = actor_start(the_server), *b = actor_start(the_server);
    dmutex_t c = DMUTEX_INITIALIZER("exclusion/lost");
    long long token;

    (void)state;
    actor_do(a, "0", "init exclusion/lost maxhold=300");
    actor_do(a, "0", "lock exclusion/lost");
    token = actor_value(a, "token exclusion/lost");
    side_set_bound(the_server->side, "lost", 376 + 1000);
    actor_do(b, "0", "lock exclusion/lost");
    assert_false(side_is_control_over(the_server->side, "lost"));

    assert_int_equal(losses_of(a), 1);
    assert_int_equal(actor_value(a, "remaining exclusion/lost"), 0);
    assert_int_equal(actor_value(a, "holdcount exclusion/lost"), 0);
    assert_int_equal(actor_value(a, "token exclusion/lost"), token);
    actor_do(a, "EPERM", "unlock exclusion/lost");
    actor_do(a, "EPERM", "unlock exclusion/lost");
    assert_int_equal(actor_value(b, "holdcount exclusion/lost"), 1);
    assert_true(actor_value(b, "token exclusion/lost") > token);
    assert_result(dmutex_trylock(&c), EBUSY);
    actor_do(a, "EBUSY", "trylock exclusion/lost");
    actor_do(b, "0", "unlock exclusion/lost");
    actor_do(a, "0", "lock exclusion/lost");
    actor_do(a, "0", "unlock exclusion/lost");
    actor_end(a);
    actor_end(b);
}

/*
 * POSIX scenario 3: A is stopped for longer than its lease, and B owns the mutex.  When A continues, it learns of the
 * loss, and its renewals do not prolong B's lease: B is stopped, too, and C owns the mutex within B's lease.
 */
static void test_renewal_spares_successor_when_the_owner_was_stopped(void **state)
{
    struct actor *a = actor_start(the_server), *b = actor_start(the_server);
    dmutex_t c;

    (void)state;
    make_normal(&c, "exclusion/stop", 300);
    actor_do(a, "0", "init exclusion/stop lease=300");
    actor_do(b, "0", "init exclusion/stop lease=300");
    actor_do(a, "0", "lock exclusion/stop");
    actor_stop(a);
    side_set_bound(the_server->side, "stop-a", 300 + 1000);
    actor_do(b, "0", "lock exclusion/stop");
    assert_false(side_is_control_over(the_server->side, "stop-a"));

    actor_stop(b);
    side_set_bound(the_server->side, "stop-b", 300 + 1000);
    actor_cont(a);
    actor_do(a, "EPERM", "unlock exclusion/stop");
    assert_result(dmutex_lock(&c), 0);
    assert_false(side_is_control_over(the_server->side, "stop-b"));
    wait_until(losses_of(a) == 1);
    assert_result(dmutex_unlock(&c), 0);
    actor_cont(b);
    actor_do(b, "EPERM", "unlock exclusion/stop");
    actor_end(a);
    actor_end(b);
}

/* Scenario 3, reported without a call: the lost callback, and remaining 0. */
static void test_owner_learns_of_its_loss_when_it_was_stopped(void **state)
{
    struct actor *a = actor_start(the_server);
    dmutex_t b;

    (void)state;
    make_normal(&b, "exclusion/told", 300);
    actor_do(a, "0", "init exclusion/told lease=300");
    actor_do(a, "0", "lock exclusion/told");
    actor_stop(a);
    assert_result(dmutex_lock(&b), 0);
    actor_cont(a);
    wait_until(losses_of(a) == 1);
    assert_int_equal(actor_value(a, "remaining exclusion/told"), 0);
    actor_do(a, "EPERM", "renew exclusion/told");
    assert_int_equal(holdcount_of(&b), 1);
    assert_result(dmutex_unlock(&b), 0);
    actor_end(a);
}

/* Takes and ends a hold: the token must be higher than *last, and is stored there. */
static void lock_higher(dmutex_t *mutex, uint64_t *last)
{
    uint64_t token;

    assert_result(dmutex_lock(mutex), 0);
    token = token_of(mutex);
    assert_true(token > *last);
    *last = token;
    assert_result(dmutex_unlock(mutex), 0);
}

/* The same by an actor. */
static void actor_locks_higher(struct actor *actor, const char *name, uint64_t *last)
{
    uint64_t token;

    actor_do(actor, "0", "lock %s", name);
    token = (uint64_t)actor_value(actor, "token %s", name);
    assert_true(token > *last);
    *last = token;
    actor_do(actor, "0", "unlock %s", name);
}

/* POSIX scenario 4: the token rises with each grant, to whomever, and after a lease ended. */
static void test_token_rises_when_the_mutex_changes_hands(void **state)
{
    struct actor *a = actor_start(the_server), *b = actor_start(the_server);
    dmutex_t mutex;
    uint64_t last = 0;

    (void)state;
    make_normal(&mutex, "exclusion/token", 300);
    actor_do(a, "0", "init exclusion/token lease=300");
    for (int i = 0; i < 5; i++) {
        lock_higher(&mutex, &last);
        lock_higher(&mutex, &last);
        actor_locks_higher(a, "exclusion/token", &last);
        actor_locks_higher(b, "exclusion/token", &last);
    }
    actor_do(a, "0", "lock exclusion/token");
    last = (uint64_t)actor_value(a, "token exclusion/token");
    actor_kill(a);
    lock_higher(&mutex, &last);
    actor_end(a);
    actor_end(b);
}

/* POSIX scenario 4: the token rises although the lock, or all data, was deleted on the server. */
static void test_token_rises_when_keys_were_deleted(void **state)
{
    struct actor *a = actor_start(the_server);
    dmutex_t mutex = DMUTEX_INITIALIZER("exclusion/deleted");
    uint64_t last = 0;

    (void)state;
    actor_locks_higher(a, "exclusion/deleted", &last);
    side_int(the_server->side, "DEL %s", key_of("lock", "exclusion/deleted"));
    lock_higher(&mutex, &last);
    side_int(the_server->side, "DEL %s", key_of("state", "exclusion/deleted"));
    actor_locks_higher(a, "exclusion/deleted", &last);
    side_text(the_server->side, "FLUSHALL");
    lock_higher(&mutex, &last);
    actor_end(a);
}

/* POSIX scenario 4: the token rises even though the server was restarted empty, and all clients are new. */
static void test_token_rises_when_the_server_restarted_empty(void **state)
{
    struct server *other = server_start();
    struct actor *a = actor_start(other), *b;
    uint64_t last = 0;

    (void)state;
    actor_locks_higher(a, "exclusion/restart", &last);
    server_kill(other);
    server_restart(other);
    actor_locks_higher(a, "exclusion/restart", &last);
    actor_end(a);
    server_kill(other);
    server_restart(other);
    b = actor_start(other);
    actor_locks_higher(b, "exclusion/restart", &last);
    actor_end(b);
    server_end(other);
}

/*
 * POSIX scenario 10: an unlock wakes the first of 8 waiters, promptly, and no other. No lease (10 s) or poll (3.3 s) is
 * waited for: all 8 have had the mutex before a second is over.
 */
static void test_unlock_wakes_one_when_eight_wait(void **state)
{
    struct actor *actors[8];
    dmutex_t mutex = DMUTEX_INITIALIZER("exclusion/eight");

    (void)state;
    assert_result(dmutex_lock(&mutex), 0);
    for (int i = 0; i < 8; i++) {
        actors[i] = actor_start(the_server);
        actor_send(actors[i], "lock exclusion/eight");
        wait_until(waiters_of(&mutex) == i + 1);
    }
    side_set_bound(the_server->side, "eight", 2000);
    assert_result(dmutex_unlock(&mutex), 0);
    for (int i = 0; i < 8; i++) {
        actor_expect(actors[i], "0");
        for (int later = i + 1; later < 8; later++)
            assert_true(actor_is_silent(actors[later]));
        actor_do(actors[i], "0", "unlock exclusion/eight");
    }
    assert_false(side_is_control_over(the_server->side, "eight"));
    for (int i = 0; i < 8; i++)
        actor_end(actors[i]);
}

/*
 * POSIX scenario 11: the first waiter is stopped, so that the grant goes to the stopped waiter, and killed; the next
 * waiter owns the mutex within that lease. The dead waiter may have run: EOWNERDEAD.
 */
static void test_next_waiter_owns_when_the_chosen_one_dies(void **state)
{
    struct actor *first = actor_start(the_server), *next = actor_start(the_server);
    dmutex_t mutex;

    (void)state;
    make_robust(&mutex, "exclusion/chosen", 300);
    actor_do(first, "0", "init exclusion/chosen robust lease=300");
    actor_do(next, "0", "init exclusion/chosen robust lease=300");
    assert_result(dmutex_lock(&mutex), 0);
    actor_send(first, "lock exclusion/chosen");
    wait_until(waiters_of(&mutex) == 1);
    actor_stop(first);
    actor_send(next, "lock exclusion/chosen");
    wait_until(waiters_of(&mutex) == 2);
    assert_result(dmutex_unlock(&mutex), 0);
    wait_until(is_locked(&mutex));
    side_set_bound(the_server->side, "chosen", 300 + 1000);
    actor_kill(first);
    actor_expect(next, "EOWNERDEAD");
    assert_false(side_is_control_over(the_server->side, "chosen"));
    actor_do(next, "0", "consistent exclusion/chosen");
    actor_do(next, "0", "unlock exclusion/chosen");
    actor_end(first);
    actor_end(next);
}

/* Scenario 11: a waiter that died earlier costs nothing: its inbox is gone, so the next waiter is chosen. */
static void test_next_waiter_owns_when_the_first_died_before(void **state)
{
    struct actor *first = actor_start(the_server), *next = actor_start(the_server);
    dmutex_t mutex = DMUTEX_INITIALIZER("exclusion/before");

    (void)state;
    assert_result(dmutex_lock(&mutex), 0);
    actor_send(first, "lock exclusion/before");
    wait_until(waiters_of(&mutex) == 1);
    actor_send(next, "lock exclusion/before");
    wait_until(waiters_of(&mutex) == 2);
    wait_until(side_count_channels(the_server->side) == 3); /* an inbox of each process */
    actor_kill(first);
    wait_until(side_count_channels(the_server->side) == 2);
    side_set_bound(the_server->side, "before", 1000);
    assert_result(dmutex_unlock(&mutex), 0);
    actor_expect(next, "0");
    assert_false(side_is_control_over(the_server->side, "before"));
    actor_do(next, "0", "unlock exclusion/before");
    actor_end(first);
    actor_end(next);
    side_try(the_server->side, "DEL %s %s", key_of("queue", "exclusion/before"), key_of("waiter", "exclusion/before"));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lock_excludes_when_many_threads_count),
        cmocka_unit_test(test_lock_excludes_when_objects_of_one_name_differ),
        cmocka_unit_test(test_unlock_refuses_when_the_hold_was_lost),
        cmocka_unit_test(test_renewal_spares_successor_when_the_owner_was_stopped),
        cmocka_unit_test(test_owner_learns_of_its_loss_when_it_was_stopped),
        cmocka_unit_test(test_token_rises_when_the_mutex_changes_hands),
        cmocka_unit_test(test_token_rises_when_keys_were_deleted),
        cmocka_unit_test(test_token_rises_when_the_server_restarted_empty),
        cmocka_unit_test(test_unlock_wakes_one_when_eight_wait),
        cmocka_unit_test(test_next_waiter_owns_when_the_chosen_one_dies),
        cmocka_unit_test(test_next_waiter_owns_when_the_first_died_before),
        cmocka_unit_test(test_nothing_is_left),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, test_group_setup, test_group_teardown);
}
