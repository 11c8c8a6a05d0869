/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The mutexes and condition variables of the program that have names: by address, what stands beside
 * them.
 *
 * An object that no rule names costs two compares, and a look into a filter if it lies between those
 * that are named.  Records are never freed, for a thread may be about to
 * use one whose memory is just unmapped, but what comes back to its place has its record again.
 */
#ifndef DM_PRELOAD_OBJECTS_H
#define DM_PRELOAD_OBJECTS_H

#include <dmutex/dmutex.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "rules.h"

enum object_state { OBJECT_NEW, OBJECT_READY, OBJECT_REFUSED };

struct object {
    const void *address; /* NULL: gone */
    const void *place;   /* the address, also when it is gone */
    const struct rule *rule;
    const void *module;       /* in which module; NULL: it is in a mapping */
    enum object_state state;  /* READY: `mutex` or `condition` is set up; written last */
    bool is_explained;        /* a sentence about it was said */
    bool has_local_waiters;   /* of a condition: somebody waits on the program's own */
    char name[201];           /* of the mutex; of a condition: of its own */
    pthread_mutex_t sleeping; /* of a mutex: guards waits on conditions that have no name */
    union {
        dmutex_t mutex;
        dcond_t condition;
    };
    struct object_counts {
        uint64_t locks, waits, wait_ns, hold_ns, losses, handoffs;
        uint64_t since_ns; /* of the hold there is */
    } counts;
    struct object *next; /* of all that there are */
};

/*
 * What may be named: an address of these that hits the filter, where two bits of a thousand are set for
 * ten rules; and what is process-shared, if there are rules for mappings.  All addresses before
 * objects_begin(), so that whoever found that one is not among them may use libc's functions without a
 * look; with --list; and while a thread is in dlopen().
 */
struct objects_watch {
    uintptr_t low, span;
    uint64_t all; /* all bits, or none: what the filter is taken to have besides */
    bool has_mappings;
    uint64_t filter[64];
};

extern struct objects_watch objects_watch;

/* What it is looked for: --list counts locks and waits. */
enum object_use { USE_LOCK, USE_OTHER };

struct object *objects_look_for_mutex(const pthread_mutex_t *mutex, enum object_use use);
struct object *objects_look_for_condition(const pthread_cond_t *condition, enum object_use use);

/* The upper bits of a product with the golden ratio: what lies in a row is spread evenly. */
static inline uint64_t objects_hash(const void *address)
{
    return (uint64_t)(uintptr_t)address * UINT64_C(0x9e3779b97f4a7c15);
}

static inline bool objects_is_near(const void *address)
{
    uintptr_t low = __atomic_load_n(&objects_watch.low, __ATOMIC_ACQUIRE);

    return (uintptr_t)address - low < __atomic_load_n(&objects_watch.span, __ATOMIC_RELAXED);
}

static inline bool objects_hits_filter(const void *address)
{
    uint64_t hash = objects_hash(address);
    uint64_t word = __atomic_load_n(&objects_watch.filter[hash >> 58], __ATOMIC_RELAXED);

    return ((word | __atomic_load_n(&objects_watch.all, __ATOMIC_RELAXED)) >> (hash >> 52 & 63)) & 1;
}

/* glibc's bits: set by whoever initialised the object, in any process. */
static inline bool mutex_is_shared(const pthread_mutex_t *mutex)
{
    return (mutex->__data.__kind & 0x80) != 0;
}

static inline bool condition_is_shared(const pthread_cond_t *condition)
{
    return (condition->__data.__wrefs & 1) != 0;
}

static inline bool objects_may_have_mutex(const pthread_mutex_t *mutex)
{
    return __builtin_expect(objects_is_near(mutex), 0) &&
           __builtin_expect(objects_hits_filter(mutex) || (objects_watch.has_mappings && mutex_is_shared(mutex)), 0);
}

static inline bool objects_may_have_condition(const pthread_cond_t *condition)
{
    return objects_is_near(condition) &&
           (objects_hits_filter(condition) || (objects_watch.has_mappings && condition_is_shared(condition)));
}

/* The record of what is named, or NULL. */
static inline struct object *object_of_mutex(const pthread_mutex_t *mutex, enum object_use use)
{
    return objects_may_have_mutex(mutex) ? objects_look_for_mutex(mutex, use) : NULL;
}

static inline struct object *object_of_condition(const pthread_cond_t *condition, enum object_use use)
{
    return objects_may_have_condition(condition) ? objects_look_for_condition(condition, use) : NULL;
}

/* Starts to watch; called by the module's constructor, or by the first of its calls. */
void objects_begin(void);

/* Somebody named this address.  module: who its module is, NULL for one in a mapping. */
void objects_add(const void *address, const struct rule *rule, const char *path, const void *module);

/* Around dlopen(): constructors of what it loads may lock what is named there. */
void objects_begin_loading(void);
void objects_end_loading(void);

/* All objects of this module, or in this memory, are gone. */
void objects_forget_module(const void *module);
void objects_forget_memory(uintptr_t from, size_t size);

/* Held while an object gets ready. */
extern pthread_mutex_t objects_making;

/* Called in a child of fork(): what other threads were about to do is forgotten. */
void objects_in_child(void);

/* All there ever were, newest first. */
struct object *objects_first(void);

#endif
