/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A check that cannot fail proves nothing: with one line of a script or one step of the core changed on
 * purpose, the simulator sees a promise broken within some seeds.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "run.h"

#define SEEDS_FOR_CONTROL 2000

static uint64_t seeds_for_control = SEEDS_FOR_CONTROL;

static struct run run;

/* Controls run on one server, unless a test says otherwise for its own time. */
static bool has_copies, is_plain, has_registers, is_quorum, has_sentinels, is_cluster;
static unsigned wait_for;
static enum liar liar;

/* Where the search of the next control begins: the seeds before show nothing, at the moment, and cost time. */
static uint64_t next_seed = 1;

static int back_to_one_server(void **state)
{
    (void)state;
    has_copies = is_plain = has_registers = is_quorum = has_sentinels = is_cluster = false;
    wait_for = 0;
    liar = LIAR_IS_NONE;
    return 0;
}

/* Fails unless a promise of the list `promises` is broken within some seeds.  has_losses: data is lost too. */
static void must_break_when(const char *what, const struct mutation *mutations, enum core_defect defect,
                            const char *promises, bool has_losses)
{
    struct scripting *broken = scripting_new(mutations);

    memset(&run, 0, sizeof run);
    run.scripting = broken;
    run.defect = defect;
    run.has_losses = has_losses;
    run.has_copies = has_copies;
    run.is_plain = is_plain;
    run.has_registers = has_registers;
    run.is_quorum = is_quorum;
    run.liar = liar;
    run.has_sentinels = has_sentinels;
    run.is_cluster = is_cluster;
    run.wait = wait_for;
    run.is_safe = run.has_slow_clocks = !has_losses;
    for (run.seed = next_seed; !run.breach[0]; run.seed++) {
        if (run.seed >= next_seed + seeds_for_control)
            fail_msg("%s is not noticed within %" PRIu64 " seeds", what, seeds_for_control);
        run_seed(&run);
    }
    printf("# %s: seed %" PRIu64 ": %s\n", what, run.seed - 1, run.breach);
    next_seed = 1;
    scripting_free(broken);
    if (!strstr(promises, strndupa(run.breach, strcspn(run.breach, ":"))))
        fail_msg("%s breaks %s, not one of %s", what, run.breach, promises);
}

static void must_break(const char *what, const struct mutation *mutations, enum core_defect defect,
                       const char *promises)
{
    must_break_when(what, mutations, defect, promises, false);
}

static void must_break_when_changed(const char *what, const char *promises, const char *script, const char *old,
                                    const char *new)
{
    const struct mutation mutations[] = { { script, old, new }, { NULL, NULL, NULL } };

    must_break(what, mutations, CORE_IS_WHOLE, promises);
}

/* The other store has judges, too. */
static void test_sim_notices_a_defect_when_the_store_is_a_plain_one(void **state)
{
    (void)state;
    is_plain = true;
    must_break("plain: a grant counts from any request", NULL, CORE_TRUSTS_ANY_GRANT, "I1 I2");
    must_break("plain: certain for the whole lease", NULL, CORE_HAS_NO_MARGIN, "I1 I2");
    must_break("plain: a released mutex counts as held", NULL, CORE_KEEPS_ALL, "I1 I2");
    must_break_when("plain: a new server without grace", NULL, SERVER_HAS_NO_GRACE, "I1 I2", true);
    must_break("plain: a release names the caller", NULL, RELEASES_NAME_CALLERS, "I3");
}

/* The plain store's marks: notified of the first waiter, and no death. */
static void test_sim_notices_a_defect_when_the_plain_store_marks_holds(void **state)
{
    (void)state;
    is_plain = true;
    must_break("plain: nobody is told of a waiter", NULL, STORE_TELLS_NOBODY, "I6");
    must_break("plain: each waiter is told", NULL, STORE_TELLS_EACH_TIME, "I6");
    must_break("plain: a death in spite of the mark", NULL, STORE_FORGETS_MARKS, "I9");
    must_break("plain: a death that nobody is told of", NULL, STORE_TELLS_NO_DEATH, "I9");
}

/* What a driver must give: without any of it the store on registers breaks its promises. */
static void test_sim_notices_a_defect_of_a_driver(void **state)
{
    (void)state;
    has_registers = true;
    must_break("registers: certain for the whole lease", NULL, CORE_HAS_NO_MARGIN, "I1 I2");
    must_break("registers: a swap that is not atomic", NULL, MEMORY_IS_NOT_ATOMIC, "I1 I2 I4");
    must_break("registers: a conflict brings an old value", NULL, MEMORY_BRINGS_OLD, "I1 I2 I4 liveness");
    must_break("registers: reads are old", NULL, MEMORY_READS_OLD, "I1 I2 I4 liveness");
    must_break("registers: versions that repeat", NULL, MEMORY_REPEATS_VERSIONS, "I1 I2 I4 I7 liveness");
    must_break_when("registers: an old copy under the same identity", NULL, MEMORY_KEEPS_IDENTITY, "I1 I2", true);
}

/* The process's part. */
static void test_sim_notices_a_defect_of_a_process_on_registers(void **state)
{
    (void)state;
    has_registers = true;
    must_break("registers: a released mutex counts as held", NULL, CORE_KEEPS_ALL, "I1 I2 I4");
    must_break("registers: the fast path ignores the time", NULL, FAST_IGNORES_TIME, "I1");
    must_break("registers: a lease is kept for ever", NULL, LINE_NEVER_LOOKS, "liveness");
    must_break("registers: a thread on its seat dies inside", NULL, LINE_TAKES_NONE_BACK, "I9");
    must_break("registers: a renewal without an answer is the last", NULL, CORE_RENEWS_ONCE, "liveness");
    must_break("registers: a release without an answer is the last", NULL, CORE_RELEASES_ONCE, "liveness");
}

static void test_sim_notices_when_registers_lose_signals(void **state)
{
    (void)state;
    has_registers = true;
    must_break("registers: a signal goes nowhere", NULL, REGISTERS_SIGNAL_NOBODY, "I7 liveness");
    next_seed = 2471;
    must_break("registers: a signal dies with its receiver", NULL, REGISTERS_DROP_SIGNALS, "I7 liveness");
}

static void test_sim_notices_a_defect_when_there_is_a_quorum(void **state)
{
    (void)state;
    is_quorum = true;
    must_break("quorum: certain for the whole lease", NULL, CORE_HAS_NO_MARGIN, "I1 I2");
    must_break("quorum: a release names the caller", NULL, RELEASES_NAME_CALLERS, "I3");
    next_seed = 36;
    must_break_when("quorum: new servers without grace", NULL, SERVER_HAS_NO_GRACE, "I1 I2", true);
}

/* Any two majorities of three may share just this server: SECURITY.md promises no more. */
static void test_sim_notices_when_a_server_of_a_quorum_grants_to_everybody(void **state)
{
    (void)state;
    is_quorum = true;
    liar = LIAR_GRANTS;
    must_break("quorum: a server that grants to everybody", NULL, CORE_IS_WHOLE, "I1 I2");
}

static void test_sim_notices_a_defect_when_there_are_sentinels(void **state)
{
    const struct mutation uptime_counts[] = { { "born", " = config and config ~= '1' or epoch", " = epoch" }, { 0 } };

    (void)state;
    has_sentinels = true;
    next_seed = 26;
    must_break_when("sentinels: a word counts for ever", NULL, WORDS_COUNT_FOR_EVER, "I1 I2", true);
    next_seed = 31;
    must_break_when("sentinels: without epochs", NULL, SENTINELS_TELL_NO_EPOCH, "I1 I2", true);
    must_break_when("sentinels: without grace", NULL, SERVER_HAS_NO_GRACE, "I1 I2", true);
    next_seed = 171;
    must_break_when("sentinels: no grace of an empty server", uptime_counts, CORE_IS_WHOLE, "I1 I2", true);
    wait_for = 2;
    next_seed = 61;
    must_break_when("sentinels: a hold counts without replicas", NULL, LINK_AWAITS_NO_REPLICA, "I1 I2", true);
}

/* The guard's first line; a script without it ends in its middle while a slot is on its way. */
static const char guard[] = "if type(redis.pcall('EXISTS', KEYS[1]:match('^.-}') .. ':none')) ~= 'number' then";

static void test_sim_notices_a_defect_when_there_is_a_cluster(void **state)
{
    static const char unguarded[] = "if false then";
    const char *long_run = getenv("DMUTEX_TEST_LONG"); /* make sets it to nothing in a usual run */
    const struct mutation no_guard[] = {
        { "acquire", guard, unguarded }, { "release", guard, unguarded }, { "poll", guard, unguarded }, { 0 }
    };

    (void)state;
    is_cluster = true;
    next_seed = 121;
    must_break_when("cluster: without the guard", no_guard, CORE_IS_WHOLE, "C4", true);
    must_break_when("cluster: without grace", NULL, SERVER_HAS_NO_GRACE, "I1 I2", true);
    /* Since links to nodes that serve nothing close after a while, some thousand seeds do not show this one. */
    if (long_run && *long_run) {
        seeds_for_control = 50000;
        must_break_when("cluster: requests wait for no check", NULL, LINK_AWAITS_NO_IDENTITY, "I1 I2", true);
        seeds_for_control = SEEDS_FOR_CONTROL;
    }
}

/* Finding 65: the server knows the thread that asked for a hold, and another thread of the process may be inside. */
static void test_sim_notices_when_requests_name_the_calling_thread(void **state)
{
    (void)state;
    must_break("a release names the caller", NULL, RELEASES_NAME_CALLERS, "I3");
    must_break("a wait names the caller", NULL, WAITS_NAME_CALLERS, "I3");
}

static void test_sim_notices_when_a_thread_enters_a_hold_that_has_ended(void **state)
{
    (void)state;
    must_break("the fast path ignores the time", NULL, FAST_IGNORES_TIME, "I1");
}

/* A kept lease that nobody wants goes back, too. */
static void test_sim_notices_when_a_lease_is_kept_forever(void **state)
{
    (void)state;
    must_break("a lease is kept for ever", NULL, LINE_NEVER_LOOKS, "liveness");
}

/* A hold may have been passed to the seat of a thread that exit() parks. */
static void test_sim_notices_when_exit_reports_a_death_that_was_none(void **state)
{
    (void)state;
    must_break("a thread on its seat dies inside", NULL, LINE_TAKES_NONE_BACK, "I9");
}

static void test_sim_notices_when_a_grant_counts_from_any_request(void **state)
{
    (void)state;
    next_seed = 301;
    must_break("a grant counts from any request", NULL, CORE_TRUSTS_ANY_GRANT, "I1 I2");
}

static void test_sim_notices_when_certainty_has_no_margin(void **state)
{
    (void)state;
    must_break("no margin", NULL, CORE_HAS_NO_MARGIN, "I1 I2");
}

static void test_sim_notices_when_what_was_given_back_counts_as_held(void **state)
{
    (void)state;
    must_break("what was given back counts as held", NULL, CORE_KEEPS_ALL, "I1 I2 I4");
}

/* A server with older data has forgotten a waiter, whose wait ends before the server's answer comes. */
static void test_sim_notices_when_nothing_reminds_of_a_waiter(void **state)
{
    (void)state;
    next_seed = 121;
    must_break_when("a late \"unknown\" is no news", NULL, CORE_DROPS_LATE_UNKNOWN, "liveness", true);
}

static void test_sim_notices_when_nothing_is_repeated(void **state)
{
    (void)state;
    must_break("a renewal without an answer is the last", NULL, CORE_RENEWS_ONCE, "liveness");
    must_break("a release without an answer is the last", NULL, CORE_RELEASES_ONCE, "liveness");
}

static void test_sim_notices_when_bytes_of_a_closed_connection_run_late(void **state)
{
    (void)state;
    next_seed = 821;
    must_break("late bytes of a closed connection", NULL, SERVER_HAS_GHOSTS, "I1 I4");
}

static void test_sim_notices_when_a_new_server_gives_no_grace(void **state)
{
    (void)state;
    must_break_when("no grace", NULL, SERVER_HAS_NO_GRACE, "I1 I2 I9", true);
}

static void must_break_when_marked(const char *what, const char *old, const char *new)
{
    const struct mutation mutations[] = { { "born", old, new }, { 0 } };

    must_break_when(what, mutations, CORE_IS_WHOLE, "I1 I2 I9", true);
}

static void test_sim_notices_when_the_mark_names_no_promotion(void **state)
{
    (void)state;
    next_seed = 741;
    must_break_when_marked("a mark without a replid", "mark == id .. '/' .. epoch or", "mark:match('^%x+') == id or");
}

static void test_sim_notices_when_an_empty_replica_gives_no_grace(void **state)
{
    (void)state;
    next_seed = 116;
    must_break_when_marked("no grace of a replica that has no mark", " or epoch ~= '-'\n", "\n");
}

/* The lines that send a message only to an inbox counted by NUMSUB. */
static const char counted[] = "local is_heard = subscribers and subscribers ~= 0 and\n"
                              "type(redis.pcall('PUBLISH', channel, message)) == 'number'";

static void must_break_when_told(const char *what, const char *promises, const char *new, enum core_defect defect)
{
    const struct mutation mutations[] = { { "acquire", counted, new },
                                          { "release", counted, new },
                                          { "poll", counted, new },
                                          { "cond_wait", counted, new },
                                          { "cond_signal", counted, new },
                                          { "cond_cancel", counted, new },
                                          { 0 } };

    must_break(what, mutations, defect, promises);
}

/* Grants go to uncounted inboxes too, a replica's subscribers, and clients believe a grant of any server. */
static void test_sim_notices_when_a_grant_of_any_server_is_believed(void **state)
{
    (void)state;
    must_break_when_told("a grant of any server", "I1 I2",
                         "local heard = redis.pcall('PUBLISH', channel, message)\n"
                         "local is_heard = type(heard) == 'number' and subscribers and subscribers ~= 0",
                         INBOX_BELIEVES_ANY);
}

/* Inboxes are counted by PUBLISH, which counts pattern subscribers too. */
static void test_sim_notices_when_a_pattern_counts_for_the_dead(void **state)
{
    (void)state;
    must_break_when_told("a pattern that counts", "I8",
                         "local heard = redis.pcall('PUBLISH', channel, message)\n"
                         "local is_heard = type(heard) == 'number' and heard > 0",
                         CORE_IS_WHOLE);
}

static void test_sim_notices_when_an_owner_is_taken_for_its_next_attempt(void **state)
{
    (void)state;
    must_break_when_changed("no attempt check", "I1 I2", "acquire", "if s.id ~= me.id then",
                            "if not s.id or owner_of(s.id) ~= owner_of(me.id) then");
}

static void test_sim_notices_when_a_repeated_answer_begins_no_new_lease(void **state)
{
    static const char old[] = "put_lock(k, me.lease)\nreturn true, false";
    static const char new[] = "if call('HLEN', k.lock) == 0 then put_lock(k, me.lease) end\nreturn true, false";
    const struct mutation mutations[] = {
        { "acquire", old, new }, { "poll", old, new }, { "cancel", old, new }, { 0 }
    };

    (void)state;
    must_break("no new lease with a repeated answer", mutations, CORE_IS_WHOLE, "I1 I2");
}

static void test_sim_notices_when_a_grant_has_the_wrong_lease(void **state)
{
    (void)state;
    must_break_when_changed("a grant with another lease", "I1 I2", "release", "call('PEXPIRE', lock, lease) == 0",
                            "call('PEXPIRE', lock, 100) == 0");
}

static void test_sim_notices_when_the_first_waiter_does_not_notify_the_owner(void **state)
{
    (void)state;
    must_break_when_changed("an acquire that tells nothing", "I6", "acquire", "'wanted ' .. attempt", "'' .. attempt");
}

static void test_sim_notices_when_each_waiter_notifies_the_owner(void **state)
{
    (void)state;
    must_break_when_changed("a waiter that tells, and is not the first", "I6", "acquire",
                            "if is_first and more_words ~= ''", "if more_words ~= ''");
}

static void test_sim_notices_when_a_mark_does_not_keep_death_away(void **state)
{
    static const char old[] = "split(s.label) == '- ' and 0 or 1";
    const struct mutation mutations[] = { { "acquire", old, "1" }, { "poll", old, "1" }, { 0 } };

    (void)state;
    must_break("a death in spite of the mark", mutations, CORE_IS_WHOLE, "I9");
}

static void test_sim_notices_when_a_release_leaves_its_hold(void **state)
{
    (void)state;
    must_break_when_changed("a release that leaves its hold", "I1 I2 I4 I9", "release",
                            "call('DEL', lock)\ncall('HSET', state, 'hold', ended)", "call('DEL', lock)");
}

static void test_sim_notices_when_nobody_learns_of_a_death(void **state)
{
    static const char old[] = "end_hold(k, s, split(s.label) == '- ' and 0 or 1, lapsed_ms(k, s, at))",
                      new[] = "end_hold(k, s, 0, lapsed_ms(k, s, at))";
    const struct mutation mutations[] = { { "acquire", old, new }, { "poll", old, new }, { 0 } };

    (void)state;
    must_break("a death that nobody is told of", mutations, CORE_IS_WHOLE, "I9");
}

static void test_sim_notices_when_anybody_can_release(void **state)
{
    (void)state;
    must_break_when_changed(
        "anybody's release", "I1 I4 I9", "release",
        "local is_mine = held and held:find(caller_id, 1, true) == 1 and held:byte(#caller_id + 1) == 32",
        "local is_mine = held");
}

static void test_sim_notices_when_tokens_are_the_clock_alone(void **state)
{
    static const char old[] = "return math.max(s.last + 1, seen + 1, ", new[] = "return math.max(";
    const struct mutation mutations[] = {
        { "acquire", old, new }, { "release", old, new }, { "poll", old, new }, { 0 }
    };

    (void)state;
    must_break("tokens by the clock alone", mutations, CORE_IS_WHOLE, "I2");
}

static void test_sim_notices_when_the_newest_waiter_is_the_first(void **state)
{
    (void)state;
    must_break_when_changed("the newest first", "I8", "acquire", "call('ZADD', queue, 'NX', now_text, id)",
                            "call('ZADD', queue, 'NX', '-' .. now_text, id)");
}

static void test_sim_notices_when_the_owner_stays_in_the_queue(void **state)
{
    (void)state;
    must_break_when_changed("an owner that stays in the queue", "I5", "poll",
                            "call('HDEL', waiter, id)\ncall('ZREM', queue, id)\nend", "call('HDEL', waiter, id)\nend");
}

static void test_sim_notices_when_a_key_never_expires(void **state)
{
    (void)state;
    must_break_when_changed("a key without an end", "I10", "acquire",
                            "call('PEXPIRE', queue, life)\ncall('PEXPIRE', waiter, life)",
                            "call('PEXPIRE', queue, life)");
}

static void test_sim_notices_when_polls_serve_nobody(void **state)
{
    (void)state;
    must_break_when_changed("polls that serve nobody", "I6 I7 liveness", "poll", "if not is_held then\nlocal winner",
                            "if false then\nlocal winner");
}

/* Of an older copy, in which a thread that has the mutex sleeps. */
static void test_sim_notices_when_a_thread_that_woke_up_sleeps_on(void **state)
{
    const struct mutation renew[] = { { "renew", "if k.cond ~= '' then", "if false then" }, { 0 } };
    const struct mutation release[] = { { "release", "c and forget(c, caller_id) or 0", "0" }, { 0 } };
    const struct mutation signal[] = { { "renew", "if s.hold then owe_signal", "if false then owe_signal" }, { 0 } };

    (void)state;
    has_copies = true;
    next_seed = 1041;
    must_break_when("a renewal that leaves the sleeper", renew, CORE_IS_WHOLE, "I5", true);
    must_break_when("a release that leaves the sleeper", release, CORE_IS_WHOLE, "I4", true);
    next_seed = 711;
    must_break_when("a renewal that keeps the signal of the owner in the copy", signal, CORE_IS_WHOLE, "I7", true);
}

static void test_sim_notices_when_a_signal_dies_with_its_receiver(void **state)
{
    static const char old[] = "if not condition then return end", new[] = "if true then return end";
    const struct mutation mutations[] = { { "acquire", old, new },
                                          { "release", old, new },
                                          { "poll", old, new },
                                          { "cond_wait", old, new },
                                          { "cond_signal", old, new },
                                          { "cond_cancel", old, new },
                                          { 0 } };

    (void)state;
    must_break("a signal dies with its receiver", mutations, CORE_IS_WHOLE, "I7 liveness");
}

static void test_sim_notices_when_a_signal_goes_nowhere(void **state)
{
    static const char old[] = "move(k, c, s, w, at, true)\nmoved = moved + 1", new[] = "moved = moved + 1";

    (void)state;
    must_break_when_changed("a signal goes nowhere", "I7 liveness", "cond_signal", old, new);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_sim_notices_a_defect_when_the_store_is_a_plain_one, back_to_one_server),
        cmocka_unit_test_teardown(test_sim_notices_a_defect_when_the_plain_store_marks_holds, back_to_one_server),
        cmocka_unit_test_teardown(test_sim_notices_a_defect_of_a_driver, back_to_one_server),
        cmocka_unit_test_teardown(test_sim_notices_a_defect_of_a_process_on_registers, back_to_one_server),
        cmocka_unit_test_teardown(test_sim_notices_when_registers_lose_signals, back_to_one_server),
        cmocka_unit_test_teardown(test_sim_notices_a_defect_when_there_is_a_quorum, back_to_one_server),
        cmocka_unit_test_teardown(test_sim_notices_when_a_server_of_a_quorum_grants_to_everybody, back_to_one_server),
        cmocka_unit_test_teardown(test_sim_notices_a_defect_when_there_are_sentinels, back_to_one_server),
        cmocka_unit_test_teardown(test_sim_notices_a_defect_when_there_is_a_cluster, back_to_one_server),
        cmocka_unit_test(test_sim_notices_when_requests_name_the_calling_thread),
        cmocka_unit_test(test_sim_notices_when_a_thread_enters_a_hold_that_has_ended),
        cmocka_unit_test(test_sim_notices_when_a_lease_is_kept_forever),
        cmocka_unit_test(test_sim_notices_when_exit_reports_a_death_that_was_none),
        cmocka_unit_test(test_sim_notices_when_a_grant_counts_from_any_request),
        cmocka_unit_test(test_sim_notices_when_certainty_has_no_margin),
        cmocka_unit_test(test_sim_notices_when_what_was_given_back_counts_as_held),
        cmocka_unit_test(test_sim_notices_when_nothing_reminds_of_a_waiter),
        cmocka_unit_test(test_sim_notices_when_nothing_is_repeated),
        cmocka_unit_test(test_sim_notices_when_bytes_of_a_closed_connection_run_late),
        cmocka_unit_test(test_sim_notices_when_a_new_server_gives_no_grace),
        cmocka_unit_test(test_sim_notices_when_the_mark_names_no_promotion),
        cmocka_unit_test(test_sim_notices_when_an_empty_replica_gives_no_grace),
        cmocka_unit_test(test_sim_notices_when_a_grant_of_any_server_is_believed),
        cmocka_unit_test(test_sim_notices_when_a_pattern_counts_for_the_dead),
        cmocka_unit_test(test_sim_notices_when_an_owner_is_taken_for_its_next_attempt),
        cmocka_unit_test(test_sim_notices_when_a_repeated_answer_begins_no_new_lease),
        cmocka_unit_test(test_sim_notices_when_a_grant_has_the_wrong_lease),
        cmocka_unit_test(test_sim_notices_when_the_first_waiter_does_not_notify_the_owner),
        cmocka_unit_test(test_sim_notices_when_each_waiter_notifies_the_owner),
        cmocka_unit_test(test_sim_notices_when_a_mark_does_not_keep_death_away),
        cmocka_unit_test(test_sim_notices_when_a_release_leaves_its_hold),
        cmocka_unit_test(test_sim_notices_when_nobody_learns_of_a_death),
        cmocka_unit_test(test_sim_notices_when_anybody_can_release),
        cmocka_unit_test(test_sim_notices_when_tokens_are_the_clock_alone),
        cmocka_unit_test(test_sim_notices_when_the_newest_waiter_is_the_first),
        cmocka_unit_test(test_sim_notices_when_the_owner_stays_in_the_queue),
        cmocka_unit_test(test_sim_notices_when_a_key_never_expires),
        cmocka_unit_test(test_sim_notices_when_polls_serve_nobody),
        cmocka_unit_test_teardown(test_sim_notices_when_a_thread_that_woke_up_sleeps_on, back_to_one_server),
        cmocka_unit_test(test_sim_notices_when_a_signal_dies_with_its_receiver),
        cmocka_unit_test(test_sim_notices_when_a_signal_goes_nowhere),
    };

    cmocka_set_test_filter(getenv("DM_SIM_TEST")); /* a single test, by hand */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
