/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Prints figures: the time until another thread owns, after the kill of an owner, and after an unlock.
 * Asserts only that another thread comes to own at all.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "../lib/testlib.h"
#include "dice.h"
#include "history.h"

#define LEASE 300
#define OTHER_KEYS 100000
#define PLAYERS 2

/* ---- figures ----------------------------------------------------------------------------- */

#define SAMPLES 4096

static struct samples {
    double of[SAMPLES];
    int count;
} times, stalls, trips;

static void take_sample(struct samples *samples, double value)
{
    if (samples->count < SAMPLES)
        samples->of[samples->count++] = value;
}

static int compare(const void *a, const void *b)
{
    double one = *(const double *)a, other = *(const double *)b;

    return (one > other) - (one < other);
}

static double share(const struct samples *samples, double part)
{
    return samples->of[(int)(part * (samples->count - 1) + 0.5)];
}

/* Prints the figures of the samples, and empties the samples. */
static void print_samples(struct samples *samples, const char *what, const char *unit)
{
    assert_true(samples->count > 0);
    qsort(samples->of, (size_t)samples->count, sizeof samples->of[0], compare);
    print_message("# %s: %d times, p50 %.2f, p90 %.2f, p99 %.2f, p100 %.2f %s\n", what, samples->count,
                  share(samples, 0.5), share(samples, 0.9), share(samples, 0.99), share(samples, 1), unit);
    samples->count = 0;
}

/* ---- a killed owner ---------------------------------------------------------------------- */

/*
 * Waits until the actor has answered, or until the limit.  Measures the longest stall of the waiting thread, which has
 * nothing else to do: this shows the machine's part of a long wait.
 */
static void await_answer(struct actor *actor)
{
    int64_t last_ns = history_now_ns(), longest_ns = 0;
    int64_t limit_ns = last_ns + WAIT_LIMIT_MS * INT64_C(1000000);

    while (actor_is_silent(actor) && last_ns < limit_ns) {
        int64_t now_ns;

        wait_nap();
        now_ns = history_now_ns();
        if (now_ns - last_ns > longest_ns)
            longest_ns = now_ns - last_ns;
        last_ns = now_ns;
    }
    take_sample(&stalls, (double)longest_ns / 1e6);
}

/*
 * Kills an owner at a random moment between two renewals.  Returns the time from the kill until the waiter owns, in
 * ms beyond the lease.
 */
static double kill_owner(struct actor *waiter, struct dice *dice, const char *name)
{
    struct actor *owner = actor_start(the_server);
    int64_t moment_ns = dice_below(dice, LEASE) * INT64_C(1000000), killed_ns;

    actor_do(owner, "0", "init %s robust lease=%d", name, LEASE);
    actor_do(owner, "0", "lock %s", name);
    actor_send(waiter, "lock %s", name);
    wait_until(waiters_at(the_server->side, name) == 1);
    for (int64_t until_ns = history_now_ns() + moment_ns; history_now_ns() < until_ns;)
        wait_nap();
    killed_ns = history_now_ns();
    actor_kill(owner);
    await_answer(waiter);
    killed_ns = history_now_ns() - killed_ns;
    actor_expect(waiter, "EOWNERDEAD");
    actor_do(waiter, "0", "consistent %s", name);
    actor_do(waiter, "0", "unlock %s", name);
    actor_end(owner);
    return (double)killed_ns / 1e6 - LEASE;
}

static void kill_owners(const char *what)
{
    long kills = count_from("DMUTEX_TEST_KILLS", 10, 200);
    struct actor *waiter = actor_start(the_server);
    struct dice dice = dice_make(1, 1);

    actor_do(waiter, "0", "init takeover/killed robust lease=%d", LEASE);
    for (long i = 0; i < kills; i++)
        take_sample(&times, kill_owner(waiter, &dice, "takeover/killed"));
    actor_end(waiter);
    print_samples(&times, what, "ms beyond the lease");
    print_samples(&stalls, "meanwhile the longest stall of an idle thread", "ms");
}

static void test_another_owns_when_an_owner_was_killed(void **state)
{
    (void)state;
    kill_owners("killed owner to next owner");
}

/*
 * Another thread owns after a kill, even if many other keys expire: the server expires keys at random, and a takeover
 * must not depend on a key ending on time.
 */
static void test_another_owns_when_many_other_keys_expire(void **state)
{
    (void)state;
    side_text(the_server->side, "EVAL %s 0 %d",
              "for i = 1, ARGV[1] do redis.call('SET', 'other:' .. i, 1, 'PX', 1000 + i % 60000) "
              "end return 'OK'",
              OTHER_KEYS);
    kill_owners("the same beside 100000 other keys that expire");
}

/* ---- a release --------------------------------------------------------------------------- */

/* Rests until the other has fallen asleep, for a random time, so that the server has one request at a time. */
static void rest(struct dice *dice)
{
    nanosleep(&(struct timespec){ .tv_nsec = 1000000 + dice_below(dice, 2000000) }, NULL);
}

/* Takes one turn; in the middle of the hold is a bare round trip after a sleep as long, to compare with. */
static void take_turn(struct history *history, unsigned track, dmutex_t *mutex, struct dice *dice, struct side *side)
{
    struct op *op = history_begin(history, track, OP_LOCK, NAME_NORMAL);
    int result = dmutex_lock(mutex);

    history_end(op, result, history_now_ns());
    rest(dice);
    op = history_begin(history, track, OP_TOUCH, NAME_NORMAL);
    side_text(side, "PING");
    history_end(op, 0, history_now_ns());
    rest(dice);
    op = history_begin(history, track, OP_UNLOCK, NAME_NORMAL);
    result = dmutex_unlock(mutex);
    history_end(op, result, history_now_ns());
    rest(dice);
}

static void play(struct history *history, unsigned track, int turns)
{
    dmutex_t mutex = DMUTEX_INITIALIZER("takeover/handed");
    struct dice dice = dice_make(2, track);
    struct side *side = side_try_open(the_server->path);

    for (int i = 0; i < turns; i++)
        take_turn(history, track, &mutex, &dice, side);
    _exit(0);
}

#define ASLEEP_NS 300000 /* since the request: the thread sleeps */

/* Takes samples of the time from each unlock to the return of the other process's lock, if the other slept. */
static void take_handoffs(const struct history *history)
{
    const struct op *waiting[PLAYERS] = { NULL };

    for (size_t i = 0; i < history_size(history); i++) {
        const struct op *op = &history->ops[i], *other = waiting[1 - op->track];

        assert_int_equal(op->result, 0);
        if (op->kind == OP_LOCK)
            waiting[op->track] = op;
        else if (op->kind == OP_TOUCH)
            take_sample(&trips, (double)(op->ended_ns - op->began_ns) / 1e3);
        else if (other && other->began_ns + ASLEEP_NS < op->began_ns && other->ended_ns > op->began_ns)
            take_sample(&times, (double)(other->ended_ns - op->began_ns) / 1e3);
    }
}

static void test_another_owns_when_an_owner_unlocks(void **state)
{
    struct history *history = history_make();
    int turns = (int)count_from("DMUTEX_TEST_TURNS", 500, 2000);
    pid_t pids[PLAYERS];

    (void)state;
    for (int i = 0; i < PLAYERS; i++)
        history_add_track(history, i, 0);
    for (unsigned i = 0; i < PLAYERS; i++) {
        pids[i] = keeper_fork();
        if (pids[i] == 0)
            play(history, i, turns);
    }
    for (int i = 0; i < PLAYERS; i++)
        assert_int_equal(keeper_reap(pids[i]), 0);
    take_handoffs(history);
    print_samples(&times, "release to next owner", "us");
    print_samples(&trips, "a bare round trip of theirs", "us");
    history_free(history);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_another_owns_when_an_owner_was_killed),
        cmocka_unit_test(test_another_owns_when_an_owner_unlocks),
        cmocka_unit_test(test_another_owns_when_many_other_keys_expire),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, test_group_setup, test_group_teardown);
}
