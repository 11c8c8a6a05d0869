/* SPDX-License-Identifier: BSD-2-Clause */
#include "run.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "cluster.h"
#include "plain.h"
#include "plans.h"
#include "process.h"
#include "registers.h"
#include "sentinels.h"
#include "server.h"
#include "work.h"
#include "world.h"

#define EVENTS_MAX 3000000 /* a run without an end is a bug */

/* After the faults every thread must come out of its call; the limit is in longest leases. */
#define DRAIN_LEASES 12

#define SHRINK_RUNS_MAX 200

/* Almost a fifth slower than the server's clock. */
#define SLOWEST_PPM 820000

/* Servers of a quorum whose clocks are apart. */
#define APART_US INT64_C(3600000000)

static struct work_plan work;
static int servers;
static bool are_apart, has_moves;

/* Returns the run's longest lease. */
static int64_t lease_ns(void)
{
    int64_t most_ms = work.lease_ms * (work.has_mixed_leases ? 2 : 1);

    return (most_ms < LEASE_MAX_MS ? most_ms : LEASE_MAX_MS) * MS;
}

static int processes_alive(void)
{
    int count = 0;

    for (struct process *process = processes(); process; process = process->next)
        count += process->is_alive;
    return count;
}

/* Adds a process in place of a killed or exited process. */
static void refill(void *object, uint64_t number)
{
    (void)object;
    (void)number;
    if (world_now() >= work.until_ns)
        return;
    if (processes_alive() < work.processes)
        work_add_process();
    world_at(world_now() + 100 * MS, refill, NULL, 0);
}

static uint32_t below(uint32_t limit)
{
    return chance_below(CHANCE_WORK, limit);
}

/*
 * A quorum has no conditions.  In runs where servers lose their data, their clocks are right: a server without data
 * takes its tokens from its clock alone.
 */
static void plan_quorum(bool is_unsafe)
{
    servers = below(2) ? 5 : 3;
    are_apart = !is_unsafe;
    work.has_conditions = work.has_mixed_leases = false;
    work.has_grace = true;
}

/*
 * A lease is five times `switch`, and a test needs some leases: a failover costs one, and `switch`.  If all replicas
 * confirm each hold, whoever is promoted has the holds, so no grace is needed.
 */
static void plan_sentinels(const struct run *run)
{
    servers = SENTINELS_SERVERS;
    work.lease_ms = 5 * SENTINELS_SWITCH_MS + below(1000);
    work.until_ns *= 2;
    work.has_mixed_leases = false;
    if (run->defect != CORE_IS_WHOLE && !run->wait)
        work.has_conditions = false; /* a control: two owners are found sooner */
    work.has_grace = run->wait == 0;
}

/*
 * A master that has lost its data gives grace for a lease and `switch`.  In half of the runs holds outlive moves.  No
 * shard fails over while a slot moves, so half of the runs have no moves.
 */
static void plan_cluster(void)
{
    if (below(2))
        work.hold_ns = (20 + below(400)) * MS;
    servers = CLUSTER_SERVERS;
    has_moves = below(2);
    if (!has_moves)
        work.think_ns = (1 + below(400)) * MS;
    work.lease_ms = 5 * CLUSTER_SWITCH_MS + below(1000);
    work.names = 1 + (int)below(2);
    work.threads = 2 + (int)below(2);
    work.has_mixed_leases = false;
    work.has_grace = true;
}

/* Processes that are idle for long, and failovers: for a control that asks idle links. */
static void plan_idle(void)
{
    has_moves = work.has_conditions = false;
    work.think_ns = (100 + below(400)) * MS;
    work.hold_ns = (20 + below(400)) * MS;
    work.names = 3;
    work.threads = 1;
    work.processes = 4;
    work.until_ns *= 2;
}

/* Threads that pass a robust mutex, for a control of that. */
static void plan_passing(void)
{
    work.threads = 3;
    work.names = 1;
    work.has_robust = true;
}

/* Some holds that follow a wait outlive the next failover, if no other fault happens.  Returns the time per fault. */
static int64_t plan_copies(void)
{
    work.has_conditions = work.has_grace = true;
    work.has_mixed_leases = false;
    work.names = 1;
    work.hold_ns = (20 + below(200)) * MS;
    work.until_ns *= 2;
    return 500 * MS;
}

static void set_clocks_apart(void)
{
    for (int i = 0; i < servers; i++) {
        server_choose((uint32_t)i);
        server_set_clock((int64_t)(chance_word(CHANCE_WORK) % (2 * APART_US)) - APART_US);
    }
}

/* Makes the plan: some runs are calm, some stormy; some have clocks at wrong rates, others small steps of a clock. */
static void plan(struct run *run)
{
    static const int64_t every_ms[] = { 20, 50, 100, 200, 400 };
    bool has_steps = below(3) == 0 && !run->has_slow_clocks; /* the margin does not cover both */
    bool is_unsafe;
    int64_t every_ns;

    work = (struct work_plan){
        .processes = 2 + (int)below(3),
        .threads = 1 + (int)below(3),
        .names = 1 + (int)below(3),
        .lease_ms = 300 + below(900),
        .think_ns = (1 + below(8)) * MS,
        .hold_ns = (1 + below(6)) * MS,
        .until_ns = (4000 + below(8000)) * MS,
        .has_conditions = below(2) && !run->is_plain,
        .has_robust = below(2),
        .has_mixed_leases = below(3) == 0,
        .has_grace = below(4) > 0 || run->has_losses,
    };
    if (run->bytes)
        work.until_ns = (300 + below(700)) * MS;
    world_set_rate(run->has_slow_clocks ? SLOWEST_PPM : has_steps ? 1000000 : 0);
    is_unsafe = !run->is_safe && !run->wait && (below(5) < 2 || run->has_losses);
    every_ns = every_ms[below(5)] * MS;
    servers = 1;
    are_apart = false;
    if (run->defect == LINE_TAKES_NONE_BACK)
        plan_passing();
    if (run->is_quorum)
        plan_quorum(is_unsafe);
    if (run->has_registers && is_unsafe)
        work.has_mixed_leases = false; /* the grace is as long as the name's lease */
    if (run->has_sentinels)
        plan_sentinels(run);
    if (run->is_cluster)
        plan_cluster();
    if (run->defect == LINK_AWAITS_NO_IDENTITY)
        plan_idle();
    if (run->has_copies)
        every_ns = plan_copies();
    faults_plan(&run->faults, every_ns, work.until_ns, is_unsafe, has_steps);
    if (run->has_copies)
        faults_have_copies(&run->faults);
}

/* ---- the course of a run ----------------------------------------------------------------- */

static bool is_broken(void)
{
    return world_breach()[0] != '\0';
}

static void go_until(int64_t until_ns, bool (*is_over)(void))
{
    uint64_t most = counters.events + EVENTS_MAX;

    while (!is_broken() && !(is_over && is_over()) && world_step(until_ns)) {
        check_all();
        if (counters.events > most)
            world_break("the run does not end");
    }
}

static bool is_done(void)
{
    const char *what;

    return work_is_closed() && work_threads_left(&what) == 0;
}

/* I6: without faults, a free lock with a live waiter is granted within a poll. */
static void check_idle(void)
{
    for (int i = 0; i < work.names; i++) {
        int64_t since_ns = check_idle_since(i);

        if (since_ns != DM_NEVER && world_now() - since_ns > 2 * lease_ns())
            world_break("I6: x%d is free since %" PRId64 " ms, and a live waiter is there", i,
                        (world_now() - since_ns) / MS);
    }
}

/*
 * Ends a run, without further faults.  First looks for threads that sleep although there is a ticket, then ends all
 * threads; all must end.
 */
static void drain(void)
{
    const char *what;
    int64_t begin_ns = world_now();

    faults_end();
    for (int i = 0; i < DRAIN_LEASES && !is_broken(); i++) {
        go_until(begin_ns + (i + 1) * lease_ns(), NULL);
        check_idle();
        check_kept(2 * lease_ns());
    }
    work_check_sleepers();
    work_close();
    go_until(world_now() + DRAIN_LEASES * LEASE_MAX_MS * MS, is_done); /* ends as soon as all threads are home */
    if (registers_are_there() && !is_broken() && is_done())
        registers_check_left();
    if (!is_broken() && !is_done() && !check_is_torn())
        world_break("liveness: %d threads have not come home, %s", work_threads_left(&what),
                    (work_threads_left(&what), what));
}

static void run_plan(struct run *run)
{
    hooks_set(run->defect);
    liar_begin(run->liar);
    net_begin();
    server_begin(run->scripting, servers);
    sentinels_none();
    cluster_none();
    if (run->has_sentinels)
        sentinels_begin(run->wait);
    if (run->is_cluster)
        cluster_begin(work.names, work.lease_ms, has_moves);
    if (are_apart)
        set_clocks_apart();
    if (run->defect == SERVER_HAS_GHOSTS)
        server_let_ghosts_live();
    if (run->is_plain)
        plain_begin();
    if (run->has_registers)
        registers_begin();
    processes_begin();
    check_begin(work.names);
    plans_begin();
    faults_begin(&run->faults, work.lease_ms, work.has_grace && !work.has_mixed_leases);
    process_set_grace(work.has_grace && run->defect != SERVER_HAS_NO_GRACE);
    work_begin(&work);
    world_at(100 * MS, refill, NULL, 0);
    go_until(work.until_ns, NULL);
    drain();
    run->hash = world_hash();
    snprintf(run->breach, sizeof run->breach, "%s", world_breach());
    processes_end();
    plain_end();
    registers_end();
    check_end();
    server_end();
    net_end();
    world_end();
}

void run_seed(struct run *run)
{
    world_begin(run->seed, run->bytes, run->length);
    plan(run);
    run_plan(run);
}

/* ---- shrinking --------------------------------------------------------------------------- */

static bool still_fails(struct run *run)
{
    struct run again = { .seed = run->seed,
                         .bytes = run->bytes,
                         .length = run->length,
                         .scripting = run->scripting,
                         .defect = run->defect,
                         .is_safe = run->is_safe,
                         .has_copies = run->has_copies,
                         .is_plain = run->is_plain,
                         .has_registers = run->has_registers,
                         .is_quorum = run->is_quorum,
                         .liar = run->liar,
                         .has_sentinels = run->has_sentinels,
                         .is_cluster = run->is_cluster,
                         .wait = run->wait,
                         .has_slow_clocks = run->has_slow_clocks };

    world_begin(run->seed, run->bytes, run->length);
    plan(&again);
    again.faults = run->faults;
    run_plan(&again);
    if (!again.breach[0] || strncmp(again.breach, run->breach, strcspn(run->breach, ":")) != 0)
        return false; /* breaks another promise */
    memcpy(run->breach, again.breach, sizeof run->breach);
    return true;
}

static int shrink_runs;

/* Leaves out `count` faults from `first` on; puts them back if the run no longer fails. */
static bool leave_out(struct run *run, int first, int count)
{
    bool were_there[FAULTS_MAX], is_change = false;

    for (int i = first; i < first + count && i < run->faults.count; i++) {
        were_there[i] = !run->faults.faults[i].is_left_out;
        is_change = is_change || were_there[i];
        run->faults.faults[i].is_left_out = true;
    }
    if (!is_change || (shrink_runs++ < SHRINK_RUNS_MAX && still_fails(run)))
        return true;
    for (int i = first; i < first + count && i < run->faults.count; i++)
        run->faults.faults[i].is_left_out = !were_there[i];
    return false;
}

static void print_faults(const struct run *run)
{
    for (int i = 0; i < run->faults.count; i++) {
        const struct fault *fault = &run->faults.faults[i];

        if (!fault->is_left_out)
            printf("#   %9.3f ms  %s (%u, %u): %s\n", (double)fault->when_ns / 1e6, fault_name(fault->kind), fault->a,
                   fault->b, fault_text(fault->kind));
    }
}

void run_shrink(struct run *run)
{
    struct counters before = counters;

    shrink_runs = 0;
    for (int size = run->faults.count; size > 0; size /= 2) {
        for (int first = 0; first < run->faults.count; first += size)
            leave_out(run, first, size);
    }
    counters = before;
    printf("# seed %" PRIu64 ": %s\n# it takes:\n", run->seed, run->breach);
    print_faults(run);
}

void counters_print(void)
{
    printf("# runs %" PRIu64 ", operations %" PRIu64 ", faults %" PRIu64 ", holds %" PRIu64 ", waits %" PRIu64
           ", signals %" PRIu64 ", owner deaths told %" PRIu64 ", losses told %" PRIu64 "\n",
           counters.runs, counters.operations, counters.faults, counters.holds, counters.waits, counters.signals,
           counters.deaths, counters.losses);
    printf("# events %" PRIu64 ", scripts %" PRIu64 ", messages %" PRIu64 ", changes of phase %" PRIu64
           ", checks %" PRIu64 "\n",
           counters.events, counters.scripts, counters.messages, counters.states, counters.checks);
    printf("# without the state lock: %" PRIu64 " locks, %" PRIu64 " unlocks, %" PRIu64 " locks in vain\n",
           counters.fast_locks, counters.fast_unlocks, counters.fast_mistakes);
    if (counters.switches)
        printf("# switches %" PRIu64 ", confirmed by replicas %" PRIu64 ", not confirmed %" PRIu64 "\n",
               counters.switches, counters.confirmed, counters.unconfirmed);
    if (counters.slot_moves)
        printf("# moves of slots %" PRIu64 "\n", counters.slot_moves);
    if (counters.lies)
        printf("# lies %" PRIu64 "\n", counters.lies);
    printf("# faults:");
    for (int i = 0; i < FAULT_COUNT; i++) {
        if (counters.fault_kinds[i])
            printf(" %s %" PRIu64, fault_name((enum fault_kind)i), counters.fault_kinds[i]);
    }
    printf("\n");
}
