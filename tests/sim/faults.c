/* SPDX-License-Identifier: BSD-2-Clause */
#include "faults.h"

#include "check.h"
#include "cluster.h"
#include "fiber.h"
#include "plain.h"
#include "process.h"
#include "registers.h"
#include "sentinels.h"
#include "server.h"
#include "work.h"
#include "world.h"

static uint32_t lease_ms;
static bool has_grace;
static int64_t last_step_ns, last_switch_ns, slow_until_ns, lossy_until_ns, promoted_until_ns;

/* ---- the plan ---------------------------------------------------------------------------- */

static enum fault_kind some_kind(bool is_unsafe, bool has_steps)
{
    static const enum fault_kind often[] = { FAULT_CUT_REQUESTS, FAULT_CUT_REPLIES, FAULT_KILL_CLIENT, FAULT_STOP,
                                             FAULT_KILL };
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

void faults_have_copies(struct fault_plan *plan)
{
    for (int i = 0; i < plan->count; i++) {
        plan->faults[i].kind = i % 2 ? FAULT_FAIL_OVER : FAULT_COPY;
        plan->faults[i].b %= 20;
    }
}

/* ---- faults of connections and processes ------------------------------------------------- */

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

static void cut_requests(const struct fault *fault)
{
    cut(TO_SERVER, fault);
}

static void cut_replies(const struct fault *fault)
{
    cut(TO_CLIENT, fault);
}

static void kill_client(const struct fault *fault)
{
    server_kill_client(fault->a);
}

static void half_open(const struct fault *fault)
{
    struct link *link = server_link(fault->a);

    if (link)
        net_blacken(link);
}

static void go_on(void *object, uint64_t number)
{
    (void)number;
    process_go_on(object);
}

/* Stops a process for a moment up to three leases. */
static void stop(const struct fault *fault)
{
    struct process *process = some_process(fault->a);

    if (!process || process->is_stopped)
        return;
    process_stop(process);
    world_at(world_now() + (int64_t)fault->b * 3 * lease_ms * DM_NS_PER_US, go_on, process, 0);
}

static void kill_process(const struct fault *fault)
{
    struct process *process = some_process(fault->a);

    if (process)
        process_kill(process);
}

static void kill_host(const struct fault *fault)
{
    struct process *process = some_process(fault->a);

    if (!process)
        return;
    net_blacken_all(process);
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

static void fork_one(const struct fault *fault)
{
    (void)fault;
    work_add_process();
}

/* ---- the server -------------------------------------------------------------------------- */

static void stall(const struct fault *fault)
{
    server_stall((int64_t)fault->b * MS);
}

static void load(const struct fault *fault)
{
    server_load((int64_t)fault->b * MS);
}

static void flush_scripts(const struct fault *fault)
{
    (void)fault;
    server_flush_scripts();
}

static void copy(const struct fault *fault)
{
    (void)fault;
    server_copy();
}

static void restart(const struct fault *fault)
{
    server_restart(KEEPS_ALL, (int64_t)fault->b * MS);
}

static void restart_empty(const struct fault *fault)
{
    server_restart(KEEPS_NOTHING, (int64_t)fault->b * MS);
    check_forgive(has_grace ? DATA_GRACED : DATA_LOST);
}

static void fail_over(const struct fault *fault)
{
    server_restart(KEEPS_COPY, (int64_t)fault->b * MS);
    work_excuse_signals();
    check_forgive(has_grace ? DATA_GRACED : DATA_BACK);
}

/*
 * The library sends nothing to a server that has not said for a second that it is the same.  A promotion and the way
 * back within the second, and the request's time on its way, are not seen if one of them loses data: no promise covers
 * such a case.
 */
#define UNSEEN_NS (1500 * MS)

static void promote(const struct fault *fault)
{
    (void)fault;
    if (world_now() < lossy_until_ns)
        return;
    promoted_until_ns = world_now() + UNSEEN_NS;
    server_promote(KEEPS_ALL);
}

static void promote_old(const struct fault *fault)
{
    (void)fault;
    if (world_now() < lossy_until_ns || world_now() < promoted_until_ns)
        return;
    lossy_until_ns = world_now() + UNSEEN_NS;
    server_promote(KEEPS_COPY);
    work_excuse_signals();
    check_forgive(has_grace ? DATA_GRACED : DATA_BACK);
}

static void promote_back(const struct fault *fault)
{
    server_promote_and_back((int64_t)fault->b * MS / 2);
    work_excuse_signals();
    check_forgive(has_grace ? DATA_GRACED : DATA_BACK);
}

static void end_monitor(void *object, uint64_t server)
{
    (void)object;
    server_choose((uint32_t)server);
    server_set_monitor(false);
}

static void monitor(const struct fault *fault)
{
    server_set_monitor(true);
    world_at(world_now() + (int64_t)fault->b * 3 * MS, end_monitor, NULL, server_number());
}

static void flush_data(const struct fault *fault)
{
    (void)fault;
    server_flush_data();
    check_forgive(DATA_LOST);
}

static void evict(const struct fault *fault)
{
    server_evict(fault->a);
    check_forgive(DATA_TORN);
}

static void empty_again(void *object, uint64_t server)
{
    (void)object;
    server_choose((uint32_t)server);
    server_set_full(false);
}

static void fill(const struct fault *fault)
{
    server_set_full(true);
    world_at(world_now() + (int64_t)fault->b * MS, empty_again, NULL, server_number());
}

static void step_back(const struct fault *fault)
{
    server_step_clock(-(int64_t)fault->b * fault->b * 10);
    check_forgive(CLOCK_SET_BACK);
}

/* Steps the clock by less than the margin, and not twice in one lease: I1 allows such steps. */
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

/* ---- faults happen ----------------------------------------------------------------------- */

static const struct {
    const char *name, *text;
    void (*happens)(const struct fault *fault);
} kinds[] = {
#define X(name, happens, text) { #name, text, happens },
    FAULT_KINDS(X)
#undef X
};

const char *fault_name(enum fault_kind kind)
{
    return kinds[kind].name;
}

const char *fault_text(enum fault_kind kind)
{
    return kinds[kind].text;
}

static int64_t disturbed_until_ns;

static void calm_registers(void *object, uint64_t number)
{
    (void)object;
    (void)number;
    if (world_now() >= disturbed_until_ns)
        registers_disturb(0);
}

static void empty_registers(void *object, uint64_t number)
{
    (void)object;
    (void)number;
    registers_fill(false);
}

/* The plain store knows these faults; others are a Redis server's, and do nothing here. */
static void happen_to_plain(const struct fault *fault)
{
    switch (fault->kind) {
    case FAULT_CUT_REQUESTS:
    case FAULT_CUT_REPLIES:
    case FAULT_KILL_CLIENT:
    case FAULT_HALF_OPEN:
        plain_break(fault->a);
        break;
    case FAULT_STALL:
        plain_stall((int64_t)fault->b * MS);
        break;
    case FAULT_RESTART:
        plain_restart(true, (int64_t)fault->b * MS);
        break;
    case FAULT_RESTART_EMPTY:
    case FAULT_FLUSH_DATA:
        plain_restart(false, (int64_t)fault->b * MS);
        check_forgive(DATA_GRACED);
        break;
    case FAULT_SLOW:
    case FAULT_STOP:
    case FAULT_KILL:
    case FAULT_KILL_HOST:
    case FAULT_CANCEL:
    case FAULT_FORK:
        kinds[fault->kind].happens(fault);
        break;
    default:
        break;
    }
}

/* Requests and notices get lost from now on, for a while. */
static void disturb_registers(const struct fault *fault)
{
    registers_disturb(5 + fault->a % 50);
    disturbed_until_ns = world_now() + fault->b * 4 * MS;
    world_at(disturbed_until_ns, calm_registers, NULL, 0);
}

/*
 * The store on registers keeps every promise when data are lost: D1 and D2 give grace, whatever the URL says.  Kinds of
 * faults that a Redis server alone knows stand for others.
 */
static void happen_to_registers(const struct fault *fault)
{
    switch (fault->kind) {
    case FAULT_CUT_REQUESTS:
    case FAULT_CUT_REPLIES:
    case FAULT_KILL_CLIENT:
    case FAULT_HALF_OPEN:
        registers_cut(fault->a);
        break;
    case FAULT_STALL:
    case FAULT_LOADING:
        registers_stall((int64_t)fault->b * MS);
        break;
    case FAULT_FULL:
        registers_fill(true);
        world_at(world_now() + fault->b * 2 * MS, empty_registers, NULL, 0);
        break;
    case FAULT_RESTART:
    case FAULT_PROMOTE:
        registers_restart(REGISTERS_KEEP, (int64_t)fault->b * MS);
        break;
    case FAULT_COPY:
        registers_copy();
        break;
    case FAULT_RESTART_EMPTY:
        registers_restart(REGISTERS_LOSE, (int64_t)fault->b * MS);
        break;
    case FAULT_FAIL_OVER:
    case FAULT_PROMOTE_OLD:
    case FAULT_PROMOTE_BACK:
        registers_restart(REGISTERS_BRING_COPY, (int64_t)fault->b * MS);
        break;
    case FAULT_FLUSH_DATA:
        registers_wipe();
        break;
    case FAULT_FLUSH_SCRIPTS:
    case FAULT_MONITOR:
    case FAULT_STEP_BACK:
    case FAULT_EVICT:
        disturb_registers(fault);
        break;
    case FAULT_SLOW:
    case FAULT_STOP:
    case FAULT_KILL:
    case FAULT_KILL_HOST:
    case FAULT_CANCEL:
    case FAULT_FORK:
        kinds[fault->kind].happens(fault);
        break;
    default:
        break;
    }
}

/* Each server of a quorum is alone, and its clock runs on. */
static void happen_to_quorum(const struct fault *fault)
{
    switch (fault->kind) {
    case FAULT_PROMOTE:
    case FAULT_PROMOTE_OLD:
    case FAULT_PROMOTE_BACK:
    case FAULT_EVICT:
    case FAULT_STEP_BACK:
    case FAULT_STEP_LITTLE:
    case FAULT_STEP_FAR:
        break;
    default:
        kinds[fault->kind].happens(fault);
    }
}

/* One failover in this many has a second one at the same time. */
#define TWINS 6

/*
 * With sentinels, a master that is replaced becomes a replica some leases later.  While it does not know, one replica
 * is missing: with wait=N nobody is granted anything.
 */
static void fail_over_group(const struct fault *fault, enum old_master old)
{
    int64_t blind_ns = (int64_t)fault->b * (sentinels_wait() ? 1 : 4) * MS;

    if (world_now() - last_switch_ns > 3 * (int64_t)lease_ms * MS || fault->b % 4 == 0) {
        last_switch_ns = world_now();
        work_excuse_signals(); /* a replica lags */
        sentinels_fail_over(fault->a, old, fault->a / SENTINELS_SERVERS % TWINS == 0, blind_ns);
    }
}

/* With sentinels, some kinds mean another fault: a failover of some sort, or the loss of a sentinel. */
static void happen_to_group(const struct fault *fault)
{
    switch (fault->kind) {
    case FAULT_PROMOTE:
        fail_over_group(fault, OLD_GOES_ON);
        break;
    case FAULT_MONITOR:
    case FAULT_PROMOTE_OLD:
        fail_over_group(fault, OLD_STALLS);
        break;
    case FAULT_COPY: /* with `wait` all replicas have all data, and so nobody may come back without */
        fail_over_group(fault, sentinels_wait() ? OLD_RESTARTS : OLD_RESTARTS_EMPTY);
        break;
    case FAULT_FAIL_OVER:
    case FAULT_PROMOTE_BACK:
        fail_over_group(fault, OLD_RESTARTS);
        break;
    case FAULT_STEP_BACK:
    case FAULT_FLUSH_DATA:
    case FAULT_EVICT:
        sentinels_lose(fault->a, false, (int64_t)fault->b * MS);
        break;
    case FAULT_STEP_LITTLE:
    case FAULT_STEP_FAR:
        sentinels_lose(fault->a, true, (int64_t)fault->b * 4 * MS);
        break;
    default:
        kinds[fault->kind].happens(fault);
    }
}

/* Mostly some leases after the shard's last failover. */
static void fail_over_shard(const struct fault *fault, enum shard_failover how)
{
    bool is_soon = world_now() - cluster_switched_ns(fault->a) <= 3 * (int64_t)lease_ms * MS;

    if ((!is_soon || fault->b % 4 == 0) && cluster_fail_over(fault->a, how, (int64_t)fault->b * 4 * MS))
        work_excuse_signals(); /* the replica lags */
}

static void move_slot(const struct fault *fault, bool is_given_up)
{
    if (!cluster_has_moves())
        fail_over_shard(fault, SHARD_FORCED);
    else
        cluster_move(fault->a, (1 + fault->b * fault->b / 10000) * MS, is_given_up);
}

/* In a Cluster some kinds mean failovers of shards, and some moves of slots, or failovers if no slot moves. */
static void happen_to_cluster(const struct fault *fault)
{
    switch (fault->kind) {
    case FAULT_PROMOTE:
        fail_over_shard(fault, SHARD_PLANNED);
        break;
    case FAULT_COPY:
        fail_over_shard(fault, SHARD_MASTER_STALLS);
        break;
    case FAULT_PROMOTE_OLD:
        fail_over_shard(fault, SHARD_FORCED);
        break;
    case FAULT_PROMOTE_BACK:
        fail_over_shard(fault, SHARD_MASTER_RESTARTS);
        break;
    case FAULT_MONITOR:
    case FAULT_FLUSH_DATA:
    case FAULT_EVICT:
        move_slot(fault, false);
        break;
    case FAULT_STEP_BACK:
    case FAULT_STEP_LITTLE:
    case FAULT_STEP_FAR:
        move_slot(fault, true);
        break;
    case FAULT_FAIL_OVER:
    case FAULT_RESTART_EMPTY:
        if (cluster_may_lose())
            restart_empty(fault);
        break;
    default:
        kinds[fault->kind].happens(fault);
    }
}

static void happen(void *object, uint64_t number)
{
    const struct fault *fault = object;

    (void)number;
    counters.faults++;
    counters.fault_kinds[fault->kind]++;
    world_note("FAULT %s %u %u", fault_name(fault->kind), fault->a, fault->b);
    server_choose(fault->a >> 16);
    if (plain_is_there())
        happen_to_plain(fault);
    else if (registers_are_there())
        happen_to_registers(fault);
    else if (sentinels_are_there())
        happen_to_group(fault);
    else if (cluster_is_there())
        happen_to_cluster(fault);
    else if (server_count() > 1)
        happen_to_quorum(fault);
    else
        kinds[fault->kind].happens(fault);
}

void faults_begin(const struct fault_plan *plan, uint32_t lease, bool is_graced)
{
    lease_ms = lease;
    has_grace = is_graced;
    last_step_ns = last_switch_ns = -4 * LEASE_MAX_MS * MS;
    slow_until_ns = lossy_until_ns = promoted_until_ns = 0;
    net_set_delay(200 * DM_NS_PER_US, 4 * MS);
    for (int i = 0; i < plan->count; i++) {
        if (!plan->faults[i].is_left_out)
            world_at(plan->faults[i].when_ns, happen, (void *)&plan->faults[i], 0);
    }
}

void faults_end(void)
{
    for (int i = server_count() - 1; i >= 0; i--) {
        server_choose((uint32_t)i);
        server_set_full(false);
        server_set_monitor(false);
        server_load(0);
        server_stall(0);
    }
    plain_stall(0);
    if (registers_are_there()) {
        registers_stall(0);
        registers_fill(false);
        registers_disturb(0);
    }
    if (server_right_clock())
        check_forgive(CLOCK_STEPPED);
    net_set_delay(200 * DM_NS_PER_US, 4 * MS);
    for (struct process *process = processes(); process; process = process->next)
        process_go_on(process);
}
