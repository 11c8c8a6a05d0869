/* SPDX-License-Identifier: BSD-2-Clause */
/* The sweep, on a server whose clock jumps over days. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>

#include <cmocka.h>

#include "../lib/range.h"
#include "base/units.h"
#include "process.h"
#include "registers/store_parts.h"

static void jump(int days)
{
    process_jump(days * INT64_C(24) * 3600 * DM_NS_PER_S);
}

/* ---- looks -------------------------------------------------------------------------------- */

struct count {
    const char *prefix;
    int all, dead;
};

static void count_key(void *user, const char *key, const void *value, size_t size)
{
    struct count *count = user;

    if (strncmp(key, count->prefix, strlen(count->prefix)) != 0)
        return;
    count->all++;
    count->dead += size > DM_REG_VERSION_SIZE && ((const char *)value)[DM_REG_VERSION_SIZE] == 'd';
}

static struct count count_keys(const char *prefix)
{
    struct count count = { .prefix = prefix };

    memory_each(process_memory, count_key, &count);
    return count;
}

/* True if the sweep that was asked for is over: the next one is planned. */
static bool is_over(struct process *process)
{
    struct dm_registers *registers = dm_registers_of(process->store);
    bool is;

    dm_mutex_lock(&registers->lock);
    is = !registers->sweep.is_under_way && registers->sweep.due_ns > dm_clock_boot_ns();
    dm_mutex_unlock(&registers->lock);
    return is;
}

static void begin_to_sweep(struct process *process)
{
    struct dm_registers *registers = dm_registers_of(process->store);
    struct dm_deadline patience = dm_deadline_in_ms(PROCESS_PATIENCE_MS);

    assert_true(dm_store_await_able(process->store, NULL, DM_ASKS, &patience));
    dm_mutex_lock(&registers->lock);
    registers->sweep.due_ns = 1;
    registers->due_ns = 0;
    dm_mutex_unlock(&registers->lock);
    eventfd_write(process->bell, 1);
}

static void sweep(struct process *process)
{
    struct dm_deadline patience = dm_deadline_in_ms(PROCESS_PATIENCE_MS);
    const struct timespec moment = { 0, 10 * DM_NS_PER_MS };

    begin_to_sweep(process);
    while (!is_over(process) && dm_deadline_left_ns(&patience) > 0)
        nanosleep(&moment, NULL);
    assert_true(is_over(process));
}

static void use(struct process *process, const char *key)
{
    free(process->place);
    process->place = dm_store_place(process->store, key);
}

/* ---- tests -------------------------------------------------------------------------------- */

/* A dead process has left a session and a hold: the session becomes dead, and goes a day later; the hold is taken. */
static void test_session_of_a_dead_process_dies_and_goes(void **state)
{
    struct process *one = process_start(0, true), *other = process_start(1, true);
    struct dm_answer first = process_acquire(one, process_next_attempt(one)), second;
    struct count sessions;

    (void)state;
    assert_int_equal(first.verdict, DM_SAYS_OWNED);
    process_kill(one);
    sweep(other);
    assert_int_equal(count_keys("s/").dead, 0);
    jump(2);
    sweep(other);
    sessions = count_keys("s/");
    assert_true(sessions.all == 1 && sessions.dead == 1);
    jump(2);
    sweep(other);
    assert_int_equal(count_keys("s/").all, 0);
    second = process_acquire(other, process_next_attempt(other));
    assert_int_equal(second.verdict, DM_SAYS_OWNED);
    assert_true(second.is_owner_dead && second.token > first.token);
}

static void renew(struct process *process, uint64_t attempt, uint64_t token)
{
    struct dm_question question = process_question(process, DM_OP_RENEW, attempt);

    question.renew.token = token;
    assert_int_equal(process_ask(process, &question).verdict, DM_SAYS_OWNED);
}

/* A process that holds something goes on: its session beats, and its name is in use. */
static void test_sweep_leaves_the_living_alone(void **state)
{
    struct process *one = process_start(0, true), *other = process_start(1, true);
    uint64_t attempt = process_next_attempt(one), token = process_acquire(one, attempt).token;

    (void)state;
    jump(8);
    renew(one, attempt, token); /* that is answered by a beat, so the session is young again after two */
    renew(one, attempt, token);
    begin_to_sweep(other);
    do
        renew(one, attempt, token);
    while (!is_over(other));
    assert_int_equal(count_keys("n/").all, 1);
    assert_int_equal(count_keys("s/").dead, 0);
    assert_int_equal(process_release(one, attempt), DM_SAYS_DONE);
}

/* A name that nobody has used for a week goes, and its tokens go on when it is used again. */
static void test_unused_name_goes_and_its_tokens_go_on(void **state)
{
    struct process *one = process_start(0, true);
    uint64_t attempt, token;

    (void)state;
    use(one, "nnot/used");
    token = process_acquire(one, attempt = process_next_attempt(one)).token;
    assert_int_equal(process_release(one, attempt), DM_SAYS_DONE);
    jump(6);
    sweep(one);
    assert_int_equal(count_keys("n/").all, 1);
    assert_int_equal(count_keys("s/").dead, 0); /* its own idle session is no corpse */
    jump(3);
    sweep(one);
    assert_int_equal(count_keys("n/").all, 0);
    for (int i = 0; i < 3; i++) {
        struct dm_answer answer = process_acquire(one, attempt = process_next_attempt(one));

        assert_int_equal(answer.verdict, DM_SAYS_OWNED);
        assert_true(answer.token > token);
        token = answer.token;
        assert_int_equal(process_release(one, attempt), DM_SAYS_DONE);
    }
}

static void put_binding(const char *key, const char *mutex)
{
    struct dm_reg_binding_value value = { .version = { { 2 } } };
    uint8_t bytes[DM_REG_SMALL_MAX];

    snprintf(value.mutex, sizeof value.mutex, "%s", mutex);
    memory_put(process_memory, key, bytes, dm_reg_binding_encode(&value, bytes));
}

/* A value of a mutex on whose condition somebody sleeps. */
static void put_sleeper(const char *key, const char *condition)
{
    struct dm_reg_name_value value;
    uint8_t bytes[512];

    dm_reg_name_init(&value);
    assert_int_equal(dm_reg_name_reserve(&value, 1, 1, 1), 0);
    value.version = (struct dm_reg_version){ { 3 } };
    value.identity = value.arrival = 1;
    value.capacity = 1;
    value.sessions[0] = (struct dm_reg_table_session){ .id = { .serial = 1, .lease_ms = 1000, .identity = 1 } };
    snprintf(value.conditions[0].name, sizeof value.conditions[0].name, "%s", condition);
    value.entries[0] = (struct dm_reg_entry){ .attempt = 1, .thread = 1, .arrival = 1, .weight = 1 };
    value.session_count = value.condition_count = value.sleeper_count = 1;
    memory_put(process_memory, key, bytes, dm_reg_name_encode(&value, bytes, sizeof bytes));
    dm_reg_name_free(&value);
}

/* Of conditions that were not bound for a week: only those on which somebody sleeps stay, and what is not ours. */
static void test_bindings_go_when_nobody_sleeps(void **state)
{
    struct process *one = process_start(0, true);
    char key[32];

    (void)state;
    for (int i = 0; i < 70; i++) { /* more than a part */
        snprintf(key, sizeof key, "%c/condition-%d", i % 7 ? 'c' : 'd', i);
        put_binding(key, i % 2 ? "nused" : "ngone");
    }
    put_binding("c/slept", "nused");
    put_sleeper("n/used", "c/slept");
    memory_put(process_memory, "c/foreign", "a value that is nobody's, and longer than a version", 50);
    jump(6);
    sweep(one);
    assert_int_equal(count_keys("c/").all + count_keys("d/").all, 72);
    jump(2);
    sweep(one);
    assert_int_equal(count_keys("c/").all, 2);
    assert_int_equal(count_keys("d/").all, 0);
    assert_int_equal(count_keys("n/").all, 1);
}

#define SESSIONS 120

/* More than one part, beginning somewhere: each is seen once.  Values that are not ours stay. */
static void test_sweep_goes_through_all_keys_in_parts(void **state)
{
    struct process *one = process_start(0, true);
    struct dm_reg_session_value value = { .version = { { 1 } }, .is_dead = true, .dead_us = 1 };
    struct dm_reg_session_id id = { .serial = 1, .lease_ms = 1000 };
    uint8_t bytes[DM_REG_SMALL_MAX];
    char key[DM_REG_SESSION_KEY_ROOM];
    uint64_t reads;

    (void)state;
    for (int i = 0; i < SESSIONS; i++) {
        id.uuid[0] = (uint8_t)(2 * i);
        dm_reg_session_key(&id, key);
        memory_put(process_memory, key, bytes, dm_reg_session_encode(&value, bytes));
    }
    memory_put(process_memory, "s/foreign", "a value that is nobody's, and longer than a version", 50);
    jump(2);
    reads = memory_counts(process_memory)->reads;
    sweep(one);
    assert_int_equal(count_keys("s/").all, 1);
    assert_within(memory_counts(process_memory)->reads - reads, SESSIONS + 1, SESSIONS + 3); /* and the mark */
}

/* Of all processes together about one sweeps in an hour, although each has the same rule. */
static void test_next_sweep_waits_for_as_many_hours_as_sessions(void **state)
{
    struct process *one = process_start(0, true);
    struct dm_registers *registers = dm_registers_of(one->store);
    struct dm_reg_session_value value = { .version = { { 1 } }, .is_dead = true };
    struct dm_reg_session_id id = { .serial = 1, .lease_ms = 1000 };
    uint8_t bytes[DM_REG_SMALL_MAX];
    char key[DM_REG_SESSION_KEY_ROOM];
    int64_t left_ns;

    (void)state;
    value.dead_us = INT64_C(1900000000000000); /* not a day ago */
    for (int i = 0; i < 10; i++) {
        id.uuid[0] = (uint8_t)(20 * i);
        dm_reg_session_key(&id, key);
        memory_put(process_memory, key, bytes, dm_reg_session_encode(&value, bytes));
    }
    sweep(one);
    left_ns = registers->sweep.due_ns - dm_clock_boot_ns();
    assert_within(left_ns / DM_NS_PER_S, 5 * 3600 - 120, 15 * 3600);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, process_begin, process_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_session_of_a_dead_process_dies_and_goes),        TEST(test_sweep_leaves_the_living_alone),
        TEST(test_unused_name_goes_and_its_tokens_go_on),          TEST(test_sweep_goes_through_all_keys_in_parts),
        TEST(test_next_sweep_waits_for_as_many_hours_as_sessions), TEST(test_bindings_go_when_nobody_sleeps),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
