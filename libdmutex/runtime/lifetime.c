/* SPDX-License-Identifier: BSD-2-Clause */
#include "runtime/lifetime.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "runtime/release.h"
#include "runtime/steps.h"

/*
 * A thread or process that ends holding a lock has died for those who come after it: they are told
 * at once, not when the lease ends.
 */
static void report_deaths(struct dm_runtime *runtime, uint64_t thread)
{
    struct dm_claim *claim, *next;

    for (claim = runtime->registry.claims; claim; claim = next) {
        next = claim->next;
        if (thread && claim->attempt.thread != thread)
            continue;
        if (claim->attempt.phase == DM_HELD || claim->attempt.phase == DM_LEAVING)
            dm_step_give_back(runtime, claim, claim->attempt.is_entered ? DM_END_DIED : DM_END_UNLOCKED);
        if (claim->attempt.phase == DM_LOST && claim->attempt.is_entered)
            dm_step_close(runtime, claim);
    }
}

/* The runtime if it is this process's own: a child that fork() did not make is not to speak for it. */
static struct dm_runtime *own_runtime(void)
{
    struct dm_runtime *runtime = dm_runtime_peek();

    return runtime && runtime->pid == getpid() ? runtime : NULL;
}

static void thread_ends(struct dm_self *self)
{
    struct dm_runtime *runtime = own_runtime();

    if (!runtime)
        return;
    dm_state_lock();
    report_deaths(runtime, self->serial);
    dm_state_unlock();
}

/* The answers are awaited: a release that nobody reads may not be executed. */
static void process_ends(void)
{
    struct dm_runtime *runtime = own_runtime();
    struct dm_deadline deadline;

    if (!runtime)
        return;
    dm_state_lock();
    report_deaths(runtime, 0);
    dm_state_unlock();
    deadline = dm_runtime_call_deadline(runtime);
    dm_release_await_owed(runtime, NULL, &deadline);
}

__attribute__((constructor)) static void register_ends(void)
{
    dm_self_on_thread_end(thread_ends);
    pthread_atfork(dm_runtime_fork_prepare, dm_runtime_fork_parent, dm_runtime_fork_child);
    atexit(process_ends);
}
