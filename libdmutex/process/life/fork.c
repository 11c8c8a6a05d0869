/* SPDX-License-Identifier: BSD-2-Clause */
#include "process/life/fork.h"

#include <stdbool.h>

#include "base/log.h"
#include "base/module.h"
#include "base/rank.h"
#include "base/self.h"
#include "process/claims/fast.h"
#include "process/claims/process.h"
#include "process/keep/loop.h"
#include "spawn/local.h"

/*
 * fork() takes all locks, in their order, so that the child's copy of every table is whole, and no command is half
 * written.
 *
 * But not in a signal handler that has interrupted a section of the library in the same thread, because it would wait
 * for itself.  The child starts from scratch and needs no table, but it may inherit a socket that another thread is
 * just opening; then the server may take the parent to be alive as long as the child is.
 */
static __thread bool is_fork_bare;

/*
 * Takes the locks in the order of their ranks, GATE to LOG; the other two handlers release them in the reverse order.
 */
void dm_runtime_fork_prepare(void)
{
    is_fork_bare = !dm_mutex_holds_none();
    if (is_fork_bare)
        return;
    dm_module_fork_prepare();
    dm_mutex_begin_collecting();
    dm_loop_fork_prepare();
    dm_mutex_lock(&dm_process.start);
    dm_state_lock();
    if (dm_process.current)
        dm_store_fork_prepare(dm_process.current->store);
    dm_log_fork_prepare();
    dm_mutex_end_collecting();
}

void dm_runtime_fork_parent(void)
{
    if (is_fork_bare)
        return;
    dm_log_fork_parent();
    if (dm_process.current)
        dm_store_fork_parent(dm_process.current->store);
    dm_state_unlock();
    dm_mutex_unlock(&dm_process.start);
    dm_loop_fork_parent();
    dm_module_fork_parent();
}

/*
 * The child closes the parent's sockets, forgets the parent's tables without freeing them, and starts from scratch when
 * it first uses a mutex.  A call that the forking signal handler has interrupted ends in the child with ENOLCK if it
 * needs the server, and never uses the parent's identity.
 */
void dm_runtime_fork_child(void)
{
    dm_process.forks++;
    dm_log_fork_child();
    dm_module_fork_child();
    if (dm_process.current) {
        dm_process.current->is_retired = true;
        dm_store_fork_child(dm_process.current->store);
    }
    dm_process.current = NULL;
    dm_fast_fork_child();
    dm_state_fork_child();
    dm_mutex_reset(&dm_process.start);
    dm_loop_fork_child();
    dm_self_fork_child();
    dm_local_fork_child();
    if (!is_fork_bare)
        dm_mutex_fork_child();
}
