/* SPDX-License-Identifier: BSD-2-Clause */
#include "process/claims/process.h"

#include <unistd.h>

#include "base/clock.h"
#include "base/self.h"

/* The pause between two tries while the server is not ready. */
#define PAUSE_NS (5 * DM_NS_PER_MS)

struct dm_process dm_process = { .start = DM_MUTEX_INITIALIZER(DM_RANK_START) };

/* For destructors and queries, which must not start a library that was never used. */
struct dm_runtime *dm_runtime_peek(void)
{
    return __atomic_load_n(&dm_process.current, __ATOMIC_ACQUIRE);
}

/* Rank START guards the list.  The runtimes of a parent process do not count. */
void dm_runtime_count(dmutex_stats_t *ret_stats)
{
    const pid_t pid = getpid();

    *ret_stats = (dmutex_stats_t){ .struct_size = sizeof *ret_stats };
    dm_mutex_lock(&dm_process.start);
    if (dm_process.current && dm_process.current->pid == pid)
        dm_stats_add(dm_process.current, ret_stats);
    for (struct dm_runtime *runtime = dm_process.retired; runtime; runtime = runtime->retired_before) {
        if (runtime->pid == pid)
            dm_stats_add(runtime, ret_stats);
    }
    dm_mutex_unlock(&dm_process.start);
}

/*
 * Under rank START, because function and argument belong together: the loop thread must not read one old and one new.
 */
void dm_runtime_set_lost(dmutex_lost_fn lost, void *user)
{
    dm_mutex_lock(&dm_process.start);
    dm_process.lost = lost;
    dm_process.lost_user = user;
    dm_mutex_unlock(&dm_process.start);
}

void dm_runtime_get_lost(dmutex_lost_fn *ret_lost, void **ret_user)
{
    dm_mutex_lock(&dm_process.start);
    *ret_lost = dm_process.lost;
    *ret_user = dm_process.lost_user;
    dm_mutex_unlock(&dm_process.start);
}

struct dm_deadline dm_runtime_call_deadline(const struct dm_runtime *runtime)
{
    return dm_deadline_in_ms(runtime->url->command_timeout_ms);
}

/* Sleeps on the thread's semaphore: a message for the thread ends the pause early, and the caller checks again. */
bool dm_runtime_pause(const struct dm_deadline *deadline)
{
    struct dm_deadline pause = dm_deadline_sooner(deadline, PAUSE_NS);

    dm_self_sleep(dm_self_get(), &pause);
    return dm_deadline_left_ns(deadline) > 0;
}
