/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The Lua scripts, retried: a call with a lost answer is sent again, and the second time nothing changes but lease ends
 * (I3). Random sequences of calls of some processes on one mutex, each call made twice, all keys compared; between the
 * calls, the invariants are checked.
 */
#include <stdio.h>
#include <string.h>

#include "../unit/random.h"
#include "scripts.h"

#define PROCESSES 3
#define THREADS 2
#define STEPS 120

static struct who crowd[PROCESSES][THREADS];
static struct inbox *inboxes[PROCESSES];
static long long last_token;
static char last_hold[200];

enum call { ACQUIRE_TRY, ACQUIRE_QUEUE, RELEASE, POLL, CANCEL, RENEW, CONSISTENT, CLEAN, CALLS };

static const char *make_call(enum call call, const struct who *who, int how)
{
    switch (call) {
    case ACQUIRE_TRY:
        return acquire(who, TRY);
    case ACQUIRE_QUEUE:
        return acquire(who, QUEUE);
    case RELEASE:
        return release(who, how);
    case POLL:
        return strchr(poll_of(who), '\n') + 1;
    case CANCEL:
        return cancel(who);
    case RENEW:
        return strchr(renew(who, 1, "1"), '\n') + 1;
    case CONSISTENT:
        return consistent(who);
    default:
        return drop("x", "clean");
    }
}

/* The waiters of the queue are exactly the waiters with an entry; the owner is not among them (I5). */
static void check_keys_agree(void)
{
    static const char script[] =
        "local hold = redis.call('HGET', KEYS[2], 'hold')\n"
        "if hold and hold:sub(1, 1) == '-' then hold = false end\n"
        "if redis.call('HLEN', KEYS[1]) > 0 and not hold then return 'held by nobody' end\n"
        "local ids = redis.call('ZRANGE', KEYS[3], 0, -1)\n"
        "if #ids ~= redis.call('HLEN', KEYS[4]) then return 'entries' end\n"
        "for _, id in ipairs(ids) do\n"
        "  if redis.call('HEXISTS', KEYS[4], id) == 0 then return 'no entry for ' .. id end\n"
        "  if hold and hold:find(id .. ' ', 1, true) == 1 then return 'holds and waits: ' .. id "
        "end\n"
        "end\n"
        "if #ids > 0 and redis.call('HGET', KEYS[2], 'wanted') ~= '1' then return 'not wanted' "
        "end\n"
        "return 'good'\n";

    assert_string_equal(
        run_script(script, 4, key("lock", "x"), key("state", "x"), key("queue", "x"), key("waiter", "x"), NULL),
        "good");
}

/* I2: each hold has a token above the token of the hold before. */
static void check_tokens(void)
{
    long long token = command_number("HGET %s token", key("state", "x"));
    char hold[200];

    snprintf(hold, sizeof hold, "%s", hold_of_leaf("x"));
    assert_true(token >= last_token);
    if (hold[0] && strcmp(hold, last_hold) != 0) {
        assert_true(token > last_token);
        snprintf(last_hold, sizeof last_hold, "%s", hold);
    }
    last_token = token;
}

static const char *make_call_and_gather(enum call call, const struct who *who, int how)
{
    const char *answer = make_call(call, who, how);

    gather();
    return answer;
}

static void call_twice(enum call call, const struct who *who, int how)
{
    const char *first = make_call_and_gather(call, who, how), *after_first = dump();
    const char *second = make_call_and_gather(call, who, how), *after_second = dump();

    assert_string_equal(after_second, after_first);
    if (call == RELEASE)
        assert_true(strcmp(line_of(second, 0), "released") != 0);
    else
        assert_string_equal(line_of(second, 0), line_of(first, 0));
    if (strcmp(line_of(first, 0), "owned") == 0) {
        assert_string_equal(line_of(second, 1), line_of(first, 1));
        assert_string_equal(line_of(second, 2), line_of(first, 2));
    }
}

/* An event that no caller repeats. */
static void disturb(void)
{
    int process = (int)random_below(PROCESSES);

    switch (random_below(3)) {
    case 0:
        end_lease("x");
        break;
    case 1:
        force("x");
        break;
    default:
        if (inboxes[process])
            inbox_close(inboxes[process]);
        inboxes[process] = inboxes[process] ? NULL : inbox_open(crowd[process][0].uuid);
    }
}

static void begin_walk(void)
{
    static const char *const names[PROCESSES] = { "a", "b", "c" };

    command("FLUSHALL");
    last_token = 0;
    last_hold[0] = '\0';
    for (int process = 0; process < PROCESSES; process++) {
        for (int thread = 0; thread < THREADS; thread++) {
            crowd[process][thread] = who(names[process]);
            crowd[process][thread].thread = thread + 1;
            crowd[process][thread].attempt = 100 * thread + 1;
            crowd[process][thread].is_robust = random_below(2);
        }
    }
}

static void step_at_random(void)
{
    struct who *who = &crowd[random_below(PROCESSES)][random_below(THREADS)];
    int how = random_below(12) == 0 ? NOT_RECOVERABLE : random_below(4) == 0 ? DIED : UNLOCKED;

    if (random_below(10) == 0) {
        disturb();
        return;
    }
    if (random_below(6) == 0)
        who->attempt++;
    if (random_below(3) == 0)
        who->request++;
    call_twice((enum call)random_below(CALLS), who, how);
}

/* I3: each call is done once, however often the call is sent. */
static void test_a_retried_call_changes_nothing_in_random_sequences(void **state)
{
    int walks = rounds(30);

    (void)state;
    while (walks-- > 0) {
        begin_walk();
        for (int steps = 0; steps < STEPS; steps++) {
            step_at_random();
            check_keys_agree();
            check_tokens();
        }
    }
    for (int process = 0; process < PROCESSES; process++) {
        if (inboxes[process])
            inbox_close(inboxes[process]);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        SCRIPT_TEST(test_a_retried_call_changes_nothing_in_random_sequences),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, scripts_group_setup, scripts_group_teardown);
}
