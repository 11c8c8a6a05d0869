/* SPDX-License-Identifier: BSD-2-Clause */
/* The clocks of simulated processes, and base/clock.c for the library in them. */
#include "base/clock.h"

#include "hooks.h"
#include "process.h"
#include "world.h"

int64_t process_local_ns(const struct process *process)
{
    return process->clock_ns + (int64_t)((__int128)world_now() * process->rate_ppm / 1000000);
}

/* Rounded up: at the event the clock shows no less than `local_ns`. */
int64_t process_true_ns(const struct process *process, int64_t local_ns)
{
    if (local_ns <= process->clock_ns)
        return 0;
    return (int64_t)((__int128)(local_ns - process->clock_ns) * 1000000 / process->rate_ppm) + 1;
}

const struct dm_deadline dm_deadline_endless = { .is_endless = true };

/* A thread that keeps reading the clock and never yields would never end. */
#define LOOKS_MAX 1000000

static void count_looks(void)
{
    static uint64_t looks, events;

    looks = counters.events == events ? looks + 1 : 0;
    events = counters.events;
    if (looks < LOOKS_MAX || !thread_current())
        return;
    world_break("liveness: a thread spins");
    thread_wait(DM_NEVER);
}

/* After the swap and before the clock is read anything may happen: if a control needs it, much time passes. */
static void pause_behind_swap(void)
{
    bool is_control = hooks_has(FAST_IGNORES_TIME);

    if (chance_one_in(CHANCE_THREADS, is_control ? 2 : 16))
        thread_pass(chance_delay(CHANCE_THREADS, is_control ? DM_NS_PER_S : DM_NS_PER_MS, DM_NS_PER_S));
}

int64_t dm_clock_boot_ns(void)
{
    count_looks();
    if (thread_current() && thread_current()->is_fast) {
        thread_current()->has_looked = true;
        pause_behind_swap();
        if (thread_current()->is_entering && hooks_has(FAST_IGNORES_TIME))
            return 0;
    }
    return process_local_ns(process_current());
}

static int64_t to_ns(const struct dm_deadline *deadline)
{
    return (int64_t)deadline->at.tv_sec * DM_NS_PER_S + deadline->at.tv_nsec;
}

static struct dm_deadline at_ns(int64_t ns)
{
    return (struct dm_deadline){ .at = { .tv_sec = (time_t)(ns / DM_NS_PER_S), .tv_nsec = (long)(ns % DM_NS_PER_S) } };
}

struct dm_deadline dm_deadline_in_ms(int64_t ms)
{
    return at_ns(dm_clock_boot_ns() + ms * DM_NS_PER_MS);
}

int64_t dm_deadline_left_ns(const struct dm_deadline *deadline)
{
    int64_t left = deadline->is_endless ? DM_NEVER : to_ns(deadline) - dm_clock_boot_ns();

    return left > 0 ? left : 0;
}

struct dm_deadline dm_deadline_sooner(const struct dm_deadline *deadline, int64_t limit_ns)
{
    if (dm_deadline_left_ns(deadline) <= limit_ns)
        return *deadline;
    return at_ns(dm_clock_boot_ns() + limit_ns);
}
