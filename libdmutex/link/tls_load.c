/* SPDX-License-Identifier: BSD-2-Clause */
/* Loads the module for the first TLS connection. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/module.h"
#include "base/thread.h"
#include "config.h"
#include "link/tls_bound.h"
#include "link/tls_calls.h"

static const struct dm_tls_host host = {
    .mutex_lock = dm_mutex_lock,
    .mutex_unlock = dm_mutex_unlock,
    .mutex_reset = dm_mutex_reset,
    .has_stack = dm_thread_has_stack,
#ifdef DM_LOCK_CHECKS
    .check_held = dm_mutex_check_held,
#endif
};

static const struct dm_tls_calls *calls; /* once the module is loaded */

static bool complain_of_version(const char *path, const char *version, char *ret_reason)
{
    snprintf(ret_reason, DM_REASON_ROOM,
             "%.160s is of version %.20s, and this program runs with libdmutex %s: start the program again", path,
             version, PACKAGE_VERSION);
    return false;
}

static bool take(void *handle, const char *path, char ret_reason[DM_REASON_ROOM])
{
    dm_tls_module_begin_fn *begin = (dm_tls_module_begin_fn *)dlsym(handle, DM_TLS_MODULE_BEGIN);
    const struct dm_tls_calls *taken;

    if (!begin)
        return complain_of_version(path, "?", ret_reason);
    taken = begin(&host);
    if (strcmp(taken->version, PACKAGE_VERSION) != 0)
        return complain_of_version(path, taken->version, ret_reason);
    if (!dm_tls_is_bound_well(handle, ret_reason))
        return false;
    __atomic_store_n(&calls, taken, __ATOMIC_RELAXED);
    return true;
}

static struct dm_module module = {
    .file = "libdmutex-tls.so",
    .folder = PKGLIBDIR,
    .name = "TLS",
    .missing = "TLS cannot be loaded, install what is missing",
    .take = take,
};

/* Atomic: a thread that has loaded the module, too, sets them again. */
static const struct dm_tls_calls *get_calls(void)
{
    return __atomic_load_n(&calls, __ATOMIC_RELAXED);
}

const struct dm_tls_calls *dm_tls_load(int64_t deadline_ns, char ret_reason[DM_REASON_ROOM])
{
    struct dm_deadline until = dm_deadline_in_ms((deadline_ns - dm_clock_boot_ns()) / DM_NS_PER_MS);
    bool is_late;

    return dm_module_load(&module, &until, &is_late, ret_reason) ? get_calls() : NULL;
}

bool dm_tls_load_here(void)
{
    return dm_module_load_here(&module);
}

/* ---- fork -------------------------------------------------------------------------------- */

static bool is_forking_with_module; /* for the handler after fork() in the thread that forks */

void dm_tls_load_fork_prepare(void)
{
    is_forking_with_module = dm_module_is_loaded(&module);
    if (is_forking_with_module)
        get_calls()->fork_prepare();
}

void dm_tls_load_fork_parent(void)
{
    if (is_forking_with_module)
        get_calls()->fork_parent();
}

/* After a bare fork (base/self.h) no handler has taken the locks.  In any case the module, if loaded, starts afresh. */
void dm_tls_load_fork_child(void)
{
    if (dm_module_is_loaded(&module))
        get_calls()->fork_child();
}
