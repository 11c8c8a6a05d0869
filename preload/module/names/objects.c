/* SPDX-License-Identifier: BSD-2-Clause */
#include "objects.h"

#include <string.h>
#include <unistd.h>

#include "module/base/gate.h"
#include "module/base/memory.h"
#include "module/base/own_lock.h"
#include "module/base/settings.h"

struct objects_watch objects_watch = { .span = UINTPTR_MAX, .all = UINT64_MAX }; /* everything, until objects_begin() */

/*
 * Open addressing, read without a lock. A slot is written once; the record of an object that is gone keeps its slot,
 * but loses the address. A table that is half full is replaced by a larger one, and stays in memory for its readers.
 */
struct table {
    size_t size;    /* a power of two */
    unsigned shift; /* leaves as many bits of a hash as the size needs */
    size_t used;
    struct object *slots[];
};

static struct table *table;
static struct object *newest;
static struct {
    uintptr_t low, span;
} named; /* where objects in modules are */
static bool is_listing;
static unsigned loading;                                                         /* threads in dlopen() */
static __thread unsigned own_loading __attribute__((tls_model("initial-exec"))); /* of the calling thread */
static pthread_mutex_t writing = PTHREAD_MUTEX_INITIALIZER;                      /* uses libc's own functions */

pthread_mutex_t objects_making = PTHREAD_MUTEX_INITIALIZER; /* uses them, too */

const struct rule objects_nobody;

/* ---- memory ------------------------------------------------------------------------------ */

static void *get_memory(size_t size)
{
    return memory_get(size, "the named mutexes", 126);
}

/* Records are cut from pages. `writing` is held. */
static struct object *get_record(void)
{
    static char *page;
    static size_t left;
    struct object *record;

    if (left < sizeof *record) {
        left = 64 * sizeof *record;
        page = get_memory(left);
    }
    record = (struct object *)(void *)page;
    page += sizeof *record;
    left -= sizeof *record;
    return record;
}

/* ---- the table --------------------------------------------------------------------------- */

static size_t slot_of(const struct table *in, const void *address)
{
    return (size_t)(objects_hash(address) >> in->shift);
}

static void put(struct table *in, struct object *object)
{
    size_t at = slot_of(in, object->place);

    while (in->slots[at])
        at = (at + 1) & (in->size - 1);
    __atomic_store_n(&in->slots[at], object, __ATOMIC_RELEASE);
    in->used++;
}

/* `writing` is held. */
static void make_room(void)
{
    size_t size = table ? table->size * 2 : 256;
    struct table *larger;

    if (table && table->used * 2 < table->size)
        return;
    larger = get_memory(sizeof *larger + size * sizeof larger->slots[0]);
    larger->size = size;
    larger->shift = 64 - (unsigned)__builtin_ctzll(size);
    for (struct object *object = newest; object; object = object->next)
        put(larger, object);
    __atomic_store_n(&table, larger, __ATOMIC_RELEASE);
}

struct object *objects_find(const void *address)
{
    const struct table *in = __atomic_load_n(&table, __ATOMIC_ACQUIRE);
    struct object *object;

    if (!in)
        return NULL;
    for (size_t at = slot_of(in, address); (object = __atomic_load_n(&in->slots[at], __ATOMIC_ACQUIRE));
         at = (at + 1) & (in->size - 1))
        if (__atomic_load_n(&object->address, __ATOMIC_ACQUIRE) == address)
            return object;
    return NULL;
}

static int begin_writing(void)
{
    gate_enter();
    return own_lock(&writing);
}

static void end_writing(int cancel_state)
{
    own_unlock(&writing, cancel_state);
    gate_leave();
}

/* ---- adding and forgetting --------------------------------------------------------------- */

/*
 * `writing` is held. Writes the size first, so that a reader, which reads in the opposite order, always sees all of the
 * previously watched part.
 */
static void publish(void)
{
    bool is_all = is_listing || loading;

    __atomic_store_n(&objects_watch.all, is_all ? UINT64_MAX : 0, __ATOMIC_RELEASE);
    __atomic_store_n(&objects_watch.span, is_all || objects_watch.has_mappings ? UINTPTR_MAX : named.span,
                     __ATOMIC_RELEASE);
    __atomic_store_n(&objects_watch.low, named.low, __ATOMIC_RELEASE);
}

static void set_filter(uintptr_t address)
{
    uint64_t hash = objects_hash((const void *)address);

    __atomic_fetch_or(&objects_watch.filter[hash >> 58], UINT64_C(1) << (hash >> 52 & 63), __ATOMIC_RELEASE);
}

/* Extends the watched part. Objects in mappings have their own bit, because mappings would make the part huge. */
static void watch(uintptr_t address)
{
    uintptr_t high = named.low + named.span;

    named.low = named.span == 0 || address < named.low ? address : named.low;
    high = address + 1 > high ? address + 1 : high;
    named.span = high - named.low;
    set_filter(address);
    publish();
}

/* Finds the record of an object that is gone, or NULL. */
static struct object *find_gone(const void *address, const struct rule *rule, const char *name)
{
    struct object *object;

    for (size_t at = slot_of(table, address); (object = table->slots[at]); at = (at + 1) & (table->size - 1))
        if (object->place == address && object->rule == rule && strcmp(object->name, name) == 0)
            return object;
    return NULL;
}

/* Finds or makes a record that is not in use yet. `writing` is held. */
static struct object *record_for(const void *address, const struct rule *rule, const char *name)
{
    struct object *object;

    make_room();
    object = find_gone(address, rule, name);
    if (object)
        return object;
    object = get_record();
    *object = (struct object){ .place = address, .rule = rule, .next = newest };
    pthread_mutex_t unlocked = PTHREAD_MUTEX_INITIALIZER;
    object->sleeping = unlocked;
    strcpy(object->name, name);
    put(table, object);
    newest = object;
    return object;
}

void objects_add(const void *address, const struct rule *rule, const char *path, const void *module)
{
    struct object *object;
    char name[sizeof object->name] = "";
    int cancel_state;

    if (rule != &objects_nobody && !settings_name(rule, path, name, sizeof name)) {
        if (rule->required == REQUIRED_NO)
            return;
        _exit(78); /* as for a rule that cannot be read */
    }
    cancel_state = begin_writing();
    if (!objects_find(address)) {
        object = record_for(address, rule, name);
        object->module = module;
        __atomic_store_n(&object->state, OBJECT_NEW, __ATOMIC_RELEASE);
        __atomic_store_n(&object->address, address, __ATOMIC_RELEASE);
        if (module)
            watch((uintptr_t)address);
    }
    end_writing(cancel_state);
}

static void forget(struct object *object)
{
    __atomic_store_n(&object->address, NULL, __ATOMIC_RELEASE);
}

void objects_forget_module(const void *module)
{
    int cancel_state = begin_writing();

    for (struct object *object = newest; object; object = object->next)
        if (object->module == module)
            forget(object);
    end_writing(cancel_state);
}

void objects_forget_memory(uintptr_t from, size_t size)
{
    int cancel_state = begin_writing();

    for (struct object *object = newest; object; object = object->next)
        if (object->address && !object->module && (uintptr_t)object->address - from < size)
            forget(object);
    end_writing(cancel_state);
}

bool objects_is_loading(void)
{
    return own_loading > 0;
}

static void change_loading(int by)
{
    int cancel_state = begin_writing();

    loading += (unsigned)by;
    own_loading += (unsigned)by;
    publish();
    end_writing(cancel_state);
}

void objects_begin_loading(void)
{
    change_loading(1);
}

void objects_end_loading(void)
{
    change_loading(-1);
}

/* ---- fork() ------------------------------------------------------------------------------ */

/*
 * The other threads are gone. A thread that was making an object has not finished it; no thread sleeps or loads; and no
 * lock of this process has been counted yet.
 */
void objects_in_child(void)
{
    const pthread_mutex_t unlocked = PTHREAD_MUTEX_INITIALIZER;

    objects_making = unlocked;
    for (struct object *object = newest; object; object = object->next) {
        object->sleeping = unlocked;
        object->counts = (struct object_counts){ 0 };
    }
    writing = unlocked;
    loading = own_loading;
    publish();
}

/* ---- all --------------------------------------------------------------------------------- */

struct object *objects_first(void)
{
    return newest;
}

void objects_begin(void)
{
    const struct settings *settings = settings_get();

    is_listing = settings->list_folder != NULL;
    objects_watch.has_mappings = settings->has_mappings;
    publish();
}
