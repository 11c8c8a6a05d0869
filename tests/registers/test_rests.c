/* SPDX-License-Identifier: BSD-2-Clause */
/* An idle process closes its connection. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>

#include <cmocka.h>

#include "base/units.h"
#include "process.h"
#include "registers/store_parts.h"

/* Nobody has asked for anything for an hour, and the process has no claims. */
static void be_idle(struct process *process)
{
    struct dm_registers *registers = dm_registers_of(process->store);

    __atomic_store_n(&process->is_idle, true, __ATOMIC_RELEASE);
    dm_mutex_lock(&registers->lock);
    registers->used_ns = dm_clock_boot_ns() - 3600 * DM_NS_PER_S;
    registers->due_ns = 0;
    dm_mutex_unlock(&registers->lock);
    eventfd_write(process->bell, 1);
}

static bool is_connected(struct process *process)
{
    struct dm_registers *registers = dm_registers_of(process->store);
    bool is;

    dm_mutex_lock(&registers->lock);
    is = registers->is_connected;
    dm_mutex_unlock(&registers->lock);
    return is;
}

static void await_rest(struct process *process)
{
    struct dm_deadline patience = dm_deadline_in_ms(PROCESS_PATIENCE_MS);
    const struct timespec moment = { 0, 10 * DM_NS_PER_MS };

    while (is_connected(process) && dm_deadline_left_ns(&patience) > 0) {
        be_idle(process); /* the loop thread may have asked before */
        nanosleep(&moment, NULL);
    }
    assert_false(is_connected(process));
}

static void count_sessions(void *user, const char *key, const void *value, size_t size)
{
    (void)value;
    (void)size;
    *(int *)user += strncmp(key, "s/", 2) == 0;
}

/* The session ends before; the next lock connects again, which is no break. */
static void test_idle_process_closes_its_connection_and_comes_back(void **state)
{
    struct process *one = process_start(0, true);
    uint64_t attempt = process_next_attempt(one), token = process_acquire(one, attempt).token;
    struct dm_traffic traffic;
    struct dm_answer answer;
    int sessions = 0;

    (void)state;
    assert_int_equal(process_release(one, attempt), DM_SAYS_DONE);
    await_rest(one);
    memory_each(process_memory, count_sessions, &sessions);
    assert_int_equal(sessions, 0);
    __atomic_store_n(&one->is_idle, false, __ATOMIC_RELEASE);
    answer = process_acquire(one, attempt = process_next_attempt(one));
    assert_int_equal(answer.verdict, DM_SAYS_OWNED);
    assert_true(answer.token > token && !answer.is_owner_dead);
    dm_store_count(one->store, &traffic);
    assert_int_equal(traffic.reconnects, 0);
    assert_int_equal(process_release(one, attempt), DM_SAYS_DONE);
}

/* A hold needs beats, whatever the process says; so does a claim of which the store knows nothing yet. */
static void test_connection_stays_while_somebody_needs_it(void **state)
{
    struct process *one = process_start(0, true);
    uint64_t attempt = process_next_attempt(one), token = process_acquire(one, attempt).token;
    struct dm_question question;

    (void)state;
    for (int i = 0; i < 10; i++) {
        be_idle(one);
        question = process_question(one, DM_OP_RENEW, attempt);
        question.renew.token = token;
        assert_int_equal(process_ask(one, &question).verdict, DM_SAYS_OWNED);
        assert_true(is_connected(one));
    }
    assert_int_equal(process_release(one, attempt), DM_SAYS_DONE);
    for (int i = 0; i < 10; i++) {
        be_idle(one);
        __atomic_store_n(&one->is_idle, false, __ATOMIC_RELEASE);
        dm_store_turn(one->store);
    }
    await_rest(one);
}

static void take_answer(void *user, const struct dm_answer *answers, int count, const char *refusal)
{
    (void)count;
    (void)refusal;
    __atomic_store_n((int *)user, answers ? (int)answers->verdict : -1, __ATOMIC_RELEASE);
}

/* A question is under way at a server that does not answer: its answer comes. */
static void test_connection_stays_while_an_answer_is_due(void **state)
{
    struct process *one = process_start(0, true);
    struct dm_question question = process_question(one, DM_OP_DROP, 0);
    struct dm_deadline patience = dm_deadline_in_ms(PROCESS_PATIENCE_MS);
    const struct timespec moment = { 0, DM_NS_PER_MS };
    int verdict = 0;

    (void)state;
    assert_int_equal(process_ask(one, &question).verdict, DM_SAYS_DONE);
    memory_stall(process_memory, dm_clock_boot_ns() + 3600 * DM_NS_PER_S);
    assert_true(dm_store_submit(one->store, &question, 1, take_answer, &verdict));
    for (int i = 0; i < 100; i++) {
        be_idle(one);
        dm_store_turn(one->store);
        assert_true(is_connected(one));
    }
    process_jump(7200 * DM_NS_PER_S); /* the server goes on */
    while (!__atomic_load_n(&verdict, __ATOMIC_ACQUIRE) && dm_deadline_left_ns(&patience) > 0) {
        dm_store_turn(one->store);
        nanosleep(&moment, NULL);
    }
    assert_int_equal(verdict, DM_SAYS_DONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_idle_process_closes_its_connection_and_comes_back, process_begin,
                                        process_end),
        cmocka_unit_test_setup_teardown(test_connection_stays_while_an_answer_is_due, process_begin, process_end),
        cmocka_unit_test_setup_teardown(test_connection_stays_while_somebody_needs_it, process_begin, process_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
