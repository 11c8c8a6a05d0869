/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of the program's named mutexes and condition variables: addresses, and the data that belong to each. Filled
 * by modules.h and lookup.h.
 *
 * An object that no rule names costs two comparisons, and a look into a filter if it lies between named objects.
 * Records are never freed, because a thread may be about to use a record whose memory was just unmapped. An object that
 * comes back to the same place gets the same record again.
 */
#ifndef DM_PRELOAD_OBJECTS_H
#define DM_PRELOAD_OBJECTS_H

#include <dmutex/dmutex.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "shared/rules.h"

enum object_state { OBJECT_NEW, OBJECT_READY, OBJECT_REFUSED };

struct object {
    const void *address; /* NULL: gone */
    const void *place;   /* the address, even if the object is gone */
    const struct rule *rule;
    const void *module;       /* the module that contains it; NULL: in a mapping */
    enum object_state state;  /* READY: `mutex` or `condition` is set up; written last */
    bool is_explained;        /* a message about the object was printed */
    bool has_local_waiters;   /* of a condition: a thread waits on the program's own */
    char name[201];           /* of the mutex or the condition */
    pthread_mutex_t sleeping; /* of a mutex: guards waits on conditions without a name */
    union {
        dmutex_t mutex;
        dcond_t condition;
    };
    struct object_counts {
        uint64_t locks, waits, wait_ns, hold_ns, losses, handoffs;
        uint64_t since_ns; /* when the current hold began */
    } counts;
    struct object *next; /* of all objects */
};

/*
 * Says which objects may be named: an address between these bounds that hits the filter, in which two bits of a
 * thousand are set for ten rules; and a process-shared object, if there are rules for mappings. All addresses may be
 * named before objects_begin(), so that a function that found an address unnamed may use libc's functions without
 * checking; with --list; and while a thread is in dlopen().
 */
struct objects_watch {
    uintptr_t low, span;
    uint64_t all; /* all bits, or none: ORed into each word of the filter */
    bool has_mappings;
    uint64_t filter[64];
};

extern struct objects_watch objects_watch;

/* The upper bits of a product with the golden ratio: consecutive addresses are spread evenly. */
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

/* glibc's bits, set when the object was initialised, in any process. */
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

/* From now on watches only the named part of the memory, unless the settings want all. */
void objects_begin(void);

/* The rule of a process-shared object that no rule names: remembered, because reading /proc/self/maps is slow. */
extern const struct rule objects_nobody;

/* Names this address. module: the one that contains the object, NULL for an object in a mapping. */
void objects_add(const void *address, const struct rule *rule, const char *path, const void *module);

/* The record of the object at this address, or NULL. */
struct object *objects_find(const void *address);

/* Called around dlopen(): constructors of the loaded library may lock objects that will be named. */
void objects_begin_loading(void);
void objects_end_loading(void);

/* True while the calling thread is in dlopen(). */
bool objects_is_loading(void);

/* All objects of this module, or in this memory, are gone. */
void objects_forget_module(const void *module);
void objects_forget_memory(uintptr_t from, size_t size);

/* Held while an object is being made ready. */
extern pthread_mutex_t objects_making;

/* Called in a child of fork(): forgets the unfinished work of other threads. */
void objects_in_child(void);

/* All that ever existed, newest first. */
struct object *objects_first(void);

#endif
