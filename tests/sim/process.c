/* SPDX-License-Identifier: BSD-2-Clause */
#include "process.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/error.h"
#include "base/poll.h"
#include "check.h"
#include "fiber.h"
#include "plain.h"
#include "process/claims/claim.h"
#include "process/claims/fast.h"
#include "process/keep/gate.h"
#include "process/keep/pump.h"
#include "process/life/exit.h"
#include "registers.h"
#include "sockets.h"
#include "store/calls.h"
#include "work.h"
#include "world.h"

/* An event for a stopped process; waits in the kernel, in order of arrival. */
struct delivery {
    struct delivery *next;
    void (*what)(void *object, uint64_t number);
    void *object;
};

static struct process *first, *last;
static struct process *current_process;
static struct thread *current_thread;
static int count;

/* Turns leak checks off: a killed process frees no memory, here as well. */
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
    return 1;
}

/* ---- the running thread ------------------------------------------------------------------ */

struct process *process_current(void)
{
    return current_process;
}

struct thread *thread_current(void)
{
    return current_thread;
}

struct process *process_enter(struct process *process)
{
    struct process *before = current_process;

    current_process = process;
    return before;
}

void process_leave(struct process *before)
{
    current_process = before;
}

static void resume(void *object, uint64_t turn)
{
    struct thread *thread = object;

    if (!thread->fiber || thread->turn != turn)
        return;
    if (thread->process->is_stopped) {
        thread->is_late = true;
        return;
    }
    thread->is_waiting = thread->is_late = false;
    current_thread = thread;
    current_process = thread->process;
    dm_self_fast = thread->fast;
    dm_alarm_is_own = thread == thread->process->loop_thread;
    if (fiber_resume(thread->fiber))
        thread->fiber = NULL;
    thread->fast = dm_self_fast;
    dm_alarm_is_own = false;
    current_thread = NULL;
    current_process = NULL;
}

static void pass(struct thread *thread, int64_t ns)
{
    thread->is_waiting = false;
    world_at(world_now() + ns, resume, thread, ++thread->turn);
    fiber_give_way();
}

void thread_pass(int64_t ns)
{
    current_thread->locks_awake = 0;
    pass(current_thread, ns);
}

void thread_wait(int64_t until_ns)
{
    struct thread *thread = current_thread;

    thread->is_waiting = true;
    thread->locks_awake = 0;
    thread->turn++;
    if (until_ns != DM_NEVER)
        world_at(process_true_ns(thread->process, until_ns), resume, thread, thread->turn);
    fiber_give_way();
}

void thread_wake(struct thread *thread)
{
    if (!thread->is_waiting)
        return;
    thread->is_waiting = false;
    world_at(world_now() + chance_delay(CHANCE_THREADS, 20 * DM_NS_PER_US, 10 * MS), resume, thread, ++thread->turn);
}

void thread_preempt(void)
{
    if (current_thread && chance_one_in(CHANCE_THREADS, 16))
        pass(current_thread, chance_delay(CHANCE_THREADS, 50 * DM_NS_PER_US, 20 * MS));
}

/* ---- threads ----------------------------------------------------------------------------- */

static void (*report_end)(struct dm_self *self);

static void run_thread(void *user)
{
    struct thread *thread = user;

    thread->run(thread);
    thread_end();
}

static void unwound(void *user)
{
    (void)user;
    thread_end();
}

struct thread *thread_new(struct process *process, void (*run)(struct thread *thread))
{
    struct thread *thread = world_new(sizeof *thread);

    thread->self.serial = thread->fast.serial = ++process->last_serial;
    thread->process = process;
    thread->run = run;
    thread->next = process->threads;
    process->threads = thread;
    thread->fiber = fiber_new(run_thread, unwound, thread);
    world_at(world_now() + chance_delay(CHANCE_THREADS, MS, 20 * MS), resume, thread, ++thread->turn);
    return thread;
}

/* Reports the thread's end to the library; after the call the fiber returns, and the thread is over. */
void thread_end(void)
{
    if (report_end && current_thread != current_process->loop_thread)
        report_end(&current_thread->self);
}

void thread_cancel(struct thread *thread)
{
    thread->is_cancelled = true;
    if (thread->is_cancellable)
        thread_wake(thread);
}

/* ---- base/self.c ------------------------------------------------------------------------ */

struct dm_self *dm_self_get(void)
{
    return &current_thread->self;
}

/*
 * The library's handlers, of pthread_cleanup_push() without -fexceptions, are frames to jump to.  libc lists them for
 * the real thread, so each simulated thread has its own list.  Called by the linker's --wrap.
 */
void __wrap___pthread_register_cancel(__pthread_unwind_buf_t *frame);
void __wrap___pthread_unregister_cancel(__pthread_unwind_buf_t *frame);
_Noreturn void __wrap___pthread_unwind_next(__pthread_unwind_buf_t *frame);

void __wrap___pthread_register_cancel(__pthread_unwind_buf_t *frame)
{
    frame->__pad[0] = current_thread->cleanup;
    current_thread->cleanup = frame;
}

void __wrap___pthread_unregister_cancel(__pthread_unwind_buf_t *frame)
{
    current_thread->cleanup = frame->__pad[0];
}

static _Noreturn void unwind(struct thread *thread)
{
    __pthread_unwind_buf_t *frame = thread->cleanup;
    jmp_buf there = { { .__mask_was_saved = 0 } };

    if (!frame)
        fiber_unwind();
    thread->cleanup = frame->__pad[0];
    counters.cleanups++;
    memcpy(there->__jmpbuf, frame->__cancel_jmp_buf->__cancel_jmp_buf, sizeof there->__jmpbuf);
    longjmp(there, 1);
}

/* A handler has run. */
void __wrap___pthread_unwind_next(__pthread_unwind_buf_t *frame)
{
    (void)frame;
    unwind(current_thread);
}

void thread_heed_cancel(void)
{
    struct thread *thread = current_thread;

    if (!thread->is_cancelled || !thread->is_cancellable)
        return;
    thread->is_cancelled = thread->is_cancellable = false;
    unwind(thread);
}

bool dm_self_sleep(struct dm_self *self, const struct dm_deadline *deadline)
{
    check_no_lock("dm_self_sleep");
    for (;;) {
        thread_heed_cancel();
        if (dm_self_take_post(self))
            return true;
        if (dm_deadline_left_ns(deadline) == 0)
            return false;
        thread_wait(deadline->is_endless ? DM_NEVER : dm_clock_boot_ns() + dm_deadline_left_ns(deadline));
    }
}

void dm_self_wake(struct dm_self *self)
{
    struct thread *thread = (struct thread *)(void *)self;

    thread->posts++;
    if (thread->polled_count == 0)
        thread_wake(thread);
    else if (self->bell)
        dm_bell_ring(self->bell);
}

bool dm_self_listen(struct dm_self *self, int *bell)
{
    self->bell = bell;
    return current_thread->posts > 0;
}

void dm_self_stop_listening(struct dm_self *self)
{
    self->bell = NULL;
}

bool dm_self_take_post(struct dm_self *self)
{
    struct thread *thread = (struct thread *)(void *)self;

    if (thread->posts == 0)
        return false;
    thread->posts--;
    return true;
}

void dm_self_end_process(void)
{
    if (current_process) /* NULL: the simulator exits */
        current_process->ender = current_thread;
}

__thread struct dm_self_fast dm_self_fast;

/*
 * Called through the linker's --wrap: all simulated processes share one table of tenures, and each must find its own.
 */
uint32_t __wrap_dm_fast_hash(const char *key);
uint32_t __real_dm_fast_hash(const char *key);

uint32_t __wrap_dm_fast_hash(const char *key)
{
    uint32_t hash = __real_dm_fast_hash(key) ^ (uint32_t)current_process->number * 0x9e3779b9u;

    return hash ? hash : 1;
}

/* A tenure that one process has put back, with a thread between its swap and its look, must not become another's. */
struct dm_tenure *__wrap_dm_fast_take(void);

struct dm_tenure *__wrap_dm_fast_take(void)
{
    struct dm_tenure *tenure = aligned_alloc(_Alignof(struct dm_tenure), sizeof *tenure);

    if (!tenure)
        abort();
    return memset(tenure, 0, sizeof *tenure);
}

bool dm_self_is_ending(void)
{
    return current_process->ender != NULL;
}

bool dm_self_must_park(void)
{
    return current_process->ender && current_process->ender != current_thread;
}

void dm_self_end_questions(void)
{
    if (current_process)
        current_process->are_questions_over = true;
}

bool dm_self_is_given_up(void)
{
    return current_process->are_questions_over && dm_self_must_park();
}

void dm_self_park(void)
{
    for (;;)
        thread_wait(DM_NEVER);
}

bool dm_self_on_thread_end(void (*report)(struct dm_self *self))
{
    report_end = report;
    return true;
}

void dm_self_fork_child(void)
{
}

/* Called by the linker's --wrap: notes if the calling thread can be cancelled during a sleep. */
int __wrap_pthread_setcancelstate(int state, int *ret_before);

int __wrap_pthread_setcancelstate(int state, int *ret_before)
{
    struct thread *thread = current_thread;

    if (ret_before)
        *ret_before = thread->is_cancellable ? PTHREAD_CANCEL_ENABLE : PTHREAD_CANCEL_DISABLE;
    thread->is_cancellable = state == PTHREAD_CANCEL_ENABLE;
    return 0;
}

/* ---- process/keep/gate.c and loop.c ------------------------------------------------------ */

void dm_gate_leave(void)
{
}

void dm_gate_enter(void)
{
}

static int64_t left_ns(int64_t due_ns)
{
    int64_t now_ns = dm_clock_boot_ns();

    return due_ns == DM_NEVER ? DM_NEVER : due_ns > now_ns ? due_ns - now_ns : 0;
}

/* False: only the bell has rung. */
static bool has_come(const struct dm_watch *watch)
{
    for (int i = 1; i < watch->count; i++) {
        if (watch->polled[i].revents)
            return true;
    }
    return watch->due_ns <= dm_clock_boot_ns();
}

static void run_loop(struct thread *thread)
{
    struct loop *loop = &thread->process->loop;
    struct dm_runtime *runtime = &thread->process->runtime;
    struct dm_watch watch;

    dm_watch_init(&watch);
    for (;;) {
        dm_watch_clear(&watch);
        dm_watch_poll(&watch, loop->alarm.bell, POLLIN);
        dm_store_watch(runtime->store, &watch);
        dm_watch_until(&watch, loop->alarm.due_ns);
        dm_store_note_look(runtime->store, watch.due_ns);
        dm_poll(watch.polled, (unsigned)watch.count, left_ns(watch.due_ns));
        if (watch.polled[0].revents)
            dm_bell_answer(&loop->alarm.bell);
        if (!has_come(&watch))
            continue;
        dm_store_turn(runtime->store);
        if (loop->alarm.due_ns <= dm_clock_boot_ns())
            dm_pump_run(runtime);
    }
}

/* ---- a process --------------------------------------------------------------------------- */

/*
 * The rate of a clock: half of the clocks are right, the other half within a fifth of the server's clock.  On registers
 * one process's clock is measured by another's, so each is within a tenth.
 */
static int64_t some_rate(void)
{
    int64_t most = registers_are_there() ? 100000 : 180000;

    return chance_one_in(CHANCE_WORK, 2) ? 1000000 : 1000000 - most + chance_below(CHANCE_WORK, (uint32_t)most * 2);
}

struct process *process_new(void)
{
    struct process *process = world_new(sizeof *process), *before;

    process->number = ++count;
    process->is_alive = true;
    process->clock_ns = (1 + chance_below(CHANCE_WORK, 100000)) * DM_NS_PER_S;
    process->rate_ppm = world_rate() ? world_rate() : some_rate();
    if (last)
        last->next = process;
    else
        first = process;
    last = process;
    before = process_enter(process);
    process_make_runtime(process);
    process->loop_thread = thread_new(process, run_loop);
    process_leave(before);
    return process;
}

struct process *processes(void)
{
    return first;
}

/* No pin keeps the name any more. */
static bool let_go(struct dm_name *name, void *user)
{
    (void)user;
    name->pins = 0;
    name->mutex = NULL;
    return false;
}

/* Frees the registry's memory, also claims, and names in use. */
static void free_registry(struct dm_registry *registry)
{
    check_begin_look();
    dm_claim_drop_all(registry);
    dm_registry_search(registry, let_go, NULL);
    dm_registry_empty(registry);
    check_end_look();
    dm_registry_clear(registry);
}

void process_kill(struct process *process)
{
    if (!process->is_alive)
        return;
    work_note_end(process);
    process->is_alive = false;
    process->is_stopped = false;
    for (struct thread *thread = process->threads; thread; thread = thread->next) {
        thread->turn++;
        if (thread->fiber)
            fiber_forget(thread->fiber);
        thread->fiber = NULL;
    }
    for (int i = 0; i < process->link_count; i++)
        sockets_free(process->links[i]);
    dm_store_free_unused(process->runtime.store);
    process->runtime.store = NULL;
    free_registry(&process->runtime.registry);
}

static void exit_now(void *object, uint64_t number)
{
    (void)number;
    process_kill(object);
}

void process_exit(void)
{
    struct process *process = current_process;

    world_note("p%d exits", process->number);
    dm_exit_process(&process->runtime);
    world_at(world_now(), exit_now, process, 0);
    thread_wait(DM_NEVER);
}

void process_stop(struct process *process)
{
    process->is_stopped = true;
}

/* ---- while stopped --------------------------------------------------------------------- */

static void deliver_all(struct process *process)
{
    struct delivery *delivery;

    while (process->is_alive && !process->is_stopped && (delivery = process->deliveries) != NULL) {
        process->deliveries = delivery->next;
        if (!process->deliveries)
            process->last_delivery = &process->deliveries;
        delivery->what(delivery->object, 0);
    }
}

void process_deliver(struct process *process, void (*what)(void *object, uint64_t number), void *object)
{
    struct delivery *delivery;

    if (!process->is_stopped && !process->deliveries) {
        what(object, 0);
        return;
    }
    delivery = world_new(sizeof *delivery);
    *delivery = (struct delivery){ .what = what, .object = object };
    if (!process->deliveries)
        process->last_delivery = &process->deliveries;
    *process->last_delivery = delivery;
    process->last_delivery = &delivery->next;
}

static void go_on(void *object, uint64_t number)
{
    (void)number;
    deliver_all(object);
}

void process_go_on(struct process *process)
{
    if (!process->is_alive || !process->is_stopped)
        return;
    process->is_stopped = false;
    for (struct thread *thread = process->threads; thread; thread = thread->next) {
        if (thread->is_late)
            world_at(world_now() + chance_delay(CHANCE_THREADS, 50 * DM_NS_PER_US, 20 * MS), resume, thread,
                     thread->turn);
    }
    world_at(world_now() + chance_delay(CHANCE_THREADS, 50 * DM_NS_PER_US, 20 * MS), go_on, process, 0);
}

/* ---- all --------------------------------------------------------------------------------- */

void processes_begin(void)
{
    first = last = NULL;
    count = 0;
    dm_fast_fork_child();
}

void processes_end(void)
{
    for (struct process *process = first; process; process = process->next)
        process_kill(process);
    current_process = NULL;
}
