/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Loads the module for the first TLS connection.  Once loaded it stays (-z nodelete), because connections point into
 * it.
 *
 * dlopen() waits while another thread is in dlopen(), for as long as the constructors there take.  One of them may be
 * waiting for a lock of ours, and so for this module.  Only that thread itself can load it then.  So any number of
 * threads may load at the same time, no lock of ours is held meanwhile, and the first one that succeeds serves all.
 *
 * The C library's fork() does not wait for another thread's dlopen(), and the child would find the loader's lists half
 * changed.  So our fork handler waits for a load, but not forever: a constructor that forks would wait for itself.
 */
#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/real.h"
#include "base/thread.h"
#include "config.h"
#include "link/tls_bound.h"
#include "link/tls_calls.h"

#define PATH_ROOM 1024 /* on the stack */
#define FORK_WAITS_MS 100

/* A load takes 10 KiB of stack (x86-64, glibc 2.36), and other constructors may take more. */
#define STACK_NEEDED ((size_t)64 * 1024)

static const struct dm_tls_host host = {
    .mutex_lock = dm_mutex_lock,
    .mutex_unlock = dm_mutex_unlock,
    .mutex_reset = dm_mutex_reset,
    .has_stack = dm_thread_has_stack,
#ifdef DM_LOCK_CHECKS
    .check_held = dm_mutex_check_held,
#endif
};

static const struct dm_tls_calls *loaded; /* atomic; set once */

static struct {
    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t ended; /* a load has ended */
    unsigned under_way;   /* threads that load */
    unsigned failures;    /* loads that have failed, the last one with this reason */
    char reason[DM_REASON_ROOM];
} loading = { .lock = PTHREAD_MUTEX_INITIALIZER, .ended = PTHREAD_COND_INITIALIZER };

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

static void begin_load(void)
{
    dm_real.mutex_lock(&loading.lock);
    loading.under_way++;
    dm_real.mutex_unlock(&loading.lock);
}

/* In the child of a fork() by a constructor that the load has run, nothing is counted as under way. */
static void end_load(const struct dm_tls_calls *calls, const char *reason)
{
    dm_real.mutex_lock(&loading.lock);
    loading.under_way -= loading.under_way > 0;
    if (calls) {
        __atomic_store_n(&loaded, calls, __ATOMIC_RELEASE);
    } else {
        loading.failures++;
        snprintf(loading.reason, sizeof loading.reason, "%s", reason);
    }
    dm_real.cond_broadcast(&loading.ended);
    dm_real.mutex_unlock(&loading.lock);
}

static void load_once(void)
{
    const struct dm_tls_calls *calls = NULL;
    char reason[DM_REASON_ROOM] = "";

    begin_load();
    load(&calls, reason);
    end_load(calls, reason);
}

static void *load_in_thread(void *user)
{
    load_once();
    return user;
}

bool dm_tls_load_here(void)
{
    if (__atomic_load_n(&loaded, __ATOMIC_ACQUIRE))
        return true;
    if (!dm_thread_has_stack(STACK_NEEDED))
        return false;
    dm_thread_allocate_first();
    load_once();
    return true;
}

/* ---- for a connection -------------------------------------------------------------------- */

static bool is_under_way(unsigned *ret_failures)
{
    bool is;

    dm_real.mutex_lock(&loading.lock);
    *ret_failures = loading.failures;
    is = loading.under_way > 0;
    dm_real.mutex_unlock(&loading.lock);
    return is;
}

/*
 * Waits until the module is loaded, or a load has failed after the first `failures`.  If neither happens, an earlier
 * failure says more than the deadline.
 */
static void await_load(unsigned failures, int64_t deadline_ns, char *ret_reason)
{
    struct dm_deadline until = dm_deadline_in_ms((deadline_ns - dm_clock_boot_ns()) / DM_NS_PER_MS);
    bool is_late = false;

    dm_real.mutex_lock(&loading.lock);
    while (!loaded && loading.failures == failures && !is_late)
        is_late = dm_real.cond_clockwait(&loading.ended, &loading.lock, until.clock, &until.at) != 0;
    snprintf(ret_reason, DM_REASON_ROOM, "%s",
             loading.failures > 0 ? loading.reason
                                  : "TLS cannot be loaded: another thread of this program is in dlopen() for so long");
    dm_real.mutex_unlock(&loading.lock);
}

/*
 * Loads in a thread of its own, because this one must come back at its deadline.  After a failure the next connection
 * tries again: what was missing may have been installed since.
 */
const struct dm_tls_calls *dm_tls_load(int64_t deadline_ns, char ret_reason[DM_REASON_ROOM])
{
    unsigned failures;

    if (!__atomic_load_n(&loaded, __ATOMIC_ACQUIRE)) {
        if (!is_under_way(&failures) && dm_thread_start(load_in_thread, NULL) != 0) {
            snprintf(ret_reason, DM_REASON_ROOM, "TLS cannot be loaded: no thread can be started");
            return NULL;
        }
        await_load(failures, deadline_ns, ret_reason);
    }
    return __atomic_load_n(&loaded, __ATOMIC_ACQUIRE);
}

/* ---- fork -------------------------------------------------------------------------------- */

/* What the handlers after fork() have to undo in the forking thread. */
static struct {
    bool is_waited;
    const struct dm_tls_calls *calls;
} forking;

void dm_tls_load_fork_prepare(void)
{
    struct dm_deadline until = dm_deadline_in_ms(FORK_WAITS_MS);
    bool is_late = false;

    forking.is_waited = dm_real.mutex_clocklock(&loading.lock, until.clock, &until.at) == 0;
    while (forking.is_waited && loading.under_way > 0 && !is_late)
        is_late = dm_real.cond_clockwait(&loading.ended, &loading.lock, until.clock, &until.at) != 0;
    forking.calls = __atomic_load_n(&loaded, __ATOMIC_ACQUIRE);
    if (forking.calls)
        forking.calls->fork_prepare();
}

void dm_tls_load_fork_parent(void)
{
    if (forking.calls)
        forking.calls->fork_parent();
    if (forking.is_waited)
        dm_real.mutex_unlock(&loading.lock);
}

/* After a bare fork (base/self.h) no handler has taken the locks.  In any case the module, if loaded, starts afresh. */
void dm_tls_load_fork_child(void)
{
    static const pthread_mutex_t fresh_lock = PTHREAD_MUTEX_INITIALIZER;
    static const pthread_cond_t fresh_cond = PTHREAD_COND_INITIALIZER;
    const struct dm_tls_calls *calls = __atomic_load_n(&loaded, __ATOMIC_ACQUIRE);

    if (calls)
        calls->fork_child();
    if (forking.is_waited)
        dm_real.mutex_unlock(&loading.lock); /* for the race detector, which has seen the lock taken */
    loading.lock = fresh_lock;
    loading.ended = fresh_cond;
    loading.under_way = 0;
    forking.is_waited = false;
}
