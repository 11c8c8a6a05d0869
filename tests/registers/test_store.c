/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The store on registers with real threads and the real clock, on the store in memory.  A process here is a store with
 * a loop thread of its own.
 */
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/self.h"
#include "base/units.h"
#include "memory.h"
#include "registers/store.h"
#include "store/calls.h"

#define LEASE_MS 400
#define PATIENCE_MS 60000 /* only a defect takes so long */

/* A thread that waits for the grant of its attempt. */
struct waiter {
    struct waiter *next;
    uint64_t attempt;
    struct dm_self *self;
    bool is_granted, must_ask, is_lost;
    struct dm_answer answer;
};

struct process {
    struct dm_store *store;
    struct dm_ident ident;
    struct dm_place *place;
    pthread_t loop;
    bool has_loop, is_over; /* is_over: atomic */
    int bell;
    pthread_mutex_t lock;
    struct waiter *waiters;
    uint64_t last_attempt;
};

static struct memory *memory;
static struct process processes[4];

/* ---- a process ---------------------------------------------------------------------------- */

static void on_event(void *user)
{
    (void)user;
}

static void on_change(void *user)
{
    struct process *process = user;

    eventfd_write(process->bell, 1);
}

/* The waiters of a process ask when the way is open again. */
static void on_ready(void *user)
{
    struct process *process = user;

    pthread_mutex_lock(&process->lock);
    for (struct waiter *waiter = process->waiters; waiter; waiter = waiter->next) {
        waiter->must_ask = true;
        dm_self_wake(waiter->self);
    }
    pthread_mutex_unlock(&process->lock);
}

static void on_message(void *user, const struct dm_message *message)
{
    struct process *process = user;

    pthread_mutex_lock(&process->lock);
    for (struct waiter *waiter = process->waiters; waiter; waiter = waiter->next) {
        if (waiter->attempt != message->attempt)
            continue;
        if (message->kind == DM_MESSAGE_GRANTED)
            waiter->answer = message->answer;
        waiter->is_granted = waiter->is_granted || message->kind == DM_MESSAGE_GRANTED;
        waiter->is_lost = waiter->is_lost || message->kind == DM_MESSAGE_LOST;
        waiter->must_ask = waiter->must_ask || message->kind == DM_MESSAGE_ASK;
        dm_self_wake(waiter->self);
    }
    pthread_mutex_unlock(&process->lock);
}

static bool is_in_need(void *user, unsigned *ret_lease_ms)
{
    (void)user;
    *ret_lease_ms = LEASE_MS;
    return true;
}

static void *run_loop(void *user)
{
    struct process *process = user;
    struct dm_watch watch;
    eventfd_t count;

    dm_watch_init(&watch);
    while (!__atomic_load_n(&process->is_over, __ATOMIC_ACQUIRE)) {
        int64_t left_ns;

        dm_watch_clear(&watch);
        dm_watch_poll(&watch, process->bell, POLLIN);
        dm_store_watch(process->store, &watch);
        left_ns = watch.due_ns == DM_NEVER ? DM_NS_PER_S : watch.due_ns - dm_clock_boot_ns();
        poll(watch.polled, (nfds_t)watch.count, left_ns > 0 ? (int)(left_ns / DM_NS_PER_MS + 1) : 0);
        eventfd_read(process->bell, &count);
        dm_store_turn(process->store);
    }
    dm_watch_free(&watch);
    return NULL;
}

static struct dm_reg_driver *make_driver(void *user, const struct dm_reg_client *client,
                                         char ret_reason[DM_REASON_ROOM])
{
    (void)user;
    (void)ret_reason;
    return memory_open(memory, client, NULL);
}

static struct process *start(int number, bool has_loop)
{
    struct process *process = &processes[number];
    struct dm_host host = { .user = process,
                            .on_ready = on_ready,
                            .on_inbox = on_event,
                            .on_message = on_message,
                            .on_change = on_change,
                            .is_in_need = is_in_need };
    char reason[DM_REASON_ROOM];

    memset(process, 0, sizeof *process);
    pthread_mutex_init(&process->lock, NULL);
    dm_ident_draw(&process->ident, "");
    process->bell = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    process->store = dm_registers_open(&process->ident, &host, make_driver, NULL, reason);
    assert_non_null(process->store);
    process->place = dm_store_place(process->store, "ngroup/leaf");
    process->has_loop = has_loop;
    if (has_loop)
        assert_int_equal(pthread_create(&process->loop, NULL, run_loop, process), 0);
    return process;
}

/* The process is killed: nothing of it goes on, and nothing is given back. */
static void kill_process(struct process *process)
{
    if (!process->store)
        return;
    dm_store_end(process->store);
    __atomic_store_n(&process->is_over, true, __ATOMIC_RELEASE);
    eventfd_write(process->bell, 1);
    if (process->has_loop)
        pthread_join(process->loop, NULL);
    dm_store_free_unused(process->store);
    process->store = NULL;
    free(process->place);
    close(process->bell);
    pthread_mutex_destroy(&process->lock);
}

static int begin(void **state)
{
    (void)state;
    memory = memory_new(NULL);
    memset(processes, 0, sizeof processes);
    return 0;
}

static int end(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof processes / sizeof processes[0]; i++)
        kill_process(&processes[i]);
    memory_free(memory);
    return 0;
}

/* ---- what a thread does ------------------------------------------------------------------- */

static uint64_t next_attempt(struct process *process)
{
    return __atomic_add_fetch(&process->last_attempt, 1, __ATOMIC_RELAXED);
}

static struct dm_question question_of(struct process *process, enum dm_op op, uint64_t attempt)
{
    return (struct dm_question){ .op = op,
                                 .lease_ms = LEASE_MS,
                                 .place = process->place,
                                 .thread = dm_self_get()->serial,
                                 .attempt = attempt,
                                 .is_robust = true,
                                 .request = { .serial = 1, .sent_ns = dm_clock_boot_ns() } };
}

static struct dm_answer ask(struct process *process, const struct dm_question *question)
{
    struct dm_deadline deadline = dm_deadline_in_ms(PATIENCE_MS);
    char reason[DM_REASON_ROOM] = "";

    return dm_store_ask(process->store, question, &deadline, reason);
}

static void enter_list(struct process *process, struct waiter *waiter)
{
    waiter->self = dm_self_get();
    pthread_mutex_lock(&process->lock);
    waiter->next = process->waiters;
    process->waiters = waiter;
    pthread_mutex_unlock(&process->lock);
}

static void leave_list(struct process *process, struct waiter *waiter)
{
    struct waiter **at = &process->waiters;

    pthread_mutex_lock(&process->lock);
    while (*at != waiter)
        at = &(*at)->next;
    *at = waiter->next;
    pthread_mutex_unlock(&process->lock);
}

/* True if the waiter has news; *ret_is_granted: and the lock. */
static bool has_news(struct process *process, const struct waiter *waiter, bool *ret_is_granted)
{
    bool has;

    pthread_mutex_lock(&process->lock);
    *ret_is_granted = waiter->is_granted;
    has = waiter->is_granted || waiter->must_ask;
    pthread_mutex_unlock(&process->lock);
    return has;
}

/* Acquires, waiting as the process would: for a message, and asking again now and then. */
static struct dm_answer acquire(struct process *process, uint64_t attempt)
{
    struct dm_deadline patience = dm_deadline_in_ms(PATIENCE_MS);
    struct waiter me = { .attempt = attempt };
    struct dm_answer answer = { .verdict = DM_SAYS_NOTHING };
    bool is_granted = false;

    enter_list(process, &me);
    while (dm_deadline_left_ns(&patience) > 0 && !is_granted) {
        struct dm_question question = question_of(process, DM_OP_ACQUIRE, attempt);
        struct dm_deadline soon = dm_deadline_in_ms(LEASE_MS / 3);

        question.acquire.may_queue = true;
        pthread_mutex_lock(&process->lock);
        me.must_ask = false;
        pthread_mutex_unlock(&process->lock);
        answer = ask(process, &question);
        if (answer.verdict != DM_SAYS_QUEUED && answer.verdict != DM_SAYS_NOTHING)
            break;
        while (dm_deadline_left_ns(&soon) > 0 && !has_news(process, &me, &is_granted))
            dm_store_sleep(process->store, process->place, DM_TELLS, &soon, PTHREAD_CANCEL_DISABLE);
        has_news(process, &me, &is_granted);
    }
    leave_list(process, &me);
    return me.is_granted ? me.answer : answer;
}

static struct dm_answer try(struct process *process, uint64_t attempt)
{
    struct dm_question question = question_of(process, DM_OP_ACQUIRE, attempt);

    return ask(process, &question);
}

static enum dm_verdict release(struct process *process, uint64_t attempt)
{
    struct dm_question question = question_of(process, DM_OP_RELEASE, attempt);
    enum dm_verdict verdict;

    do
        verdict = ask(process, &question).verdict;
    while (verdict == DM_SAYS_NOTHING);
    return verdict;
}

/* ---- tests -------------------------------------------------------------------------------- */

/* The first lock of a store waits until the mark has been quiet for a lease; then tokens rise. */
static void test_lock_goes_from_process_to_process(void **state)
{
    struct process *one = start(0, true), *other = start(1, true);
    struct dm_answer first = acquire(one, next_attempt(one)), second;

    (void)state;
    assert_int_equal(first.verdict, DM_SAYS_OWNED);
    assert_int_equal(try(other, next_attempt(other)).verdict, DM_SAYS_BUSY);
    assert_int_equal(release(one, 1), DM_SAYS_DONE);
    assert_int_equal(release(one, 1), DM_SAYS_NOT_OWNER);
    second = acquire(other, next_attempt(other));
    assert_int_equal(second.verdict, DM_SAYS_OWNED);
    assert_true(second.token > first.token);
    assert_false(second.is_owner_dead);
}

/* Without a loop thread: threads read for each other. */
static void test_threads_need_no_loop_thread_for_answers(void **state)
{
    struct process *one = start(0, false);

    (void)state;
    assert_int_equal(acquire(one, next_attempt(one)).verdict, DM_SAYS_OWNED);
    assert_int_equal(release(one, 1), DM_SAYS_DONE);
}

#define ROUNDS 60
#define CROWD 3

static int inside, entered;
static uint64_t last_token;

static void *crowd(void *user)
{
    struct process *process = user;

    for (int i = 0; i < ROUNDS; i++) {
        uint64_t attempt = next_attempt(process);
        struct dm_answer answer = acquire(process, attempt);

        if (answer.verdict != DM_SAYS_OWNED || __atomic_add_fetch(&inside, 1, __ATOMIC_SEQ_CST) != 1 ||
            answer.token <= last_token)
            return (void *)"not alone inside";
        last_token = answer.token;
        entered++;
        __atomic_sub_fetch(&inside, 1, __ATOMIC_SEQ_CST);
        if (release(process, attempt) != DM_SAYS_DONE)
            return (void *)"not released";
    }
    return NULL;
}

/* Threads of four processes: one inside at a time, tokens rise, and all come home. */
static void test_threads_of_processes_exclude_each_other(void **state)
{
    pthread_t threads[4][CROWD];
    void *fault;

    (void)state;
    inside = entered = 0;
    last_token = 0;
    for (int i = 0; i < 4; i++) {
        start(i, true);
        for (int j = 0; j < CROWD; j++)
            assert_int_equal(pthread_create(&threads[i][j], NULL, crowd, &processes[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        for (int j = 0; j < CROWD; j++) {
            pthread_join(threads[i][j], &fault);
            assert_null(fault);
        }
    }
    assert_int_equal(entered, 4 * CROWD * ROUNDS);
}

/* A renewal costs no request of its own, and proves certainty from a moment after it was asked for. */
static void test_renewal_is_answered_by_the_next_beat(void **state)
{
    struct process *one = start(0, true);
    struct dm_question question;
    struct dm_answer answer;
    uint64_t attempt = next_attempt(one), token = acquire(one, attempt).token;

    (void)state;
    for (int i = 0; i < 5; i++) {
        question = question_of(one, DM_OP_RENEW, attempt);
        question.renew.token = token;
        answer = ask(one, &question);
        assert_int_equal(answer.verdict, DM_SAYS_OWNED);
        assert_true(answer.from_ns >= question.request.sent_ns);
        assert_true(answer.token == token);
    }
    release(one, attempt);
    answer = ask(one, &question);
    assert_int_equal(answer.verdict, DM_SAYS_UNKNOWN);
}

/* A killed process gives nothing back: a waiter watches its session for a lease, and is told of the death. */
static void test_waiter_takes_over_from_a_killed_process(void **state)
{
    struct process *one = start(0, true), *other = start(1, true);
    struct dm_answer first = acquire(one, next_attempt(one)), second;

    (void)state;
    assert_int_equal(first.verdict, DM_SAYS_OWNED);
    kill_process(one);
    second = acquire(other, next_attempt(other));
    assert_int_equal(second.verdict, DM_SAYS_OWNED);
    assert_true(second.is_owner_dead);
    assert_true(second.token > first.token);
}

/* A release that was asked for while the connection was broken is done when it is back. */
static void test_release_is_owed_over_a_broken_connection(void **state)
{
    struct process *one = start(0, true), *other = start(1, true);
    struct dm_deadline at_once = dm_deadline_in_ms(0);
    struct dm_question question;
    char reason[DM_REASON_ROOM] = "";

    (void)state;
    assert_int_equal(acquire(one, next_attempt(one)).verdict, DM_SAYS_OWNED);
    memory_cut(memory, NULL);
    question = question_of(one, DM_OP_RELEASE, 1);
    dm_store_ask(one->store, &question, &at_once, reason);
    assert_false(acquire(other, next_attempt(other)).is_owner_dead);
}

/* A thread that leads is cancelled in its sleep: another one leads, and answers come. */
static void *sleep_for_ever(void *user)
{
    struct process *process = user;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    for (;;)
        dm_store_sleep(process->store, process->place, DM_TELLS, &dm_deadline_endless, PTHREAD_CANCEL_ENABLE);
    return NULL;
}

static void test_cancelled_leader_leaves_the_others_working(void **state)
{
    struct process *one = start(0, false);
    pthread_t leaders[3];

    (void)state;
    assert_int_equal(acquire(one, next_attempt(one)).verdict, DM_SAYS_OWNED);
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&leaders[i], NULL, sleep_for_ever, one), 0);
    assert_int_equal(release(one, 1), DM_SAYS_DONE);
    for (int i = 0; i < 3; i++) {
        uint64_t attempt = next_attempt(one);

        pthread_cancel(leaders[i]);
        pthread_join(leaders[i], NULL);
        assert_int_equal(acquire(one, attempt).verdict, DM_SAYS_OWNED);
        assert_int_equal(release(one, attempt), DM_SAYS_DONE);
    }
}

/* What is left of a process that has ended in order: nothing. */
static void count_keys(void *user, const char *key, const void *value, size_t size)
{
    (void)value;
    (void)size;
    *(int *)user += strncmp(key, "s/", 2) == 0;
}

static void test_drain_ends_the_sessions_that_nothing_refers_to(void **state)
{
    struct process *one = start(0, true);
    struct dm_deadline deadline = dm_deadline_in_ms(PATIENCE_MS);
    uint64_t attempt = next_attempt(one);
    int sessions = 0;

    (void)state;
    assert_int_equal(acquire(one, attempt).verdict, DM_SAYS_OWNED);
    dm_store_drain(one->store, &deadline);
    memory_each(memory, count_keys, &sessions);
    assert_int_equal(sessions, 1); /* the lock is held */
    assert_int_equal(release(one, attempt), DM_SAYS_DONE);
    dm_store_drain(one->store, &deadline);
    sessions = 0;
    memory_each(memory, count_keys, &sessions);
    assert_int_equal(sessions, 0);
}

static bool is_lost(struct process *process, const struct waiter *waiter)
{
    bool is;

    pthread_mutex_lock(&process->lock);
    is = waiter->is_lost;
    pthread_mutex_unlock(&process->lock);
    return is;
}

/* `by` breaks the hold of `process`, whose owner is told. */
static void break_hold(struct process *process, struct process *by)
{
    struct dm_deadline patience = dm_deadline_in_ms(PATIENCE_MS);
    uint64_t attempt = next_attempt(process), token = acquire(process, attempt).token;
    struct waiter me = { .attempt = attempt };
    struct dm_question question = question_of(by, DM_OP_FORCE, 0);
    struct dm_answer next;

    enter_list(process, &me);
    assert_int_equal(ask(by, &question).verdict, DM_SAYS_DONE);
    while (!is_lost(process, &me) && dm_deadline_left_ns(&patience) > 0)
        dm_self_sleep(me.self, &patience);
    assert_true(is_lost(process, &me));
    leave_list(process, &me);
    next = try(by, next_attempt(by));
    assert_int_equal(next.verdict, DM_SAYS_OWNED);
    assert_true(next.is_owner_dead);
    assert_true(next.token > token + 1); /* people see the gap */
    assert_int_equal(ask(by, &question).verdict, DM_SAYS_DONE);
    assert_int_equal(ask(by, &question).verdict, DM_SAYS_DONE); /* nobody holds */
}

/* All notices are lost: the owner finds the note at its next beat. */
static void test_force_tells_the_owner_that_it_breaks(void **state)
{
    struct process *one = start(0, true), *other = start(1, true);

    (void)state;
    memory_faults(memory)->tell_lost = 1;
    break_hold(one, other);
}

static void test_force_breaks_a_hold_of_its_own_process(void **state)
{
    struct process *one = start(0, true);

    (void)state;
    break_hold(one, one);
}

/* A table changed by hand is nobody's to repair. */
static void test_foreign_value_is_refused_with_a_reason(void **state)
{
    struct process *one = start(0, true);
    struct dm_deadline deadline = dm_deadline_in_ms(PATIENCE_MS);
    struct dm_question question = question_of(one, DM_OP_ACQUIRE, next_attempt(one));
    char reason[DM_REASON_ROOM] = "";

    (void)state;
    memory_put(memory, "n/group/leaf", "a value that is nobody's, and longer than a version", 50);
    assert_int_equal(dm_store_ask(one->store, &question, &deadline, reason).verdict, DM_SAYS_REFUSED);
    assert_true(strlen(reason) > 0);
}

/* What this store cannot do yet, it says. */
static void test_conditions_are_not_supported_yet(void **state)
{
    static const enum dm_op ops[] = { DM_OP_COND_WAIT, DM_OP_COND_CANCEL, DM_OP_COND_SIGNAL, DM_OP_COND_DROP };
    struct process *one = start(0, true);

    (void)state;
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
        struct dm_question question = question_of(one, ops[i], 0);

        assert_int_equal(ask(one, &question).verdict, DM_SAYS_UNSUPPORTED);
    }
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_lock_goes_from_process_to_process),
        TEST(test_threads_need_no_loop_thread_for_answers),
        TEST(test_threads_of_processes_exclude_each_other),
        TEST(test_renewal_is_answered_by_the_next_beat),
        TEST(test_waiter_takes_over_from_a_killed_process),
        TEST(test_release_is_owed_over_a_broken_connection),
        TEST(test_cancelled_leader_leaves_the_others_working),
        TEST(test_drain_ends_the_sessions_that_nothing_refers_to),
        TEST(test_foreign_value_is_refused_with_a_reason),
        TEST(test_force_tells_the_owner_that_it_breaks),
        TEST(test_force_breaks_a_hold_of_its_own_process),
        TEST(test_conditions_are_not_supported_yet),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
