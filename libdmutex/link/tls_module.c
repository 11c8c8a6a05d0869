/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The module's side of the wall. tls.c calls some functions of base/ whose data belong to the library; here, each of
 * them calls the library. base/clock.c, base/file.c and base/poll.c have no data, so the module has its own copies.
 */
#include "base/thread.h"
#include "link/tls_calls.h"

dm_tls_module_begin_fn dm_tls_module_begin;

static const struct dm_tls_host *library;

void dm_mutex_lock(struct dm_mutex *mutex)
{
    library->mutex_lock(mutex);
}

void dm_mutex_unlock(struct dm_mutex *mutex)
{
    library->mutex_unlock(mutex);
}

void dm_mutex_reset(struct dm_mutex *mutex)
{
    library->mutex_reset(mutex);
}

bool dm_thread_has_stack(size_t bytes)
{
    return library->has_stack(bytes);
}

#ifdef DM_LOCK_CHECKS
void dm_mutex_check_held(enum dm_rank rank, const char *function)
{
    library->check_held(rank, function);
}
#endif

__attribute__((visibility("default"))) const struct dm_tls_calls *dm_tls_module_begin(const struct dm_tls_host *host)
{
    library = host;
    return &dm_tls_calls;
}
