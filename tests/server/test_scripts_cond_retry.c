/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The Lua scripts of conditions, retried: a call with a lost answer is sent again, and the second time nothing changes
 * but lease ends (I3). First each script in each state that the attempt can be in; then random sequences of
 * several attempts, with the invariants: an attempt is in one place (I5), and no signal is lost while a waiter is there
 * (I7).
 */
#include <stdio.h>
#include <string.h>

#include "../unit/random.h"
#include "scripts.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- each script in each state ----------------------------------------------------------- */

/* Attempt 2 of "a" waits, or is about to: attempt 1 is the hold of "a". "b" is another process. */
static struct who a, b;

static void a_holds(void)
{
    acquire(&a, TRY);
    a.attempt = 2;
}

static void a_waits_and_the_mutex_is_free(void)
{
    fall_asleep(&a);
}

static void a_waits(void)
{
    fall_asleep(&a);
    acquire(&b, TRY);
}

static void a_waits_as_others_do(void)
{
    enter_sleepers("g", "c", 3, 0);
    a_waits();
    enter_sleepers("h", "c", 3, 0);
}

static void a_is_silent(void)
{
    a_waits();
    age_sleeper(&a, LEASE);
}

static void a_is_gone(void)
{
    a_waits();
    age_sleeper(&a, 2 * LEASE + 1000);
}

static void a_is_signalled(void)
{
    a_waits();
    cond_signal("c", "x", 1, "");
}

static void a_is_signalled_and_the_mutex_is_free(void)
{
    a_waits_and_the_mutex_is_free();
    cond_signal("c", "x", 1, "");
}

static void a_has_cancelled(void)
{
    a_waits();
    cond_cancel(&a);
}

static void a_owns_by_a_signal(void)
{
    a_is_signalled_and_the_mutex_is_free();
    cond_poll(&a);
}

static void a_has_renewed(void)
{
    a_owns_by_a_signal();
    renew(&a, 1, "1");
}

static void a_is_over(void)
{
    a_owns_by_a_signal();
    cond_release(&a, UNLOCKED);
}

static void a_is_forgotten(void)
{
    a_waits();
    command("FLUSHALL");
}

static void a_was_another_owner(void)
{
    acquire(&b, TRY);
    a.attempt = 2;
}

static void a_waits_and_the_owner_is_dead(void)
{
    a_waits();
    end_lease("x");
}

static void a_waits_for_nothing_any_more(void)
{
    a_waits();
    release(&b, NOT_RECOVERABLE);
}

static void a_waits_and_a_signal_is_owed(void)
{
    struct who dead = who("dead");

    fall_asleep(&dead);
    cond_signal("c", "x", 1, "");
    fall_asleep(&a);
    age(&dead, 2 * LEASE + 1000);
    poll_serving("x");
    acquire(&b, TRY);
}

static void others_wait_with_another_mutex(void)
{
    b.leaf = "y";
    fall_asleep(&b);
    a_holds();
}

static void (*const states[])(void) = {
    a_holds,
    a_waits_and_the_mutex_is_free,
    a_waits,
    a_waits_as_others_do,
    a_is_silent,
    a_is_gone,
    a_is_signalled,
    a_is_signalled_and_the_mutex_is_free,
    a_has_cancelled,
    a_owns_by_a_signal,
    a_has_renewed,
    a_is_over,
    a_is_forgotten,
    a_was_another_owner,
    a_waits_and_the_owner_is_dead,
    a_waits_for_nothing_any_more,
    a_waits_and_a_signal_is_owed,
    others_wait_with_another_mutex,
};

enum call { WAIT, WAIT_LAST, POLL, CANCEL, RELEASE, DIE, BROADCAST, DROP, CALLS };

/* The answer, beginning with the word. */
static const char *make_call(enum call call)
{
    switch (call) {
    case WAIT:
        return cond_wait(&a, 1);
    case WAIT_LAST:
        return cond_wait_ending(&a, 1, NOT_RECOVERABLE);
    case POLL:
        return strchr(cond_poll(&a), '\n') + 1;
    case CANCEL:
        return cond_cancel(&a);
    case RELEASE:
        return cond_release(&a, UNLOCKED);
    case DIE:
        return cond_release(&a, DIED);
    case BROADCAST:
        return cond_signal("c", a.leaf, 256, "");
    default:
        return cond_drop("c", "delete");
    }
}

/* A hold that ended by the first call is not there for the second, which may say so. */
static bool is_same_answer(const char *first, const char *second)
{
    static const char *const ends[][2] = {
        { "released", "notowner" }, { "left", "notowner" }, { "notrecoverable", "notowner" }, { "moved", "none" }
    };

    for (size_t i = 0; i < COUNT(ends); i++) {
        if (strcmp(line_of(first, 0), ends[i][0]) == 0 && strcmp(line_of(second, 0), ends[i][1]) == 0)
            return true;
    }
    if (strcmp(line_of(first, 0), "owned") == 0) {
        assert_string_equal(line_of(second, 1), line_of(first, 1));
        assert_string_equal(line_of(second, 2), line_of(first, 2));
    }
    return strcmp(line_of(first, 0), line_of(second, 0)) == 0;
}

/* I3: in every state of the attempt, a retried call is done once. */
static void test_a_retried_call_changes_nothing_in_any_state(void **state)
{
    (void)state;
    for (int hears = 0; hears <= 1; hears++) {
        struct inbox *inbox = inbox_open(hears ? "a" : "nobody");

        for (size_t s = 0; s < COUNT(states); s++) {
            for (int call = 0; call < CALLS; call++) {
                const char *first, *second, *after;

                command("FLUSHALL");
                a = who("a");
                b = who("b");
                states[s]();
                first = make_call((enum call)call);
                after = dump();
                second = make_call((enum call)call);
                assert_string_equal(dump(), after);
                assert_true(is_same_answer(first, second));
            }
        }
        inbox_close(inbox);
    }
}

/*
 * I5: an attempt that a server with older data still has on the condition, and that asks for the mutex, leaves the
 * condition.
 */
static void test_an_attempt_that_was_signalled_elsewhere_is_in_one_place(void **state)
{
    static void (*const begin[])(void) = { a_waits, a_waits_and_the_mutex_is_free };
    static const char *const answers[] = { "queued", "owned" };

    (void)state;
    for (int i = 0; i < 2; i++) {
        command("FLUSHALL");
        a = who("a");
        b = who("b");
        begin[i]();
        assert_string_equal(command("HEXISTS dmutex:{t}:sleeper:c a:1:2"), "1");
        assert_answer(cond_acquire(&a, QUEUE), answers[i]);
        assert_string_equal(command("EXISTS dmutex:{t}:cond:c"), "0");
        assert_string_equal(command("HEXISTS dmutex:{t}:sleeper:c a:1:2"), "0");
    }
}

/* A signal names no attempt: a repeated signal may wake one more, which POSIX allows, but not two. */
static void test_a_repeated_signal_wakes_one_more_at_most(void **state)
{
    (void)state;
    a = who("a");
    b = who("b");
    a_waits_as_others_do();
    cond_signal("c", "x", 1, "");
    assert_int_equal(size_of("queue", "x"), 1);
    cond_signal("c", "x", 1, "");
    assert_int_equal(size_of("queue", "x"), 2);
    assert_int_equal(size_of("cond", "c"), 5);
}

/* ---- random sequences -------------------------------------------------------------------- */

#define PROCESSES 3
#define THREADS 3
#define STEPS 150

static struct who crowd[PROCESSES][THREADS];
static struct inbox *inboxes[PROCESSES];

/* The invariants of all keys together. */
static struct {
    int signals; /* that receivers carry, or that are owed */
    int sleepers;
    int health;
} now;

/* An attempt is in the queue, on the condition, or the owner; each has its entry there. */
static void look_at_all(void)
{
    static const char script[] =
        "local places, signals = {}, 0\n"
        "local hold = redis.call('HGET', KEYS[2], 'hold')\n"
        "if hold and hold:sub(1, 1) == '-' then hold = false end\n"
        "if hold then places[hold:match('^%S+')] = 'owner' end\n"
        "if hold and hold:find(' @', 1, true) then signals = 1 end\n"
        "for _, k in ipairs({ { 3, 4, 0 }, { 5, 6, 2 } }) do\n"
        "  local ids = redis.call('ZRANGE', KEYS[k[1]], 0, -1)\n"
        "  local entries = redis.call('HLEN', KEYS[k[2]])\n"
        "  if entries > 0 and entries ~= #ids + k[3] then return { 'entries of ' .. k[1] } end\n"
        "  for _, id in ipairs(ids) do\n"
        "    local entry = redis.call('HGET', KEYS[k[2]], id)\n"
        "    if not entry then return { 'no entry for ' .. id } end\n"
        "    if places[id] then return { 'in two places: ' .. id } end\n"
        "    places[id] = k[1]\n"
        "    if entry:find(' @', 1, true) then\n"
        "      if k[1] == 5 then return { 'signalled and waits: ' .. id } end\n"
        "      signals = signals + 1\n"
        "    end\n"
        "  end\n"
        "  if k[1] == 3 and #ids > 0 and redis.call('HGET', KEYS[2], 'wanted') ~= '1' then\n"
        "    return { 'not wanted' }\n"
        "  end\n"
        "end\n"
        "if redis.call('HLEN', KEYS[1]) > 0 and not hold then return { 'held by nobody' } end\n"
        "signals = signals + (redis.call('HGET', KEYS[2], 'debt ' .. KEYS[5]) or 0)\n"
        "return { 'good', signals, redis.call('ZCARD', KEYS[5]),\n"
        "  tonumber(redis.call('HGET', KEYS[2], 'health') or 0) }\n";
    const char *answer = run_script(script, 6, key("lock", "x"), key("state", "x"), key("queue", "x"),
                                    key("waiter", "x"), key("cond", "c"), key("sleeper", "c"), NULL);

    assert_string_equal(line_of(answer, 0), "good");
    now.signals = (int)number_of(answer, 1);
    now.sleepers = (int)number_of(answer, 2);
    now.health = (int)number_of(answer, 3);
}

enum step { TAKE, ENTER, SLEEP, BEAT, LEAVE, GIVE, RENEW, ALL, STEPS_TWICE };

/* An attempt of a thread that sleeps is the next attempt; the present attempt is the hold. */
static const char *make_step(enum step step, const struct who *who)
{
    struct who next = *who;

    next.attempt++;
    switch (step) {
    case TAKE:
        return acquire(who, TRY);
    case ENTER:
        return acquire(who, QUEUE);
    case SLEEP:
        return cond_wait(&next, who->attempt);
    case BEAT:
        return strchr(cond_poll(who), '\n') + 1;
    case LEAVE:
        return cond_cancel(who);
    case GIVE:
        return cond_release(who, UNLOCKED);
    case RENEW:
        return strchr(renew(who, 1, "1"), '\n') + 1;
    default:
        return cond_signal("c", "x", 256, "");
    }
}

/* Steps by which an owner shows that it has woken, and has used the signal. */
static bool is_use(enum step step)
{
    return step == SLEEP || step == GIVE || step == RENEW;
}

/* I7: a signal ends when the receiver uses the signal, or when no thread waits; a broadcast makes some. */
static void check_signals(enum step step, int signals, int sleepers)
{
    if (now.health == 2)
        return;
    if (step == ALL)
        assert_int_equal(now.signals - signals, sleepers - now.sleepers);
    else if (sleepers > 0 && now.sleepers > 0)
        assert_within(now.signals, signals - (signals > 0 && is_use(step)), signals);
}

#define DUMP_ROOM 20000

/* `wanted` only says that an attempt may wait; a call that finds none takes the hint away. */
static void dump_without_hint(char text[DUMP_ROOM])
{
    static const char hint[] = "\n  wanted = 1";
    char *at;

    assert_true(snprintf(text, DUMP_ROOM, "%s", dump()) < DUMP_ROOM);
    at = strstr(text, hint);
    if (at)
        memmove(at, at + strlen(hint), strlen(at + strlen(hint)) + 1);
}

static void step_twice(enum step step, struct who *who)
{
    static char after_first[DUMP_ROOM], after_second[DUMP_ROOM];
    int signals = now.signals, sleepers = now.sleepers;
    const char *first = make_step(step, who), *second;

    gather();
    dump_without_hint(after_first);
    look_at_all();
    check_signals(step, signals, sleepers);
    second = make_step(step, who);
    gather();
    dump_without_hint(after_second);
    assert_string_equal(after_second, after_first);
    assert_true(is_same_answer(first, second));
    if (step == SLEEP && strcmp(line_of(first, 0), "waiting") == 0)
        who->attempt++;
}

static void signal_and_look(void)
{
    int signals = now.signals, sleepers = now.sleepers;

    cond_signal("c", "x", 1, "");
    look_at_all();
    if (now.health == 2)
        return;
    assert_int_equal(now.sleepers, sleepers - (sleepers > 0));
    assert_int_equal(now.signals, signals + (sleepers > 0));
}

/* The attempt's process has died: the queue will find that out. */
static void fall_silent(const struct who *who)
{
    const char *id = command("ZRANGE %s 0 0", key("queue", "x"));
    char mine[40];

    snprintf(mine, sizeof mine, "%s:%lld:%lld", who->uuid, who->thread, who->attempt);
    if (strcmp(id, mine) == 0)
        age(who, 2 * LEASE + 1000);
}

/* An event that no caller repeats. */
static void disturb(const struct who *who)
{
    int process = (int)random_below(PROCESSES);

    switch (random_below(8)) {
    case 0:
        end_lease("x");
        return;
    case 1:
        force("x");
        return;
    case 2:
    case 3:
        if (inboxes[process])
            inbox_close(inboxes[process]);
        inboxes[process] = inboxes[process] ? NULL : inbox_open(crowd[process][0].uuid);
        return;
    case 4:
        fall_silent(who);
        return;
    default:
        signal_and_look();
    }
}

static void begin_walk(void)
{
    static const char *const names[PROCESSES] = { "a", "b", "c" };

    command("FLUSHALL");
    memset(&now, 0, sizeof now);
    for (int process = 0; process < PROCESSES; process++) {
        for (int thread = 0; thread < THREADS; thread++) {
            crowd[process][thread] = who(names[process]);
            crowd[process][thread].thread = thread + 1;
            crowd[process][thread].attempt = 1000 * thread + 1;
            crowd[process][thread].is_robust = random_below(2);
        }
    }
}

/* An attempt that waits on the condition does not also ask for the mutex. */
static enum step random_step(const struct who *who)
{
    enum step step = (enum step)random_below(random_below(5) ? ALL : STEPS_TWICE);
    const char *waits = command("ZSCORE %s %s:%lld:%lld", key("cond", "c"), who->uuid, who->thread, who->attempt);

    return (step == TAKE || step == ENTER) && *waits ? BEAT : step;
}

static void step_at_random(void)
{
    struct who *who = &crowd[random_below(PROCESSES)][random_below(THREADS)];

    if (random_below(6) == 0) {
        disturb(who);
        look_at_all();
        return;
    }
    if (random_below(3) == 0)
        who->request++;
    step_twice(random_step(who), who);
    if (strcmp(line_of(cond_poll(who), 1), "unknown") == 0)
        who->attempt++;
    look_at_all();
}

/* I3, I5, I7: each call is done once, and no signal is lost, for any events in between. */
static void test_a_retried_call_changes_nothing_in_random_sequences(void **state)
{
    int walks = rounds(25);

    (void)state;
    while (walks-- > 0) {
        begin_walk();
        for (int steps = 0; steps < STEPS; steps++)
            step_at_random();
    }
    for (int process = 0; process < PROCESSES; process++) {
        if (inboxes[process])
            inbox_close(inboxes[process]);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        SCRIPT_TEST(test_a_retried_call_changes_nothing_in_any_state),
        SCRIPT_TEST(test_an_attempt_that_was_signalled_elsewhere_is_in_one_place),
        SCRIPT_TEST(test_a_repeated_signal_wakes_one_more_at_most),
        SCRIPT_TEST(test_a_retried_call_changes_nothing_in_random_sequences),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, scripts_group_setup, scripts_group_teardown);
}
