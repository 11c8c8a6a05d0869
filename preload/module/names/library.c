/* SPDX-License-Identifier: BSD-2-Clause */
#include "library.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include "lost.h"
#include "module/base/gate.h"
#include "module/base/own_lock.h"
#include "module/base/settings.h"
#include "shared/text.h"

#define LIBRARY "libdmutex.so.0"

__thread unsigned library_depth;

static struct library library;
static bool is_open;
static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;              /* uses libc's own functions */
static __thread bool is_told __attribute__((tls_model("initial-exec"))); /* libdmutex knows of this thread's fork() */
static bool is_torn;

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
    { offsetof(struct library, configure), "dmutex_configure_np" },
    { offsetof(struct library, strerror), "dmutex_strerror_np" },
};

/* Ends the process. Few programs check the result of pthread_mutex_lock(), so it would go on as if it had the mutex. */
static void give_up(const char *what, const char *more)
{
    text_say("a named mutex was locked, but ", what, more, NULL);
    _exit(126);
}

static void give_up_library(void)
{
    give_up(dlerror(), "; is libdmutex installed as this module is?");
}

/* Looks in the folder above the module's, then where the loader looks. `opening` is held, which guards the path. */
static void *find_library(void)
{
    static char path[4096];
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
            give_up_library();
        *(void **)((char *)&library + wanted[i].slot) = found;
    }
}

/* ---- fork() ------------------------------------------------------------------------------ */

/* libdmutex's own handlers were registered before these, so if fork() calls these, it has called them, too. */
static void before_fork(void)
{
    is_told = true;
}

static void in_parent(void)
{
    is_told = false;
}

/* A fork() that began before libdmutex was loaded, and continued after it was used, calls none of its handlers. */
void library_in_child(void)
{
    const pthread_mutex_t unlocked = PTHREAD_MUTEX_INITIALIZER;

    opening = unlocked;
    is_torn |= is_open && !is_told;
    is_open &= !is_torn;
    is_told = false;
}

/* ---- opening ----------------------------------------------------------------------------- */

/*
 * An allocator that makes threads, as jemalloc does, may let a thread's first allocation wait for a pthread_create(),
 * which waits for each dlopen() of the process.  So the first allocation must not be dlopen()'s.
 */
static void allocate_first(void)
{
    void *volatile block = malloc(1); /* volatile: or the compiler leaves both calls out */

    free(block);
}

static void load(void)
{
    static bool is_loaded;
    void *handle;
    int cancel_state;

    gate_enter();
    cancel_state = own_lock(&opening);
    if (!is_loaded) {
        handle = find_library();
        if (!handle)
            give_up_library();
        fill_in(handle);
        pthread_atfork(before_fork, in_parent, NULL);
        is_loaded = true;
    }
    own_unlock(&opening, cancel_state);
    gate_leave();
}

/* A program that used libdmutex before already has a server (EBUSY). */
static void tell_server(void)
{
    const struct settings *settings = settings_get();

    if (settings->url_fault) {
        settings_say_url_fault();
        give_up("there is no server", "");
    }
    if (settings->is_url_secret)
        library.configure(settings->url);
}

/*
 * A fork() that began before the library was loaded does not know the library's handlers, and has none of its mutexes.
 * Inside the gate it would wait for another fork() that has.
 */
static void open_library(void)
{
    if (is_torn)
        give_up("libdmutex was being opened while this process was forked", "");
    allocate_first();
    load();
    gate_await_forks();
    tell_server();
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
