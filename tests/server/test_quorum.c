/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A quorum of three servers: locks go on while a minority is down, stopped, flushed or empty; nobody owns by less than
 * a majority.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/testlib.h"

#define SERVERS 3
#define TIMES "command_timeout=500&connect_timeout=500"

/* Long enough that nothing ends by its lease. */
#define LEASE 30000
#define LONG_LEASE (10 * 60 * 1000)

static struct server *servers[SERVERS];
static struct actor *holder, *waiter, *rival;

/* The URL of all three. */
static const char *url_of_all(const char *options)
{
    static char url[256];

    snprintf(url, sizeof url, "redis+quorum://127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d%s", servers[0]->port,
             servers[1]->port, servers[2]->port, options);
    return url;
}

static int begin_group(void **state)
{
    (void)state;
    for (int i = 0; i < SERVERS; i++)
        servers[i] = server_start_with(true, NULL);
    the_server = servers[0];
    return 0;
}

static int end_group(void **state)
{
    (void)state;
    for (int i = 0; i < SERVERS; i++)
        server_end(servers[i]);
    return 0;
}

static int begin_test(void **state)
{
    (void)state;
    holder = actor_start_at(url_of_all("?grace=off&" TIMES));
    waiter = actor_start_at(url_of_all("?grace=off&" TIMES));
    return 0;
}

static int end_test(void **state)
{
    (void)state;
    actor_end(holder);
    actor_end(waiter);
    return 0;
}

static bool is_on(int server, const char *kind, const char *name)
{
    return side_says(servers[server]->side, "1", "EXISTS %s", key_of(kind, name));
}

/* How many of the servers have the key. */
static int count_on(const char *kind, const char *name)
{
    int count = 0;

    for (int i = 0; i < SERVERS; i++)
        count += servers[i]->pid && is_on(i, kind, name);
    return count;
}

/* So often the lock goes there and back. */
static void lock_in_turns(const char *name, int times)
{
    for (int i = 0; i < times; i++) {
        struct actor *actor = i % 2 ? holder : waiter;

        actor_do(actor, "0", "lock %s", name);
        actor_do(actor, "0", "unlock %s", name);
    }
}

static void init(const char *name)
{
    actor_do(holder, "0", "init %s lease=%d fair", name, LEASE);
    actor_do(waiter, "0", "init %s lease=%d fair", name, LEASE);
}

/* ---- usual ------------------------------------------------------------------------------- */

/* The servers have not seen the scripts: the release goes to the last of them, too, once the others have answered. */
static void test_a_hold_is_on_every_server_and_excludes(void **state)
{
    (void)state;
    init("q/all");
    side_set_control(servers[0]->side, "lease", LEASE / 2);
    actor_do(holder, "0", "lock q/all");
    wait_until(count_on("lock", "q/all") == SERVERS);
    actor_do(waiter, "EBUSY", "trylock q/all");
    actor_do(holder, "0", "unlock q/all");
    wait_until(count_on("lock", "q/all") == 0);
    assert_false(side_is_control_over(servers[0]->side, "lease")); /* else the lease may have ended the hold */
    actor_do(waiter, "0", "trylock q/all");
    actor_do(waiter, "0", "unlock q/all");
}

static void test_a_waiter_gets_the_lock_when_the_holder_unlocks(void **state)
{
    (void)state;
    init("q/turn");
    actor_do(holder, "0", "lock q/turn");
    actor_send(waiter, "lock q/turn");
    wait_until(count_on("queue", "q/turn") == 1);
    assert_true(actor_is_silent(waiter));
    actor_do(holder, "0", "unlock q/turn");
    actor_expect(waiter, "0");
    wait_until(count_on("lock", "q/turn") == SERVERS);
    actor_do(waiter, "0", "unlock q/turn");
    wait_until(count_on("lock", "q/turn") == 0);
    assert_int_equal(count_on("queue", "q/turn"), 0);
}

static bool has_calls(int server, int64_t calls)
{
    return side_calls(servers[server]->side, "evalsha") == calls;
}

/* One question to each server for a lock, one for an unlock: two rounds, as with one server. */
static void test_a_pair_costs_each_server_two_scripts(void **state)
{
    int64_t before[SERVERS];

    (void)state;
    init("q/cost");
    actor_do(holder, "0", "lock q/cost");
    wait_until(count_on("lock", "q/cost") == SERVERS);
    actor_do(holder, "0", "unlock q/cost");
    wait_until(count_on("lock", "q/cost") == 0);
    for (int i = 0; i < SERVERS; i++)
        before[i] = side_calls(servers[i]->side, "evalsha");
    for (int i = 0; i < 20; i++) {
        actor_do(holder, "0", "lock q/cost");
        actor_do(holder, "0", "unlock q/cost");
    }
    for (int i = 0; i < SERVERS; i++)
        wait_until(has_calls(i, before[i] + 40)); /* of each server the last answer may be late */
}

/* True if the same attempt has the lock on all servers. */
static int64_t count_scripts(void)
{
    int64_t calls = 0;

    for (int i = 0; i < SERVERS; i++)
        calls += side_calls(servers[i]->side, "evalsha");
    return calls;
}

#define HANDOFFS 10

/* The scripts that all servers run while the lock goes from one process to the other, each time to a waiter. */
static int64_t count_scripts_of_handoffs(const char *name)
{
    struct actor *owner = holder, *next = waiter, *other;
    int64_t calls;

    actor_do(owner, "0", "lock %s", name);
    calls = count_scripts();
    for (int i = 0; i < HANDOFFS; i++) {
        actor_send(next, "lock %s", name);
        wait_until(count_on("queue", name) == 1);
        actor_do(owner, "0", "unlock %s", name);
        actor_expect(next, "0");
        other = owner, owner = next, next = other;
    }
    calls = count_scripts() - calls;
    actor_do(owner, "0", "unlock %s", name);
    return calls;
}

/*
 * Finding 109: a process that has met others takes a turn at once, also when it is younger than a lease.  So a handoff
 * is two scripts on each server, and one more for the queue; a process that tries all servers first needs twice as
 * many.  Others are remembered for 200 ms, so a busy machine may need some rounds.
 */
static void test_handoffs_cost_the_same_when_the_processes_are_young(void **state)
{
    (void)state;
    actor_do(holder, "0", "init q/young lease=%d fair", LONG_LEASE);
    actor_do(waiter, "0", "init q/young lease=%d fair", LONG_LEASE);
    wait_until(count_scripts_of_handoffs("q/young") <= HANDOFFS * (2 * SERVERS + 2));
}

static bool is_one_hold(const char *name)
{
    char first[100] = "";
    int alike = 0;

    for (int i = 0; i < SERVERS; i++) {
        const char *text = side_text(servers[i]->side, "HGET %s hold", key_of("state", name)), *hold = text ? text : "";

        if (i == 0)
            snprintf(first, sizeof first, "%.*s", (int)strcspn(hold, " "), hold);
        alike += *hold && strncmp(hold, first, strcspn(hold, " ")) == 0;
    }
    return alike == SERVERS;
}

/* The owner's lease ends on all servers, not at one moment; a waiter that is robust is told. */
static void test_a_death_is_told_when_the_holder_was_killed(void **state)
{
    (void)state;
    actor_do(holder, "0", "init q/death robust lease=1000");
    actor_do(waiter, "0", "init q/death robust lease=1000");
    actor_do(holder, "0", "lock q/death");
    actor_send(waiter, "lock q/death");
    wait_until(count_on("queue", "q/death") == 1);
    actor_kill(holder);
    actor_expect(waiter, "EOWNERDEAD");
    wait_until(is_one_hold("q/death"));
    actor_do(waiter, "0", "consistent q/death");
    actor_do(waiter, "0", "unlock q/death");
    actor_do(waiter, "0", "lock q/death");
    actor_do(waiter, "0", "unlock q/death");
}

/* How many of the servers know that the lock was taken so often. */
static int count_depth(const char *name, const char *depth)
{
    int count = 0;

    for (int i = 0; i < SERVERS; i++)
        count += side_says(servers[i]->side, depth, "HGET %s depth", key_of("state", name));
    return count;
}

/* The holder dies; the waiter owns on all servers, because another server would tell the death once more (Q8). */
static void take_from_dead(const char *name, const char *options)
{
    actor_do(holder, "0", "init %s lease=1000%s", name, options);
    actor_do(waiter, "0", "init %s lease=60000%s", name, options);
    actor_do(holder, "0", "lock %s", name);
    actor_kill(holder);
    actor_do(waiter, "EOWNERDEAD", "lock %s", name);
    wait_until(is_one_hold(name));
}

/* All that the servers know of the hold stays: how often the lock was taken, and a mark for the holder. */
static void test_a_hold_is_unchanged_when_the_data_are_mended(void **state)
{
    (void)state;
    take_from_dead("q/twice", " robust recursive");
    actor_do(waiter, "0", "lock q/twice");
    actor_do(waiter, "0", "renew q/twice");
    wait_until(count_depth("q/twice", "2") == SERVERS);
    actor_do(waiter, "0", "consistent q/twice");
    assert_int_equal(count_depth("q/twice", "2"), SERVERS);
    actor_do(waiter, "0", "unlock q/twice");
    actor_do(waiter, "0", "unlock q/twice");
}

static void test_a_mutex_is_not_recoverable_by_a_majority(void **state)
{
    (void)state;
    take_from_dead("q/lost", " robust");
    actor_do(waiter, "0", "unlock q/lost");
    actor_do(waiter, "ENOTRECOVERABLE", "lock q/lost");
    actor_do(waiter, "ENOTRECOVERABLE", "trylock q/lost");
    actor_do(waiter, "0", "destroy q/lost");
    actor_do(waiter, "0", "init q/lost robust lease=1000");
    actor_do(waiter, "0", "lock q/lost");
    actor_do(waiter, "0", "unlock q/lost");
}

/* The tokens of three servers are three clocks; a token that was told is below all later tokens. */
static void test_tokens_rise_from_hold_to_hold(void **state)
{
    long long last = 0, token;

    (void)state;
    init("q/token");
    for (int i = 0; i < 20; i++) {
        struct actor *actor = i % 2 ? holder : waiter;

        actor_do(actor, "0", "lock q/token");
        token = actor_value(actor, "token q/token");
        assert_true(token > last);
        last = token;
        actor_do(actor, "0", "unlock q/token");
    }
}

static void test_conditions_are_not_supported(void **state)
{
    (void)state;
    init("q/m");
    actor_do(holder, "0", "lock q/m");
    actor_do(holder, "EOPNOTSUPP", "wait q/c q/m");
    actor_assert_words(holder, "no condition variables");
    actor_do(holder, "0", "unlock q/m");
    actor_do(holder, "EOPNOTSUPP", "signal q/c");
}

/* Each may have one server of three for a moment: nobody waits for ever, and never two are inside. */
static void test_three_rivals_take_turns(void **state)
{
    const int turns = repetitions(60);
    struct actor *rivals[3];
    char path[64];

    (void)state;
    rival = actor_start_at(url_of_all("?grace=off&" TIMES));
    rivals[0] = holder;
    rivals[1] = waiter;
    rivals[2] = rival;
    snprintf(path, sizeof path, "%s/count", servers[0]->folder);
    actor_begin_count(path);
    for (int i = 0; i < 3; i++) {
        actor_do(rivals[i], "0", "init q/rivals lease=%d fair", LEASE);
        actor_send(rivals[i], "count %s %d q/rivals", path, turns);
    }
    for (int i = 0; i < 3; i++)
        assert_string_equal(actor_answer_of_count(rivals[i], path), "0");
    assert_int_equal(actor_counted(path), 3 * turns);
    actor_end(rival);
}

/* ---- a minority fails -------------------------------------------------------------------- */

static void test_a_hold_goes_on_when_any_server_is_killed(void **state)
{
    (void)state;
    for (int i = 0; i < SERVERS; i++) {
        char name[16];

        snprintf(name, sizeof name, "q/kill%d", i);
        init(name);
        actor_do(holder, "0", "lock %s", name);
        server_kill(servers[i]);
        actor_do(holder, "0", "renew %s", name);
        actor_do(waiter, "EBUSY", "trylock %s", name);
        actor_do(holder, "0", "unlock %s", name);
        lock_in_turns(name, 10);
        server_restart(servers[i]);
        server_reconnect(servers[i]);
        lock_in_turns(name, 10);
        assert_int_equal(actor_losses(holder), 0);
    }
}

/* Nothing is answered, and connections stay: the first command_timeout tells, then the server is left out. */
static void test_locks_go_on_when_any_server_is_stopped(void **state)
{
    (void)state;
    for (int i = 0; i < SERVERS; i++) {
        char name[16];

        snprintf(name, sizeof name, "q/stop%d", i);
        init(name);
        lock_in_turns(name, 2);
        server_stop(servers[i]);
        lock_in_turns(name, 10);
        server_cont(servers[i]);
        lock_in_turns(name, 10);
    }
}

static void test_a_waiter_gets_the_lock_when_any_server_is_killed(void **state)
{
    (void)state;
    for (int i = 0; i < SERVERS; i++) {
        char name[16];

        snprintf(name, sizeof name, "q/wait%d", i);
        init(name);
        actor_do(holder, "0", "lock %s", name);
        actor_send(waiter, "lock %s", name);
        wait_until(count_on("queue", name) == 1);
        server_kill(servers[i]);
        actor_do(holder, "0", "unlock %s", name);
        actor_expect(waiter, "0");
        actor_do(waiter, "0", "unlock %s", name);
        server_restart(servers[i]);
        server_reconnect(servers[i]);
    }
}

/* The flushed server alone would grant the lock anew. */
static void test_a_hold_excludes_when_any_server_is_flushed(void **state)
{
    (void)state;
    for (int i = 0; i < SERVERS; i++) {
        char name[16];

        snprintf(name, sizeof name, "q/flush%d", i);
        init(name);
        actor_do(holder, "0", "lock %s", name);
        wait_until(count_on("lock", name) == SERVERS);
        side_text(servers[i]->side, "FLUSHALL");
        actor_do(waiter, "EBUSY", "trylock %s", name);
        actor_do(holder, "0", "unlock %s", name);
        lock_in_turns(name, 4);
    }
}

/*
 * A server without data grants nothing before the holders have come back: with grace, and leases that the test waits
 * for.  The holder's renewal puts the hold back there, so the other two may even go down one after the other.
 */
static void test_a_hold_comes_back_when_the_servers_restart_empty_one_by_one(void **state)
{
    struct actor *owner = actor_start_at(url_of_all("?" TIMES)), *other = actor_start_at(url_of_all("?" TIMES));
    long long token;

    (void)state;
    actor_do(owner, "0", "init q/empty lease=4000 fair");
    actor_do(other, "0", "init q/empty lease=4000 fair");
    actor_do(owner, "0", "lock q/empty");
    token = actor_value(owner, "token q/empty");
    for (int i = 0; i < SERVERS; i++) {
        wait_until(count_on("lock", "q/empty") == SERVERS);
        server_kill(servers[i]);
        server_restart(servers[i]);
        server_reconnect(servers[i]);
        actor_do(other, "EBUSY", "trylock q/empty");
    }
    wait_until(count_on("lock", "q/empty") == SERVERS);
    assert_int_equal(actor_losses(owner), 0);
    assert_true(actor_value(owner, "token q/empty") == token);
    actor_do(owner, "0", "unlock q/empty");
    actor_do(other, "0", "lock q/empty");
    assert_true(actor_value(other, "token q/empty") > token);
    actor_do(other, "0", "unlock q/empty");
    actor_end(owner);
    actor_end(other);
}

/* A server without its mark is new, for clients of before and for clients that come then. */
static void test_a_hold_excludes_when_all_servers_are_flushed(void **state)
{
    struct actor *owner = actor_start_at(url_of_all("?" TIMES)), *old = actor_start_at(url_of_all("?" TIMES)), *new;

    (void)state;
    actor_do(owner, "0", "init q/flushed lease=3000 fair");
    actor_do(old, "0", "init q/flushed lease=3000 fair");
    actor_do(owner, "0", "lock q/flushed");
    wait_until(is_one_hold("q/flushed"));
    actor_do(old, "EBUSY", "trylock q/flushed");
    for (int i = 0; i < SERVERS; i++)
        side_text(servers[i]->side, "FLUSHALL");
    assert_true(actor_value(old, "waiters q/flushed") == 0); /* by a script that may not write */
    actor_do(old, "EBUSY", "trylock q/flushed");
    new = actor_start_at(url_of_all("?" TIMES));
    actor_do(new, "0", "init q/flushed lease=3000 fair");
    actor_do(new, "EBUSY", "trylock q/flushed");
    wait_until(is_one_hold("q/flushed"));
    assert_int_equal(actor_losses(owner), 0);
    actor_do(owner, "0", "unlock q/flushed");
    actor_do(new, "0", "lock q/flushed");
    actor_do(new, "0", "unlock q/flushed");
    actor_end(owner);
    actor_end(old);
    actor_end(new);
}

/* The token that a majority has confirmed is on two servers at least; the next hold gets its own from any two. */
static void test_a_told_token_is_on_a_majority(void **state)
{
    unsigned long long told;
    int known = 0;

    (void)state;
    init("q/told");
    actor_do(holder, "0", "lock q/told");
    told = (unsigned long long)actor_value(holder, "token q/told") >> 12;
    for (int i = 0; i < SERVERS; i++) {
        const char *text = side_text(servers[i]->side, "HGET %s token", key_of("state", "q/told"));

        known += text && strtoull(text, NULL, 10) >= told;
    }
    assert_true(known >= 2);
    actor_do(holder, "0", "unlock q/told");
}

static unsigned long long token_on(int server, const char *name)
{
    return strtoull(side_text(servers[server]->side, "HGET %s token", key_of("state", name)), NULL, 10);
}

/* Two servers own, each with a token of its own clock: the higher one is on one server alone, until a renewal. */
static void test_a_token_is_not_told_when_no_majority_confirms_it(void **state)
{
    (void)state;
    init("q/untold");
    server_kill(servers[0]);
    actor_do(holder, "0", "lock q/untold");
    while (token_on(1, "q/untold") == token_on(2, "q/untold")) {
        actor_do(holder, "0", "unlock q/untold");
        actor_do(holder, "0", "lock q/untold");
    }
    server_kill(servers[1]);
    actor_do(holder, "ENOLCK", "token q/untold");
    for (int i = 0; i < 2; i++) {
        server_restart(servers[i]);
        server_reconnect(servers[i]);
    }
}

/* ---- a majority fails -------------------------------------------------------------------- */

static void test_calls_say_who_is_missing_when_a_majority_is_down(void **state)
{
    (void)state;
    init("q/down");
    lock_in_turns("q/down", 2);
    server_kill(servers[0]);
    server_kill(servers[1]);
    actor_do(holder, "ENOLCK", "trylock q/down");
    actor_assert_words(holder, "2 of 3 servers");
    actor_do(holder, "ETIMEDOUT", "timedlock q/down 100");
    actor_send(holder, "lock q/down");
    server_restart(servers[1]);
    actor_expect(holder, "0");
    server_restart(servers[0]);
    for (int i = 0; i < 2; i++)
        server_reconnect(servers[i]);
    actor_do(holder, "0", "unlock q/down");
}

/* ---- seven servers ----------------------------------------------------------------------- */

#define SEVEN 7

/* Two processes take turns on these servers while three are killed; without a fourth server nobody has a turn. */
static void take_turns_on(struct server *const *seven)
{
    struct actor *actors[2];
    char url[400] = "redis+quorum://";
    long long token = 0;

    for (int i = 0; i < SEVEN; i++)
        snprintf(url + strlen(url), sizeof url - strlen(url), "%s127.0.0.1:%d", i ? "," : "", seven[i]->port);
    snprintf(url + strlen(url), sizeof url - strlen(url), "?grace=off&" TIMES);
    for (int i = 0; i < 2; i++) {
        actors[i] = actor_start_at(url);
        actor_do(actors[i], "0", "init q/seven lease=%d", LEASE);
    }
    for (int killed = 0; killed < SEVEN / 2; killed++) {
        struct actor *first = actors[killed % 2], *second = actors[1 - killed % 2];

        actor_do(first, "0", "lock q/seven");
        server_kill(seven[killed]);
        assert_true(actor_value(first, "token q/seven") > token);
        token = actor_value(first, "token q/seven");
        actor_do(second, "EBUSY", "trylock q/seven");
        actor_do(first, "0", "unlock q/seven");
    }
    server_kill(seven[SEVEN / 2]);
    actor_do(actors[0], "ENOLCK", "trylock q/seven");
    actor_assert_words(actors[0], "4 of 7 servers");
    for (int i = 0; i < 2; i++)
        actor_end(actors[i]);
}

static void test_locks_go_on_when_three_of_seven_servers_are_killed(void **state)
{
    struct server *seven[SEVEN];

    (void)state;
    for (int i = 0; i < SEVEN; i++)
        seven[i] = server_start_with(true, NULL);
    take_turns_on(seven);
    for (int i = 0; i < SEVEN; i++)
        server_end(seven[i]);
}

int main(int argc, char **argv)
{
#define USUAL(test) cmocka_unit_test_setup_teardown(test, begin_test, end_test)
    const struct CMUnitTest tests[] = {
        USUAL(test_a_hold_is_on_every_server_and_excludes),
        USUAL(test_a_waiter_gets_the_lock_when_the_holder_unlocks),
        USUAL(test_a_pair_costs_each_server_two_scripts),
        USUAL(test_handoffs_cost_the_same_when_the_processes_are_young),
        USUAL(test_a_death_is_told_when_the_holder_was_killed),
        USUAL(test_a_hold_is_unchanged_when_the_data_are_mended),
        USUAL(test_a_mutex_is_not_recoverable_by_a_majority),
        USUAL(test_tokens_rise_from_hold_to_hold),
        USUAL(test_conditions_are_not_supported),
        USUAL(test_three_rivals_take_turns),
        USUAL(test_a_hold_goes_on_when_any_server_is_killed),
        USUAL(test_locks_go_on_when_any_server_is_stopped),
        USUAL(test_a_waiter_gets_the_lock_when_any_server_is_killed),
        USUAL(test_a_hold_excludes_when_any_server_is_flushed),
        USUAL(test_a_hold_comes_back_when_the_servers_restart_empty_one_by_one),
        USUAL(test_a_hold_excludes_when_all_servers_are_flushed),
        USUAL(test_a_told_token_is_on_a_majority),
        USUAL(test_a_token_is_not_told_when_no_majority_confirms_it),
        USUAL(test_calls_say_who_is_missing_when_a_majority_is_down),
        cmocka_unit_test(test_locks_go_on_when_three_of_seven_servers_are_killed),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, begin_group, end_group);
}
