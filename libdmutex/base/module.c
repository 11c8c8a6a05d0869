/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dlopen() waits while another thread is in dlopen(), for as long as the constructors there take.  One of them may be
 * waiting for a lock of ours, and so for a module.  Only that thread itself can load it then.  So any number of threads
 * may load at the same time, no lock of ours is held meanwhile, and the first one that succeeds serves all.
 *
 * The C library's fork() does not wait for another thread's dlopen(), and the child would find the loader's lists half
 * changed.  So our fork handler waits for a load.
 */
#include "base/module.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#include "base/real.h"
#include "base/thread.h"

#define PATH_ROOM 1024 /* on the stack */
#define FORK_WAITS_MS 100

/* A load takes 10 KiB of stack (x86-64, glibc 2.36), and other constructors may take more. */
#define STACK_NEEDED ((size_t)64 * 1024)

static struct {
    pthread_mutex_t lock;      /* guards the rest */
    pthread_cond_t ended;      /* a load has ended */
    struct dm_module *modules; /* those that a thread has begun to load */
} loading = { .lock = PTHREAD_MUTEX_INITIALIZER, .ended = PTHREAD_COND_INITIALIZER };

bool dm_module_is_loaded(const struct dm_module *module)
{
    return __atomic_load_n(&module->is_loaded, __ATOMIC_ACQUIRE);
}

/* ---- loading ----------------------------------------------------------------------------- */

/*
 * The folder is next to the library, wherever that was installed or copied.  If the library is linked into the program,
 * or was found by a relative path, we take the folder of the installation, and no other.
 */
static bool find(const struct dm_module *module, char ret_path[PATH_ROOM])
{
    struct link_map *library = NULL;
    Dl_info info;
    const char *path = "", *slash;
    int length;

    if (dladdr1(&loading, &info, (void **)&library, RTLD_DL_LINKMAP) && library)
        path = library->l_name;
    slash = strrchr(path, '/');
    if (path[0] == '/')
        length = snprintf(ret_path, PATH_ROOM, "%.*s/libdmutex/%s", (int)(slash - path), path, module->file);
    else
        length = snprintf(ret_path, PATH_ROOM, "%s/%s", module->folder, module->file);
    return length < PATH_ROOM;
}

/* False with the reason. */
static bool load(const struct dm_module *module, char ret_reason[DM_REASON_ROOM])
{
    char path[PATH_ROOM];
    void *handle;

    if (!find(module, path)) {
        snprintf(ret_reason, DM_REASON_ROOM, "%.60s cannot be loaded: the path of libdmutex is too long", module->name);
        return false;
    }
    handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        snprintf(ret_reason, DM_REASON_ROOM, "%.80s: %.230s", module->missing, dlerror());
        return false;
    }
    return module->take(handle, path, ret_reason);
}

static void begin_load(struct dm_module *module)
{
    dm_real.mutex_lock(&loading.lock);
    if (!module->is_begun) {
        module->is_begun = true;
        module->next = loading.modules;
        loading.modules = module;
    }
    module->under_way++;
    dm_real.mutex_unlock(&loading.lock);
}

/* In the child of a fork() by a constructor that the load has run, nothing is counted as under way. */
static void end_load(struct dm_module *module, bool is_good, const char *reason)
{
    dm_real.mutex_lock(&loading.lock);
    module->under_way -= module->under_way > 0;
    if (is_good) {
        __atomic_store_n(&module->is_loaded, true, __ATOMIC_RELEASE);
    } else {
        module->failures++;
        snprintf(module->reason, sizeof module->reason, "%s", reason);
    }
    dm_real.cond_broadcast(&loading.ended);
    dm_real.mutex_unlock(&loading.lock);
}

static void load_once(struct dm_module *module)
{
    char reason[DM_REASON_ROOM] = "";
    bool is_good;

    begin_load(module);
    is_good = load(module, reason);
    end_load(module, is_good, reason);
}

static void *load_in_thread(void *module)
{
    load_once(module);
    return module;
}

bool dm_module_load_here(struct dm_module *module)
{
    if (dm_module_is_loaded(module))
        return true;
    if (!dm_thread_has_stack(STACK_NEEDED))
        return false;
    dm_thread_allocate_first();
    load_once(module);
    return true;
}

void dm_module_reason(const struct dm_module *module, char ret_reason[DM_REASON_ROOM])
{
    dm_real.mutex_lock(&loading.lock);
    snprintf(ret_reason, DM_REASON_ROOM, "%s", module->reason);
    dm_real.mutex_unlock(&loading.lock);
}

/* ---- waiting for another thread ---------------------------------------------------------- */

static bool is_under_way(const struct dm_module *module, unsigned *ret_failures)
{
    bool is;

    dm_real.mutex_lock(&loading.lock);
    *ret_failures = module->failures;
    is = module->under_way > 0;
    dm_real.mutex_unlock(&loading.lock);
    return is;
}

/*
 * Waits until the module is loaded, or a load has failed after the first `failures`.  True if neither happens in time;
 * then an earlier failure says more than the deadline.
 */
static bool await_load(const struct dm_module *module, unsigned failures, const struct dm_deadline *deadline,
                       char ret_reason[DM_REASON_ROOM])
{
    bool is_late = false;

    dm_real.mutex_lock(&loading.lock);
    while (!module->is_loaded && module->failures == failures && !is_late)
        is_late = dm_real.cond_clockwait(&loading.ended, &loading.lock, deadline->clock, &deadline->at) != 0;
    if (module->failures > 0)
        snprintf(ret_reason, DM_REASON_ROOM, "%s", module->reason);
    else
        snprintf(ret_reason, DM_REASON_ROOM,
                 "%.60s cannot be loaded: another thread of this program is in dlopen() for so long", module->name);
    is_late = !module->is_loaded && module->failures == failures;
    dm_real.mutex_unlock(&loading.lock);
    return is_late;
}

/* After a failure the next call tries again: what was missing may have been installed since. */
bool dm_module_load(struct dm_module *module, const struct dm_deadline *deadline, bool *ret_is_late,
                    char ret_reason[DM_REASON_ROOM])
{
    unsigned failures;

    *ret_is_late = false;
    if (dm_module_is_loaded(module))
        return true;
    if (!is_under_way(module, &failures) && dm_thread_start(load_in_thread, module) != 0) {
        snprintf(ret_reason, DM_REASON_ROOM, "%.60s cannot be loaded: no thread can be started", module->name);
        return false;
    }
    *ret_is_late = await_load(module, failures, deadline, ret_reason);
    return dm_module_is_loaded(module);
}

/* ---- fork -------------------------------------------------------------------------------- */

static bool is_any_under_way(void)
{
    const struct dm_module *module = loading.modules;

    while (module && module->under_way == 0)
        module = module->next;
    return module;
}

static bool is_fork_waited; /* for the handlers after fork(), in the thread that forks */

void dm_module_fork_prepare(void)
{
    struct dm_deadline until = dm_deadline_in_ms(FORK_WAITS_MS);
    bool is_late = false;

    is_fork_waited = dm_real.mutex_clocklock(&loading.lock, until.clock, &until.at) == 0;
    while (is_fork_waited && is_any_under_way() && !is_late)
        is_late = dm_real.cond_clockwait(&loading.ended, &loading.lock, until.clock, &until.at) != 0;
}

void dm_module_fork_parent(void)
{
    if (is_fork_waited)
        dm_real.mutex_unlock(&loading.lock);
}

/* After a bare fork (base/self.h) no handler has taken the lock. */
void dm_module_fork_child(void)
{
    static const pthread_mutex_t fresh_lock = PTHREAD_MUTEX_INITIALIZER;
    static const pthread_cond_t fresh_cond = PTHREAD_COND_INITIALIZER;

    if (is_fork_waited)
        dm_real.mutex_unlock(&loading.lock); /* for the race detector, which has seen the lock taken */
    loading.lock = fresh_lock;
    loading.ended = fresh_cond;
    for (struct dm_module *module = loading.modules; module; module = module->next)
        module->under_way = 0;
    is_fork_waited = false;
}
