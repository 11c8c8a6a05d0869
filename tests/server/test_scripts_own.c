/* SPDX-License-Identifier: BSD-2-Clause */
/* The Lua scripts: the owner of a lock, the time of the hold, and the rights of an attempt that is over. */
#include <stdio.h>
#include <string.h>

#include "scripts.h"

/* The rest of the lease that the server still grants the owner, in ms. */
static long long lease_left(void)
{
    return command_number("PTTL %s", key("lock", "x"));
}

/* ---- one owner --------------------------------------------------------------------------- */

/* A free lock is had at once, with the owner's lease and a token; others get "busy". */
static void test_acquire_owns_when_the_lock_is_free(void **state)
{
    struct who a = who("a"), b = who("b");
    const char *answer = acquire(&a, TRY);

    (void)state;
    assert_answer(answer, "owned");
    assert_true(number_of(answer, 1) > 0);
    assert_int_equal(number_of(answer, 2), 0);
    assert_string_equal(owner("x"), "a:1");
    assert_within(lease_left(), LEASE / 2, LEASE);
    answer = acquire(&b, TRY);
    assert_answer(answer, "busy");
    assert_within(number_of(answer, 1), LEASE / 2, LEASE);
    assert_string_equal(owner("x"), "a:1");
}

/* Threads of one process exclude each other as threads of two processes do. */
static void test_acquire_is_busy_when_another_thread_of_the_process_owns(void **state)
{
    struct who one = who("a"), two = who("a");

    (void)state;
    two.thread = 2;
    two.attempt = 2;
    assert_answer(acquire(&one, TRY), "owned");
    assert_answer(acquire(&two, TRY), "busy");
}

/* Every answer "you own it" gives a whole lease from that moment, and the same token. */
static void test_the_owner_has_a_full_lease_when_the_answer_says_owned(void **state)
{
    struct who a = who("a");
    long long token = number_of(acquire(&a, TRY), 1);
    const char *answers[4];

    (void)state;
    for (int i = 0; i < 4; i++) {
        command("PEXPIRE %s 5000", key("lock", "x"));
        answers[i] = i == 0   ? acquire(&a, TRY)
                     : i == 1 ? acquire(&a, QUEUE)
                     : i == 2 ? cancel(&a)
                              : strchr(poll_of(&a), '\n') + 1;
        assert_answer(answers[i], "owned");
        assert_int_equal(number_of(answers[i], 1), token);
        assert_within(lease_left(), LEASE / 2, LEASE);
    }
}

/* A renewal gives a whole lease, and tells the server how deep the owner is. */
static void test_renew_gives_a_full_lease_when_owned(void **state)
{
    struct who a = who("a");

    (void)state;
    acquire(&a, TRY);
    command("PEXPIRE %s 5000", key("lock", "x"));
    assert_int_equal(number_of(renew(&a, 3, "1"), 1), 1);
    assert_within(lease_left(), LEASE / 2, LEASE);
    assert_int_equal(number_of(info("x"), 1), 3);
}

/* A renewal may ask for another lease, as near a max-hold: the server goes by the newest. */
static void test_renew_changes_the_lease_when_it_names_another(void **state)
{
    struct who a = who("a"), b = who("b");

    (void)state;
    acquire(&a, TRY);
    a.lease_ms = 7000;
    assert_int_equal(number_of(renew(&a, 1, "1"), 1), 1);
    assert_within(lease_left(), 1000, 7000);
    command("PERSIST %s", key("lock", "x"));
    assert_within(number_of(acquire(&b, TRY), 1), 1000, 7000);
}

/* More than the owner's lease, as after a step of the server's clock, is put right. */
static void test_the_lease_is_put_right_when_it_is_too_long(void **state)
{
    struct who a = who("a"), b = who("b"), c = who("c");

    (void)state;
    acquire(&a, TRY);
    assert_answer(acquire(&c, QUEUE), "queued");
    for (int i = 0; i < 3; i++) {
        if (i == 2)
            command("PERSIST %s", key("lock", "x"));
        else
            command("PEXPIRE %s 900000000", key("lock", "x"));
        if (i == 0)
            acquire(&b, TRY);
        else if (i == 1)
            acquire(&b, QUEUE);
        else
            poll_of(&c);
        assert_within(lease_left(), LEASE / 2, LEASE);
    }
}

/* ---- given back -------------------------------------------------------------------------- */

/* A release frees the lock, and says so if the caller is not the owner; the next owner has a new token. */
static void test_release_frees_the_lock_when_it_is_the_owners(void **state)
{
    struct who a = who("a"), b = who("b");
    long long token = number_of(acquire(&a, TRY), 1);

    (void)state;
    assert_answer(release(&a, UNLOCKED), "released");
    assert_int_equal(command_number("EXISTS %s", key("lock", "x")), 0);
    assert_true(number_of(acquire(&b, TRY), 1) > token);
}

/* I3: a release of anything but the present hold touches nothing. */
static void test_release_touches_nothing_when_not_the_owners(void **state)
{
    struct who a = who("a"), other = who("a"), thread = who("a"), b = who("b");
    const char *before;

    (void)state;
    acquire(&a, TRY);
    other.attempt = 2;
    thread.thread = 2;
    before = dump();
    for (int how = UNLOCKED; how <= NOT_RECOVERABLE; how++) {
        assert_answer(release(&other, how), "notowner");
        assert_answer(release(&thread, how), "notowner");
        assert_answer(release(&b, how), "notowner");
    }
    assert_string_equal(dump(), before);
}

/* An id that merely begins like the owner's is another id. */
static void test_release_touches_nothing_when_the_id_only_begins_alike(void **state)
{
    struct who a = who("a"), alike = who("a");
    const char *before;

    (void)state;
    a.attempt = 12;
    alike.attempt = 1;
    acquire(&a, TRY);
    before = dump();
    assert_answer(release(&alike, UNLOCKED), "notowner");
    assert_int_equal(number_of(renew(&alike, 1, "1"), 1), 0);
    assert_string_equal(consistent(&alike), "0");
    assert_string_equal(dump(), before);
}

/* The release of a waiting attempt leaves the queue. */
static void test_release_leaves_the_queue_when_it_waits(void **state)
{
    struct who a = who("a"), b = who("b");

    (void)state;
    acquire(&a, TRY);
    acquire(&b, QUEUE);
    assert_answer(release(&b, UNLOCKED), "left");
    assert_int_equal(command_number("EXISTS %s %s", key("queue", "x"), key("waiter", "x")), 0);
    assert_string_equal(owner("x"), "a:1");
}

/* I4: nothing makes an attempt hold again that was given back, died or was broken. */
static void test_an_attempt_never_holds_again_when_it_was_given_back(void **state)
{
    struct who a = who("a");

    (void)state;
    for (int end = 0; end < 3; end++) {
        long long token = number_of(acquire(&a, TRY), 1);

        assert_answer(end == 2 ? force("x") : release(&a, end), end == 2 ? "broken" : "released");
        assert_int_equal(number_of(renew(&a, 1, line_of(info("x"), 3)), 1), 0);
        assert_string_equal(line_of(poll_of(&a), 1), "unknown");
        assert_answer(cancel(&a), "left");
        assert_string_equal(consistent(&a), "0");
        assert_answer(release(&a, UNLOCKED), "notowner");
        assert_int_equal(command_number("EXISTS %s", key("lock", "x")), 0);
        a.attempt++;
        assert_true(number_of(acquire(&a, TRY), 1) > token);
        release(&a, UNLOCKED);
        a.attempt++;
    }
}

/* POSIX scenario 13: a release that comes late does not free the newer hold of the same thread. */
static void test_release_touches_nothing_when_its_thread_owns_again(void **state)
{
    struct who first = who("a"), again = who("a");

    (void)state;
    again.attempt = 2;
    acquire(&first, TRY);
    release(&first, UNLOCKED);
    acquire(&again, TRY);
    assert_answer(release(&first, UNLOCKED), "notowner");
    assert_string_equal(owner("x"), "a:1");
}

/* ---- releases that an acquire names ------------------------------------------------------ */

/* An unanswered release is done first; the lock is not busy because of the caller's own hold. */
static void test_acquire_does_the_named_releases_first(void **state)
{
    struct who old = who("a"), next = who("a");
    long long token = number_of(acquire(&old, TRY), 1);
    const char *answer;

    (void)state;
    next.attempt = 2;
    answer = acquire_naming(&next, TRY, "1:1:0");
    assert_answer(answer, "owned");
    assert_true(number_of(answer, 1) > token);
    assert_int_equal(number_of(answer, 2), 0);
    assert_answer(release(&old, UNLOCKED), "notowner");
    assert_string_equal(owner("x"), "a:1");
}

/* A named death is passed to the next owner, a named "not recoverable" to all. */
static void test_acquire_ends_the_named_hold_as_it_ended(void **state)
{
    struct who old = who("a"), next = who("a");

    (void)state;
    next.attempt = 2;
    acquire(&old, TRY);
    assert_int_equal(number_of(acquire_naming(&next, TRY, "1:1:1"), 2), 1);
    next.attempt = 3;
    assert_answer(acquire_naming(&next, TRY, "1:2:2"), "notrecoverable");
    assert_int_equal(command_number("EXISTS %s", key("lock", "x")), 0);
}

/* Attempts are the process's own; a number of another process is another attempt. */
static void test_acquire_touches_no_other_process_when_it_names_a_number(void **state)
{
    struct who a = who("a"), b = who("b"), aa = who("aa");

    (void)state;
    acquire(&a, TRY);
    b.attempt = aa.attempt = 2;
    assert_answer(acquire_naming(&b, TRY, "1:1:0"), "busy");
    assert_answer(acquire_naming(&aa, TRY, "1:1:0"), "busy");
    assert_string_equal(owner("x"), "a:1");
}

/* Waiters before the caller come first also when the named hold was the caller's own. */
static void test_acquire_joins_the_queue_last_when_it_named_its_hold(void **state)
{
    struct who old = who("a"), b = who("b"), next = who("a");
    struct inbox *inbox = inbox_open("b");

    (void)state;
    next.attempt = 2;
    acquire(&old, TRY);
    acquire(&b, QUEUE);
    assert_answer(acquire_naming(&next, QUEUE, "1:1:0"), "queued");
    assert_string_equal(owner("x"), "b:1");
    assert_memory_equal(inbox_messages(inbox), "granted 1 1 ", 12);
    inbox_close(inbox);
}

/* A named attempt that waits is out of the queue, and is not granted the lock. */
static void test_acquire_removes_the_named_attempt_when_it_waits(void **state)
{
    struct who a = who("a"), ghost = who("b"), next = who("b");
    struct inbox *inbox = inbox_open("b");

    (void)state;
    next.attempt = 2;
    acquire(&a, TRY);
    acquire(&ghost, QUEUE);
    end_lease("x");
    assert_answer(acquire_naming(&next, TRY, "1:1:0"), "owned");
    assert_int_equal(command_number("ZCARD %s", key("queue", "x")), 0);
    assert_string_equal(inbox_messages(inbox), "");
    inbox_close(inbox);
}

/* ---- info -------------------------------------------------------------------------------- */

/* All that the server knows, of a held lock, a free lock and an unknown lock. */
static void test_info_shows_everything_when_asked(void **state)
{
    struct who a = who("a"), b = who("b");
    const char *answer = info("x");
    long long token;

    (void)state;
    assert_string_equal(line_of(answer, 0), "");
    assert_int_equal(number_of(answer, 3), 0);
    token = number_of(acquire(&a, TRY), 1);
    acquire(&b, QUEUE);
    renew(&a, 4, "1");
    answer = info("x");
    assert_string_equal(line_of(answer, 0), "a:1");
    assert_int_equal(number_of(answer, 1), 4);
    assert_within(number_of(answer, 2), LEASE / 2, LEASE);
    assert_int_equal(number_of(answer, 3), token);
    assert_string_equal(line_of(answer, 4), "1 host program");
    assert_int_equal(number_of(answer, 5), 1);
    assert_int_equal(number_of(answer, 6), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        SCRIPT_TEST(test_acquire_owns_when_the_lock_is_free),
        SCRIPT_TEST(test_acquire_is_busy_when_another_thread_of_the_process_owns),
        SCRIPT_TEST(test_the_owner_has_a_full_lease_when_the_answer_says_owned),
        SCRIPT_TEST(test_renew_gives_a_full_lease_when_owned),
        SCRIPT_TEST(test_renew_changes_the_lease_when_it_names_another),
        SCRIPT_TEST(test_the_lease_is_put_right_when_it_is_too_long),
        SCRIPT_TEST(test_release_frees_the_lock_when_it_is_the_owners),
        SCRIPT_TEST(test_release_touches_nothing_when_not_the_owners),
        SCRIPT_TEST(test_release_touches_nothing_when_the_id_only_begins_alike),
        SCRIPT_TEST(test_release_leaves_the_queue_when_it_waits),
        SCRIPT_TEST(test_an_attempt_never_holds_again_when_it_was_given_back),
        SCRIPT_TEST(test_release_touches_nothing_when_its_thread_owns_again),
        SCRIPT_TEST(test_acquire_does_the_named_releases_first),
        SCRIPT_TEST(test_acquire_ends_the_named_hold_as_it_ended),
        SCRIPT_TEST(test_acquire_touches_no_other_process_when_it_names_a_number),
        SCRIPT_TEST(test_acquire_joins_the_queue_last_when_it_named_its_hold),
        SCRIPT_TEST(test_acquire_removes_the_named_attempt_when_it_waits),
        SCRIPT_TEST(test_info_shows_everything_when_asked),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, scripts_group_setup, scripts_group_teardown);
}
