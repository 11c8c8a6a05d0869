/* SPDX-License-Identifier: BSD-2-Clause */
/* The Lua scripts: tokens rise over all holds of a name, and an invalid token is refused. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "scripts.h"

#define TWO_TO_THE_52 "4503599627370496"
#define LAST_TOKEN "4503599627370494"

static long long wall_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * 1000000LL + now.tv_nsec / 1000;
}

/* I2: a token is above the last one, above all that the caller has seen, and no less than the time. */
static void test_a_token_is_above_all_before_when_given(void **state)
{
    struct who a = who("a");
    long long now, token;

    (void)state;
    now = number_of(acquire(&a, TRY), 3);
    token = number_of(info("x"), 3);
    assert_true(token >= now - 1577836800000000); /* of 2020 */
    release(&a, UNLOCKED);
    set_token("3000000000000000");
    a.attempt = 2;
    assert_string_equal(line_of(acquire(&a, TRY), 1), "3000000000000001");
    release(&a, UNLOCKED);
    a.attempt = 3;
    a.seen = "4000000000000000";
    assert_string_equal(line_of(acquire(&a, TRY), 1), "4000000000000001");
}

/* The token that a waiter has seen counts when the waiter is granted the lock. */
static void test_a_token_is_above_what_the_waiter_has_seen_when_granted(void **state)
{
    struct who a = who("a"), b = who("b");
    struct inbox *inbox = inbox_open("b");

    (void)state;
    b.seen = "4000000000000000";
    acquire(&a, TRY);
    acquire(&b, QUEUE);
    release(&a, UNLOCKED);
    assert_non_null(strstr(inbox_messages(inbox), " 4000000000000001 "));
    assert_string_equal(line_of(info("x"), 3), "4000000000000001");
    inbox_close(inbox);
}

/* I2: over a loss of all data, or a restart without persistence, the callers' knowledge counts. */
static void test_tokens_rise_when_the_server_has_lost_its_data(void **state)
{
    struct who a = who("a");
    long long token;

    (void)state;
    set_token("3000000000000000"); /* the clock was ahead then, and is set back now */
    for (int loss = 0; loss < 3; loss++) {
        char seen[32];

        token = number_of(acquire(&a, TRY), 1);
        snprintf(seen, sizeof seen, "%lld", token);
        release(&a, UNLOCKED);
        if (loss == 0) {
            command("FLUSHALL");
        } else {
            server_kill(the_server);
            server_restart(the_server);
            scripts_reconnect();
        }
        a.attempt++;
        a.seen = seen;
        assert_true(number_of(acquire(&a, TRY), 1) > token);
        release(&a, UNLOCKED);
        a.seen = "0";
        a.attempt++;
    }
}

/* I2: the clock alone makes tokens rise when everything else is lost. */
static void test_tokens_rise_with_the_clock_when_nobody_is_left(void **state)
{
    struct who a = who("a"), b = who("b");
    long long token = number_of(acquire(&a, TRY), 1);

    (void)state;
    command("FLUSHALL");
    assert_true(number_of(acquire(&b, TRY), 1) > token);
}

/* I2: a token counts the microseconds since 2020; for a name with a larger token the next is one more. */
static void test_a_token_is_the_time_since_2020_when_none_is_larger(void **state)
{
    struct who a = who("a"), b = who("b");
    struct inbox *inbox = inbox_open("b");
    long long before = wall_us() - 1577836800000000, token = number_of(acquire(&a, TRY), 1);

    (void)state;
    assert_within(token, before, before + 3600000000LL);
    acquire(&b, QUEUE);
    release(&a, UNLOCKED);
    assert_within(number_of(info("x"), 3), token + 1, token + 3600000000LL);
    release(&b, UNLOCKED);
    set_token("1790000000000000"); /* microseconds since 1970, of version 0.1.0 */
    a.attempt++;
    assert_string_equal(line_of(acquire(&a, TRY), 1), "1790000000000001");
    b.attempt++;
    acquire(&b, QUEUE);
    release(&a, UNLOCKED);
    assert_string_equal(line_of(info("x"), 3), "1790000000000002");
    inbox_close(inbox);
}

/*
 * A state whose tokens continue from a larger one lives for another week, too: their days do not change with the
 * clock's.
 */
static void test_a_state_lives_for_a_week_when_its_tokens_are_above_the_clock(void **state)
{
    struct who a = who("a");

    (void)state;
    acquire(&a, TRY);
    release(&a, UNLOCKED);
    set_token("1790000000000000");
    command("PEXPIRE %s 100000", key("state", "x"));
    a.attempt++;
    acquire(&a, TRY);
    assert_within(lifetime("state", "x"), 604000000, 604800000);
}

/* A token beyond 2^52 is refused before anything is written. */
static void test_a_token_is_refused_when_it_is_beyond_two_to_the_52(void **state)
{
    struct who a = who("a"), b = who("b");
    const char *before;

    (void)state;
    acquire(&a, TRY);
    set_token(TWO_TO_THE_52);
    before = dump();
    assert_answer(acquire(&b, TRY), "error");
    assert_non_null(strstr(acquire(&b, QUEUE), "DMSTATE"));
    assert_answer(cancel(&b), "error");
    assert_answer(force("x"), "error");
    assert_string_equal(dump(), before);
    end_lease("x");
    before = dump();
    assert_answer(acquire(&b, TRY), "error");
    assert_string_equal(dump(), before);
}

/* A caller's claim of a seen token is no way to break the tokens for all. */
static void test_a_token_is_refused_when_the_caller_has_seen_too_much(void **state)
{
    static const char *const seen[] = { TWO_TO_THE_52, "18446744073709551615", "1e300" };
    struct who a = who("a"), b = who("b");

    (void)state;
    for (size_t i = 0; i < sizeof seen / sizeof seen[0]; i++) {
        a.attempt++;
        a.seen = seen[i];
        acquire(&a, TRY);
        release(&a, UNLOCKED);
        b.attempt++;
        assert_answer(acquire(&b, TRY), "owned");
        release(&b, UNLOCKED);
    }
}

/* The highest token that can be given is renewed and given back, and nothing is written that no script can read. */
static void test_nobody_is_granted_the_lock_when_no_token_can_follow(void **state)
{
    struct who a = who("a"), b = who("b");

    (void)state;
    assert_answer(acquire(&a, TRY), "owned");
    release(&a, UNLOCKED);
    set_token("4503599627370493");
    a.attempt = 2;
    assert_string_equal(line_of(acquire(&a, TRY), 1), LAST_TOKEN);
    assert_answer(acquire(&b, QUEUE), "queued");
    assert_string_equal(line_of(renew(&a, 1, LAST_TOKEN), 1), "2");
    assert_answer(release(&a, UNLOCKED), "released");
    assert_non_null(strstr(poll_of(&b), "used up"));
    b.attempt = 2;
    assert_non_null(strstr(acquire(&b, TRY), "used up"));
    assert_non_null(strstr(acquire(&b, QUEUE), "used up"));
    b.attempt = 3;
    b.seen = LAST_TOKEN;
    assert_non_null(strstr(acquire(&b, TRY), "none of ours"));
    assert_string_equal(line_of(info("x"), 3), LAST_TOKEN);
}

static void test_a_renewal_is_lost_when_its_token_is_beyond_two_to_the_52(void **state)
{
    static const char *const tokens[] = { TWO_TO_THE_52, "9223372036854775807", "x", "-1" };
    struct who a = who("a"), b = who("b");

    (void)state;
    for (size_t i = 0; i < sizeof tokens / sizeof tokens[0]; i++) {
        assert_int_equal(number_of(renew(&a, 1, tokens[i]), 1), 0); /* of a name without data */
        assert_string_equal(dump(), "");
    }
    acquire(&b, TRY);
    for (size_t i = 0; i < sizeof tokens / sizeof tokens[0]; i++) {
        const char *before = dump();

        assert_int_equal(number_of(renew(&a, 1, tokens[i]), 1), 0); /* newer than the owner's */
        assert_string_equal(dump(), before);
    }
}

/* Q6: the servers of a quorum have their own tokens, and take over that of the hold, if it is higher. */
static void test_a_part_of_a_quorum_takes_a_higher_token_over(void **state)
{
    struct who a = who("a"), b = who("b");
    char higher[24], lower[24];
    long long token;

    (void)state;
    acquire(&a, TRY);
    token = side_int(the_server->side, "EVAL %s 1 %s", "return tonumber(redis.call('HGET', KEYS[1], 'token'))",
                     key_of("state", "t/x"));
    snprintf(higher, sizeof higher, "+%lld", token + 1000000000000);
    snprintf(lower, sizeof lower, "+%lld", token);
    assert_int_equal(number_of(renew(&a, 1, higher), 1), 1);
    assert_string_equal(side_text(the_server->side, "HGET %s token", key_of("state", "t/x")), higher + 1);
    assert_int_equal(number_of(renew(&a, 1, lower), 1), 1);
    assert_string_equal(side_text(the_server->side, "HGET %s token", key_of("state", "t/x")), higher + 1);
    release(&a, UNLOCKED);
    assert_answer(acquire(&b, TRY), "owned");
    assert_true(number_of(acquire(&b, TRY), 1) > token + 1000000000000);
}

/* Q7: a higher token of other servers is no reason to give the lock of another attempt away. */
static void test_a_part_of_a_quorum_takes_no_hold_over(void **state)
{
    struct who a = who("a"), b = who("b");
    const char *before;

    (void)state;
    acquire(&a, TRY);
    before = dump();
    assert_int_equal(number_of(renew(&b, 1, "+4000000000000000"), 1), 0);
    assert_string_equal(dump(), before);
    assert_int_equal(number_of(renew(&b, 1, "4000000000000000"), 1), 1); /* one server, with an older copy */
}

/* Put back on a server without data, the hold has its token. */
static void test_a_part_of_a_quorum_puts_a_hold_back(void **state)
{
    struct who a = who("a");

    (void)state;
    assert_int_equal(number_of(renew(&a, 1, "+77"), 1), 1);
    assert_string_equal(side_text(the_server->side, "HGET %s token", key_of("state", "t/x")), "77");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        SCRIPT_TEST(test_a_token_is_above_all_before_when_given),
        SCRIPT_TEST(test_a_token_is_above_what_the_waiter_has_seen_when_granted),
        SCRIPT_TEST(test_tokens_rise_when_the_server_has_lost_its_data),
        SCRIPT_TEST(test_tokens_rise_with_the_clock_when_nobody_is_left),
        SCRIPT_TEST(test_a_token_is_the_time_since_2020_when_none_is_larger),
        SCRIPT_TEST(test_a_state_lives_for_a_week_when_its_tokens_are_above_the_clock),
        SCRIPT_TEST(test_a_token_is_refused_when_it_is_beyond_two_to_the_52),
        SCRIPT_TEST(test_a_token_is_refused_when_the_caller_has_seen_too_much),
        SCRIPT_TEST(test_nobody_is_granted_the_lock_when_no_token_can_follow),
        SCRIPT_TEST(test_a_renewal_is_lost_when_its_token_is_beyond_two_to_the_52),
        SCRIPT_TEST(test_a_part_of_a_quorum_takes_a_higher_token_over),
        SCRIPT_TEST(test_a_part_of_a_quorum_takes_no_hold_over),
        SCRIPT_TEST(test_a_part_of_a_quorum_puts_a_hold_back),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, scripts_group_setup, scripts_group_teardown);
}
