/* SPDX-License-Identifier: BSD-2-Clause */
#include "work.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "cluster.h"
#include "hooks.h"
#include "process/calls/acquire.h"
#include "process/calls/condition.h"
#include "process/calls/release.h"
#include "process/claims/fast.h"
#include "process/claims/steps.h"
#include "world.h"

/* The current work of a thread, for checks and for messages. */
struct job {
    const char *what;
    int name;
    bool is_asleep_on_condition;
    bool is_asleep_for_ever; /* without a deadline */
    bool owes_signal;        /* has made a ticket, and not signalled yet */
};

/* Data guarded by the mutex x<n>: tickets; threads wait for tickets on the condition c<n>. */
static struct {
    int tickets;
    bool is_closed;
} guarded[NAMES_MAX];

static struct work_plan plan;
static bool is_closing, is_closed, are_signals_excused;

static uint32_t below(uint32_t limit)
{
    return chance_below(CHANCE_WORK, limit);
}

/* ---- objects ----------------------------------------------------------------------------- */

/* In a Cluster each name has its own slot. */
static char group_of(int name)
{
    return cluster_is_there() ? (char)('a' + name) : 'g';
}

/* Names differ in kind; threads may differ in lease. */
static struct dm_target target_of(int name)
{
    static const int types[] = { PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK };
    struct dm_target target = { .type = types[name % 3],
                                .is_robust = plan.has_robust && name % 2 == 0,
                                .lease_ms = plan.lease_ms };

    target.own_lease_ms = plan.lease_ms;
    if (below(2) == 0)
        target.linger_ms = 1 + below(2 * plan.lease_ms);
    target.is_fair = below(8) == 0;
    if (plan.has_mixed_leases)
        target.lease_ms += below(plan.lease_ms);
    if (plan.has_mixed_leases && below(10) == 0)
        target.is_robust = !target.is_robust;
    if (target.lease_ms > LEASE_MAX_MS)
        target.lease_ms = LEASE_MAX_MS;
    snprintf(target.key, sizeof target.key, "n%c/x%d", group_of(name), name);
    return target;
}

static struct dm_condition condition_of(int name)
{
    struct dm_condition condition = { .is_anonymous = false };

    snprintf(condition.key, sizeof condition.key, "c%c/c%d", group_of(name), name);
    return condition;
}

static struct dm_runtime *runtime(void)
{
    return &process_current()->runtime;
}

static struct dm_claim *own_claim(const char *key)
{
    struct dm_claim *claim = NULL;
    struct dm_name *name;

    check_begin_look();
    name = dm_registry_find(&runtime()->registry, key);
    if (name)
        claim = dm_name_hold(name, thread_current()->self.serial);
    check_end_look();
    return claim;
}

/* Of the thread inside: the core hears of levels without the state lock later. */
static unsigned depth_of(const struct dm_claim *claim)
{
    if (!claim)
        return 0;
    return claim->tenure ? dm_tenure_depth(claim->tenure) : claim->hold.depth;
}

/* True if the caller certainly owns the mutex, as dmutex_remaining_np() says. */
static bool is_owner(const char *key)
{
    struct dm_claim *claim = own_claim(key);

    return claim && dm_hold_is_certain(&claim->hold, dm_clock_boot_ns());
}

static void say(const char *what, int name)
{
    thread_current()->job->what = what;
    thread_current()->job->name = name;
    counters.operations++;
}

/* ---- calls ------------------------------------------------------------------------------- */

/* Usually makes the mutex consistent after a death; otherwise the next unlock makes it unusable. */
static void mend(const struct dm_target *target)
{
    counters.deaths++;
    if (below(8))
        dm_release_consistent(runtime(), target);
}

static void note_result(const char *what, int name, int result)
{
    world_note("p%d t%d %s x%d: %d", process_current()->number, (int)thread_current()->self.serial, what, name, result);
}

/* As dmutex_token_np(): a quorum's token is known once a majority has it. */
static struct dm_claim *ask_token(const struct dm_target *target, struct dm_claim *claim)
{
    if (!claim->hold.is_token_soft || below(2))
        return claim;
    dm_release_reclaim(runtime(), claim->hold.serial);
    return own_claim(target->key);
}

/* Checks the result of a call; true: the caller has the mutex. */
static bool came_with_mutex(int name, const struct dm_target *target, int result)
{
    struct dm_claim *claim = own_claim(target->key);

    if (result != 0 && result != EOWNERDEAD && result != ETIMEDOUT)
        return false;
    if (!claim) {
        world_break("p%d: a call returned %d without the mutex x%d", process_current()->number, result, name);
        return false;
    }
    claim = ask_token(target, claim);
    if (claim)
        check_entered(name, claim);
    if (result == EOWNERDEAD)
        mend(target);
    return true;
}

/* Makes a name that is not recoverable usable again, once no thread uses the name. */
static void recover(const struct dm_target *target)
{
    struct dm_deadline deadline = dm_runtime_call_deadline(runtime());
    struct dm_question drop = { .op = DM_OP_DROP };
    char reason[DM_REASON_ROOM] = "";
    struct dm_name *name;

    check_begin_look();
    name = dm_registry_find(&runtime()->registry, target->key);
    check_end_look();
    if (!name)
        return;
    drop.place = name->place;
    dm_store_ask(runtime()->store, &drop, &deadline, reason);
}

/* The object that the target was read from, as far as the fast path reads objects. */
static dmutex_t object_of(const struct dm_target *target)
{
    dmutex_t mutex = { .dm_lease_ms = target->own_lease_ms,
                       .dm_type = (uint8_t)target->type,
                       .dm_robust = target->is_robust,
                       .dm_fairness = target->is_fair,
                       .dm_hash = dm_fast_hash(target->key) };

    snprintf(mutex.dm_name, sizeof mutex.dm_name, "%s", target->key + 1);
    return mutex;
}

/* Others may have the state lock for a while: a loss that they find then is not the misled thread's. */
static void put_back(struct thread *thread)
{
    check_misled(thread, dm_self_fast.misled);
    thread_pass(chance_delay(CHANCE_THREADS, 20 * DM_NS_PER_MS, DM_NS_PER_S));
    thread->misled_token = 0;
    dm_state_lock();
    thread->is_seen_inside = false;
    dm_step_put_back(runtime());
    dm_state_unlock();
}

/* The way of api/mutex.c: without the state lock if possible.  A hold that is entered so is certain. */
static bool enter_fast(int name, const struct dm_target *target)
{
    struct thread *thread = thread_current();
    dmutex_t mutex = object_of(target);
    bool is_inside;

    thread->is_fast = thread->is_entering = true;
    thread->has_looked = false;
    is_inside = dm_fast_lock(&mutex);
    thread->is_fast = thread->is_entering = false;
    counters.fast_locks += is_inside;
    counters.fast_mistakes += !is_inside && thread->has_looked;
    if (is_inside && !is_owner(target->key))
        world_break("I1: p%d enters x%d without the state lock, and its hold has ended", process_current()->number,
                    name);
    if (dm_self_fast.misled)
        put_back(thread);
    return is_inside;
}

static int acquire(int name, const struct dm_target *target, bool may_wait, const struct dm_deadline *deadline)
{
    if (deadline->is_endless && enter_fast(name, target))
        return 0;
    return dm_acquire(runtime(), target, may_wait, deadline);
}

static int release(const struct dm_target *target)
{
    struct thread *thread = thread_current();
    dmutex_t mutex = object_of(target);
    bool is_done;

    thread->is_fast = true;
    is_done = dm_fast_unlock(&mutex);
    thread->is_fast = false;
    counters.fast_unlocks += is_done;
    return is_done ? 0 : dm_release(runtime(), target->key);
}

static bool lock(int name, const struct dm_target *target)
{
    uint32_t how = below(8);
    struct dm_deadline deadline = how < 3 ? dm_deadline_in_ms(below(plan.lease_ms * 3 / 2)) : dm_deadline_endless;
    unsigned locks = thread_current()->locks;
    int result;

    say(how == 0 ? "trylock" : how < 3 ? "timedlock" : "lock", name);
    result = acquire(name, target, how != 0, &deadline);
    counters.brief_locks += result == 0 && thread_current()->locks - locks == 2;
    note_result(thread_current()->job->what, name, result);
    if (result == ENOTRECOVERABLE)
        recover(target);
    if (result == 0 || result == EOWNERDEAD) {
        thread_current()->levels[name] = 1;
        return came_with_mutex(name, target, result);
    }
    counters.refusals++;
    return false;
}

static void unlock(int name, const struct dm_target *target)
{
    unsigned locks = thread_current()->locks;
    int result;

    say("unlock", name);
    result = release(target);
    if (result == 0)
        thread_current()->levels[name]--;
    else
        thread_current()->levels[name] = 0; /* lost: one unlock clears all levels */
    counters.brief_unlocks += result == 0 && thread_current()->locks - locks == 2;
    note_result("unlock", name, result);
}

static void hold(int64_t usual_ns)
{
    thread_current()->job->what = "holding";
    thread_pass(chance_delay(CHANCE_WORK, usual_ns, plan.lease_ms * MS * 3 / 2));
}

static int wait_on(int name, const struct dm_target *target, bool is_endless)
{
    struct dm_condition condition = condition_of(name);
    struct dm_deadline deadline = is_endless ? dm_deadline_endless : dm_deadline_in_ms(below(plan.lease_ms * 2));
    struct job *job = thread_current()->job;
    struct dm_claim *claim = own_claim(target->key);
    unsigned depth = depth_of(claim);
    int result;

    say("cond_wait", name);
    counters.waits++;
    job->is_asleep_on_condition = true;
    job->is_asleep_for_ever = is_endless;
    result = dm_condition_wait(runtime(), &condition, target, &deadline, PTHREAD_CANCEL_ENABLE);
    job->is_asleep_on_condition = false;
    note_result("cond_wait", name, result);
    if (came_with_mutex(name, target, result) && own_claim(target->key) && depth_of(own_claim(target->key)) != depth)
        world_break("I7: a wait on c%d returns at depth %u, not %u", name, depth_of(own_claim(target->key)), depth);
    return result;
}

static int signal_one(int name, bool is_broadcast)
{
    struct dm_condition condition = condition_of(name);
    int result;

    say(is_broadcast ? "broadcast" : "signal", name);
    counters.signals++;
    result = dm_condition_signal(runtime(), &condition, is_broadcast);
    note_result(thread_current()->job->what, name, result);
    if (result != 0)
        are_signals_excused = true;
    return result;
}

/* Locks once more; if the hold has been lost, a new hold begins. */
static bool relock(int name, const struct dm_target *target)
{
    int result;

    counters.operations++;
    result = acquire(name, target, true, &dm_deadline_endless);
    thread_current()->levels[name] += result == 0 || result == EOWNERDEAD;
    if (result == EOWNERDEAD)
        mend(target);
    return result == 0 || result == EOWNERDEAD;
}

/* ---- jobs -------------------------------------------------------------------------------- */

/* Holds a name for a short time, even if the hold is lost. */
static void visit(int name)
{
    struct dm_target target = target_of(name);

    if (!lock(name, &target))
        return;
    hold(plan.hold_ns);
    if (below(10) == 0)
        dm_release_renew(runtime(), target.key);
    unlock(name, &target);
}

static void visit_deeply(int name)
{
    struct dm_target target = target_of(name);
    int depth = 0;

    target.type = PTHREAD_MUTEX_RECURSIVE;
    while (depth < 3 && (depth == 0 ? lock(name, &target) : relock(name, &target)))
        depth++;
    if (depth)
        hold(plan.hold_ns);
    for (; depth > 0; depth--)
        unlock(name, &target);
}

/* Holds two names, locked in order. */
static void visit_two(int name)
{
    struct dm_target target = target_of(name);

    if (!lock(name, &target))
        return;
    if (name + 1 < plan.names)
        visit(name + 1);
    unlock(name, &target);
}

/* Waits until there is a ticket, or some time has passed, or no thread will hand out tickets any more. */
static void consume(int name)
{
    struct dm_target target = target_of(name);
    bool is_endless = below(3) > 0;
    int result = 0;

    if (!lock(name, &target))
        return;
    while (is_owner(target.key) && guarded[name].tickets == 0 && !guarded[name].is_closed && result == 0)
        result = wait_on(name, &target, is_endless);
    if (!is_owner(target.key))
        are_signals_excused = true; /* hold lost, after a signal perhaps: the signal's ticket stays */
    else if (guarded[name].tickets > 0 && result != ETIMEDOUT) /* a consumer that gets ETIMEDOUT does not look again */
        guarded[name].tickets--;
    unlock(name, &target);
}

static void produce(int name)
{
    struct dm_target target = target_of(name);
    int count = 1 + (below(4) == 0), given = 0;
    bool is_broadcast = below(4) == 0, is_after = below(2);

    if (!lock(name, &target))
        return;
    if (is_owner(target.key) && guarded[name].tickets < 3) {
        guarded[name].tickets += count;
        given = count;
        thread_current()->job->owes_signal = true;
    }
    if (is_after)
        unlock(name, &target);
    for (int i = 0; i < (is_broadcast && given ? 1 : given); i++)
        signal_one(name, is_broadcast);
    thread_current()->job->owes_signal = false;
    if (!is_after)
        unlock(name, &target);
}

static void (*some_job(void))(int name)
{
    static void (*const usual[])(int) = { visit, visit, visit, visit_deeply, visit_two };
    static void (*const with_conditions[])(
        int) = { visit, visit_deeply, visit_two, consume, consume, produce, produce };

    return plan.has_conditions ? with_conditions[below(7)] : usual[below(5)];
}

/* ---- threads ----------------------------------------------------------------------------- */

static void work(struct thread *thread)
{
    while (world_now() < plan.until_ns) {
        int name = (int)below((uint32_t)plan.names);

        some_job()(name);
        thread->job->what = "thinking";
        thread_pass(chance_delay(CHANCE_WORK, plan.think_ns, plan.think_ns * 20));
        if (below(hooks_has(LINE_TAKES_NONE_BACK) ? 10 : 100) == 0)
            process_exit();
        if (below(200) == 0) { /* the thread ends as an owner, and a new thread takes the place */
            struct dm_target target = target_of(name);

            lock(name, &target);
            thread_new(thread->process, thread->run)->job = world_new(sizeof *thread->job);
            return;
        }
    }
    thread->job->what = "done";
}

static void add_thread(struct process *process, void (*run)(struct thread *thread))
{
    struct thread *thread = thread_new(process, run);

    thread->job = world_new(sizeof *thread->job);
    thread->job->what = "beginning";
}

struct process *work_add_process(void)
{
    struct process *process = process_new();

    for (int i = 0; i < plan.threads; i++)
        add_thread(process, work);
    return process;
}

void work_begin(const struct work_plan *wanted)
{
    plan = *wanted;
    memset(guarded, 0, sizeof guarded);
    is_closing = is_closed = are_signals_excused = false;
    for (int i = 0; i < plan.processes; i++)
        work_add_process();
}

/* ---- the end ----------------------------------------------------------------------------- */

static bool is_left(const struct thread *thread)
{
    return thread->fiber && thread->job;
}

int work_threads_left(const char **ret_what)
{
    static char what[80];
    int count = 0;

    what[0] = '\0';
    for (struct process *process = processes(); process; process = process->next) {
        for (const struct thread *thread = process->threads; process->is_alive && thread; thread = thread->next) {
            if (!is_left(thread))
                continue;
            count++;
            snprintf(what, sizeof what, "p%d t%d: %s x%d", process->number, (int)thread->self.serial, thread->job->what,
                     thread->job->name);
        }
    }
    *ret_what = what;
    return count;
}

static void close_all(struct thread *thread)
{
    for (int name = 0; name < plan.names; name++) {
        struct dm_target target = target_of(name);
        int result;

        thread->job->what = "closing";
        do { /* tries again a name that is not recoverable, or became so just now */
            recover(&target);
            result = dm_acquire(runtime(), &target, true, &dm_deadline_endless);
            thread_pass(MS);
        } while (result != 0 && result != EOWNERDEAD);
        if (result == EOWNERDEAD)
            dm_release_consistent(runtime(), &target);
        guarded[name].is_closed = true;
        while (signal_one(name, true) == ENOLCK) /* where replicas are slow to confirm */
            thread_pass(MS);
        dm_release(runtime(), target.key);
    }
    is_closed = true;
}

void work_close(void)
{
    struct process *process;

    if (is_closing)
        return;
    is_closing = true;
    process = process_new();
    add_thread(process, close_all);
}

bool work_is_closed(void)
{
    return is_closed;
}

void work_excuse_signals(void)
{
    are_signals_excused = true;
}

void work_note_end(const struct process *process)
{
    for (const struct thread *thread = process->threads; thread; thread = thread->next)
        are_signals_excused = are_signals_excused || (is_left(thread) && thread->job->owes_signal);
}

void work_check_sleepers(void)
{
    int asleep[NAMES_MAX] = { 0 };

    for (struct process *process = processes(); process; process = process->next) {
        for (const struct thread *thread = process->threads; process->is_alive && thread; thread = thread->next) {
            if (is_left(thread) && thread->job->is_asleep_on_condition && thread->job->is_asleep_for_ever)
                asleep[thread->job->name]++;
        }
    }
    for (int name = 0; name < plan.names; name++) {
        if (asleep[name] && guarded[name].tickets > 0 && !are_signals_excused && !check_is_torn())
            world_break("I7: a thread sleeps on c%d, and %d tickets are there", name, guarded[name].tickets);
    }
}
