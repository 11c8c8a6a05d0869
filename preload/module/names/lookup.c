/* SPDX-License-Identifier: BSD-2-Clause */
#include "lookup.h"

#include "maps.h"
#include "module/base/real.h"
#include "module/base/scratch.h"
#include "modules.h"

static bool has_begun;

void lookup_begin(void)
{
    if (has_begun)
        return;
    has_begun = true;
    real_get();
    objects_begin();
    modules_update();
    modules_require();
}

/* Runs at the very first call, or at a call by a constructor of a library that is being loaded. */
static __attribute__((noinline)) void catch_up(void)
{
    lookup_begin();
    if (objects_is_loading())
        modules_update();
}

/* The first time a shared object is seen, it is decided once and for all whether a rule names it. */
static struct object *look_into_maps(const void *address, bool is_condition)
{
    char *path = scratch_take(MAPS_PATH_ROOM);
    uint64_t offset;
    const struct rule *rule = NULL;

    if (path && maps_find(address, path, &offset))
        rule = maps_rule(path, offset, is_condition);
    objects_add(address, rule ? rule : &objects_nobody, path ? path : "", NULL);
    scratch_give(path, MAPS_PATH_ROOM);
    return objects_find(address);
}

static inline struct object *look(const void *address, bool is_condition, bool is_shared)
{
    struct object *object;

    if (__builtin_expect(!has_begun || objects_is_loading(), 0))
        catch_up();
    object = objects_find(address);
    if (!object && is_shared && objects_watch.has_mappings)
        object = look_into_maps(address, is_condition);
    return object && object->rule != &objects_nobody && object->rule->is_condition == is_condition ? object : NULL;
}

struct object *lookup_mutex(const pthread_mutex_t *mutex)
{
    return look(mutex, false, mutex_is_shared(mutex));
}

struct object *lookup_condition(const pthread_cond_t *condition)
{
    return look(condition, true, condition_is_shared(condition));
}
