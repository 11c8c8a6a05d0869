/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The mutexes and condition variables of the program that have names: by address, what stands beside
 * them.
 *
 * An object that no rule names costs two compares.  Records are never freed, for a thread may be about to
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
 * What may be named: addresses from `low` on.  All of them before objects_begin(), so that whoever
 * found that an address is not among them may use libc's functions without a look; with --list; if
 * there are rules for mappings; and while a thread is in dlopen().
 */
struct objects_watch {
    uintptr_t low, span;
};

extern struct objects_watch objects_watch;

/* What it is looked for: --list counts locks and waits. */
enum object_use { USE_LOCK, USE_OTHER };

struct object *objects_look_for_mutex(const pthread_mutex_t *mutex, enum object_use use);
struct object *objects_look_for_condition(const pthread_cond_t *condition, enum object_use use);

static inline bool objects_may_have(const void *address)
{
    uintptr_t low = __atomic_load_n(&objects_watch.low, __ATOMIC_ACQUIRE);

    return (uintptr_t)address - low < __atomic_load_n(&objects_watch.span, __ATOMIC_RELAXED);
}

/* The record of what is named, or NULL. */
static inline struct object *object_of_mutex(const pthread_mutex_t *mutex, enum object_use use)
{
    if (__builtin_expect(objects_may_have(mutex), 0))
        return objects_look_for_mutex(mutex, use);
    return NULL;
}

static inline struct object *object_of_condition(const pthread_cond_t *condition, enum object_use use)
{
    if (__builtin_expect(objects_may_have(condition), 0))
        return objects_look_for_condition(condition, use);
    return NULL;
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

/* Called at fork(): the child's objects are whole, and what other threads were about to do is forgotten. */
void objects_before_fork(void);
void objects_after_fork(void);
void objects_in_child(void);

/* All there ever were, newest first. */
struct object *objects_first(void);

#endif
