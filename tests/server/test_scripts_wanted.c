/* SPDX-License-Identifier: BSD-2-Clause */
/* The Lua scripts: marked holds, whose owner is notified of the first waiter, and whose end may not be a death. */
#include <stdio.h>
#include <string.h>

#include "scripts.h"

/* The thread of an attempt has the lock, and has marked the hold. */
static void own_marked(struct who *who, const char *mark)
{
    assert_answer(acquire(who, TRY), "owned");
    who->mark = mark;
    assert_int_equal(number_of(renew(who, 1, "1"), 1), 1);
}

static const char *hold(void)
{
    return hold_of_leaf("x");
}

#define A_HOLD "a:1:1 60000 "
#define SIGNAL "@dmutex:{t}:cond:c "

static const char *const marks[] = { "+ ", "- " };

/* ---- the mark in the hold ---------------------------------------------------------------- */

/* A renewal writes its mark before the label; the newest renewal decides, also a renewal without a mark. */
static void test_a_renewal_marks_the_hold_when_it_has_a_mark(void **state)
{
    static const char *const turns[] = { "", "+ ", "- ", "- ", "+ ", "" };
    struct who a = who("a");
    char expected[80];

    (void)state;
    acquire(&a, TRY);
    for (size_t i = 0; i < sizeof turns / sizeof turns[0]; i++) {
        a.mark = turns[i];
        assert_int_equal(number_of(renew(&a, 1, "1"), 1), 1);
        snprintf(expected, sizeof expected, A_HOLD "%s1 host program", turns[i]);
        assert_string_equal(hold(), expected);
    }
}

/* The signal that brought the owner stays before the mark. */
static void test_a_signal_stays_before_the_mark_when_renewed(void **state)
{
    struct who a = who("a");
    struct inbox *inbox = inbox_open("a");

    (void)state;
    fall_asleep(&a);
    signal_one();
    assert_string_equal(owner("x"), "a:1");
    for (int i = 0; i < 2; i++) {
        a.mark = marks[i];
        renew(&a, 1, "1");
        assert_string_equal(strchr(hold(), '@'), i ? SIGNAL "- 1 host program" : SIGNAL "+ 1 host program");
        assert_string_equal(line_of(info("x"), 4), "1 host program");
        assert_int_equal(number_of(cond_cancel(&a), 4), 1); /* the attempt still knows of the signal */
    }
    inbox_close(inbox);
}

/* People see no mark. */
static void test_info_shows_the_label_alone_when_the_hold_is_marked(void **state)
{
    struct who a = who("a");

    (void)state;
    for (int i = 0; i < 2; i++) {
        own_marked(&a, marks[i]);
        assert_string_equal(line_of(info("x"), 4), "1 host program");
        assert_string_equal(line_of(info("x"), 0), "a:1");
        release(&a, UNLOCKED);
        a.attempt++;
    }
}

/* A count of 0: the process keeps the lock, and no thread is inside. */
static void test_info_counts_no_hold_when_the_lock_is_kept(void **state)
{
    struct who a = who("a");

    (void)state;
    own_marked(&a, "- ");
    assert_int_equal(number_of(renew(&a, 0, "1"), 1), 1);
    assert_int_equal(number_of(info("x"), 1), 0);
}

/* All that an owner can do is done by the owner of a marked hold, too: the attempt is known by its id. */
static void test_the_owner_is_known_when_the_hold_is_marked(void **state)
{
    struct who a = who("a"), next;

    (void)state;
    for (int i = 0; i < 2; i++) {
        own_marked(&a, marks[i]);
        assert_answer(acquire(&a, TRY), "owned");
        assert_answer(cancel(&a), "owned");
        assert_string_equal(line_of(poll_of(&a), 1), "owned");
        assert_string_equal(consistent(&a), "1");
        next = a;
        next.attempt++;
        assert_answer(cond_wait(&next, a.attempt), "waiting");
        a.attempt += 2;
    }
    own_marked(&a, "- ");
    assert_answer(release(&a, UNLOCKED), "released");
    assert_string_equal(hold(), "");
}

/* A server without data gets the mark back with the hold. */
static void test_a_renewal_brings_the_mark_when_the_data_is_gone(void **state)
{
    struct who a = who("a"), b = who("b");
    struct inbox *inbox = inbox_open("a");

    (void)state;
    own_marked(&a, "- ");
    command("FLUSHALL");
    assert_int_equal(number_of(renew(&a, 0, "77"), 1), 1);
    assert_string_equal(hold(), A_HOLD "- 1 host program");
    acquire(&b, QUEUE);
    assert_string_equal(inbox_messages(inbox), "wanted 1");
    inbox_close(inbox);
}

/* ---- the first waiter -------------------------------------------------------------------- */

/* The owner is notified of the first waiter, not of the second, and again of the first after the queue was empty. */
static void test_the_owner_is_notified_when_the_first_waiter_comes(void **state)
{
    struct who a = who("a"), b = who("b"), c = who("c");
    struct inbox *inbox = inbox_open("a");

    (void)state;
    for (int i = 0; i < 2; i++) {
        char expected[40];

        own_marked(&a, marks[i]);
        assert_answer(acquire(&b, QUEUE), "queued");
        snprintf(expected, sizeof expected, "wanted %lld", a.attempt);
        assert_string_equal(inbox_messages(inbox), expected);
        acquire(&b, QUEUE);
        acquire(&c, QUEUE);
        assert_string_equal(inbox_messages(inbox), "");
        cancel(&b);
        cancel(&c);
        assert_answer(acquire(&c, QUEUE), "queued");
        assert_string_equal(inbox_messages(inbox), expected);
        cancel(&c);
        release(&a, UNLOCKED);
        a.attempt++;
    }
    inbox_close(inbox);
}

/* The attempt's number is a text: Lua's numbers are exact up to 2^53 only. */
static void test_the_owner_gets_its_number_when_the_number_is_large(void **state)
{
    struct who a = who("a"), b = who("b");
    struct inbox *inbox = inbox_open("a");

    (void)state;
    a.attempt = 9223372036854775807;
    own_marked(&a, "+ ");
    acquire(&b, QUEUE);
    assert_string_equal(inbox_messages(inbox), "wanted 9223372036854775807");
    inbox_close(inbox);
}

/* Each way into the queue of a held mutex notifies: for example, an unusual acquire, or one with an arrival number. */
static void test_the_owner_is_notified_when_the_waiter_comes_back_to_its_place(void **state)
{
    struct who a = who("a"), b = who("b");
    struct inbox *inbox = inbox_open("a");

    (void)state;
    own_marked(&a, "- ");
    snprintf(b.arrival, sizeof b.arrival, "1700000000000000");
    assert_answer(acquire(&b, QUEUE), "queued");
    assert_string_equal(inbox_messages(inbox), "wanted 1");
    cancel(&b);
    b.arrival[0] = '\0';
    assert_answer(acquire_naming(&b, QUEUE, "1:7:0"), "queued");
    assert_string_equal(inbox_messages(inbox), "wanted 1");
    inbox_close(inbox);
}

/* A signal moves a waiter of a condition to the queue. */
static void test_the_owner_is_notified_when_a_signal_brings_the_first_waiter(void **state)
{
    struct who a = who("a"), b = who("b"), c = who("c");
    struct inbox *inbox = inbox_open("a"), *other = inbox_open("b");

    (void)state;
    fall_asleep(&b);
    fall_asleep(&c);
    own_marked(&a, "- ");
    assert_moved(signal_one(), 0, 0);
    assert_string_equal(inbox_messages(inbox), "wanted 1");
    assert_moved(signal_one(), 0, 0);
    assert_string_equal(inbox_messages(inbox), "");
    assert_int_equal(queued(), 2);
    inbox_close(other);
    inbox_close(inbox);
}

/* A broadcast brings several, and notifies once. */
static void test_the_owner_is_notified_once_when_a_broadcast_brings_waiters(void **state)
{
    struct who a = who("a"), b = who("b"), c = who("c");
    struct inbox *inbox = inbox_open("a");

    (void)state;
    fall_asleep(&b);
    fall_asleep(&c);
    own_marked(&a, "+ ");
    assert_moved(cond_signal("c", "x", 256, ""), 0, 0);
    assert_int_equal(queued(), 2);
    assert_string_equal(inbox_messages(inbox), "wanted 1");
    inbox_close(inbox);
}

/* A waiter of a condition that waits no longer wants the mutex. */
static void test_the_owner_is_notified_when_a_wait_on_a_condition_is_cancelled(void **state)
{
    struct who a = who("a"), b = who("b");
    struct inbox *inbox = inbox_open("a");

    (void)state;
    fall_asleep(&b);
    own_marked(&a, "- ");
    assert_answer(cond_cancel(&b), "queued");
    assert_string_equal(inbox_messages(inbox), "wanted 1");
    assert_answer(cond_cancel(&b), "queued");
    assert_string_equal(inbox_messages(inbox), "");
    inbox_close(inbox);
}

/* A poll that pays the debt of a dead receiver brings the next waiter of the condition. */
static void test_the_owner_is_notified_when_a_poll_pays_a_debt(void **state)
{
    struct who a = who("a"), b = who("b"), c = who("c");
    struct inbox *inbox = inbox_open("a");

    (void)state;
    fall_asleep(&b);
    fall_asleep(&c);
    signal_one(); /* c has no inbox, nor has b: b is moved, and polls for the mutex */
    assert_string_equal(line_of(cond_poll(&b), 1), "owned");
    assert_answer(release(&b, DIED), "released");
    own_marked(&a, "- ");
    assert_string_equal(line_of(cond_poll(&c), 1), "queued");
    assert_string_equal(inbox_messages(inbox), "wanted 1");
    inbox_close(inbox);
}

/* An owner that has not marked its hold is not notified, nor is the next owner: a grant writes an unmarked hold. */
static void test_nobody_is_notified_when_the_hold_is_not_marked(void **state)
{
    struct who a = who("a"), b = who("b"), c = who("c");
    struct inbox *inbox = inbox_open("a"), *next = inbox_open("b");

    (void)state;
    acquire(&a, TRY);
    acquire(&b, QUEUE);
    assert_string_equal(inbox_messages(inbox), "");
    release(&a, UNLOCKED);
    inbox_messages(next);
    acquire(&c, QUEUE);
    assert_string_equal(inbox_messages(next), "");
    cancel(&c);
    release(&b, UNLOCKED);
    a.attempt = b.attempt = 2;
    own_marked(&a, "- ");
    acquire(&b, QUEUE);
    release(&a, UNLOCKED);
    inbox_messages(next);
    assert_string_equal(hold(), "b:1:2 60000 1 host program");
    acquire(&c, QUEUE);
    assert_string_equal(inbox_messages(next), "");
    inbox_close(next);
    inbox_close(inbox);
}

/* A try asks for the lease, for a later try; after a waiter, of which the owner knows, it notifies nobody. */
static void test_the_owner_is_notified_when_the_caller_only_tries(void **state)
{
    struct who a = who("a"), b = who("b"), c = who("c");
    struct inbox *inbox = inbox_open("a");

    (void)state;
    own_marked(&a, "- ");
    assert_answer(acquire(&b, TRY), "busy");
    assert_string_equal(inbox_messages(inbox), "wanted 1");
    assert_answer(acquire(&c, QUEUE), "queued");
    assert_string_equal(inbox_messages(inbox), "wanted 1");
    assert_answer(acquire(&b, TRY), "busy");
    assert_string_equal(inbox_messages(inbox), "");
    inbox_close(inbox);
}

/* A renewal that marks the hold is answered "others wait", if others wait already; so is each later renewal. */
static void test_the_owner_is_answered_when_others_wait_already(void **state)
{
    struct who a = who("a"), b = who("b");

    (void)state;
    acquire(&a, TRY);
    acquire(&b, QUEUE);
    a.mark = "- ";
    assert_int_equal(number_of(renew(&a, 1, "1"), 1), 2);
    assert_int_equal(number_of(renew(&a, 1, "1"), 1), 2);
}

/* A holder that gave back and owns again by the same call, and a holder whose only waiter has left, are not wanted. */
static void test_the_owner_is_not_answered_when_the_last_waiter_has_left(void **state)
{
    struct who a = who("a"), b = who("b");

    (void)state;
    acquire(&a, TRY);
    a.attempt = 2;
    assert_answer(acquire_naming(&a, QUEUE, "1:1:0"), "owned");
    a.mark = "- ";
    assert_int_equal(number_of(renew(&a, 1, "1"), 1), 1);
    acquire(&b, QUEUE);
    assert_int_equal(number_of(renew(&a, 1, "1"), 1), 2);
    cancel(&b);
    assert_int_equal(number_of(renew(&a, 1, "1"), 1), 1);
}

/* The renewal of a hold whose queue another program has overwritten counts, and so do the others in the call. */
static void test_a_marked_hold_is_confirmed_when_the_queue_is_no_queue(void **state)
{
    struct who a = who("a"), b = who("b");

    (void)state;
    acquire(&a, TRY);
    acquire(&b, QUEUE);
    command("SET %s x", key("queue", "x"));
    a.mark = "- ";
    assert_int_equal(number_of(renew(&a, 1, "1"), 1), 1);
}

/* A missing right to publish stops no acquire; the renewal then reports the waiter. */
static void test_a_waiter_waits_when_the_owner_cannot_be_notified(void **state)
{
    struct who a = who("a"), b = who("b"), c = who("c");

    (void)state;
    own_marked(&a, "- ");
    become("-publish");
    assert_answer(acquire(&b, QUEUE), "queued");
    cancel(&b);
    snprintf(c.arrival, sizeof c.arrival, "1700000000000000");
    assert_answer(acquire(&c, QUEUE), "queued");
    become_nobody_special();
    assert_int_equal(number_of(renew(&a, 1, "1"), 1), 2);
}

/* ---- ends -------------------------------------------------------------------------------- */

/*
 * The end of the lease is a death for an unmarked hold, and with "+ "; with "- " it is none, whichever call finds it.
 */
static void test_the_end_of_a_lease_is_a_death_unless_the_mark_says_no(void **state)
{
    static const char *const all[] = { "", "+ ", "- " };
    struct who a = who("a"), b = who("b");

    (void)state;
    for (int mark = 0; mark < 3; mark++) {
        for (int way = 0; way < 3; way++) {
            own_marked(&a, all[mark]);
            end_lease("x");
            assert_int_equal(number_of(info("x"), 6), mark < 2);
            if (way == 2)
                poll_serving("x");
            assert_int_equal(number_of(info("x"), 6), mark < 2);
            assert_int_equal(number_of(acquire(&b, way ? QUEUE : TRY), 2), mark < 2);
            consistent(&b);
            release(&b, UNLOCKED);
            a.attempt++;
            b.attempt++;
        }
    }
}

/* A waiter is granted the lock without a death, in the message and in the hold. */
static void test_a_waiter_inherits_no_death_when_the_mark_says_so(void **state)
{
    struct who a = who("a"), b = who("b"), c = who("c");
    struct inbox *inbox = inbox_open("b");

    (void)state;
    own_marked(&a, "- ");
    acquire(&b, QUEUE);
    end_lease("x");
    poll_of(&c);
    assert_string_equal(strstr(inbox_messages(inbox), " 0 " SERVER_RUN), " 0 " SERVER_RUN);
    assert_string_equal(owner("x"), "b:1");
    assert_string_equal(command("HGET %s health", key("state", "x")), "");
    inbox_close(inbox);
}

/* The mark is about the end of the lease only: a reported death is a death, and a broken lock, too. */
static void test_a_death_is_passed_on_when_it_is_reported_or_forced(void **state)
{
    struct who a = who("a"), b = who("b");

    (void)state;
    for (int way = 0; way < 2; way++) {
        own_marked(&a, "- ");
        assert_answer(way ? force("x") : release(&a, DIED), way ? "broken" : "released");
        assert_int_equal(number_of(acquire(&b, TRY), 2), 1);
        consistent(&b);
        release(&b, UNLOCKED);
        a.attempt++;
        b.attempt++;
    }
}

/* I7: the signal of an owner whose lease ended is owed, with any mark: at most a spurious wake-up. */
static void test_a_signal_is_owed_when_the_lease_of_a_marked_hold_ended(void **state)
{
    struct who a = who("a"), b = who("b");

    (void)state;
    for (int i = 0; i < 2; i++) {
        fall_asleep(&a);
        fall_asleep(&b);
        signal_one();
        assert_string_equal(line_of(cond_poll(&a), 1), "owned");
        a.mark = marks[i];
        renew(&a, 1, "1");
        end_lease("x");
        assert_string_equal(line_of(cond_poll(&b), 1), "owned"); /* moved to the queue, and the lock is free */
        release(&b, UNLOCKED);
        a.attempt++;
        b.attempt++;
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        SCRIPT_TEST(test_a_renewal_marks_the_hold_when_it_has_a_mark),
        SCRIPT_TEST(test_a_signal_stays_before_the_mark_when_renewed),
        SCRIPT_TEST(test_info_shows_the_label_alone_when_the_hold_is_marked),
        SCRIPT_TEST(test_info_counts_no_hold_when_the_lock_is_kept),
        SCRIPT_TEST(test_the_owner_is_known_when_the_hold_is_marked),
        SCRIPT_TEST(test_a_renewal_brings_the_mark_when_the_data_is_gone),
        SCRIPT_TEST(test_the_owner_is_notified_when_the_first_waiter_comes),
        SCRIPT_TEST(test_the_owner_gets_its_number_when_the_number_is_large),
        SCRIPT_TEST(test_the_owner_is_notified_when_the_waiter_comes_back_to_its_place),
        SCRIPT_TEST(test_the_owner_is_notified_when_a_signal_brings_the_first_waiter),
        SCRIPT_TEST(test_the_owner_is_notified_once_when_a_broadcast_brings_waiters),
        SCRIPT_TEST(test_the_owner_is_notified_when_a_wait_on_a_condition_is_cancelled),
        SCRIPT_TEST(test_the_owner_is_notified_when_a_poll_pays_a_debt),
        SCRIPT_TEST(test_nobody_is_notified_when_the_hold_is_not_marked),
        SCRIPT_TEST(test_the_owner_is_notified_when_the_caller_only_tries),
        SCRIPT_TEST(test_the_owner_is_answered_when_others_wait_already),
        SCRIPT_TEST(test_the_owner_is_not_answered_when_the_last_waiter_has_left),
        SCRIPT_TEST(test_a_marked_hold_is_confirmed_when_the_queue_is_no_queue),
        SCRIPT_TEST(test_a_waiter_waits_when_the_owner_cannot_be_notified),
        SCRIPT_TEST(test_the_end_of_a_lease_is_a_death_unless_the_mark_says_no),
        SCRIPT_TEST(test_a_waiter_inherits_no_death_when_the_mark_says_so),
        SCRIPT_TEST(test_a_death_is_passed_on_when_it_is_reported_or_forced),
        SCRIPT_TEST(test_a_signal_is_owed_when_the_lease_of_a_marked_hold_ended),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, scripts_group_setup, scripts_group_teardown);
}
