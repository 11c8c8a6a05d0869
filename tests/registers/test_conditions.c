/* SPDX-License-Identifier: BSD-2-Clause */
/* Conditions, and what else is told to those who wait, of the store on registers in memory. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/self.h"
#include "base/units.h"
#include "process.h"
#include "registers/store_parts.h"

/* ---- conditions --------------------------------------------------------------------------- */

/* Gives the hold `leaving` back, and sleeps as `attempt`; asks until there is an answer. */
static struct dm_answer wait_with(struct process *process, const struct dm_place *place, const char *mutex,
                                  const struct dm_place *condition, uint64_t leaving, uint64_t attempt)
{
    struct dm_question question = process_question(process, DM_OP_COND_WAIT, attempt);
    struct dm_answer answer;

    question.place = place;
    question.condition = condition;
    question.leave = (struct dm_leaving){
        .thread = dm_self_get()->serial, .attempt = leaving, .end = DM_END_UNLOCKED, .mutex = mutex
    };
    do
        answer = process_ask(process, &question);
    while (answer.verdict == DM_SAYS_NOTHING);
    return answer;
}

static struct dm_answer wait_on(struct process *process, uint64_t leaving, uint64_t attempt)
{
    return wait_with(process, process->place, "ngroup/leaf", process->condition, leaving, attempt);
}

/* A new attempt of the process that sleeps on the condition. */
static uint64_t fall_asleep(struct process *process)
{
    uint64_t leaving = process_next_attempt(process), attempt = process_next_attempt(process);

    assert_int_equal(process_acquire(process, leaving).verdict, DM_SAYS_OWNED);
    assert_int_equal(wait_on(process, leaving, attempt).verdict, DM_SAYS_WAITING);
    assert_int_equal(process_release(process, leaving), DM_SAYS_NOT_OWNER);
    return attempt;
}

static struct dm_answer send_signal(struct process *process, int most)
{
    union dm_more more;
    struct dm_question question = process_question(process, DM_OP_COND_SIGNAL, 0);

    question.place = NULL;
    question.condition = process->condition;
    question.signal.mutex = "";
    question.signal.most = most;
    question.ret_more = &more;
    return process_ask(process, &question);
}

static struct dm_answer ask_about(struct process *process, enum dm_op op, uint64_t attempt)
{
    struct dm_question question = process_question(process, op, attempt);

    return process_ask(process, &question);
}

/* Polls, as the process would, until the sleeper is told something else than that it waits. */
static struct dm_answer come_back(struct process *process, uint64_t attempt)
{
    struct dm_deadline patience = dm_deadline_in_ms(PROCESS_PATIENCE_MS);
    struct process_waiter me = { .attempt = attempt };
    struct dm_answer answer = { .verdict = DM_SAYS_NOTHING };
    bool is_granted = false;

    process_enter_list(process, &me);
    while (dm_deadline_left_ns(&patience) > 0 && !is_granted) {
        struct dm_deadline soon = dm_deadline_in_ms(PROCESS_LEASE_MS / 3);

        pthread_mutex_lock(&process->lock);
        me.must_ask = false;
        pthread_mutex_unlock(&process->lock);
        answer = ask_about(process, DM_OP_POLL, attempt);
        if (answer.verdict != DM_SAYS_WAITING && answer.verdict != DM_SAYS_QUEUED && answer.verdict != DM_SAYS_NOTHING)
            break;
        while (dm_deadline_left_ns(&soon) > 0 && !process_has_news(process, &me, &is_granted))
            dm_store_sleep(process->store, process->place, DM_TELLS, &soon, PTHREAD_CANCEL_DISABLE);
    }
    process_leave_list(process, &me);
    return me.is_granted ? me.answer : answer;
}

static void signal_between(struct process *one, struct process *other)
{
    uint64_t sleeper = fall_asleep(one), last = process_next_attempt(other);

    assert_int_equal(ask_about(one, DM_OP_POLL, sleeper).verdict, DM_SAYS_WAITING);
    assert_int_equal(send_signal(other, 1).verdict, DM_SAYS_DONE);
    assert_int_equal(come_back(one, sleeper).verdict, DM_SAYS_OWNED);
    assert_int_equal(process_try(other, process_next_attempt(other)).verdict, DM_SAYS_BUSY);
    assert_true(ask_about(one, DM_OP_COND_CANCEL, sleeper).is_signalled);
    assert_int_equal(process_release(one, sleeper), DM_SAYS_DONE);
    assert_int_equal(send_signal(other, 1).verdict, DM_SAYS_DONE); /* nobody sleeps */
    assert_int_equal(process_try(other, last).verdict, DM_SAYS_OWNED);
    assert_int_equal(process_release(other, last), DM_SAYS_DONE);
}

static void signal_between_processes(void)
{
    struct process *one = process_start(0, true), *other = process_start(1, true);

    signal_between(one, other);
}

static void test_signal_wakes_a_sleeper_of_another_process(void **state)
{
    (void)state;
    signal_between_processes();
}

/* The store looks for itself, as long as no notice can come; and the process polls if notices get lost. */
static void test_signal_wakes_a_sleeper_without_notices(void **state)
{
    (void)state;
    memory_faults(process_memory)->has_no_tells = true;
    signal_between_processes();
}

static void test_signal_wakes_a_sleeper_whose_notices_are_lost(void **state)
{
    (void)state;
    memory_faults(process_memory)->tell_lost = 1;
    signal_between_processes();
}

/* Half of the requests have no answer: what is repeated happens once. */
static void test_conditions_work_when_answers_are_lost(void **state)
{
    struct process *one = process_start(0, true), *other = process_start(1, true);
    struct memory_faults *faults = memory_faults(process_memory);

    (void)state;
    faults->unanswered = 3;
    faults->lost = 5;
    faults->poor = 2;
    for (int i = 0; i < 10; i++)
        signal_between(one, other);
}

static void test_broadcast_wakes_all_sleepers(void **state)
{
    struct process *one = process_start(0, true), *other = process_start(1, true);
    uint64_t sleepers[12];

    (void)state;
    for (int i = 0; i < 12; i++)
        sleepers[i] = fall_asleep(i % 3 ? one : other);
    assert_int_equal(send_signal(other, DM_SIGNAL_MOST).verdict, DM_SAYS_DONE);
    for (int i = 0; i < 12; i++) {
        struct process *process = i % 3 ? one : other;

        assert_int_equal(come_back(process, sleepers[i]).verdict, DM_SAYS_OWNED);
        assert_int_equal(process_release(process, sleepers[i]), DM_SAYS_DONE);
    }
}

/* C4: at the deadline the value says whether a signal came first. */
static void test_deadline_and_signal_exclude_each_other(void **state)
{
    struct process *one = process_start(0, true), *other = process_start(1, true);
    uint64_t first = fall_asleep(one), second = fall_asleep(one), holder = process_next_attempt(other);
    struct dm_answer answer;

    (void)state;
    assert_int_equal(process_acquire(other, holder).verdict, DM_SAYS_OWNED);
    assert_int_equal(send_signal(other, 1).verdict, DM_SAYS_DONE);
    answer = ask_about(one, DM_OP_COND_CANCEL, first);
    assert_int_equal(answer.verdict, DM_SAYS_QUEUED);
    assert_true(answer.is_signalled);
    for (int i = 0; i < 2; i++) {
        answer = ask_about(one, DM_OP_COND_CANCEL, second);
        assert_int_equal(answer.verdict, DM_SAYS_QUEUED);
        assert_false(answer.is_signalled);
    }
    assert_int_equal(send_signal(other, 1).verdict, DM_SAYS_DONE); /* nobody sleeps */
    assert_int_equal(process_release(other, holder), DM_SAYS_DONE);
    assert_int_equal(come_back(one, first).verdict, DM_SAYS_OWNED);
    assert_int_equal(process_release(one, first), DM_SAYS_DONE);
    assert_int_equal(come_back(one, second).verdict, DM_SAYS_OWNED);
    assert_int_equal(ask_about(one, DM_OP_COND_CANCEL, process_next_attempt(one)).verdict, DM_SAYS_UNKNOWN);
}

/* C3, C6: the sleeper that the signal has woken dies with its process; the other one finds it, and gets the signal. */
static void test_signal_of_a_killed_process_goes_to_the_next_sleeper(void **state)
{
    struct process *one = process_start(0, true), *other = process_start(1, true), *third = process_start(2, true);
    uint64_t sleeper;

    (void)state;
    fall_asleep(one);
    sleeper = fall_asleep(other);
    assert_int_equal(send_signal(third, 1).verdict, DM_SAYS_DONE);
    process_kill(one);
    assert_int_equal(come_back(other, sleeper).verdict, DM_SAYS_OWNED);
    assert_true(ask_about(other, DM_OP_COND_CANCEL, sleeper).is_signalled);
}

/* A thread that gives up, or ends, leaves no sleeper. */
static void test_release_ends_a_sleeper(void **state)
{
    struct process *one = process_start(0, true), *other = process_start(1, true);
    uint64_t first = fall_asleep(one), second = fall_asleep(other);

    (void)state;
    assert_int_equal(process_release(one, first), DM_SAYS_DONE);
    assert_int_equal(send_signal(one, 1).verdict, DM_SAYS_DONE);
    assert_int_equal(come_back(other, second).verdict, DM_SAYS_OWNED);
}

/* Whoever does not hold the mutex changes nothing. */
static void test_wait_without_the_mutex_is_refused(void **state)
{
    struct process *one = process_start(0, true), *other = process_start(1, true);
    uint64_t holder = process_next_attempt(other), attempt = process_next_attempt(one);

    (void)state;
    assert_int_equal(process_acquire(other, holder).verdict, DM_SAYS_OWNED);
    assert_int_equal(wait_on(one, process_next_attempt(one), attempt).verdict, DM_SAYS_NOT_OWNER);
    assert_int_equal(ask_about(one, DM_OP_POLL, attempt).verdict, DM_SAYS_UNKNOWN);
    assert_int_equal(ask_about(other, DM_OP_CONSISTENT, holder).verdict, DM_SAYS_DONE);
}

static void change_data(enum memory_data data)
{
    memory_restart(process_memory, data, dm_clock_boot_ns());
}

/* D6: nobody sleeps on in data that were lost: the attempt is unknown, and the process comes back for the mutex. */
static void test_sleeper_wakes_up_when_the_data_are_lost(void **state)
{
    struct process *one = process_start(0, true);
    uint64_t sleeper = fall_asleep(one);

    (void)state;
    change_data(MEMORY_LOSES);
    assert_int_equal(come_back(one, sleeper).verdict, DM_SAYS_UNKNOWN);
    assert_int_equal(process_acquire(one, process_next_attempt(one)).verdict, DM_SAYS_OWNED);
}

/* The connection breaks again and again while somebody sleeps. */
static void test_sleeper_outlives_broken_connections(void **state)
{
    struct process *one = process_start(0, true), *other = process_start(1, true);
    uint64_t sleeper = fall_asleep(one);

    (void)state;
    for (int i = 0; i < 5; i++) {
        memory_cut(process_memory, NULL);
        while (ask_about(one, DM_OP_POLL, sleeper).verdict != DM_SAYS_WAITING)
            ;
    }
    memory_cut(process_memory, NULL);
    while (send_signal(other, 1).verdict != DM_SAYS_DONE)
        ;
    assert_int_equal(come_back(one, sleeper).verdict, DM_SAYS_OWNED);
}

static void *wait_once(void *user)
{
    struct process *process = user;
    struct dm_question question = process_question(process, DM_OP_COND_WAIT, process->last_attempt);

    question.condition = process->condition;
    question.leave = (struct dm_leaving){ .thread = dm_self_get()->serial,
                                          .attempt = process->last_attempt - 1,
                                          .mutex = "ngroup/leaf" };
    return (void *)(uintptr_t)process_ask(process, &question).verdict;
}

/* Late by as much as late_most_ns allows. */
static uint64_t always_late(void)
{
    return INT64_MAX;
}

/*
 * "Refused" says that the hold is unchanged.  A swap without an answer may still end it: then the process is told
 * nothing, and asks again.
 */
static void test_wait_is_not_refused_while_its_swap_may_come_late(void **state)
{
    static const struct memory_world world = { .chance = always_late };
    struct process *one;
    uint64_t leaving, attempt;
    pthread_t thread;
    void *verdict;

    (void)state;
    memory_free(process_memory);
    process_memory = memory_new(&world);
    one = process_start(0, true);
    process_release(one, fall_asleep(one)); /* the condition is bound */
    leaving = process_next_attempt(one);
    assert_int_equal(process_acquire(one, leaving).verdict, DM_SAYS_OWNED);
    attempt = process_next_attempt(one);
    memory_faults(process_memory)->late_most_ns = 3600 * DM_NS_PER_S;
    memory_faults(process_memory)->late_of = "n/"; /* beats come in time */
    memory_faults(process_memory)->late = 1;
    assert_int_equal(pthread_create(&thread, NULL, wait_once, one), 0);
    while (memory_counts(process_memory)->late == 0)
        sched_yield();
    memory_faults(process_memory)->is_full = true;
    memory_faults(process_memory)->late = 0;
    pthread_join(thread, &verdict);
    assert_int_equal((uintptr_t)verdict, DM_SAYS_NOTHING);
    memory_faults(process_memory)->is_full = false;
    memory_execute_late(process_memory);
    assert_int_equal(wait_on(one, leaving, attempt).verdict, DM_SAYS_WAITING);
}

/* ---- force and grants --------------------------------------------------------------------- */

static bool is_lost(struct process *process, const struct process_waiter *waiter)
{
    bool is;

    pthread_mutex_lock(&process->lock);
    is = waiter->is_lost;
    pthread_mutex_unlock(&process->lock);
    return is;
}

/* Tells the process about its attempt, as another one does. */
static void tell(struct process *process, uint64_t number, enum dm_reg_news news)
{
    struct dm_registers *registers = dm_registers_of(process->store);
    struct dm_reg_notice notice = { .news = news, .attempt = number, .token = 1000 };
    struct dm_reg_attempt *attempt;

    dm_mutex_lock(&registers->lock);
    attempt = dm_registers_attempt(registers, number);
    assert_non_null(attempt);
    notice.session = attempt->own->session.id;
    dm_registers_take_notice(registers, &notice);
    dm_mutex_unlock(&registers->lock);
    dm_registers_deliver(registers);
}

/* The notice of the force overtakes that of the grant which it has broken, or comes before the force. */
static void test_grant_is_not_believed_after_a_force(void **state)
{
    struct process *one = process_start(0, true), *other = process_start(1, true);
    uint64_t holder = process_next_attempt(other), attempt = process_next_attempt(one);
    struct dm_question question = process_question(one, DM_OP_ACQUIRE, attempt);
    struct process_waiter me = { .attempt = attempt };
    bool is_granted;

    (void)state;
    assert_int_equal(process_acquire(other, holder).verdict, DM_SAYS_OWNED);
    question.acquire.may_queue = true;
    assert_int_equal(process_ask(one, &question).verdict, DM_SAYS_QUEUED);
    process_enter_list(one, &me);
    tell(one, attempt, DM_REG_NEWS_LOST);
    tell(one, attempt, DM_REG_NEWS_GRANTED);
    assert_true(process_has_news(one, &me, &is_granted));
    assert_false(is_granted);
    process_leave_list(one, &me);
    assert_int_equal(process_release(other, holder), DM_SAYS_DONE);
    assert_int_equal(come_back(one, attempt).verdict, DM_SAYS_UNKNOWN);
    assert_true(
        process_acquire(one, process_next_attempt(one)).is_owner_dead); /* nobody knows whether a thread was inside */
}

/* The same by the note in the session, whose reader has not heard of its grant yet. */
static void test_attempt_that_a_note_names_never_holds(void **state)
{
    struct process *one = process_start(0, true), *other = process_start(1, true);
    uint64_t holder = process_next_attempt(other), attempt = process_next_attempt(one);
    struct dm_question question = process_question(one, DM_OP_ACQUIRE, attempt);
    struct dm_question force = process_question(other, DM_OP_FORCE, 0);
    struct process_waiter me = { .attempt = attempt };
    struct dm_deadline patience = dm_deadline_in_ms(PROCESS_PATIENCE_MS);

    (void)state;
    assert_int_equal(process_acquire(other, holder).verdict, DM_SAYS_OWNED);
    question.acquire.may_queue = true;
    assert_int_equal(process_ask(one, &question).verdict, DM_SAYS_QUEUED);
    process_enter_list(one, &me);
    memory_faults(process_memory)->tell_lost = 1;
    assert_int_equal(process_release(other, holder), DM_SAYS_DONE);
    assert_int_equal(process_ask(other, &force).verdict, DM_SAYS_DONE);
    while (!is_lost(one, &me) && dm_deadline_left_ns(&patience) > 0)
        dm_self_sleep(me.self, &patience);
    assert_true(is_lost(one, &me));
    process_leave_list(one, &me);
    tell(one, attempt, DM_REG_NEWS_GRANTED);
    assert_int_equal(ask_about(one, DM_OP_RENEW, attempt).verdict, DM_SAYS_UNKNOWN);
    assert_int_equal(come_back(one, attempt).verdict, DM_SAYS_UNKNOWN);
}

/* ---- the binding of a condition ----------------------------------------------------------- */

static enum dm_verdict wait_at_the_other_mutex(struct process *process)
{
    uint64_t leaving = process_next_attempt(process), attempt = process_next_attempt(process);
    struct dm_question question = process_question(process, DM_OP_ACQUIRE, leaving);
    enum dm_verdict verdict;

    question.place = process->other;
    question.acquire.may_queue = true;
    while (process_ask(process, &question).verdict != DM_SAYS_OWNED)
        ;
    verdict = wait_with(process, process->other, "ngroup/other", process->condition, leaving, attempt).verdict;
    question = process_question(process, DM_OP_CONSISTENT, leaving);
    question.place = process->other;
    if (verdict == DM_SAYS_BOUND) /* nothing has changed */
        assert_int_equal(process_ask(process, &question).verdict, DM_SAYS_DONE);
    return verdict;
}

/* C5: a condition goes to another mutex when nobody sleeps at the former one any more. */
static void test_condition_is_bound_to_one_mutex_at_a_time(void **state)
{
    struct process *one = process_start(0, true), *other = process_start(1, true), *third = process_start(2, true);
    uint64_t sleeper = fall_asleep(one);

    (void)state;
    assert_int_equal(wait_at_the_other_mutex(other), DM_SAYS_BOUND);
    assert_int_equal(ask_about(one, DM_OP_POLL, sleeper).verdict, DM_SAYS_WAITING);
    assert_int_equal(process_release(one, sleeper), DM_SAYS_DONE);
    assert_int_equal(wait_at_the_other_mutex(third), DM_SAYS_WAITING);
}

/* A sleeper that was killed keeps nobody from it for longer than a lease. */
static void test_condition_of_a_killed_sleeper_goes_to_another_mutex(void **state)
{
    struct process *one = process_start(0, true), *other = process_start(1, true);

    (void)state;
    memory_faults(process_memory)->has_no_ages = true;
    fall_asleep(one);
    process_kill(one);
    assert_int_equal(wait_at_the_other_mutex(other), DM_SAYS_WAITING);
}

static void put_binding(const char *mutex)
{
    struct dm_reg_binding_value value = { .mutex = "" };
    struct dm_reg_writer writer;
    uint8_t bytes[DM_REG_SMALL_MAX];

    dm_reg_writer_init(&writer);
    value.version = dm_reg_writer_next(&writer);
    snprintf(value.mutex, sizeof value.mutex, "%s", mutex);
    memory_put(process_memory, "c/group/condition", bytes, dm_reg_binding_encode(&value, bytes));
}

/* C5: the signal may have gone to the other mutex, so the sleeper wakes up; also if the condition is bound back. */
static void test_sleeper_wakes_up_when_the_condition_is_bound_anew(void **state)
{
    static const char *const mutexes[] = { "ngroup/other", "ngroup/leaf" };
    struct process *one = process_start(0, true);

    (void)state;
    for (int i = 0; i < 2; i++) {
        uint64_t sleeper = fall_asleep(one);

        put_binding(mutexes[i]);
        assert_int_equal(come_back(one, sleeper).verdict, DM_SAYS_OWNED);
        assert_false(ask_about(one, DM_OP_COND_CANCEL, sleeper).is_signalled);
        assert_int_equal(process_release(one, sleeper), DM_SAYS_DONE);
    }
}

/* The value of the mutex at which somebody sleeps, and comes between. */
static struct {
    uint8_t bytes[DM_REG_SMALL_MAX];
    size_t size;
    bool is_put;
} between;

static void keep_value(void *user, const char *key, const void *value, size_t size)
{
    (void)user;
    if (strcmp(key, "n/group/leaf") != 0)
        return;
    assert_true(size <= sizeof between.bytes);
    memcpy(between.bytes, value, size);
    between.size = size;
}

static void come_between(void *user, const char *key, const void *old_value, size_t old_size, const void *value,
                         size_t size)
{
    (void)user;
    (void)old_value;
    (void)old_size;
    (void)value;
    (void)size;
    if (strcmp(key, "c/group/condition") != 0 || between.is_put)
        return;
    between.is_put = true;
    memory_put(process_memory, "n/group/leaf", between.bytes, between.size);
}

static void read_binding(void *user, const char *key, const void *value, size_t size)
{
    const char *reason;

    if (strcmp(key, "c/group/condition") == 0)
        assert_int_equal(dm_reg_binding_decode(value, size, user, &reason), 0);
}

/* C5: somebody falls asleep at the former mutex between the look and the swap, which is undone. */
static void test_condition_is_bound_back_if_a_sleeper_comes_between(void **state)
{
    struct process *one = process_start(0, true), *other = process_start(1, true);
    uint64_t sleeper = fall_asleep(one), holder = process_next_attempt(one);
    struct dm_reg_binding_value binding;

    (void)state;
    memset(&between, 0, sizeof between);
    assert_int_equal(process_acquire(one, holder).verdict, DM_SAYS_OWNED); /* so its session goes on */
    memory_each(process_memory, keep_value, NULL);
    assert_int_equal(process_release(one, sleeper), DM_SAYS_DONE);
    memory_watch(process_memory, come_between, NULL);
    assert_int_equal(wait_at_the_other_mutex(other), DM_SAYS_BOUND);
    assert_true(between.is_put);
    memory_each(process_memory, read_binding, &binding);
    assert_string_equal(binding.mutex, "ngroup/leaf");
}

/* Somebody sleeps: busy.  Nobody: an anonymous condition leaves nothing, a named one its binding. */
static void count_bindings(void *user, const char *key, const void *value, size_t size)
{
    (void)value;
    (void)size;
    *(int *)user += key[0] == 'c' || key[0] == 'd';
}

static enum dm_verdict drop(struct process *process, const struct dm_place *condition, bool is_anonymous)
{
    struct dm_question question = process_question(process, DM_OP_COND_DROP, 0);

    question.place = NULL;
    question.condition = condition;
    question.is_anonymous = is_anonymous;
    return process_ask(process, &question).verdict;
}

static void test_condition_is_dropped_when_nobody_sleeps(void **state)
{
    struct process *one = process_start(0, true), *other = process_start(1, true);
    uint64_t leaving = process_next_attempt(one), sleeper = process_next_attempt(one);
    int bindings = 0;

    (void)state;
    assert_int_equal(drop(other, other->anonymous, true), DM_SAYS_DONE);
    assert_int_equal(process_acquire(one, leaving).verdict, DM_SAYS_OWNED);
    assert_int_equal(wait_with(one, one->place, "ngroup/leaf", one->anonymous, leaving, sleeper).verdict,
                     DM_SAYS_WAITING);
    assert_int_equal(drop(other, other->anonymous, true), DM_SAYS_BUSY);
    assert_int_equal(drop(one, one->anonymous, true), DM_SAYS_BUSY);
    assert_int_equal(process_release(one, sleeper), DM_SAYS_DONE);
    memory_each(process_memory, count_bindings, &bindings);
    assert_int_equal(bindings, 1);
    assert_int_equal(drop(other, other->anonymous, true), DM_SAYS_DONE);
    bindings = 0;
    memory_each(process_memory, count_bindings, &bindings);
    assert_int_equal(bindings, 0);
    sleeper = fall_asleep(one);
    assert_int_equal(drop(other, other->condition, false), DM_SAYS_BUSY);
    assert_int_equal(process_release(one, sleeper), DM_SAYS_DONE);
    assert_int_equal(drop(other, other->condition, false), DM_SAYS_DONE);
    memory_each(process_memory, count_bindings, &bindings);
    assert_int_equal(bindings, 1);
}

static void test_foreign_binding_is_refused_with_a_reason(void **state)
{
    struct process *one = process_start(0, true);
    uint64_t leaving = process_next_attempt(one);

    (void)state;
    assert_int_equal(process_acquire(one, leaving).verdict, DM_SAYS_OWNED);
    memory_put(process_memory, "c/group/condition", "a value that is nobody's, and longer than a version", 50);
    assert_int_equal(wait_on(one, leaving, process_next_attempt(one)).verdict, DM_SAYS_REFUSED);
    assert_int_equal(send_signal(one, 1).verdict, DM_SAYS_REFUSED);
    put_binding("xgroup/leaf");
    assert_int_equal(send_signal(one, 1).verdict, DM_SAYS_REFUSED);
    assert_int_equal(ask_about(one, DM_OP_CONSISTENT, leaving).verdict, DM_SAYS_DONE);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, process_begin, process_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_signal_wakes_a_sleeper_of_another_process),
        TEST(test_signal_wakes_a_sleeper_without_notices),
        TEST(test_signal_wakes_a_sleeper_whose_notices_are_lost),
        TEST(test_conditions_work_when_answers_are_lost),
        TEST(test_broadcast_wakes_all_sleepers),
        TEST(test_deadline_and_signal_exclude_each_other),
        TEST(test_signal_of_a_killed_process_goes_to_the_next_sleeper),
        TEST(test_release_ends_a_sleeper),
        TEST(test_wait_without_the_mutex_is_refused),
        TEST(test_sleeper_wakes_up_when_the_data_are_lost),
        TEST(test_sleeper_outlives_broken_connections),
        TEST(test_condition_is_bound_to_one_mutex_at_a_time),
        TEST(test_condition_of_a_killed_sleeper_goes_to_another_mutex),
        TEST(test_sleeper_wakes_up_when_the_condition_is_bound_anew),
        TEST(test_wait_is_not_refused_while_its_swap_may_come_late),
        TEST(test_grant_is_not_believed_after_a_force),
        TEST(test_attempt_that_a_note_names_never_holds),
        TEST(test_condition_is_bound_back_if_a_sleeper_comes_between),
        TEST(test_condition_is_dropped_when_nobody_sleeps),
        TEST(test_foreign_binding_is_refused_with_a_reason),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
