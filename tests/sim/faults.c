/* SPDX-License-Identifier: BSD-2-Clause */
#include "faults.h"

#include "check.h"
#include "fiber.h"
#include "process.h"
#include "server.h"
#include "work.h"
#include "world.h"

static const struct {
    const char *name, *text;
} kinds[] = {
#define X(name, text) { #name, text },
    FAULT_KINDS(X)
#undef X
};

static uint32_t lease_ms;
static bool has_grace;
static int64_t last_step_ns, slow_until_ns;

const char *fault_name(enum fault_kind kind)
{
    return kinds[kind].name;
}

const char *fault_text(enum fault_kind kind)
{
    return kinds[kind].text;
}

/* ---- the plan ---------------------------------------------------------------------------- */

static enum fault_kind some_kind(bool is_unsafe, bool has_steps)
{
    static const enum fault_kind often[] = { FAULT_CUT_REQUESTS, FAULT_CUT_REPLIES, FAULT_KILL_CLIENT, FAULT_STOP, FAULT_KILL };
    enum fault_kind kind;

    if (chance_below(CHANCE_FAULTS, 3) == 0)
        return often[chance_below(CHANCE_FAULTS, 5)];
    do
        kind = (enum fault_kind)chance_below(CHANCE_FAULTS, is_unsafe ? FAULT_COUNT : FAULT_FIRST_UNSAFE);
    while (kind == FAULT_FIRST_UNSAFE || (!has_steps && kind == FAULT_STEP_LITTLE));
    return kind;
}

void faults_plan(struct fault_plan *plan, int64_t every_ns, int64_t until_ns, bool is_unsafe, bool has_steps)
{
    int64_t when_ns = 200 * MS;

    plan->count = 0;
    while (plan->count < FAULTS_MAX) {
        struct fault *fault = &plan->faults[plan->count];

        when_ns += chance_delay(CHANCE_FAULTS, every_ns, every_ns * 8);
        if (when_ns >= until_ns)
            return;
        fault->when_ns = when_ns;
        fault->kind = some_kind(is_unsafe, has_steps);
        fault->a = (uint32_t)chance_word(CHANCE_FAULTS);
        fault->b = chance_below(CHANCE_FAULTS, 1000);
        fault->is_left_out = false;
        plan->count++;
    }
}

/* ---- whom it hits ------------------------------------------------------------------------ */

static struct process *some_process(uint32_t number)
{
    struct process *process;
    uint32_t count = 0;

    for (process = processes(); process; process = process->next)
        count += process->is_alive;
    if (count == 0)
        return NULL;
    number %= count;
    for (process = processes(); process; process = process->next) {
        if (process->is_alive && number-- == 0)
            return process;
    }
    return NULL;
}

static void cut(enum way way, const struct fault *fault)
{
    struct link *link = server_link(fault->a);

    if (link)
        net_cut(link, way, fault->b * 3);
}

static void blacken(struct dm_conn *conn)
{
    struct link *link = conn_link(conn);

    if (!link)
        return;
    link->is_black = true;
    conn_look(conn);
}

static void half_open(const struct fault *fault)
{
    struct link *link = server_link(fault->a);

    if (link && link->conn)
        blacken(link->conn);
}

static void go_on(void *object, uint64_t number)
{
    (void)number;
    process_go_on(object);
}

/* From a moment to three leases. */
static void stop(const struct fault *fault)
{
    struct process *process = some_process(fault->a);

    if (!process || process->is_stopped)
        return;
    process_stop(process);
    world_at(world_now() + (int64_t)fault->b * 3 * lease_ms * DM_NS_PER_US, go_on, process, 0);
}

static void kill_process(const struct fault *fault, bool is_host)
{
    struct process *process = some_process(fault->a);

    if (!process)
        return;
    if (is_host) {
        blacken(process->runtime.commands);
        blacken(process->runtime.inbox);
    }
    process_kill(process);
}

static void cancel(const struct fault *fault)
{
    struct process *process = some_process(fault->a);
    struct thread *thread = process ? process->threads : NULL;

    for (uint32_t i = 0; thread && i < fault->b % 3; i++)
        thread = thread->next;
    if (thread && thread != process->loop_thread && thread->fiber)
        thread_cancel(thread);
}

/* ---- the server -------------------------------------------------------------------------- */

static void restart(enum keeps keeps, const struct fault *fault)
{
    server_restart(keeps, (int64_t)fault->b * MS);
    if (keeps != KEEPS_ALL)
        check_forgive(has_grace ? DATA_GRACED : keeps == KEEPS_NOTHING ? DATA_LOST : DATA_BACK);
}

static void empty_again(void *object, uint64_t number)
{
    (void)object;
    (void)number;
    server_set_full(false);
}

static void fill(const struct fault *fault)
{
    server_set_full(true);
    world_at(world_now() + (int64_t)fault->b * MS, empty_again, NULL, 0);
}

/* By less than the margin, and not twice in one lease: what I1 allows. */
static void step_little(const struct fault *fault)
{
    if (world_now() - last_step_ns < 2 * LEASE_MAX_MS * MS)
        return;
    last_step_ns = world_now();
    server_step_clock((int64_t)lease_ms * 1000 / 6 * fault->b / 1000);
}

static void step_far(const struct fault *fault)
{
    server_step_clock((int64_t)fault->b * fault->b * 100 + 1);
    check_forgive(CLOCK_STEPPED);
}

static void hurry_again(void *object, uint64_t number)
{
    (void)object;
    (void)number;
    if (world_now() >= slow_until_ns)
        net_set_delay(200 * DM_NS_PER_US, 4 * MS);
}

static void slow(const struct fault *fault)
{
    slow_until_ns = world_now() + (int64_t)fault->b * MS;
    net_set_delay((1 + fault->a % 20) * MS, 600 * MS);
    world_at(slow_until_ns, hurry_again, NULL, 0);
}

/* ---- they happen ------------------------------------------------------------------------- */

static void happen(void *object, uint64_t number)
{
    const struct fault *fault = object;

    (void)number;
    counters.faults++;
    counters.fault_kinds[fault->kind]++;
    world_note("FAULT %s %u %u", fault_name(fault->kind), fault->a, fault->b);
    switch (fault->kind) {
    case FAULT_CUT_REQUESTS:
        cut(TO_SERVER, fault);
        break;
    case FAULT_CUT_REPLIES:
        cut(TO_CLIENT, fault);
        break;
    case FAULT_KILL_CLIENT:
        server_kill_client(fault->a);
        break;
    case FAULT_HALF_OPEN:
        half_open(fault);
        break;
    case FAULT_SLOW:
        slow(fault);
        break;
    case FAULT_STOP:
        stop(fault);
        break;
    case FAULT_KILL:
        kill_process(fault, false);
        break;
    case FAULT_KILL_HOST:
        kill_process(fault, true);
        break;
    case FAULT_CANCEL:
        cancel(fault);
        break;
    case FAULT_FORK:
        work_add_process();
        break;
    case FAULT_STALL:
        server_stall((int64_t)fault->b * MS);
        break;
    case FAULT_LOADING:
        server_load((int64_t)fault->b * MS);
        break;
    case FAULT_FLUSH_SCRIPTS:
        server_flush_scripts();
        break;
    case FAULT_FULL:
        fill(fault);
        break;
    case FAULT_RESTART:
        restart(KEEPS_ALL, fault);
        break;
    case FAULT_COPY:
        server_copy();
        break;
    case FAULT_STEP_BACK:
        server_step_clock(-(int64_t)fault->b * fault->b * 10);
        break;
    case FAULT_STEP_LITTLE:
        step_little(fault);
        break;
    case FAULT_RESTART_EMPTY:
        restart(KEEPS_NOTHING, fault);
        break;
    case FAULT_FAIL_OVER:
        restart(KEEPS_COPY, fault);
        break;
    case FAULT_FLUSH_DATA:
        server_flush_data();
        check_forgive(DATA_LOST);
        break;
    case FAULT_EVICT:
        server_evict(fault->a);
        check_forgive(DATA_TORN);
        break;
    case FAULT_STEP_FAR:
        step_far(fault);
        break;
    case FAULT_FIRST_UNSAFE:
    case FAULT_COUNT:
        break;
    }
}

void faults_begin(const struct fault_plan *plan, uint32_t lease, bool is_graced)
{
    lease_ms = lease;
    has_grace = is_graced;
    last_step_ns = -4 * LEASE_MAX_MS * MS;
    slow_until_ns = 0;
    net_set_delay(200 * DM_NS_PER_US, 4 * MS);
    for (int i = 0; i < plan->count; i++) {
        if (!plan->faults[i].is_left_out)
            world_at(plan->faults[i].when_ns, happen, (void *)&plan->faults[i], 0);
    }
}

void faults_end(void)
{
    server_set_full(false);
    server_load(0);
    server_stall(0);
    if (server_right_clock())
        check_forgive(CLOCK_STEPPED);
    net_set_delay(200 * DM_NS_PER_US, 4 * MS);
    for (struct process *process = processes(); process; process = process->next)
        process_go_on(process);
}
