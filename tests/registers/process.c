/* SPDX-License-Identifier: BSD-2-Clause */
#include "process.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/self.h"
#include "base/units.h"

struct memory *process_memory;
dm_reg_make_fn *process_driver;
static struct process processes[PROCESSES];
static int64_t jumped_ns; /* atomic */

/* ---- the server's clock -------------------------------------------------------------------- */

static int64_t server_ns(void)
{
    return dm_clock_boot_ns() + __atomic_load_n(&jumped_ns, __ATOMIC_RELAXED);
}

void process_jump(int64_t ns)
{
    __atomic_add_fetch(&jumped_ns, ns, __ATOMIC_RELAXED);
}

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
    for (struct process_waiter *waiter = process->waiters; waiter; waiter = waiter->next) {
        waiter->must_ask = true;
        dm_self_wake(waiter->self);
    }
    pthread_mutex_unlock(&process->lock);
}

static void on_message(void *user, const struct dm_message *message)
{
    struct process *process = user;

    pthread_mutex_lock(&process->lock);
    for (struct process_waiter *waiter = process->waiters; waiter; waiter = waiter->next) {
        if (waiter->attempt != message->attempt)
            continue;
        if (message->kind == DM_MESSAGE_GRANTED)
            waiter->answer = message->answer;
        waiter->is_granted = waiter->is_granted || message->kind == DM_MESSAGE_GRANTED;
        waiter->is_lost = waiter->is_lost || message->kind == DM_MESSAGE_LOST;
        waiter->must_ask = waiter->must_ask || message->kind == DM_MESSAGE_ASK || message->kind == DM_MESSAGE_SIGNALLED;
        dm_self_wake(waiter->self);
    }
    pthread_mutex_unlock(&process->lock);
}

static bool is_in_need(void *user, unsigned *ret_lease_ms)
{
    const struct process *process = user;

    if (ret_lease_ms)
        *ret_lease_ms = PROCESS_LEASE_MS;
    return !__atomic_load_n(&process->is_idle, __ATOMIC_ACQUIRE);
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
    if (process_driver)
        return process_driver(user, client, ret_reason);
    return memory_open(process_memory, client);
}

struct process *process_start(int number, bool has_loop)
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
    process->other = dm_store_place(process->store, "ngroup/other");
    process->condition = dm_store_place(process->store, "cgroup/condition");
    process->anonymous = dm_store_place(process->store, "d~0123456789abcdef ngroup/");
    process->has_loop = has_loop;
    if (has_loop)
        assert_int_equal(pthread_create(&process->loop, NULL, run_loop, process), 0);
    return process;
}

/* The process is killed: nothing of it goes on, and nothing is given back. */
void process_kill(struct process *process)
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
    free(process->other);
    free(process->condition);
    free(process->anonymous);
    close(process->bell);
    pthread_mutex_destroy(&process->lock);
}

int process_begin(void **state)
{
    const struct memory_world world = { .now_ns = server_ns };

    (void)state;
    jumped_ns = 0;
    process_memory = memory_new(&world);
    memset(processes, 0, sizeof processes);
    return 0;
}

int process_end(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof processes / sizeof processes[0]; i++)
        process_kill(&processes[i]);
    memory_free(process_memory);
    return 0;
}

/* ---- what a thread does ------------------------------------------------------------------- */

uint64_t process_next_attempt(struct process *process)
{
    return __atomic_add_fetch(&process->last_attempt, 1, __ATOMIC_RELAXED);
}

struct dm_question process_question(struct process *process, enum dm_op op, uint64_t attempt)
{
    return (struct dm_question){ .op = op,
                                 .lease_ms = PROCESS_LEASE_MS,
                                 .place = process->place,
                                 .thread = dm_self_get()->serial,
                                 .attempt = attempt,
                                 .is_robust = true,
                                 .request = { .serial = 1, .sent_ns = dm_clock_boot_ns() } };
}

struct dm_answer process_ask(struct process *process, const struct dm_question *question)
{
    struct dm_deadline deadline = dm_deadline_in_ms(PROCESS_PATIENCE_MS);
    char reason[DM_REASON_ROOM] = "";

    return dm_store_ask(process->store, question, &deadline, reason);
}

void process_enter_list(struct process *process, struct process_waiter *waiter)
{
    waiter->self = dm_self_get();
    pthread_mutex_lock(&process->lock);
    waiter->next = process->waiters;
    process->waiters = waiter;
    pthread_mutex_unlock(&process->lock);
}

void process_leave_list(struct process *process, struct process_waiter *waiter)
{
    struct process_waiter **at = &process->waiters;

    pthread_mutex_lock(&process->lock);
    while (*at != waiter)
        at = &(*at)->next;
    *at = waiter->next;
    pthread_mutex_unlock(&process->lock);
}

/* True if the waiter has news; *ret_is_granted: and the lock. */
bool process_has_news(struct process *process, const struct process_waiter *waiter, bool *ret_is_granted)
{
    bool has;

    pthread_mutex_lock(&process->lock);
    *ret_is_granted = waiter->is_granted;
    has = waiter->is_granted || waiter->must_ask;
    pthread_mutex_unlock(&process->lock);
    return has;
}

/* Acquires, waiting as the process would: for a message, and asking again now and then. */
struct dm_answer process_acquire(struct process *process, uint64_t attempt)
{
    struct dm_deadline patience = dm_deadline_in_ms(PROCESS_PATIENCE_MS);
    struct process_waiter me = { .attempt = attempt };
    struct dm_answer answer = { .verdict = DM_SAYS_NOTHING };
    bool is_granted = false;

    process_enter_list(process, &me);
    while (dm_deadline_left_ns(&patience) > 0 && !is_granted) {
        struct dm_question question = process_question(process, DM_OP_ACQUIRE, attempt);
        struct dm_deadline soon = dm_deadline_in_ms(PROCESS_LEASE_MS / 3);

        question.acquire.may_queue = true;
        pthread_mutex_lock(&process->lock);
        me.must_ask = false;
        pthread_mutex_unlock(&process->lock);
        answer = process_ask(process, &question);
        if (answer.verdict != DM_SAYS_QUEUED && answer.verdict != DM_SAYS_NOTHING)
            break;
        while (dm_deadline_left_ns(&soon) > 0 && !process_has_news(process, &me, &is_granted))
            dm_store_sleep(process->store, process->place, DM_TELLS, &soon, PTHREAD_CANCEL_DISABLE);
        process_has_news(process, &me, &is_granted);
    }
    process_leave_list(process, &me);
    return me.is_granted ? me.answer : answer;
}

struct dm_answer process_try(struct process *process, uint64_t attempt)
{
    struct dm_question question = process_question(process, DM_OP_ACQUIRE, attempt);

    return process_ask(process, &question);
}

enum dm_verdict process_release(struct process *process, uint64_t attempt)
{
    struct dm_question question = process_question(process, DM_OP_RELEASE, attempt);
    enum dm_verdict verdict;

    do
        verdict = process_ask(process, &question).verdict;
    while (verdict == DM_SAYS_NOTHING);
    return verdict;
}
