/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How long the threads of a process hand a hold on: not beyond the bound while another process waits (I13), nor beyond
 * the numbers of a tenure.
 */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "../lib/actor_parts.h"
#include "core/tenure.h"
#include "line_state.h"
#include "process/claims/registry.h"
#include "warm.h"

#define LONG_LEASE 60000 /* no poll and no renewal within the time of a test */
#define AT_ONCE 8000
#define THREADS 8
#define SEATS 3
#define LAST_NUMBER ((1u << DM_TOKEN_SHIFT) - 1)

static const char *name;
static dmutex_t mutex;
static struct errand errands[THREADS], holder;
static bool is_inside, may_go; /* of the errand `holder`; atomic */

static void begin(const char *word, unsigned linger_ms)
{
    name = word;
    __atomic_store_n(&is_inside, false, __ATOMIC_RELEASE);
    __atomic_store_n(&may_go, false, __ATOMIC_RELEASE);
    make_handed(&mutex, name, &kinds[0], LONG_LEASE, linger_ms);
}

static void begin_seat(struct errand *errand, mutex_call call)
{
    int before = seats_of(name);

    errand_begin(errand, call, &mutex);
    wait_until(seats_of(name) == before + 1);
}

/* ---- the bound in holds ------------------------------------------------------------------ */

/* The hold during which the process heard of the other's waiter; 0: of no waiter yet.  Atomic. */
static uint64_t bounded;
static int bounds; /* how often */

void __real_dm_tenure_bound(struct dm_tenure *tenure, int64_t now_ns);
void __wrap_dm_tenure_bound(struct dm_tenure *tenure, int64_t now_ns);
void __wrap_dm_tenure_bound(struct dm_tenure *tenure, int64_t now_ns)
{
    if (tenure->bound_ns == DM_NEVER) {
        __atomic_store_n(&bounded, dm_claim_token(dm_claim_of(tenure)), __ATOMIC_RELEASE);
        __atomic_add_fetch(&bounds, 1, __ATOMIC_RELAXED);
    }
    __real_dm_tenure_bound(tenure, now_ns);
}

static struct {
    int fd;
    long rounds;
    uint32_t most; /* holds after the process had heard; under the mutex */
} game;

/* Inside: counts the holds of this tenure since the process has heard. */
static int count_holds(dmutex_t *at)
{
    uint64_t since = __atomic_load_n(&bounded, __ATOMIC_ACQUIRE), token = 0;
    int result = dmutex_token_np(at, &token);

    if (!result && token >> DM_TOKEN_SHIFT == since >> DM_TOKEN_SHIFT && token - since > game.most)
        game.most = (uint32_t)(token - since);
    return result ? result : actor_add_one(game.fd);
}

static int play(dmutex_t *at)
{
    int result = 0, unlocked;

    for (long i = 0; i < game.rounds && !result; i++) {
        result = dmutex_lock(at);
        if (result)
            return result;
        result = count_holds(at);
        unlocked = dmutex_unlock(at);
        result = result ? result : unlocked;
    }
    return result;
}

/* Two processes with eight threads each, and nobody holds at the same time as another. */
static void test_a_process_hands_on_for_64_holds_while_another_waits(void **state)
{
    struct actor *other;
    char file[64];

    (void)state;
    begin("bound/holds", LONG_LEASE);
    other = start_warm(name, LONG_LEASE, "linger=60000");
    snprintf(file, sizeof file, "%s/bound", the_server->folder);
    actor_begin_count(file);
    game.rounds = repetitions(1000);
    game.fd = actor_open_page(file);
    actor_send(other, "count %s %ld %s %d", file, game.rounds, name, THREADS);
    for (int i = 0; i < THREADS; i++)
        errand_begin(&errands[i], play, &mutex);
    for (int i = 0; i < THREADS; i++)
        assert_result(errand_join(&errands[i]), 0);
    assert_string_equal(actor_answer_of_count(other, file), "0");
    close(game.fd);
    assert_int_equal(actor_counted(file), 2 * THREADS * game.rounds);
    print_message("# asked back %d times, %u holds more\n", bounds, (unsigned)game.most);
    assert_true(bounds > 0);
    assert_within(game.most, 0, DM_TENURE_HOLDS_MORE);
    assert_within(DM_TENURE_HOLDS_MORE, 64, 64);
    actor_end(other);
    assert_result(dmutex_destroy(&mutex), 0);
}

/* ---- the bound in time ------------------------------------------------------------------- */

static int lock_and_stay(dmutex_t *at)
{
    int result = dmutex_lock(at);

    __atomic_store_n(&is_inside, true, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&may_go, __ATOMIC_ACQUIRE))
        wait_nap();
    return result ? result : dmutex_unlock(at);
}

/* A thread holds by the hold of this thread, so that the process hears of waiters, and the other process waits. */
static void begin_long_hold(struct actor *other)
{
    assert_result(dmutex_lock(&mutex), 0);
    begin_seat(&holder, lock_and_stay);
    assert_result(dmutex_unlock(&mutex), 0);
    wait_until(__atomic_load_n(&is_inside, __ATOMIC_ACQUIRE));
    actor_send(other, "lock %s", name);
    wait_until(line_state_of(name).is_bounded);
}

static void end_long_hold(void)
{
    __atomic_store_n(&may_go, true, __ATOMIC_RELEASE);
    assert_result(errand_join(&holder), 0);
}

/* A hold that has lasted for 10 ms since the process heard of the waiter goes to the waiter, not to a seat. */
static void test_a_long_hold_goes_to_the_other_process_before_a_seat(void **state)
{
    struct actor *other;

    (void)state;
    begin("bound/time", 0);
    other = start_warm(name, LONG_LEASE, "");
    begin_long_hold(other);
    begin_seat(&errands[0], lock_and_unlock);
    wait_until(line_state_of(name).is_over);
    promise_within(AT_ONCE);
    end_long_hold();
    actor_expect(other, "0");
    assert_kept();
    assert_false(errand_is_over(&errands[0]));
    actor_do(other, "0", "unlock %s", name);
    assert_result(errand_join(&errands[0]), 0);
    actor_end(other);
    wait_until(!is_locked(&mutex));
}

/* Without a seat the unlock gives back at once, whatever the linger time. */
static void test_a_hold_goes_to_the_other_process_when_no_thread_sits(void **state)
{
    struct actor *other;

    (void)state;
    begin("bound/none", LONG_LEASE);
    other = start_warm(name, LONG_LEASE, "");
    begin_long_hold(other);
    promise_within(AT_ONCE);
    end_long_hold();
    actor_expect(other, "0");
    assert_kept();
    actor_do(other, "0", "unlock %s", name);
    actor_end(other);
    wait_until(!is_locked(&mutex));
}

/* ---- fair threads of the same process ---------------------------------------------------- */

static bool is_over;

static int hand_on_all_the_time(dmutex_t *at)
{
    int result = 0;

    while (!result && !__atomic_load_n(&is_over, __ATOMIC_ACQUIRE))
        result = lock_and_unlock(at);
    return result;
}

/* A fair lock waits at the server, and is had while other threads of the process hand the mutex on. */
static void test_a_fair_thread_gets_in_among_threads_that_hand_on(void **state)
{
    dmutex_t fair;

    (void)state;
    begin("bound/fair", LONG_LEASE);
    make_normal(&fair, name, LONG_LEASE);
    for (int i = 0; i < SEATS; i++)
        errand_begin(&errands[i], hand_on_all_the_time, &mutex);
    for (int i = 0; i < 20; i++) {
        struct timespec until = wait_time_in_ms(CLOCK_MONOTONIC, AT_ONCE);
        uint64_t token;

        assert_result(dmutex_clocklock(&fair, CLOCK_MONOTONIC, &until), 0);
        token = token_of(&fair);
        assert_int_equal(token & LAST_NUMBER, 0); /* its own hold of the server's */
        assert_result(dmutex_unlock(&fair), 0);
    }
    __atomic_store_n(&is_over, true, __ATOMIC_RELEASE);
    for (int i = 0; i < SEATS; i++)
        assert_result(errand_join(&errands[i]), 0);
    assert_result(dmutex_destroy(&mutex), 0);
}

/* ---- the numbers of a tenure ------------------------------------------------------------- */

static uint64_t tokens[SEATS]; /* in the order of the holds; under the mutex */
static int token_count;

static int note_token(dmutex_t *at)
{
    int result = dmutex_lock(at);

    if (!result)
        result = dmutex_token_np(at, &tokens[token_count++]);
    return result ? result : dmutex_unlock(at);
}

/* Holds and gives back until the hold's number is the wanted number; at the return this thread holds. */
static uint64_t use_up_to(uint32_t number)
{
    uint64_t token, before = 0;

    for (;;) {
        assert_result(dmutex_lock(&mutex), 0);
        token = token_of(&mutex);
        assert_true(token > before);
        before = token;
        if ((token & LAST_NUMBER) == number)
            return token;
        assert_result(dmutex_unlock(&mutex), 0);
    }
}

/* The hold after the last number is the server's next hold. */
static void test_the_next_hold_is_the_servers_when_the_numbers_are_used_up(void **state)
{
    uint64_t token;

    (void)state;
    begin("bound/numbers", LONG_LEASE);
    token = use_up_to(LAST_NUMBER);
    assert_result(dmutex_unlock(&mutex), 0);
    assert_result(dmutex_lock(&mutex), 0);
    assert_int_equal(token_of(&mutex) & LAST_NUMBER, 0);
    assert_true(token_of(&mutex) > token);
    assert_result(dmutex_unlock(&mutex), 0);
    assert_result(dmutex_destroy(&mutex), 0);
}

/* The same between seats: the last of three seats finds no number left, and asks the server. */
static void test_a_seat_asks_the_server_when_the_numbers_are_used_up(void **state)
{
    uint64_t token;

    (void)state;
    begin("bound/seats", LONG_LEASE);
    token = use_up_to(LAST_NUMBER - 2);
    for (int i = 0; i < SEATS; i++)
        begin_seat(&errands[i], note_token);
    promise_within(AT_ONCE);
    assert_result(dmutex_unlock(&mutex), 0);
    for (int i = 0; i < SEATS; i++)
        assert_result(errand_join(&errands[i]), 0);
    assert_kept();
    assert_true(tokens[0] == token + 1);
    assert_true(tokens[1] == token + 2);
    assert_true(tokens[2] > tokens[1]);
    assert_int_equal(tokens[2] & LAST_NUMBER, 0);
    assert_true(tokens[2] >> DM_TOKEN_SHIFT ==
                (uint64_t)side_int(the_server->side, "HGET %s token", key_of("state", name)));
    assert_result(dmutex_destroy(&mutex), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_process_hands_on_for_64_holds_while_another_waits),
        cmocka_unit_test(test_a_long_hold_goes_to_the_other_process_before_a_seat),
        cmocka_unit_test(test_a_hold_goes_to_the_other_process_when_no_thread_sits),
        cmocka_unit_test(test_a_fair_thread_gets_in_among_threads_that_hand_on),
        cmocka_unit_test(test_the_next_hold_is_the_servers_when_the_numbers_are_used_up),
        cmocka_unit_test(test_a_seat_asks_the_server_when_the_numbers_are_used_up),
        cmocka_unit_test(test_nothing_is_left),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, test_group_setup, test_group_teardown);
}
