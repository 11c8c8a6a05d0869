/* SPDX-License-Identifier: BSD-2-Clause */
#include "library.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <unistd.h>

#include "lost.h"
#include "real.h"
#include "text.h"

#define LIBRARY "libdmutex.so.0"

__thread unsigned library_depth;

static struct library library;
static bool is_open;
static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER; /* by libc's own functions; held over fork() */
static unsigned forks;                                      /* those that have it, or wait for it */
static __thread bool is_forking __attribute__((tls_model("initial-exec"))); /* it has it */

static const struct {
    size_t slot;
    const char *name;
} wanted[] = {
    { offsetof(struct library, mutex_init), "dmutex_init_np" },
    { offsetof(struct library, mutex_destroy), "dmutex_destroy" },
    { offsetof(struct library, mutex_lock), "dmutex_lock" },
    { offsetof(struct library, mutex_trylock), "dmutex_trylock" },
    { offsetof(struct library, mutex_clocklock), "dmutex_clocklock" },
    { offsetof(struct library, mutex_unlock), "dmutex_unlock" },
    { offsetof(struct library, mutex_consistent), "dmutex_consistent" },
    { offsetof(struct library, mutex_holdcount), "dmutex_holdcount_np" },
    { offsetof(struct library, mutex_token), "dmutex_token_np" },
    { offsetof(struct library, attr_init), "dmutexattr_init" },
    { offsetof(struct library, attr_settype), "dmutexattr_settype" },
    { offsetof(struct library, attr_setrobust), "dmutexattr_setrobust" },
    { offsetof(struct library, attr_setlease), "dmutexattr_setlease_np" },
    { offsetof(struct library, attr_setlinger), "dmutexattr_setlinger_np" },
    { offsetof(struct library, cond_init), "dcond_init_np" },
    { offsetof(struct library, cond_destroy), "dcond_destroy" },
    { offsetof(struct library, cond_wait), "dcond_wait" },
    { offsetof(struct library, cond_clockwait), "dcond_clockwait" },
    { offsetof(struct library, cond_timedwait), "dcond_timedwait" },
    { offsetof(struct library, cond_signal), "dcond_signal" },
    { offsetof(struct library, cond_broadcast), "dcond_broadcast" },
    { offsetof(struct library, condattr_init), "dcondattr_init" },
    { offsetof(struct library, condattr_setclock), "dcondattr_setclock" },
    { offsetof(struct library, setlost), "dmutex_setlost_np" },
    { offsetof(struct library, strerror), "dmutex_strerror_np" },
};

/* The program would go on as if it had the mutex: few look at what pthread_mutex_lock() returns. */
static void give_up(const char *what)
{
    text_say("a named mutex was locked, but ", what, "; is libdmutex installed as this module is?", NULL);
    _exit(126);
}

/* In the folder above the module's own, if this is not there: where the loader looks. */
static void *find_library(void)
{
    char path[4096];
    struct text text = text_in(path, sizeof path);
    Dl_info info;
    void *handle = real_get()->dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);

    if (!handle && dladdr(wanted, &info)) {
        text_add_bytes(&text, info.dli_fname, (size_t)(text_basename(info.dli_fname) - info.dli_fname));
        text_add(&text, "../" LIBRARY);
        handle = text.is_cut ? NULL : real_get()->dlopen(path, RTLD_NOW | RTLD_LOCAL);
    }
    return handle ? handle : real_get()->dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
}

static void fill_in(void *handle)
{
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        void *found = dlsym(handle, wanted[i].name);

        if (!found)
            give_up(dlerror());
        *(void **)((char *)&library + wanted[i].slot) = found;
    }
}

static void load(void)
{
    static bool is_loaded;
    void *handle;

    if (is_loaded)
        return;
    handle = find_library();
    if (!handle)
        give_up(dlerror());
    fill_in(handle);
    is_loaded = true;
}

/* A fork() that began before the library was loaded does not know of its handlers, and has none of its mutexes. */
static void await_forks(void)
{
    while (__atomic_load_n(&forks, __ATOMIC_ACQUIRE) > 0)
        sched_yield();
}

/*
 * With `opening`, only what needs none of the library's mutexes is done: fork() has these, and waits for it.
 * Handlers of fork() may be the first who lock what is named.
 */
static void open_library(void)
{
    if (is_forking) {
        load();
    } else {
        real_get()->mutex_lock(&opening);
        load();
        real_get()->mutex_unlock(&opening);
        await_forks();
    }
    library.setlost(lost_tell, NULL);
    __atomic_store_n(&is_open, true, __ATOMIC_RELEASE);
}

const struct library *library_get(void)
{
    int error = errno;

    if (!__atomic_load_n(&is_open, __ATOMIC_ACQUIRE)) {
        library_enter();
        open_library();
        library_leave();
        errno = error;
    }
    return &library;
}

void library_before_fork(void)
{
    __atomic_add_fetch(&forks, 1, __ATOMIC_ACQ_REL);
    real_get()->mutex_lock(&opening);
    is_forking = true;
}

void library_after_fork(void)
{
    is_forking = false;
    real_get()->mutex_unlock(&opening);
    __atomic_sub_fetch(&forks, 1, __ATOMIC_ACQ_REL);
}

void library_in_child(void)
{
    library_after_fork();
    forks = 0;
}
