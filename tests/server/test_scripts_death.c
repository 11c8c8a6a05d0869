/* SPDX-License-Identifier: BSD-2-Clause */
/* The Lua scripts: deaths and their consequences, and force. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "scripts.h"

static const char *health(void)
{
    return command("HGET %s health", key("state", "x"));
}

/* ---- death ------------------------------------------------------------------------------- */

/* POSIX scenario 38: the next robust owner learns of a death, whichever call finds the lease ended. */
static void test_a_death_is_passed_to_the_next_robust_owner_when_the_lease_ended(void **state)
{
    struct who a = who("a"), b = who("b");

    (void)state;
    for (int way = 0; way < 2; way++) {
        acquire(&a, TRY);
        end_lease("x");
        assert_int_equal(number_of(acquire(&b, way ? QUEUE : TRY), 2), 1);
        consistent(&b);
        release(&b, UNLOCKED);
        a.attempt++;
        b.attempt++;
    }
}

/* The real end of a lease, by the server's clock, is a death too. */
static void test_a_death_is_reported_when_the_server_has_ended_the_lease(void **state)
{
    struct who a = who("a"), b = who("b");

    (void)state;
    a.lease_ms = 20;
    acquire(&a, TRY);
    wait_until(command_number("EXISTS %s", key("lock", "x")) == 0);
    assert_int_equal(number_of(acquire(&b, TRY), 2), 1);
}

/* A death that was reported at once is passed on as well. */
static void test_a_death_is_passed_to_the_next_robust_owner_when_it_was_reported(void **state)
{
    struct who a = who("a"), b = who("b");

    (void)state;
    acquire(&a, TRY);
    assert_answer(release(&a, DIED), "released");
    assert_int_equal(number_of(acquire(&b, TRY), 2), 1);
}

/* I9: reported to one owner: once made consistent, the next owner does not get it. */
static void test_a_death_is_reported_once_when_made_consistent(void **state)
{
    struct who a = who("a"), b = who("b"), c = who("c");

    (void)state;
    acquire(&a, TRY);
    release(&a, DIED);
    acquire(&b, TRY);
    assert_string_equal(consistent(&b), "1");
    assert_string_equal(consistent(&b), "1");
    release(&b, UNLOCKED);
    assert_int_equal(number_of(acquire(&c, TRY), 2), 0);
}

/* POSIX scenario 39: an owner that dies before calling consistent leaves the death to the next. */
static void test_a_death_is_reported_again_when_the_next_owner_dies_too(void **state)
{
    struct who a = who("a"), b = who("b"), c = who("c");

    (void)state;
    acquire(&a, TRY);
    release(&a, DIED);
    acquire(&b, TRY);
    end_lease("x");
    assert_int_equal(number_of(acquire(&c, TRY), 2), 1);
}

/* A repeated answer repeats the death: the owner may not have seen the first answer. */
static void test_a_death_is_reported_again_when_the_next_owner_asks_again(void **state)
{
    struct who a = who("a"), b = who("b");

    (void)state;
    acquire(&a, TRY);
    release(&a, DIED);
    acquire(&b, TRY);
    assert_int_equal(number_of(acquire(&b, TRY), 2), 1);
    assert_int_equal(number_of(poll_of(&b), 3), 1);
    assert_int_equal(number_of(cancel(&b), 2), 1);
}

/* An owner that is not robust gets 0, a higher token, and clears the death. */
static void test_a_death_is_cleared_when_the_next_owner_is_not_robust(void **state)
{
    struct who a = who("a"), b = who("b"), c = who("c");
    long long token = number_of(acquire(&a, TRY), 1);
    const char *answer;

    (void)state;
    release(&a, DIED);
    b.is_robust = false;
    answer = acquire(&b, TRY);
    assert_int_equal(number_of(answer, 2), 0);
    assert_true(number_of(answer, 1) > token);
    assert_int_equal(number_of(acquire(&b, TRY), 2), 0);
    release(&b, UNLOCKED);
    assert_int_equal(number_of(acquire(&c, TRY), 2), 0);
}

/* A waiter gets the death in the message that grants the lock. */
static void test_a_death_is_reported_in_the_message_when_a_waiter_inherits(void **state)
{
    struct who a = who("a"), b = who("b"), c = who("c");
    struct inbox *inbox = inbox_open("b");

    (void)state;
    acquire(&a, TRY);
    acquire(&b, QUEUE);
    release(&a, DIED);
    assert_string_equal(strstr(inbox_messages(inbox), " 1 " SERVER_RUN), " 1 " SERVER_RUN);
    release(&b, UNLOCKED);
    b.attempt = 2;
    b.is_robust = false;
    acquire(&a, TRY);
    acquire(&b, QUEUE);
    end_lease("x");
    poll_of(&c);
    assert_string_equal(strstr(inbox_messages(inbox), " 0 " SERVER_RUN), " 0 " SERVER_RUN);
    inbox_close(inbox);
}

/* Any caller that finds an ended lease with waiters grants to them, and reports the death. */
static void test_a_death_goes_to_the_waiters_when_a_newcomer_finds_it(void **state)
{
    struct who a = who("a"), b = who("b"), c = who("c");
    struct inbox *inbox = inbox_open("b");

    (void)state;
    acquire(&a, TRY);
    acquire(&b, QUEUE);
    end_lease("x");
    assert_answer(acquire(&c, TRY), "busy");
    assert_string_equal(strstr(inbox_messages(inbox), " 1 " SERVER_RUN), " 1 " SERVER_RUN);
    assert_string_equal(line_of(info("x"), 0), "b:1");
    inbox_close(inbox);
}

/* ---- dead oneself ------------------------------------------------------------------------ */

/* For the owner itself an ended lease is no death: put back, same token, full lease. */
static void test_the_lock_is_put_back_when_its_owner_comes_first(void **state)
{
    struct who a = who("a");

    (void)state;
    for (int way = 0; way < 4; way++) {
        long long token = number_of(acquire(&a, TRY), 1);
        const char *answer;

        end_lease("x");
        answer = way == 0   ? acquire(&a, QUEUE)
                 : way == 1 ? cancel(&a)
                 : way == 2 ? strchr(poll_of(&a), '\n') + 1
                            : renew(&a, 1, "1");
        if (way < 3) {
            assert_int_equal(number_of(answer, 1), token);
            assert_int_equal(number_of(answer, 2), 0);
        }
        assert_string_equal(line_of(info("x"), 0), "a:1");
        assert_within(number_of(info("x"), 2), LEASE / 2, LEASE);
        assert_int_equal(number_of(info("x"), 3), token);
        assert_null(strstr(dump(), "health"));
        release(&a, UNLOCKED);
        a.attempt++;
    }
}

/* POSIX scenario 52: a renewal puts nothing back once another has owned, or was broken. */
static void test_the_lock_is_not_put_back_when_another_came_after(void **state)
{
    struct who a = who("a"), b = who("b");

    (void)state;
    acquire(&a, TRY);
    end_lease("x");
    acquire(&b, TRY);
    assert_int_equal(number_of(renew(&a, 1, "1"), 1), 0);
    assert_string_equal(line_of(info("x"), 0), "b:1");
    release(&b, UNLOCKED);
    assert_int_equal(number_of(renew(&a, 1, "1"), 1), 0);
    assert_int_equal(command_number("EXISTS %s", key("lock", "x")), 0);
}

/* POSIX scenario 50: after a loss of all data the owner gets the lock back, with the same token. */
static void test_the_lock_is_put_back_when_all_data_is_gone(void **state)
{
    struct who a = who("a"), b = who("b");
    char token[32];

    (void)state;
    snprintf(token, sizeof token, "%s", line_of(acquire(&a, TRY), 1));
    command("FLUSHALL");
    assert_int_equal(number_of(renew(&a, 2, token), 1), 1);
    assert_string_equal(line_of(info("x"), 0), "a:1");
    assert_string_equal(line_of(info("x"), 3), token);
    assert_answer(acquire(&b, TRY), "busy");
    assert_int_equal(number_of(renew(&a, 2, token), 1), 1);
    assert_answer(release(&a, UNLOCKED), "released");
}

/* I1: after a loss of all data the first caller owns, and the former owner learns of it. */
static void test_the_owner_has_lost_when_another_came_first_after_a_loss_of_data(void **state)
{
    struct who a = who("a"), b = who("b");

    (void)state;
    acquire(&a, TRY);
    command("FLUSHALL");
    acquire(&b, TRY);
    assert_int_equal(number_of(renew(&a, 1, "1"), 1), 0);
    release(&b, UNLOCKED);
    assert_int_equal(number_of(renew(&a, 1, "1"), 1), 0);
}

/* ---- not recoverable --------------------------------------------------------------------- */

/* POSIX scenario 38: unlocked without consistent, the lock goes to no process, robust or not, by any call. */
static void test_nobody_owns_when_the_lock_is_not_recoverable(void **state)
{
    struct who a = who("a"), b = who("b");

    (void)state;
    acquire(&a, TRY);
    assert_answer(release(&a, NOT_RECOVERABLE), "released");
    for (int i = 0; i < 4; i++) {
        b.is_robust = i & 1;
        assert_answer(acquire(&b, i & 2 ? QUEUE : TRY), "notrecoverable");
    }
    assert_string_equal(health(), "2");
    assert_int_equal(command_number("EXISTS %s %s", key("lock", "x"), key("queue", "x")), 0);
}

/* POSIX scenario 38: waiters learn it at once, 16 from the release and the others from the 16. */
static void test_waiters_fail_when_the_lock_is_not_recoverable(void **state)
{
    struct who a = who("a"), b[40];
    struct inbox *inbox = inbox_open("b");
    int told = 0;

    (void)state;
    acquire(&a, TRY);
    for (int i = 0; i < 40; i++) {
        b[i] = who("b");
        b[i].thread = b[i].attempt = i + 1;
        acquire(&b[i], QUEUE);
    }
    release(&a, NOT_RECOVERABLE);
    while (told < 40) {
        char messages[512];
        int attempt, used, at = 0;

        snprintf(messages, sizeof messages, "%s", inbox_messages(inbox));
        assert_true(messages[0]);
        while (sscanf(messages + at, "ask %d%n", &attempt, &used) == 1) {
            at += used + (messages[at + used] == '\n');
            assert_within(attempt, 1, 40);
            told +=
                strcmp(line_of(poll_of(&b[attempt - 1]), 1), "notrecoverable") == 0 && b[attempt - 1].request++ == 1;
        }
    }
    assert_int_equal(command_number("ZCARD %s", key("queue", "x")), 0);
    inbox_close(inbox);
}

/* destroy() makes the name clean again, and tokens keep rising. */
static void test_the_lock_is_usable_again_when_dropped_clean(void **state)
{
    struct who a = who("a"), b = who("b");
    const char *answer;

    (void)state;
    acquire(&a, TRY);
    set_token("3000000000000000");
    release(&a, NOT_RECOVERABLE);
    assert_string_equal(drop("x", "clean"), "1");
    answer = acquire(&b, TRY);
    assert_answer(answer, "owned");
    assert_string_equal(line_of(answer, 1), "3000000000000001");
    assert_int_equal(number_of(answer, 2), 0);
}

/* I9: dropping with `clean` clears "not recoverable"; the next robust owner still gets a death. */
static void test_a_death_is_still_reported_when_dropped_clean(void **state)
{
    struct who a = who("a"), b = who("b");

    (void)state;
    acquire(&a, TRY);
    release(&a, DIED);
    drop("x", "clean");
    assert_int_equal(number_of(acquire(&b, TRY), 2), 1);
}

/* A lock that is held or waited for is not dropped; a lock with only ghosts as waiters is dropped. */
static void test_nothing_is_dropped_when_it_is_in_use(void **state)
{
    static const char *const ways[] = { "clean", "delete" };
    struct inbox *holder = inbox_open("a"), *waiter;
    struct who a = who("a"), b = who("b");

    (void)state;
    for (int way = 0; way < 2; way++) {
        const char *before;

        acquire(&a, TRY);
        acquire(&b, QUEUE);
        before = dump();
        assert_string_equal(drop("x", ways[way]), "0");
        release(&a, UNLOCKED);
        waiter = inbox_open("b"); /* too late to be granted the lock */
        before = dump();
        assert_string_equal(drop("x", ways[way]), "0");
        assert_string_equal(dump(), before);
        inbox_close(waiter);
        age(&b, 2 * LEASE + 1);
        assert_string_equal(drop("x", ways[way]), "1");
        release(&b, UNLOCKED);
    }
    assert_string_equal(dump(), "");
    inbox_close(holder);
}

/*
 * A waiter without an inbox keeps no anonymous mutex, however many such waiters there are; such a waiter keeps a named
 * mutex.
 */
static void test_an_anonymous_lock_is_dropped_when_only_the_dead_wait(void **state)
{
    struct who a = who("a"), b = who("b"), c = who("c");
    struct inbox *inbox;

    (void)state;
    acquire(&a, TRY);
    for (b.thread = 1; b.thread <= 40; b.thread++)
        acquire(&b, QUEUE);
    acquire(&c, QUEUE);
    release(&a, UNLOCKED);
    assert_string_equal(drop("x", "clean"), "0");
    inbox = inbox_open("c");
    assert_string_equal(drop("x", "delete"), "0");
    inbox_close(inbox);
    assert_string_equal(drop("x", "delete"), "1");
    assert_string_equal(dump(), "");
}

/* A lock that was granted by an answer, not by a message, has an owner, whether or not the server knows its inbox. */
static void test_no_held_lock_is_dropped_when_its_owner_has_no_inbox(void **state)
{
    struct who a = who("a"), b = who("b");
    const char *before;

    (void)state;
    acquire(&a, TRY);
    before = dump();
    assert_string_equal(drop("x", "delete"), "0");
    assert_string_equal(dump(), before);
    acquire(&b, QUEUE);
    assert_string_equal(drop("x", "delete"), "0");
    release(&b, UNLOCKED);
    release(&a, UNLOCKED);
    assert_string_equal(drop("x", "delete"), "1");
}

/*
 * A lock that a message has given to a waiter without an inbox since has no owner, until the waiter is heard of. The
 * keys end with the lease, not before.
 */
static void test_a_lock_is_dropped_when_it_was_granted_to_the_dead(void **state)
{
    struct who a = who("a"), b = who("b");

    (void)state;
    for (int is_usual = 0; is_usual < 2; is_usual++) { /* the handoff that is written out, or serve() */
        for (int is_heard = 0; is_heard < 2; is_heard++) {
            struct inbox *inbox = inbox_open("b");

            acquire(&a, TRY);
            acquire(&b, QUEUE);
            if (!is_usual)
                command("HSET %s cursor 0", key("state", "x"));
            release(&a, UNLOCKED);
            assert_memory_equal(inbox_messages(inbox), "granted 1 1 ", 12);
            assert_string_equal(drop("x", "clean"), "0");
            assert_string_equal(drop("x", "delete"), "0");
            inbox_close(inbox);
            if (is_heard) {
                command("PEXPIRE %s %d", key("lock", "x"), LEASE - 5000); /* five seconds have passed */
                command("HINCRBY %s token -5000000", key("state", "x"));
                command("HINCRBY %s told -5000000", key("state", "x"));
                poll_of(&b);
                assert_string_equal(drop("x", "delete"), "0");
            } else {
                assert_string_equal(drop("x", "clean"), "0");
                assert_string_equal(drop("x", "delete"), "1");
                assert_within(lifetime("lock", "x"), 1, LEASE);
                assert_within(lifetime("state", "x"), 1, LEASE);
                assert_int_equal(size_of("queue", "x"), 0);
            }
            release(&b, UNLOCKED);
            assert_string_equal(drop("x", "delete"), "1");
            assert_string_equal(dump(), "");
        }
    }
}

/* ---- force ------------------------------------------------------------------------------- */

/* A broken lock: the owner is notified, tokens rise, the next robust owner learns of the break. */
static void test_force_breaks_the_lock_when_held(void **state)
{
    struct who a = who("a"), b = who("b");
    struct inbox *inbox = inbox_open("a");
    long long token = number_of(acquire(&a, TRY), 1);
    const char *answer;

    (void)state;
    answer = force("x");
    assert_answer(answer, "broken");
    assert_int_equal(number_of(answer, 1), 0);
    assert_string_equal(inbox_messages(inbox), "lost 1");
    assert_true(number_of(info("x"), 3) > token);
    assert_string_equal(hold_of_leaf("x"), "");
    assert_answer(release(&a, UNLOCKED), "notowner");
    answer = acquire(&b, TRY);
    assert_true(number_of(answer, 1) > token);
    assert_int_equal(number_of(answer, 2), 1);
    inbox_close(inbox);
}

/* A break serves the waiters. */
static void test_force_grants_to_the_waiter_when_there_is_one(void **state)
{
    struct who a = who("a"), b = who("b");
    struct inbox *inbox = inbox_open("b");

    (void)state;
    acquire(&a, TRY);
    acquire(&b, QUEUE);
    assert_answer(force("x"), "broken");
    assert_memory_equal(inbox_messages(inbox), "granted 1 1 ", 12);
    assert_string_equal(line_of(info("x"), 0), "b:1");
    inbox_close(inbox);
}

/* Nothing to break changes nothing. */
static void test_force_changes_nothing_when_the_lock_is_free(void **state)
{
    struct who a = who("a");
    const char *before;

    (void)state;
    assert_answer(force("x"), "free");
    assert_string_equal(dump(), "");
    acquire(&a, TRY);
    release(&a, UNLOCKED);
    before = dump();
    assert_answer(force("x"), "free");
    assert_string_equal(dump(), before);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        SCRIPT_TEST(test_a_death_is_passed_to_the_next_robust_owner_when_the_lease_ended),
        SCRIPT_TEST(test_a_death_is_reported_when_the_server_has_ended_the_lease),
        SCRIPT_TEST(test_a_death_is_passed_to_the_next_robust_owner_when_it_was_reported),
        SCRIPT_TEST(test_a_death_is_reported_once_when_made_consistent),
        SCRIPT_TEST(test_a_death_is_reported_again_when_the_next_owner_dies_too),
        SCRIPT_TEST(test_a_death_is_reported_again_when_the_next_owner_asks_again),
        SCRIPT_TEST(test_a_death_is_cleared_when_the_next_owner_is_not_robust),
        SCRIPT_TEST(test_a_death_is_reported_in_the_message_when_a_waiter_inherits),
        SCRIPT_TEST(test_a_death_goes_to_the_waiters_when_a_newcomer_finds_it),
        SCRIPT_TEST(test_the_lock_is_put_back_when_its_owner_comes_first),
        SCRIPT_TEST(test_the_lock_is_not_put_back_when_another_came_after),
        SCRIPT_TEST(test_the_lock_is_put_back_when_all_data_is_gone),
        SCRIPT_TEST(test_the_owner_has_lost_when_another_came_first_after_a_loss_of_data),
        SCRIPT_TEST(test_nobody_owns_when_the_lock_is_not_recoverable),
        SCRIPT_TEST(test_waiters_fail_when_the_lock_is_not_recoverable),
        SCRIPT_TEST(test_the_lock_is_usable_again_when_dropped_clean),
        SCRIPT_TEST(test_a_death_is_still_reported_when_dropped_clean),
        SCRIPT_TEST(test_an_anonymous_lock_is_dropped_when_only_the_dead_wait),
        SCRIPT_TEST(test_no_held_lock_is_dropped_when_its_owner_has_no_inbox),
        SCRIPT_TEST(test_a_lock_is_dropped_when_it_was_granted_to_the_dead),
        SCRIPT_TEST(test_nothing_is_dropped_when_it_is_in_use),
        SCRIPT_TEST(test_force_breaks_the_lock_when_held),
        SCRIPT_TEST(test_force_grants_to_the_waiter_when_there_is_one),
        SCRIPT_TEST(test_force_changes_nothing_when_the_lock_is_free),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, scripts_group_setup, scripts_group_teardown);
}
