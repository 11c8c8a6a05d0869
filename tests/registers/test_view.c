/* SPDX-License-Identifier: BSD-2-Clause */
/* What people see of names on registers: INFO, views of one name, lists; and DROP. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "../lib/range.h"
#include "base/self.h"
#include "base/units.h"
#include "process.h"
#include "registers/value.h"

/* ---- views -------------------------------------------------------------------------------- */

#define SIGHTS 400

/* What a view has told. */
static struct sight {
    char key[600], mutex[600], fault[100];
    struct dm_seen seen;
    struct dm_seen_waiter waiters[4];
} sights[SIGHTS];
static int sight_count;

static void keep(void *user, const struct dm_seen *seen)
{
    struct sight *sight = &sights[sight_count++];

    (void)user;
    assert_true(sight_count <= SIGHTS);
    sight->seen = *seen;
    snprintf(sight->key, sizeof sight->key, "%s", seen->key);
    snprintf(sight->fault, sizeof sight->fault, "%s", seen->fault ? seen->fault : "");
    snprintf(sight->mutex, sizeof sight->mutex, "%s", seen->mutex ? seen->mutex : "");
    for (int i = 0; i < seen->waiter_count && i < 4; i++)
        sight->waiters[i] = seen->waiters[i];
}

static enum dm_verdict view(struct process *process, struct dm_view *view)
{
    struct dm_deadline deadline = dm_deadline_in_ms(PROCESS_PATIENCE_MS);
    char reason[DM_REASON_ROOM] = "";
    enum dm_verdict verdict;

    sight_count = 0;
    view->handler = keep;
    do
        verdict = dm_store_view(process->store, view, &deadline, reason);
    while (verdict == DM_SAYS_DONE && view->cursor);
    if (view->row)
        view->free_row(view->row);
    return verdict;
}

static const struct sight *view_one(struct process *process, const char *key)
{
    struct dm_view one = { .key = key, .waiters = 4 };

    assert_int_equal(view(process, &one), DM_SAYS_DONE);
    assert_int_equal(sight_count, 1);
    assert_string_equal(sights[0].key, key);
    return &sights[0];
}

static void view_all(struct process *process, const char *group)
{
    struct dm_view all = { .group = group };

    assert_int_equal(view(process, &all), DM_SAYS_DONE);
}

static const struct sight *find_sight(const char *key)
{
    for (int i = 0; i < sight_count; i++) {
        if (strcmp(sights[i].key, key) == 0)
            return &sights[i];
    }
    return NULL;
}

static struct dm_info inform(struct process *process, uint64_t attempt)
{
    struct dm_question question = process_question(process, DM_OP_INFO, attempt);
    union dm_more more;

    question.ret_more = &more;
    assert_int_equal(process_ask(process, &question).verdict, DM_SAYS_DONE);
    return more.info;
}

static struct dm_answer queue_up(struct process *process, uint64_t attempt)
{
    struct dm_question question = process_question(process, DM_OP_ACQUIRE, attempt);

    question.acquire.may_queue = true;
    return process_ask(process, &question);
}

/* The label of a process of this program. */
static void assert_is_ours(const struct process *process, const char *owner, uint64_t thread, uint32_t pid,
                           const char *host, const char *program)
{
    char label[DM_LABEL_ROOM];

    assert_string_equal(owner, process->ident.uuid);
    assert_int_equal(thread, (uint64_t)syscall(SYS_gettid));
    snprintf(label, sizeof label, "%u %s %s", pid, host, program);
    assert_string_equal(label, process->ident.label);
}

static void hold(struct process *process, const char *key, uint64_t attempt)
{
    struct dm_place *former = process->place;

    process->place = dm_store_place(process->store, key);
    assert_int_equal(process_acquire(process, attempt).verdict, DM_SAYS_OWNED);
    free(process->place);
    process->place = former;
}

/* ---- one name ----------------------------------------------------------------------------- */

/* Holder and waiters with their processes and times, by the holder, a waiter and a stranger. */
static void test_info_and_view_show_who_holds_and_who_waits(void **state)
{
    struct process *holder = process_start(0, true), *waiter = process_start(1, true), *other = process_start(2, true);
    uint64_t attempt = process_next_attempt(holder), waiting = process_next_attempt(waiter);
    uint64_t token = process_acquire(holder, attempt).token;
    struct process *askers[] = { holder, waiter, other };
    const struct sight *sight;

    (void)state;
    assert_int_equal(queue_up(waiter, waiting).verdict, DM_SAYS_QUEUED);
    for (size_t i = 0; i < 3; i++) {
        struct dm_info info = inform(askers[i], i == 1 ? waiting : 0);

        assert_is_ours(holder, info.shown.owner, info.shown.thread, info.shown.pid, info.shown.host,
                       info.shown.program);
        assert_true(info.shown.locked && info.shown.token == token && info.shown.waiters == 1);
        assert_int_equal(info.shown.hold_count, 1);
        assert_within(info.shown.remaining_ms, 1, PROCESS_LEASE_MS);
        assert_int_equal(info.position, i == 1);
        assert_int_equal(info.grace_ms, 0);
        assert_within(info.held_ms, 0, PROCESS_PATIENCE_MS);
    }
    sight = view_one(other, "ngroup/leaf");
    assert_is_ours(holder, sight->seen.info.shown.owner, sight->seen.info.shown.thread, sight->seen.info.shown.pid,
                   sight->seen.info.shown.host, sight->seen.info.shown.program);
    assert_int_equal(sight->seen.lease_ms, PROCESS_LEASE_MS);
    assert_int_equal(sight->seen.waiter_count, 1);
    assert_is_ours(waiter, sight->waiters[0].owner, sight->waiters[0].thread, sight->waiters[0].pid,
                   sight->waiters[0].host, sight->waiters[0].program);
    assert_int_equal(sight->waiters[0].lease_ms, PROCESS_LEASE_MS);
    assert_within(sight->waiters[0].waited_ms, 0, PROCESS_PATIENCE_MS);
    assert_within(sight->waiters[0].silent_ms, 0, PROCESS_LEASE_MS);
}

/* Nothing is written by those who look. */
static void test_views_write_nothing(void **state)
{
    struct process *one = process_start(0, true), *other = process_start(1, true);
    uint64_t swaps;

    (void)state;
    view_one(other, "nnever/used"); /* the mark is known now */
    assert_false(sights[0].seen.info.shown.locked);
    swaps = memory_counts(process_memory)->swaps;
    view_one(other, "nnever/used");
    view_all(other, NULL);
    inform(other, 0);
    assert_int_equal(memory_counts(process_memory)->swaps, swaps);
    assert_int_equal(process_acquire(one, process_next_attempt(one)).verdict, DM_SAYS_OWNED);
}

/* The first lock of a store is granted after a lease: whoever looks until then learns for how long. */
static void test_new_store_shows_its_grace(void **state)
{
    struct process *one = process_start(0, true);
    struct dm_info info = inform(one, 0);

    (void)state;
    assert_false(info.shown.locked);
    assert_within(info.grace_ms, 0, PROCESS_LEASE_MS);
    process_acquire(one, process_next_attempt(one));
    assert_int_equal(inform(one, 0).grace_ms, 0);
}

/* By the store's clock the holder's last beat is a lease old, although nobody has ended its session. */
static void test_dead_holder_is_shown_as_dead(void **state)
{
    struct process *one = process_start(0, true), *other = process_start(1, true);
    uint64_t token = process_acquire(one, process_next_attempt(one)).token;

    (void)state;
    assert_int_equal(view_one(other, "ngroup/leaf")->seen.info.shown.locked, 1);
    process_kill(one);
    process_jump(PROCESS_LEASE_MS * DM_NS_PER_MS);
    assert_int_equal(view_one(other, "ngroup/leaf")->seen.info.shown.locked, 0);
    assert_int_equal(sights[0].seen.info.shown.health, DM_REG_OWNER_DIED);
    assert_int_equal(sights[0].seen.info.shown.token, token);
    assert_int_equal(inform(other, 0).shown.locked, 0);
}

static void assert_last(const struct sight *sight, const struct process *process, unsigned how)
{
    const struct dm_last *last = &sight->seen.last;

    assert_true(last->is_known);
    assert_is_ours(process, process->ident.uuid, last->thread, last->pid, last->host, last->program);
    assert_int_equal(last->how, how);
    assert_within(last->held_ms, 0, PROCESS_PATIENCE_MS);
    assert_within(last->ago_ms, 0, PROCESS_PATIENCE_MS);
    assert_true(last->from_us > DM_TOKEN_EPOCH_US);
}

/* Who had a free lock last: it was released, broken by force, or its holder died, before and after that was noticed. */
static void test_free_lock_shows_its_last_hold(void **state)
{
    struct process *one = process_start(0, true), *other = process_start(1, true), *third;
    struct dm_question force = process_question(other, DM_OP_FORCE, 0), poll;
    uint64_t attempt;

    (void)state;
    assert_false(view_one(other, "ngroup/leaf")->seen.last.is_known);
    assert_int_equal(process_acquire(one, attempt = process_next_attempt(one)).verdict, DM_SAYS_OWNED);
    assert_false(view_one(other, "ngroup/leaf")->seen.last.is_known);
    assert_int_equal(process_release(one, attempt), DM_SAYS_DONE);
    assert_last(view_one(other, "ngroup/leaf"), one, DM_END_UNLOCKED);
    assert_int_equal(process_acquire(one, process_next_attempt(one)).verdict, DM_SAYS_OWNED);
    assert_int_equal(process_ask(other, &force).verdict, DM_SAYS_DONE);
    assert_last(view_one(other, "ngroup/leaf"), one, DM_END_BROKEN);
    hold(one, "ngroup/other", process_next_attempt(one));
    assert_int_equal(process_acquire(one, process_next_attempt(one)).verdict, DM_SAYS_OWNED);
    process_kill(one);
    process_jump(2 * PROCESS_LEASE_MS * DM_NS_PER_MS);
    assert_last(view_one(other, "ngroup/leaf"), one, DM_END_DIED);
    third = process_start(2, true);
    assert_int_equal(process_try(third, process_next_attempt(third)).verdict, DM_SAYS_OWNED);
    assert_last(view_one(other, "ngroup/other"), one, DM_END_DIED); /* its session is dead now */
    free(third->place);
    third->place = dm_store_place(third->store, "ngroup/other");
    poll = process_question(third, DM_OP_POLL, 0);
    process_ask(third, &poll); /* in nobody's name: the hold is buried, and nobody gets the lock */
    assert_last(view_one(other, "ngroup/other"), one, DM_END_DIED);
}

/* A hold that its process keeps without a thread inside is marked so, and its end is no death. */
static void test_kept_hold_is_shown_as_kept(void **state)
{
    struct process *one = process_start(0, true), *other = process_start(1, true);
    uint64_t attempt = process_next_attempt(one), token = process_acquire(one, attempt).token;
    struct dm_question keep_it = process_question(one, DM_OP_RENEW, attempt);

    (void)state;
    keep_it.renew.token = token;
    keep_it.renew.mark = DM_MARK_TELL_NO_DEATH;
    assert_false(view_one(other, "ngroup/leaf")->seen.is_kept);
    assert_int_equal(process_ask(one, &keep_it).verdict, DM_SAYS_OWNED);
    assert_true(view_one(other, "ngroup/leaf")->seen.is_kept);
    process_kill(one);
    process_jump(PROCESS_LEASE_MS * DM_NS_PER_MS);
    assert_false(view_one(other, "ngroup/leaf")->seen.is_kept);
    assert_int_equal(sights[0].seen.info.shown.locked, 0);
    assert_int_equal(sights[0].seen.info.shown.health, DM_REG_CLEAN);
}

/* A value that is not ours is shown with the reason. */
static void test_foreign_value_is_shown_as_foreign(void **state)
{
    struct process *one = process_start(0, true);

    (void)state;
    memory_put(process_memory, "n/group/leaf", "a value that is nobody's, and longer than a version", 50);
    assert_true(strlen(view_one(one, "ngroup/leaf")->fault) > 0);
    view_all(one, NULL);
    assert_int_equal(sight_count, 1);
    assert_true(strlen(sights[0].fault) > 0);
}

/* ---- conditions --------------------------------------------------------------------------- */

/* A mutex with a sleeper on a condition, as a process would leave it. */
static void put_sleeper(const char *condition)
{
    struct dm_reg_table_session session = { .id = { .uuid = { 7 }, .serial = 1, .lease_ms = 900, .identity = 5 } };
    struct dm_reg_table_condition table = { 0 };
    struct dm_reg_entry entry = { .attempt = 9, .thread = 11, .arrival = 1, .weight = 1 };
    struct dm_reg_name_value value = { .version = { { 1 } },
                                       .identity = 5,
                                       .capacity = 1,
                                       .arrival = 1,
                                       .sessions = &session,
                                       .session_count = 1,
                                       .conditions = &table,
                                       .condition_count = 1,
                                       .entries = &entry,
                                       .sleeper_count = 1 };
    struct dm_reg_binding_value binding = { .version = { { 2 } }, .mutex = "ngroup/leaf" };
    uint8_t bytes[DM_REG_SMALL_MAX];

    snprintf(table.name, sizeof table.name, "%s", condition);
    memory_put(process_memory, "n/group/leaf", bytes, dm_reg_name_encode(&value, bytes, sizeof bytes));
    memory_put(process_memory, condition, bytes, dm_reg_binding_encode(&binding, bytes));
}

static void test_conditions_with_sleepers_are_shown(void **state)
{
    struct process *one = process_start(0, true);
    const struct sight *sight;

    (void)state;
    put_sleeper("c/group/done");
    view_all(one, NULL);
    assert_int_equal(sight_count, 2);
    sight = find_sight("cgroup/done");
    assert_non_null(sight);
    assert_string_equal(sight->mutex, "ngroup/leaf");
    assert_int_equal(sight->seen.info.shown.waiters, 1);
    sight = view_one(one, "cgroup/done");
    assert_string_equal(sight->mutex, "ngroup/leaf");
    assert_int_equal(sight->seen.waiter_count, 1);
    assert_int_equal(sight->waiters[0].thread, 11);
    assert_int_equal(sight->waiters[0].lease_ms, 900);
    assert_int_equal(view_one(one, "cgroup/other")->seen.info.shown.waiters, 0);
}

/* ---- lists -------------------------------------------------------------------------------- */

#define NAMES 120

/* More names than one call tells: each is told once, with its holder. */
static void test_list_tells_every_name_once(void **state)
{
    struct process *one = process_start(0, true), *other = process_start(1, true);
    char key[32];

    (void)state;
    for (int i = 0; i < NAMES; i++) {
        snprintf(key, sizeof key, "njobs/%d", i);
        hold(one, key, process_next_attempt(one));
    }
    hold(one, "a~0123456789abcdef", process_next_attempt(one));
    view_all(other, NULL);
    assert_int_equal(sight_count, NAMES + 1);
    for (int i = 0; i < NAMES; i++) {
        const struct sight *sight;

        snprintf(key, sizeof key, "njobs/%d", i);
        sight = find_sight(key);
        assert_non_null(sight);
        assert_string_equal(sight->seen.info.shown.owner, one->ident.uuid);
    }
    assert_non_null(find_sight("a~0123456789abcdef"));
}

/* A group is the name itself and those below it; names that only look alike are others. */
static void test_list_of_a_group_tells_no_other_names(void **state)
{
    static const char *const names[] = { "njobs", "njobs/a", "njobs/b", "njobs-1", "njobs.2/a", "njob", "nk" };
    struct process *one = process_start(0, true);

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        hold(one, names[i], process_next_attempt(one));
    view_all(one, "njobs");
    assert_int_equal(sight_count, 3);
    assert_non_null(find_sight("njobs"));
    assert_non_null(find_sight("njobs/a"));
    assert_non_null(find_sight("njobs/b"));
    view_all(one, "nnothing");
    assert_int_equal(sight_count, 0);
}

/* A visit is three questions to the driver, however many names and processes there are. */
static void test_view_asks_the_driver_three_times(void **state)
{
    struct process *one = process_start(0, true), *other = process_start(1, true), *reader = process_start(2, false);
    char key[32];
    uint64_t calls, reads;

    (void)state;
    for (int i = 0; i < 20; i++) {
        snprintf(key, sizeof key, "njobs/%d", i);
        hold(i % 2 ? one : other, key, process_next_attempt(i % 2 ? one : other));
    }
    view_all(reader, "nnothing"); /* connected, and the mark is known */
    process_kill(one);
    process_kill(other);
    calls = memory_counts(process_memory)->calls;
    reads = memory_counts(process_memory)->reads;
    view_all(reader, "njobs");
    assert_int_equal(sight_count, 20);
    assert_int_equal(memory_counts(process_memory)->calls - calls, 1 + 3); /* the group's own name is a visit */
    assert_int_equal(memory_counts(process_memory)->reads - reads, 1 + 20 + 2);
}

/* The connection breaks while somebody looks: no answer, and the next look has one. */
static void test_view_without_a_connection_says_nothing(void **state)
{
    struct process *one = process_start(0, false);
    struct dm_deadline at_once = dm_deadline_in_ms(0);
    struct dm_view all = { .handler = keep };
    char reason[DM_REASON_ROOM] = "";

    (void)state;
    assert_int_equal(dm_store_view(one->store, &all, &at_once, reason), DM_SAYS_NOTHING);
    assert_true(strlen(reason) > 0);
    all.free_row(all.row);
    view_all(one, NULL);
}

/* ---- DROP --------------------------------------------------------------------------------- */

static enum dm_verdict drop(struct process *process, bool is_anonymous)
{
    struct dm_question question = process_question(process, DM_OP_DROP, 0);

    question.is_anonymous = is_anonymous;
    return process_ask(process, &question).verdict;
}

/* Not while somebody holds; then the health is reset, and the data of an anonymous mutex are deleted. */
static void test_drop_resets_a_free_mutex(void **state)
{
    struct process *one = process_start(0, true), *other = process_start(1, true);
    uint64_t attempt = process_next_attempt(one);
    struct dm_question question = process_question(one, DM_OP_RELEASE, attempt);

    (void)state;
    assert_int_equal(process_acquire(one, attempt).verdict, DM_SAYS_OWNED);
    assert_int_equal(drop(other, false), DM_SAYS_BUSY);
    question.release.end = DM_END_NOT_RECOVERABLE;
    assert_int_equal(process_ask(one, &question).verdict, DM_SAYS_DONE);
    assert_int_equal(process_try(other, process_next_attempt(other)).verdict, DM_SAYS_NOT_RECOVERABLE);
    assert_int_equal(view_one(other, "ngroup/leaf")->seen.info.shown.health, DM_REG_NOT_RECOVERABLE);
    assert_int_equal(drop(other, false), DM_SAYS_DONE);
    assert_int_equal(process_try(other, attempt = process_next_attempt(other)).verdict, DM_SAYS_OWNED);
    assert_int_equal(drop(one, true), DM_SAYS_BUSY);
    assert_int_equal(process_release(other, attempt), DM_SAYS_DONE);
    assert_int_equal(drop(one, true), DM_SAYS_DONE);
    view_all(one, NULL);
    assert_int_equal(sight_count, 0);
    assert_int_equal(drop(one, true), DM_SAYS_DONE); /* again: there is nothing left */
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, process_begin, process_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_info_and_view_show_who_holds_and_who_waits),
        TEST(test_views_write_nothing),
        TEST(test_new_store_shows_its_grace),
        TEST(test_dead_holder_is_shown_as_dead),
        TEST(test_free_lock_shows_its_last_hold),
        TEST(test_kept_hold_is_shown_as_kept),
        TEST(test_foreign_value_is_shown_as_foreign),
        TEST(test_conditions_with_sleepers_are_shown),
        TEST(test_list_tells_every_name_once),
        TEST(test_list_of_a_group_tells_no_other_names),
        TEST(test_view_asks_the_driver_three_times),
        TEST(test_view_without_a_connection_says_nothing),
        TEST(test_drop_resets_a_free_mutex),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
