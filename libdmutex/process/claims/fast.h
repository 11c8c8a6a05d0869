/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fast path into a mutex whose hold the process has: a lock and an unlock cost two swaps and two clock reads.
 *
 * A table leads from the hash of a name to its tenure (core/tenure.h), if the tenure is open.  A mutex knows its hash
 * once it has been locked under the state lock.  Two names may share a slot of the table: then the one published last
 * has the fast path, and threads that lock the other take the state lock, without asking the store.
 *
 * Only objects with a name that are neither robust nor fair and have no maximum hold time take the fast path.  All
 * other mutexes, and every doubt or failure, take the path of acquire.c and release.c, which decides everything.
 */
#ifndef DM_PROCESS_CLAIMS_FAST_H
#define DM_PROCESS_CLAIMS_FAST_H

#include <stddef.h>
#include <string.h>

#include "base/clock.h"
#include "base/probe.h"
#include "base/self.h"
#include "core/tenure.h"
#include "dmutex/types.h"

#define DM_FAST_PLACES 1024u

extern struct dm_tenure *dm_fast_table[DM_FAST_PLACES]; /* atomic */

/* The hash of a registry key, never 0. */
uint32_t dm_fast_hash(const char *key);

/* A tenure of the pool; NULL without memory.  State lock held. */
struct dm_tenure *dm_fast_take(void);

/* Puts a tenure back into the pool, closed and out of the table.  State lock held. */
void dm_fast_return(struct dm_tenure *tenure);

/* Shows the tenure to all threads, or takes it out of the table.  State lock held. */
void dm_fast_show(struct dm_tenure *tenure);
void dm_fast_hide(struct dm_tenure *tenure);

/* The child of fork() has no tenures. */
void dm_fast_fork_child(void);

/* ---- the path itself ---------------------------------------------------------------------- */

/*
 * NULL: there is none, or the slot has another hash.  A thread that swapped the word of another name would make that
 * name busy for a moment.
 */
static inline struct dm_tenure *dm_fast_find(const dmutex_t *mutex)
{
    uint32_t hash = __atomic_load_n(&mutex->dm_hash, __ATOMIC_RELAXED);
    struct dm_tenure *tenure = hash ? __atomic_load_n(&dm_fast_table[hash % DM_FAST_PLACES], __ATOMIC_ACQUIRE) : NULL;

    return tenure && __atomic_load_n(&tenure->hash, __ATOMIC_RELAXED) == hash ? tenure : NULL;
}

/*
 * Only for a thread inside: the name stays while a thread is inside.  Compares words, because strcmp() would be a call.
 * A name is padded with zeros (dm_registry_name(), dmutex_init_np()); other bytes only lead to the state lock.
 */
static inline bool dm_fast_is_of(const struct dm_tenure *tenure, const dmutex_t *mutex)
{
    const char *name = tenure->key + 1;

    if (mutex->dm_lease_ms != tenure->lease_ms)
        return false;
    for (size_t at = 0; at < tenure->name_size; at += DM_TENURE_WORD) {
        if (memcmp(name + at, mutex->dm_name + at, DM_TENURE_WORD) != 0)
            return false;
    }
    return true;
}

static inline bool dm_fast_is_certain(const struct dm_tenure *tenure, int64_t now_ns)
{
    return now_ns < __atomic_load_n(&tenure->until_ns, __ATOMIC_RELAXED);
}

static inline bool dm_fast_is_plain(const dmutex_t *mutex)
{
    return !mutex->dm_fairness && !mutex->dm_robust && !mutex->dm_maxhold_ms;
}

/* One level more or less, for the thread inside. */
static inline bool dm_fast_deepen(struct dm_tenure *tenure, const dmutex_t *mutex, int levels)
{
    uint32_t depth = dm_tenure_depth(tenure) + (uint32_t)levels;

    if (depth < 1 || depth > DM_DEPTH_MAX || !dm_fast_is_of(tenure, mutex) ||
        !dm_fast_is_certain(tenure, dm_clock_boot_ns()))
        return false;
    dm_tenure_set_depth(tenure, depth);
    return true;
}

/*
 * A thread that is inside by mistake goes out at once, as by an unlock: otherwise the loop thread would take it for the
 * holder of an idle lease that has ended, and report a loss.  dm_step_put_back() puts back a word that has changed.
 */
static inline void dm_fast_go_out(struct dm_tenure *tenure, uint64_t mine)
{
    if (!__atomic_compare_exchange_n(&tenure->word, &mine, DM_TENURE_OPEN, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        dm_self_fast.misled = tenure;
}

/*
 * True: the calling thread holds the mutex.  False: nothing is decided, and the caller takes the state lock; if
 * dm_self_fast.misled is set, it calls dm_step_put_back() first.
 */
static inline bool dm_fast_lock(dmutex_t *mutex)
{
    struct dm_tenure *tenure = dm_fast_find(mutex);
    uint64_t me = dm_self_fast.serial, expected = DM_TENURE_OPEN, mine = me << DM_TENURE_SHIFT | DM_TENURE_OPEN;
    uint32_t number;

    if (!tenure || !me || !dm_fast_is_plain(mutex))
        return false;
    if (!__atomic_compare_exchange_n(&tenure->word, &expected, mine, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return expected >> DM_TENURE_SHIFT == me && mutex->dm_type == PTHREAD_MUTEX_RECURSIVE &&
               dm_fast_deepen(tenure, mutex, 1);
    number = dm_tenure_number(tenure);
    if (!dm_fast_is_certain(tenure, dm_clock_boot_ns()) || !dm_fast_is_of(tenure, mutex) ||
        number >= __atomic_load_n(&tenure->last, __ATOMIC_RELAXED)) {
        dm_fast_go_out(tenure, mine);
        return false;
    }
    __atomic_store_n(&tenure->number, number + 1, __ATOMIC_RELAXED);
    dm_tenure_set_depth(tenure, 1);
    dm_self_fast.has_entered = true;
    DM_PROBE_ACQUIRED(mutex->dm_name, 0);
    return true;
}

/* True: the calling thread has left.  False: nothing is decided. */
static inline bool dm_fast_unlock(dmutex_t *mutex)
{
    struct dm_tenure *tenure = dm_fast_find(mutex);
    uint64_t mine = dm_self_fast.serial << DM_TENURE_SHIFT | DM_TENURE_OPEN;
    uint64_t word = tenure ? __atomic_load_n(&tenure->word, __ATOMIC_RELAXED) : 0;
    const char *name; /* not the object's: another thread may free the object */
    int64_t now_ns;

    if (word >> DM_TENURE_SHIFT == 0 || word >> DM_TENURE_SHIFT != dm_self_fast.serial)
        return false;
    if (dm_tenure_depth(tenure) > 1)
        return dm_fast_deepen(tenure, mutex, -1);
    if (word != mine || !dm_fast_is_of(tenure, mutex))
        return false;
    now_ns = dm_clock_boot_ns();
    if (!dm_fast_is_certain(tenure, now_ns))
        return false;
    name = tenure->key + 1;
    __atomic_store_n(&tenure->left_ns, now_ns, __ATOMIC_RELAXED);
    if (!__atomic_compare_exchange_n(&tenure->word, &mine, DM_TENURE_OPEN, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        return false;
    DM_PROBE_RELEASED(name);
    return true;
}

#endif
