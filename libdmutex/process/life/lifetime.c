/* SPDX-License-Identifier: BSD-2-Clause */
#include "process/life/lifetime.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/rank.h"
#include "process/claims/ending.h"
#include "process/claims/process.h"
#include "process/life/exit.h"
#include "process/life/fork.h"

/* The process that loaded the library, or a child that it made by fork(). */
static pid_t own_pid;
static bool is_told;

/* False in a child of vfork() or clone(), which shares memory or descriptors and must not use its parent's identity. */
static bool is_own_process(void)
{
    return own_pid == getpid();
}

/* Sets has_ended first: a claim that a later destructor makes must not be in the thread's list. */
static void thread_ends(struct dm_self *self)
{
    struct dm_runtime *runtime = dm_runtime_peek();

    self->has_ended = true;
    if (runtime && is_own_process())
        dm_ending_thread(runtime, self);
}

/*
 * A destructor, not an atexit() handler: destructors run after all handlers, and a library's destructor runs after
 * those of the library's users, even if it was loaded late.  exit() in a signal handler may have interrupted a section
 * of the library in the same thread; then everything is left to the leases.
 */
__attribute__((destructor)) static void process_ends(void)
{
    if (is_own_process() && dm_mutex_holds_none())
        dm_exit_process(dm_runtime_peek());
}

/* Runs in the child before fork() returns; a handler of another library may use a mutex after this one. */
static void forked(void)
{
    own_pid = getpid();
    dm_runtime_fork_child();
}

__attribute__((constructor)) static void register_ends(void)
{
    own_pid = getpid();
    is_told = dm_self_on_thread_end(thread_ends) &&
              pthread_atfork(dm_runtime_fork_prepare, dm_runtime_fork_parent, forked) == 0 &&
              at_quick_exit(process_ends) == 0;
}

bool dm_lifetime_is_told(void)
{
    return is_told;
}
