/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libdmutex, opened when a named object is first used: a process that uses none has no thread, socket or file of ours.
 */
#ifndef DM_PRELOAD_LIBRARY_H
#define DM_PRELOAD_LIBRARY_H

#include <dmutex/dmutex.h>
#include <stdbool.h>

struct library {
    __typeof__(&dmutex_init_np) mutex_init;
    __typeof__(&dmutex_destroy) mutex_destroy;
    __typeof__(&dmutex_lock) mutex_lock;
    __typeof__(&dmutex_trylock) mutex_trylock;
    __typeof__(&dmutex_clocklock) mutex_clocklock;
    __typeof__(&dmutex_unlock) mutex_unlock;
    __typeof__(&dmutex_consistent) mutex_consistent;
    __typeof__(&dmutex_holdcount_np) mutex_holdcount;
    __typeof__(&dmutex_token_np) mutex_token;
    __typeof__(&dmutexattr_init) attr_init;
    __typeof__(&dmutexattr_settype) attr_settype;
    __typeof__(&dmutexattr_setrobust) attr_setrobust;
    __typeof__(&dmutexattr_setlease_np) attr_setlease;
    __typeof__(&dmutexattr_setlinger_np) attr_setlinger;
    __typeof__(&dcond_init_np) cond_init;
    __typeof__(&dcond_destroy) cond_destroy;
    __typeof__(&dcond_wait) cond_wait;
    __typeof__(&dcond_clockwait) cond_clockwait;
    __typeof__(&dcond_timedwait) cond_timedwait;
    __typeof__(&dcond_signal) cond_signal;
    __typeof__(&dcond_broadcast) cond_broadcast;
    __typeof__(&dcondattr_init) condattr_init;
    __typeof__(&dcondattr_setclock) condattr_setclock;
    __typeof__(&dmutex_setlost_np) setlost;
    __typeof__(&dmutex_configure_np) configure;
    __typeof__(&dmutex_strerror_np) strerror;
};

/*
 * Opens libdmutex if necessary. If it cannot be opened, no named mutex can be locked, so this reports it and ends the
 * process.
 */
const struct library *library_get(void);

/* Called at fork(). */
void library_in_child(void);

/*
 * While a thread is inside libdmutex, no mutex that it locks is named: libdmutex, and the libraries below it, have
 * their own mutexes. Nests; a thread that is cancelled inside also leaves.
 */
extern __thread unsigned library_depth __attribute__((tls_model("initial-exec")));

static inline bool library_is_inside(void)
{
    return library_depth > 0;
}
static inline void library_enter(void)
{
    library_depth++;
}
static inline void library_leave(void)
{
    library_depth--;
}

#endif
