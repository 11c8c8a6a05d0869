/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Loads the module for the first TLS connection.  Once loaded it stays (-z nodelete), because connections point into
 * it.
 *
 * The C library's fork() does not wait for another thread's dlopen(), and the child would find the loader's lists half
 * changed.  So our fork handler waits for a load, but not forever: a constructor that forks would wait for itself.
 */
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/real.h"
#include "base/thread.h"
#include "base/units.h"
#include "config.h"
#include "link/tls_bound.h"
#include "link/tls_calls.h"

#define PATH_ROOM 1024 /* on the stack */
#define FORK_WAITS_NS (100 * DM_NS_PER_MS)

static const struct dm_tls_host host = {
    .mutex_lock = dm_mutex_lock,
    .mutex_unlock = dm_mutex_unlock,
    .mutex_reset = dm_mutex_reset,
    .has_stack = dm_thread_has_stack,
#ifdef DM_LOCK_CHECKS
    .check_held = dm_mutex_check_held,
#endif
};

static const struct dm_tls_calls *loaded; /* atomic */
static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;

/*
 * The module is in a folder next to the library, wherever that was installed or copied.  If the library is linked into
 * the program, or was found by a relative path, we take the folder of the installation.
 */
static bool find_module(char ret_path[PATH_ROOM])
{
    struct link_map *library = NULL;
    Dl_info info;
    const char *path = "", *slash;
    int length;

    if (dladdr1(&host, &info, (void **)&library, RTLD_DL_LINKMAP) && library)
        path = library->l_name;
    slash = strrchr(path, '/');
    if (path[0] == '/')
        length = snprintf(ret_path, PATH_ROOM, "%.*s/libdmutex/libdmutex-tls.so", (int)(slash - path), path);
    else
        length = snprintf(ret_path, PATH_ROOM, "%s/libdmutex-tls.so", PKGLIBDIR);
    return length < PATH_ROOM;
}

static bool complain_of_version(const char *path, const char *version, char *ret_reason)
{
    snprintf(ret_reason, DM_REASON_ROOM,
             "%.160s is of version %.20s, and this program runs with libdmutex %s: start the program again", path,
             version, PACKAGE_VERSION);
    return false;
}

/* False with the reason. */
static bool load(const struct dm_tls_calls **ret_calls, char *ret_reason)
{
    char path[PATH_ROOM];
    void *module;
    dm_tls_module_begin_fn *begin;
    const struct dm_tls_calls *calls;

    if (!find_module(path)) {
        snprintf(ret_reason, DM_REASON_ROOM, "TLS cannot be loaded: the path of libdmutex is too long");
        return false;
    }
    module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!module) {
        snprintf(ret_reason, DM_REASON_ROOM, "TLS cannot be loaded, install what is missing: %.240s", dlerror());
        return false;
    }
    begin = (dm_tls_module_begin_fn *)dlsym(module, DM_TLS_MODULE_BEGIN);
    if (!begin)
        return complain_of_version(path, "?", ret_reason);
    calls = begin(&host);
    if (strcmp(calls->version, PACKAGE_VERSION) != 0)
        return complain_of_version(path, calls->version, ret_reason);
    if (!dm_tls_is_bound_well(module, ret_reason))
        return false;
    *ret_calls = calls;
    return true;
}

/* After a failure the next connection tries again: what was missing may have been installed since. */
const struct dm_tls_calls *dm_tls_load(char ret_reason[DM_REASON_ROOM])
{
    const struct dm_tls_calls *calls = __atomic_load_n(&loaded, __ATOMIC_ACQUIRE);

    if (calls)
        return calls;
    dm_real.mutex_lock(&loading);
    calls = loaded;
    if (!calls && load(&calls, ret_reason))
        __atomic_store_n(&loaded, calls, __ATOMIC_RELEASE);
    dm_real.mutex_unlock(&loading);
    return calls;
}

/* ---- fork -------------------------------------------------------------------------------- */

/* What the handlers after fork() have to undo in the forking thread. */
static struct {
    bool is_waited;
    const struct dm_tls_calls *calls;
} forking;

void dm_tls_load_fork_prepare(void)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += FORK_WAITS_NS;
    until.tv_sec += until.tv_nsec / DM_NS_PER_S;
    until.tv_nsec %= DM_NS_PER_S;
    forking.is_waited = dm_real.mutex_clocklock(&loading, CLOCK_MONOTONIC, &until) == 0;
    forking.calls = __atomic_load_n(&loaded, __ATOMIC_ACQUIRE);
    if (forking.calls)
        forking.calls->fork_prepare();
}

void dm_tls_load_fork_parent(void)
{
    if (forking.calls)
        forking.calls->fork_parent();
    if (forking.is_waited)
        dm_real.mutex_unlock(&loading);
}

/* After a bare fork (base/self.h) no handler has taken the locks.  In any case the module, if loaded, starts afresh. */
void dm_tls_load_fork_child(void)
{
    static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
    const struct dm_tls_calls *calls = __atomic_load_n(&loaded, __ATOMIC_ACQUIRE);

    if (calls)
        calls->fork_child();
    if (forking.is_waited)
        dm_real.mutex_unlock(&loading); /* for the race detector, which has seen the lock taken */
    loading = fresh;
    forking.is_waited = false;
}
