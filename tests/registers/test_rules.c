/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rules that the store itself keeps, beside its pure parts: one test for each, which fails when the rule's line is
 * taken out (doc/design/registers.md has the table).  Processes have no loop thread here, so nothing goes on while a
 * test looks at their state, or changes it.
 */
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/self.h"
#include "base/units.h"
#include "process.h"
#include "registers/store_parts.h"

#define NAME "n/group/leaf"
#define LONG_NS (10 * PROCESS_LEASE_MS * DM_NS_PER_MS)

/* ---- processes ---------------------------------------------------------------------------- */

/* A process that waits for no grace. */
static struct process *start(int number)
{
    struct process *process = process_start(number, false);

    dm_registers_trust_data(process->store);
    return process;
}

static void turn(struct process *process)
{
    struct dm_deadline soon = dm_deadline_in_ms(10);

    dm_store_sleep(process->store, process->place, DM_ASKS, &soon, PTHREAD_CANCEL_DISABLE);
}

/* Turns the process until the condition is true. */
#define until(process, condition)                                             \
    do {                                                                      \
        struct dm_deadline patience = dm_deadline_in_ms(PROCESS_PATIENCE_MS); \
                                                                              \
        while (!(condition) && dm_deadline_left_ns(&patience) > 0)            \
            turn(process);                                                    \
        assert_true(condition);                                               \
    } while (0)

static struct dm_reg_attempt *find(struct process *process, uint64_t attempt)
{
    return dm_registers_attempt(dm_registers_of(process->store), attempt);
}

/* The attempt, which holds. */
static uint64_t take(struct process *process)
{
    uint64_t attempt = process_next_attempt(process);

    assert_int_equal(process_acquire(process, attempt).verdict, DM_SAYS_OWNED);
    return attempt;
}

/* Asks for a place in the queue, once. */
static struct dm_answer ask_queued(struct process *process, struct dm_place *place, uint64_t attempt, uint64_t arrival)
{
    struct dm_question question = process_question(process, DM_OP_ACQUIRE, attempt);

    question.place = place;
    question.acquire.may_queue = true;
    question.arrival = arrival;
    return process_ask(process, &question);
}

static void ignore(void *user, const struct dm_answer *answers, int count, const char *refusal)
{
    (void)user;
    (void)answers;
    (void)count;
    (void)refusal;
}

/* A release whose swap has no answer yet. */
static void begin_release(struct process *process, uint64_t attempt)
{
    struct dm_question question = process_question(process, DM_OP_RELEASE, attempt);

    assert_true(dm_store_submit(process->store, &question, 1, ignore, NULL));
    assert_non_null(find(process, attempt));
}

/* As if the last beats had been sent long ago. */
static void age_sessions(struct process *process)
{
    for (struct dm_reg_own *own = dm_registers_of(process->store)->owns; own; own = own->next)
        own->session.proved_ns -= LONG_NS;
}

/* ---- what happens in the middle ------------------------------------------------------------ */

static struct process *watched;
static const char *swapped; /* how the keys begin */
static void (*when_swapped)(struct process *process);
static int swaps;

static void on_swap(void *user, const char *key, const void *old_value, size_t old_size, const void *value, size_t size)
{
    (void)user;
    (void)old_value;
    (void)old_size;
    (void)value;
    (void)size;
    if (strncmp(key, swapped, strlen(swapped)) != 0)
        return;
    swaps++;
    if (when_swapped)
        when_swapped(watched);
    when_swapped = NULL;
}

/* Counts swaps of such keys.  When the first one has been done, `what` happens before the process hears of it. */
static void watch_swaps(struct process *process, const char *prefix, void (*what)(struct process *process))
{
    watched = process;
    swapped = prefix;
    when_swapped = what;
    swaps = 0;
    memory_watch(process_memory, on_swap, NULL);
}

static void end_sessions(struct process *process)
{
    for (struct dm_reg_own *own = dm_registers_of(process->store)->owns; own; own = own->next)
        own->session.phase = DM_REG_SESSION_OVER;
}

struct found {
    const char *prefix;
    int count;
};

static void find_key(void *user, const char *key, const void *value, size_t size)
{
    struct found *found = user;

    (void)value;
    (void)size;
    found->count += strncmp(key, found->prefix, strlen(found->prefix)) == 0;
}

static int count_keys(const char *prefix)
{
    struct found found = { .prefix = prefix };

    memory_each(process_memory, find_key, &found);
    return found.count;
}

/* ---- sessions ----------------------------------------------------------------------------- */

/* S7: the session that was lost never comes back; what comes after it has another key. */
static void test_lost_session_is_followed_by_another(void **state)
{
    struct process *one = start(0);
    uint64_t attempt = take(one), next;

    (void)state;
    assert_int_equal(find(one, attempt)->own->session.id.serial, 1);
    age_sessions(one);
    until(one, find(one, attempt)->own->is_over);
    process_release(one, attempt);
    next = process_next_attempt(one);
    assert_true(process_acquire(one, next).is_owner_dead);
    assert_int_equal(find(one, next)->own->session.id.serial, 2);
}

/* V5: a store that is too full to write that a session is dead still deletes it. */
static void test_lost_session_is_deleted_when_the_store_is_full(void **state)
{
    struct process *one = start(0);

    (void)state;
    take(one);
    memory_faults(process_memory)->is_full = true;
    age_sessions(one);
    until(one, count_keys("s/") == 0);
}

/* S9: a swap that comes late would find no session to refer to, and a contender none to kill.  So "dead" stays. */
static void test_session_is_not_deleted_while_a_swap_may_come_late(void **state)
{
    struct process *one = start(0);
    struct dm_deadline deadline = dm_deadline_in_ms(PROCESS_PATIENCE_MS);

    (void)state;
    process_release(one, take(one));
    dm_registers_name(dm_registers_of(one->store), NAME)->copy.is_unsettled = true;
    dm_store_leave(one->store, &deadline);
    assert_int_equal(count_keys("s/"), 1);
    assert_null(dm_registers_of(one->store)->owns);
}

/* ---- names -------------------------------------------------------------------------------- */

/* N3: the swap took long, so the session must beat before the thread may enter. */
static void test_thread_enters_after_a_beat_when_certainty_has_ended(void **state)
{
    struct process *one = start(0);
    int64_t began_ns;
    struct dm_answer answer;

    (void)state;
    process_release(one, take(one));
    watch_swaps(one, NAME, age_sessions);
    began_ns = dm_clock_boot_ns();
    answer = process_acquire(one, process_next_attempt(one));
    assert_null(when_swapped);
    assert_int_equal(answer.verdict, DM_SAYS_OWNED);
    assert_true(answer.from_ns >= began_ns);
}

/* N3: the session is lost before the thread enters.  It asks again, in another session. */
static void test_thread_asks_again_when_its_session_was_lost(void **state)
{
    struct process *one = start(0);
    uint64_t attempt = process_next_attempt(one);

    (void)state;
    process_release(one, take(one));
    watch_swaps(one, NAME, end_sessions);
    assert_int_equal(process_acquire(one, attempt).verdict, DM_SAYS_OWNED);
    assert_null(when_swapped);
    assert_int_equal(find(one, attempt)->own->session.id.serial, 2);
}

/* A grant for this attempt comes, of a session that many serials later. */
static void give(struct process *process, uint64_t number, uint32_t later)
{
    struct dm_registers *registers = dm_registers_of(process->store);
    struct dm_reg_notice notice = { .news = DM_REG_NEWS_GRANTED, .attempt = number, .token = 1000 };

    notice.session = find(process, number)->own->session.id;
    notice.session.serial += later;
    dm_mutex_lock(&registers->lock);
    dm_registers_take_notice(registers, &notice);
    dm_mutex_unlock(&registers->lock);
    dm_registers_deliver(registers);
}

/* N4: a grant is believed if it names the attempt's own session, which is certain, and the attempt is still wanted. */
static void test_grant_is_believed_only_of_a_certain_session(void **state)
{
    struct process *one = start(0), *other = start(1);
    uint64_t holder = take(other), attempt = process_next_attempt(one);
    struct process_waiter me = { .attempt = attempt };
    bool is_granted;

    (void)state;
    assert_int_equal(ask_queued(one, one->place, attempt, 0).verdict, DM_SAYS_QUEUED);
    process_enter_list(one, &me);
    give(one, attempt, 1);
    assert_false(process_has_news(one, &me, &is_granted));
    age_sessions(one);
    give(one, attempt, 0);
    assert_true(process_has_news(one, &me, &is_granted)); /* to ask */
    assert_false(is_granted);
    me.must_ask = false;
    begin_release(one, attempt);
    give(one, attempt, 0);
    assert_false(process_has_news(one, &me, &is_granted));
    process_leave_list(one, &me);
    process_release(other, holder);
}

/* N7: a session goes on, so what the process has forgotten must not wait for its end. */
static void test_forgotten_attempt_is_given_back(void **state)
{
    struct process *one = start(0), *other = start(1);
    uint64_t attempt = take(one);
    struct dm_registers *registers = dm_registers_of(one->store);

    (void)state;
    find(one, attempt)->heard_ns -= LONG_NS;
    registers->ready_ns -= LONG_NS;
    registers->sweep_ns = 0;
    until(one, !find(one, attempt));
    assert_true(process_try(other, process_next_attempt(other)).is_owner_dead);
}

/* N8: a store without notices is looked at, although the process does not ask again. */
static void test_waiter_gets_the_lock_without_notices(void **state)
{
    struct process *one, *other;
    struct process_waiter me;
    uint64_t holder;
    bool is_granted = false;

    (void)state;
    memory_faults(process_memory)->has_no_tells = true;
    one = start(0);
    other = start(1);
    holder = take(one);
    me = (struct process_waiter){ .attempt = process_next_attempt(other) };
    assert_int_equal(ask_queued(other, other->place, me.attempt, 0).verdict, DM_SAYS_QUEUED);
    process_enter_list(other, &me);
    assert_int_equal(process_release(one, holder), DM_SAYS_DONE);
    until(other, process_has_news(other, &me, &is_granted));
    assert_true(is_granted);
    process_leave_list(other, &me);
}

/* N10: who comes back has the place of his number, before those who came later. */
static void test_waiter_comes_back_to_its_place(void **state)
{
    struct process *one = start(0), *other = start(1), *third = start(2);
    struct dm_answer later;

    (void)state;
    take(one);
    later = ask_queued(other, other->place, process_next_attempt(other), 0);
    assert_int_equal(later.position, 1);
    assert_true(later.arrival > 1);
    assert_int_equal(ask_queued(third, third->place, process_next_attempt(third), later.arrival - 1).position, 1);
}

/* N11: tokens of a name that is new are above all that the process has seen. */
static void test_token_of_a_new_name_is_above_what_was_seen(void **state)
{
    struct process *one = start(0);
    struct dm_answer answer = process_acquire(one, process_next_attempt(one));
    struct dm_question question = process_question(one, DM_OP_ACQUIRE, process_next_attempt(one));

    (void)state;
    question.place = one->other;
    question.seen = 2 * answer.token;
    assert_int_equal(process_ask(one, &question).token, 2 * answer.token + 1);
}

/* ---- other data --------------------------------------------------------------------------- */

/* D1: all data are gone, and the store says that it has the same.  The mark tells. */
static void test_absent_name_is_not_believed_when_the_mark_is_gone(void **state)
{
    struct process *one = process_start(0, false), *other = process_start(1, false);
    struct dm_answer answer;

    (void)state;
    take(one);
    assert_int_equal(ask_queued(other, other->other, process_next_attempt(other), 0).verdict, DM_SAYS_OWNED);
    memory_wipe(process_memory);
    answer = process_try(other, process_next_attempt(other));
    assert_int_equal(answer.verdict, DM_SAYS_BUSY);
    assert_true(answer.grace_ms > 0);
}

/* D2: the mark must be quiet for the longest lease of those who may hold, and whoever waits sees to it. */
static void test_mark_becomes_quiet_for_the_longest_lease(void **state)
{
    struct process *one = start(0), *other = process_start(1, false);
    struct dm_question question = process_question(one, DM_OP_ACQUIRE, process_next_attempt(one));

    (void)state;
    question.lease_ms = 5 * PROCESS_LEASE_MS;
    assert_int_equal(process_ask(one, &question).verdict, DM_SAYS_OWNED);
    memory_copy(process_memory);
    process_kill(one);
    memory_restart(process_memory, MEMORY_BRINGS_COPY, 0);
    assert_int_equal(ask_queued(other, other->place, process_next_attempt(other), 0).verdict, DM_SAYS_QUEUED);
    assert_int_equal(dm_registers_of(other->store)->mark.wanted_ms, 5 * PROCESS_LEASE_MS);
}

/* D3: a release that is repeated in a copy would end a hold that somebody else may believe in. */
static void test_owed_release_is_not_done_in_other_data(void **state)
{
    struct process *one = start(0);
    uint64_t attempt = take(one);

    (void)state;
    memory_copy(process_memory);
    begin_release(one, attempt);
    memory_restart(process_memory, MEMORY_BRINGS_COPY, 0);
    watch_swaps(one, NAME, NULL);
    until(one, !find(one, attempt));
    assert_int_equal(count_keys(NAME), 1);
    assert_int_equal(swaps, 0);
}

/* What a driver says when the store has other data. */
static void move_to(struct process *process, const char *identity)
{
    struct dm_registers *registers = dm_registers_of(process->store);
    struct dm_reg_client client = dm_registers_client(registers);

    dm_mutex_lock(&registers->lock);
    client.on_ready(client.user, identity);
    dm_mutex_unlock(&registers->lock);
}

static bool is_claimed(struct process *process, uint64_t attempt)
{
    const struct dm_reg_task *task = find(process, attempt)->name->tasks;

    while (task && (task->act != DM_REG_CLAIM || task->attempt != find(process, attempt)))
        task = task->next;
    return task != NULL;
}

static bool must_ask(struct process *process, uint64_t attempt)
{
    const struct dm_reg_news_item *item = dm_registers_of(process->store)->news;

    while (item && (item->message.kind != DM_MESSAGE_ASK || item->message.attempt != attempt))
        item = item->next;
    return item != NULL;
}

/* D3, D4, D6: nothing that is known of the former data counts; holds are claimed, and waiters ask anew. */
static void test_nothing_counts_when_the_data_are_others(void **state)
{
    struct process *one = start(0), *other = start(1);
    struct dm_registers *registers = dm_registers_of(one->store);
    uint64_t holder = take(one), waiter = process_next_attempt(one);

    (void)state;
    assert_int_equal(ask_queued(other, other->other, process_next_attempt(other), 0).verdict, DM_SAYS_OWNED);
    assert_int_equal(ask_queued(one, one->other, waiter, 0).verdict, DM_SAYS_QUEUED);
    assert_int_equal(registers->watch.count, 1);
    find(one, holder)->name->copy.is_unsettled = true;
    move_to(one, "other data");
    assert_int_equal(registers->watch.count, 0);
    assert_int_equal(registers->owns->session.phase, DM_REG_SESSION_PAST);
    assert_false(find(one, holder)->name->copy.is_known);
    assert_false(find(one, holder)->name->copy.is_unsettled);
    assert_true(must_ask(one, waiter));
    assert_true(is_claimed(one, holder));
    /* A hold that a wait has given back, perhaps, is not claimed. */
    find(one, holder)->may_have_left = true;
    move_to(one, "other data again");
    assert_false(is_claimed(one, holder));
}

/* D4: the hold is certain when the data change, and no longer when the claim is to be sent. */
static void test_hold_is_not_claimed_after_certainty(void **state)
{
    struct process *one = process_start(0, false);
    struct dm_question question = process_question(one, DM_OP_INFO, 0);
    union dm_more more;
    uint64_t attempt = take(one);
    struct dm_reg_own *former = find(one, attempt)->own;

    (void)state;
    question.ret_more = &more;
    memory_restart(process_memory, MEMORY_LOSES, 0);
    watch_swaps(one, "s/", age_sessions);
    until(one, !when_swapped && former->is_over);
    process_ask(one, &question);
    assert_int_equal(count_keys(NAME), 0);
}

/* ---- threads that wait --------------------------------------------------------------------- */

static void *await_inbox(void *user)
{
    struct process *process = user;
    struct dm_deadline patience = dm_deadline_in_ms(PROCESS_PATIENCE_MS);

    dm_store_await_able(process->store, process->place, DM_TELLS, &patience);
    return NULL;
}

/* The thread that polls for all is not among the sleepers, and sees nothing to read if another one was quicker. */
static void test_leader_is_woken_when_the_way_opens(void **state)
{
    struct process *one = start(0);
    struct dm_registers *registers = dm_registers_of(one->store);
    struct dm_reg_client client = dm_registers_client(registers);
    struct dm_deadline patience = dm_deadline_in_ms(PROCESS_PATIENCE_MS);
    struct pollfd bell = { .events = POLLIN };
    pthread_t thread;

    (void)state;
    take(one);
    dm_mutex_lock(&registers->lock);
    client.on_inbox(client.user, false);
    dm_mutex_unlock(&registers->lock);
    assert_int_equal(pthread_create(&thread, NULL, await_inbox, one), 0);
    dm_mutex_lock(&registers->lock);
    while (!registers->has_leader && dm_deadline_left_ns(&patience) > 0) {
        dm_mutex_unlock(&registers->lock);
        sched_yield();
        dm_mutex_lock(&registers->lock);
    }
    client.on_inbox(client.user, true);
    bell.fd = registers->bell;
    poll(&bell, 1, 0);
    dm_mutex_unlock(&registers->lock);
    pthread_join(thread, NULL);
    assert_true(bell.revents & POLLIN);
}

static void *leave(void *user)
{
    struct process *process = user;
    struct dm_deadline patience = dm_deadline_in_ms(PROCESS_PATIENCE_MS);

    dm_store_leave(process->store, &patience);
    return NULL;
}

/* The same for a thread that waits for the end of its sessions, when another thread has read the answers. */
static void test_leader_is_woken_when_nothing_is_owed_any_more(void **state)
{
    struct process *one = start(0);
    struct dm_registers *registers = dm_registers_of(one->store);
    struct dm_deadline patience = dm_deadline_in_ms(PROCESS_PATIENCE_MS);
    struct pollfd bell = { .events = POLLIN };
    pthread_t thread;

    (void)state;
    assert_int_equal(process_release(one, take(one)), DM_SAYS_DONE);
    memory_stall(process_memory, dm_clock_boot_ns() + LONG_NS);
    assert_int_equal(pthread_create(&thread, NULL, leave, one), 0);
    dm_mutex_lock(&registers->lock);
    while (!registers->has_leader && dm_deadline_left_ns(&patience) > 0) {
        dm_mutex_unlock(&registers->lock);
        sched_yield();
        dm_mutex_lock(&registers->lock);
    }
    process_jump(2 * LONG_NS);
    while (registers->owns && dm_deadline_left_ns(&patience) > 0)
        dm_registers_work(registers);
    assert_null(registers->owns);
    bell.fd = registers->bell;
    poll(&bell, 1, 0);
    dm_mutex_unlock(&registers->lock);
    pthread_join(thread, NULL);
    assert_true(bell.revents & POLLIN);
}

/* ---- renewals ----------------------------------------------------------------------------- */

static void keep_verdicts(void *user, const struct dm_answer *answers, int count, const char *refusal)
{
    int *owned = user;

    (void)refusal;
    for (int i = 0; answers && i < count; i++)
        *owned += answers[i].verdict == DM_SAYS_OWNED && answers[i].from_ns > 0;
}

/* No thread that sleeps waits for a third of the lease, which is longer than this test; and all share a beat. */
static void test_awaited_renewals_share_a_beat(void **state)
{
    enum { COUNT = 20 };
    static int owned; /* the last question has its answer after the test */
    struct process *one = start(0);
    uint64_t attempt = process_next_attempt(one);
    struct dm_question renewals[COUNT], question = process_question(one, DM_OP_ACQUIRE, attempt);

    (void)state;
    owned = 0;
    question.lease_ms = DM_LEASE_MAX_MS;
    assert_int_equal(process_ask(one, &question).verdict, DM_SAYS_OWNED);
    watch_swaps(one, "s/", NULL);
    for (int i = 0; i < COUNT; i++) {
        renewals[i] = process_question(one, DM_OP_RENEW, attempt);
        renewals[i].renew.is_awaited = true;
    }
    assert_true(dm_store_submit(one->store, renewals, COUNT, keep_verdicts, &owned));
    until(one, owned == COUNT);
    assert_int_equal(swaps, 1);
    /* Nobody sleeps for this one. */
    renewals[0].request.sent_ns = dm_clock_boot_ns();
    renewals[0].renew.is_awaited = false;
    assert_true(dm_store_submit(one->store, renewals, 1, keep_verdicts, &owned));
    question.attempt = process_next_attempt(one);
    assert_int_equal(process_ask(one, &question).verdict, DM_SAYS_BUSY);
    assert_int_equal(owned, COUNT);
    assert_int_equal(swaps, 1);
}

/* ---- claims ------------------------------------------------------------------------------- */

/* No lease ends in these tests. */
#define CLAIM_LEASE_MS 60000

static void keep_answer(void *user, const struct dm_answer *answers, int count, const char *refusal)
{
    struct dm_answer *kept = user;

    (void)refusal;
    assert_int_equal(count, 1);
    assert_non_null(answers);
    *kept = answers[0];
}

/* Asks, and turns the process until the answer is there. */
static enum dm_verdict ask_without_sleep(struct process *process, enum dm_op op, uint64_t attempt, enum dm_mark mark)
{
    struct dm_question question = process_question(process, op, attempt);
    struct dm_answer answer = { .verdict = DM_SAYS_NOTHING };

    question.request.sent_ns = 0; /* any beat proves the hold */
    if (op == DM_OP_RENEW)
        question.renew.mark = mark;
    assert_true(dm_store_submit(process->store, &question, 1, keep_answer, &answer));
    until(process, answer.verdict != DM_SAYS_NOTHING);
    return answer.verdict;
}

static struct dm_reg_task *claim_of(struct process *process, uint64_t attempt)
{
    struct dm_reg_task *task = find(process, attempt) ? find(process, attempt)->name->tasks : NULL;

    while (task && (task->act != DM_REG_CLAIM || task->attempt != find(process, attempt)))
        task = task->next;
    return task;
}

static const struct dm_reg_driver_ops *memory_ops;
static bool stalls; /* the server does nothing from the next swap of the name on */
static bool forgets_sessions;
static int forgotten; /* sessions that the driver did not send */

static bool swap_or_stall(struct dm_reg_driver *driver, uint64_t ticket, const struct dm_reg_item *items, int count)
{
    if (stalls && strcmp(items->key, NAME) == 0)
        memory_stall(process_memory, dm_clock_boot_ns() + LONG_NS);
    if (forgets_sessions && items->key[0] == 's') {
        forgotten++;
        return false;
    }
    return memory_ops->swap(driver, ticket, items, count);
}

static struct dm_reg_driver *make_stalling(void *user, const struct dm_reg_client *client,
                                           char ret_reason[DM_REASON_ROOM])
{
    static struct dm_reg_driver_ops ops;
    struct dm_reg_driver *driver = memory_open(process_memory, client);

    (void)user;
    (void)ret_reason;
    memory_ops = driver->ops;
    ops = *memory_ops;
    ops.swap = swap_or_stall;
    driver->ops = &ops;
    return driver;
}

static void go_on(void)
{
    stalls = false;
    process_jump(LONG_NS);
}

/* A holder whose store will have other data in its next turns. */
static struct process *start_holder(enum dm_mark mark, uint64_t *ret_attempt)
{
    struct process *process;
    struct dm_question question;

    stalls = forgets_sessions = false;
    forgotten = 0;
    process_driver = make_stalling;
    process = start(0);
    process_driver = NULL;
    *ret_attempt = process_next_attempt(process);
    question = process_question(process, DM_OP_ACQUIRE, *ret_attempt);
    question.lease_ms = CLAIM_LEASE_MS;
    assert_int_equal(process_ask(process, &question).verdict, DM_SAYS_OWNED);
    if (mark != DM_MARK_NONE)
        assert_int_equal(ask_without_sleep(process, DM_OP_RENEW, *ret_attempt, mark), DM_SAYS_OWNED);
    dm_registers_of(process->store)->mark.is_trusting = false;
    memory_restart(process_memory, MEMORY_LOSES, 0);
    return process;
}

/* Its claim has been sent, and the server does nothing before go_on(). */
static struct process *start_claiming(uint64_t *ret_attempt)
{
    struct process *process = start_holder(DM_MARK_NONE, ret_attempt);

    stalls = true;
    until(process, claim_of(process, *ret_attempt) && claim_of(process, *ret_attempt)->is_claiming);
    return process;
}

/* The name changes before the claim is executed: others may stand in line, or leave it. */
static void change_name(void)
{
    struct dm_reg_writer writer;
    struct dm_reg_name_value value;
    uint8_t bytes[256];

    dm_reg_writer_init(&writer);
    dm_reg_name_init(&value);
    value.version = dm_reg_writer_next(&writer);
    value.identity = 1;
    memory_put(process_memory, NAME, bytes, dm_reg_name_encode(&value, bytes, sizeof bytes));
}

/* D4: the new data never name the hold, because its claim met a conflict; but it was certain all the time. */
static void test_release_that_overtakes_the_claim_is_no_loss(void **state)
{
    uint64_t attempt;
    struct process *one = start_claiming(&attempt);

    (void)state;
    change_name();
    go_on();
    assert_int_equal(ask_without_sleep(one, DM_OP_RELEASE, attempt, DM_MARK_NONE), DM_SAYS_DONE);
    assert_null(find(one, attempt));
}

/* D4: the claim waits for its session, and the data do not name the hold yet. */
static void test_renewal_waits_for_the_claim(void **state)
{
    uint64_t attempt;
    struct process *one = start_holder(DM_MARK_TELL, &attempt);
    struct dm_question renewal = process_question(one, DM_OP_RENEW, attempt);
    struct dm_answer answer = { .verdict = DM_SAYS_NOTHING };

    (void)state;
    renewal.renew.mark = DM_MARK_TELL;
    renewal.request.sent_ns = 0;
    forgets_sessions = true;
    until(one, forgotten > 0);
    assert_true(dm_store_submit(one->store, &renewal, 1, keep_answer, &answer));
    until(one, forgotten > 2);
    assert_int_equal(answer.verdict, DM_SAYS_NOTHING);
    forgets_sessions = false;
    until(one, answer.verdict != DM_SAYS_NOTHING);
    assert_int_equal(answer.verdict, DM_SAYS_OWNED);
    assert_null(claim_of(one, attempt));
}

/* A thread that awaits more than it had hears what has become of its hold; for others it is as certain as before. */
static void test_awaited_renewal_is_proved_in_the_new_data(void **state)
{
    uint64_t attempt;
    struct process *one = start_holder(DM_MARK_NONE, &attempt);
    struct dm_question renewal = process_question(one, DM_OP_RENEW, attempt);
    struct dm_answer answer = { .verdict = DM_SAYS_NOTHING };

    (void)state;
    forgets_sessions = true;
    until(one, forgotten > 0);
    assert_int_equal(ask_without_sleep(one, DM_OP_RENEW, attempt, DM_MARK_NONE), DM_SAYS_OWNED);
    renewal.renew.is_awaited = true;
    assert_true(dm_store_submit(one->store, &renewal, 1, keep_answer, &answer));
    until(one, forgotten > 2);
    assert_int_equal(answer.verdict, DM_SAYS_NOTHING);
    forgets_sessions = false;
    until(one, answer.verdict != DM_SAYS_NOTHING);
    assert_int_equal(answer.verdict, DM_SAYS_OWNED);
    assert_true(answer.from_ns >= renewal.request.sent_ns);
    assert_null(claim_of(one, attempt));
}

/* D4: a hold that is certain is claimed until the store takes the claim. */
static void test_claim_is_repeated_after_a_refusal(void **state)
{
    uint64_t attempt;
    struct process *one = start_claiming(&attempt);

    (void)state;
    memory_faults(process_memory)->is_full = true;
    go_on();
    until(one, !claim_of(one, attempt) || !find(one, attempt)->name->under_way);
    assert_non_null(claim_of(one, attempt));
    memory_faults(process_memory)->is_full = false;
    until(one, !claim_of(one, attempt));
    assert_int_equal(ask_without_sleep(one, DM_OP_RENEW, attempt, DM_MARK_NONE), DM_SAYS_OWNED);
    assert_int_equal(count_keys(NAME), 1);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, process_begin, process_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_lost_session_is_followed_by_another),
        TEST(test_lost_session_is_deleted_when_the_store_is_full),
        TEST(test_session_is_not_deleted_while_a_swap_may_come_late),
        TEST(test_thread_enters_after_a_beat_when_certainty_has_ended),
        TEST(test_thread_asks_again_when_its_session_was_lost),
        TEST(test_grant_is_believed_only_of_a_certain_session),
        TEST(test_forgotten_attempt_is_given_back),
        TEST(test_waiter_gets_the_lock_without_notices),
        TEST(test_waiter_comes_back_to_its_place),
        TEST(test_token_of_a_new_name_is_above_what_was_seen),
        TEST(test_absent_name_is_not_believed_when_the_mark_is_gone),
        TEST(test_mark_becomes_quiet_for_the_longest_lease),
        TEST(test_owed_release_is_not_done_in_other_data),
        TEST(test_nothing_counts_when_the_data_are_others),
        TEST(test_hold_is_not_claimed_after_certainty),
        TEST(test_leader_is_woken_when_the_way_opens),
        TEST(test_leader_is_woken_when_nothing_is_owed_any_more),
        TEST(test_awaited_renewals_share_a_beat),
        TEST(test_release_that_overtakes_the_claim_is_no_loss),
        TEST(test_renewal_waits_for_the_claim),
        TEST(test_awaited_renewal_is_proved_in_the_new_data),
        TEST(test_claim_is_repeated_after_a_refusal),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
