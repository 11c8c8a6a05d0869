/* SPDX-License-Identifier: BSD-2-Clause */
#include "names/automatic.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/image.h"
#include "base/log.h"
#include "dmutex/error.h"

enum fault { NO_FAULT, TWICE, FOLDER, PLACE };

/*
 * An entry of the list has one object or, with the fault PLACE, a name that no listed object has. Entries are added at
 * the front and never freed, so readers need no lock and pointers stay valid. Modules are loaded one at a time, under
 * the loader's lock. The entries of an unloaded module stay, and are reused.
 */
struct entry {
    struct entry *next;
    void *object; /* atomic; NULL with PLACE */
    int fault;    /* atomic */
    char name[];
};

static struct entry *entries; /* atomic */

static struct entry *first(void)
{
    return __atomic_load_n(&entries, __ATOMIC_ACQUIRE);
}

/*
 * Finds the entry of an object. An object in the memory of an unloaded module has none. Whether there is a module is
 * checked last, and only for a hit, because the check takes the loader's lock.
 */
static struct entry *find_object(const void *object)
{
    struct entry *entry = first();
    struct dm_image image;

    while (entry && __atomic_load_n(&entry->object, __ATOMIC_RELAXED) != object)
        entry = entry->next;
    return entry && dm_image_find(object, &image) ? entry : NULL;
}

/* The next entry with this name after `entry`; after NULL, the first one. */
static struct entry *next_of_name(struct entry *entry, const char *name)
{
    for (entry = entry ? entry->next : first(); entry; entry = entry->next) {
        if (strcmp(entry->name, name) == 0)
            return entry;
    }
    return NULL;
}

static struct entry *add(void *object, const char *name, enum fault fault)
{
    size_t size = strlen(name) + 1;
    struct entry *entry = malloc(sizeof *entry + size);

    if (!entry)
        return NULL;
    entry->object = object;
    entry->fault = fault;
    memcpy(entry->name, name, size);
    entry->next = first();
    while (!__atomic_compare_exchange_n(&entries, &entry->next, entry, true, __ATOMIC_RELEASE, __ATOMIC_ACQUIRE))
        ;
    return entry;
}

/* ---- faults ------------------------------------------------------------------------------ */

static int fail(enum fault fault, const char *name)
{
    static const enum dm_failure failures[] = {
        [TWICE] = DM_FAIL_AUTOMATIC_TWICE, [FOLDER] = DM_FAIL_AUTOMATIC_FOLDER, [PLACE] = DM_FAIL_AUTOMATIC_PLACE
    };

    return dm_fail(failures[fault], "\"%s\"", name);
}

/*
 * Programs that were written for pthread mutexes ignore EINVAL, so the sentence also goes to standard error, once for
 * each entry.
 */
static int complain(enum fault fault, const char *name, const char *where)
{
    int error = fail(fault, name);

    dm_log_alarm("%s, in %s", dm_error_sentence(), where);
    return error;
}

/* Rule 3. Without memory for the entry the sentence may be printed again; the object is refused in any case. */
static int note_place(const char *name, const void *object)
{
    struct entry *entry = next_of_name(NULL, name);

    while (entry && entry->fault != PLACE)
        entry = next_of_name(entry, name);
    if (entry)
        return fail(PLACE, name);
    add(NULL, name, PLACE);
    return complain(PLACE, name, dm_image_path(object));
}

/* ---- names of a module that is loaded ---------------------------------------------------- */

/*
 * False for an entry without an object, or with an object of an unloaded module. The name is compared because another
 * module may now be at the same address.
 */
static bool is_loaded(const struct entry *entry)
{
    struct dm_image image;
    enum dm_literal_kind kind;

    if (!entry->object || !dm_image_find(entry->object, &image))
        return false;
    kind = dm_literal_at(entry->object);
    return kind && strcmp(dm_literal_name(entry->object, kind), entry->name) == 0;
}

/* Another listed object of the same name, or NULL. */
static struct entry *find_other(const char *name, const void *object)
{
    struct entry *entry = next_of_name(NULL, name);

    while (entry && (entry->object == object || !is_loaded(entry)))
        entry = next_of_name(entry, name);
    return entry;
}

/*
 * Rule 2. The other object was usable, and is marked as unchecked again, so that its next use comes to
 * dm_automatic_settle() and finds the fault. A thread that locks it at this moment may still succeed: its module was
 * loaded, and used, before the second object existed.
 */
static int note_twice(struct entry *other, void *object, const char *name)
{
    bool is_known = __atomic_exchange_n(&other->fault, TWICE, __ATOMIC_RELAXED) == TWICE;

    if (!add(object, name, TWICE))
        return dm_fail(DM_FAIL_NO_MEMORY, NULL);
    if (is_known)
        return fail(TWICE, name);
    *dm_literal_named(other->object, dm_literal_at(other->object)) = DM_NAMED_AUTOMATICALLY;
    return complain(TWICE, name, dm_image_path(object));
}

/* Finds or adds the entry of an object whose name no other has; reuses an entry of an unloaded module. */
static struct entry *list_alone(void *object, const char *name)
{
    struct entry *entry = next_of_name(NULL, name);

    while (entry && !entry->object)
        entry = next_of_name(entry, name);
    if (!entry)
        return add(object, name, NO_FAULT);
    __atomic_store_n(&entry->fault, NO_FAULT, __ATOMIC_RELAXED);
    __atomic_store_n(&entry->object, object, __ATOMIC_RELAXED);
    return entry;
}

/* Runs before the module's code, so nothing else reads these bytes yet, and plain stores are enough. */
static int list_object(void *object, enum dm_literal_kind kind)
{
    char *name = dm_literal_name(object, kind);
    struct entry *other;

    if (!dm_literal_normalise(name)) {
        add(object, name, FOLDER);
        return complain(FOLDER, name, dm_image_path(object));
    }
    other = find_other(name, object);
    if (other)
        return note_twice(other, object, name);
    if (!list_alone(object, name))
        return dm_fail(DM_FAIL_NO_MEMORY, NULL);
    *dm_literal_named(object, kind) = DM_NAMED;
    return 0;
}

/* Returns the first error, after naming all the good objects. */
static int list_objects(uintptr_t from, uintptr_t end)
{
    int result = 0;

    from = (from + DM_LITERAL_ALIGN - 1) / DM_LITERAL_ALIGN * DM_LITERAL_ALIGN;
    while (from + DM_LITERAL_SIZE <= end) {
        void *object = (void *)from; /* NOLINT: an address of the loader's */
        enum dm_literal_kind kind = dm_literal_at(object);

        if (kind && *dm_literal_named(object, kind) == DM_NAMED_AUTOMATICALLY) {
            int error = list_object(object, kind);

            result = result ? result : error;
        }
        from += kind ? DM_LITERAL_SIZE : DM_LITERAL_ALIGN;
    }
    return result;
}

/*
 * Each unit of a module has a constructor that calls this. *is_read belongs to the module: the first call reads all of
 * it, later calls do nothing.
 */
int dmutex_readnames_np(char *is_read)
{
    struct dm_image image;
    int result = 0, kept = errno;

    if (!is_read)
        return dm_fail(DM_FAIL_NULL_ARGUMENT, NULL);
    if (*is_read || !dm_image_find(is_read, &image))
        return 0;
    *is_read = 1;
    for (unsigned i = 0; i < image.count; i++) {
        int error = list_objects(image.parts[i].start, image.parts[i].end);

        result = result ? result : error;
    }
    errno = kept;
    return result;
}

/* ---- first use --------------------------------------------------------------------------- */

/*
 * All threads write the same bytes. dm_named is written last, with release, so that a thread which reads DM_NAMED with
 * acquire (dm_object_settle_mutex()) finds the whole name.
 */
static void write_name(void *object, enum dm_literal_kind kind, const char *name)
{
    char *to = dm_literal_name(object, kind);

    do
        __atomic_store_n(to++, *name, __ATOMIC_RELAXED);
    while (*name++);
    __atomic_store_n(dm_literal_named(object, kind), DM_NAMED, __ATOMIC_RELEASE);
}

/*
 * A program may contain a library's variable ("copy relocation"): the loader has copied it into the program's
 * zero-initialised data, and both use the copy. The entry moves to the copy, which has the name from then on (rule 1).
 */
static struct entry *find_original(void *object, const char *name)
{
    struct entry *entry = find_other(name, object);
    struct dm_image image, original;

    if (!entry || !dm_image_find(object, &image) || !image.is_program || !dm_image_is_zeros(&image, object))
        return NULL;
    if (!dm_image_find(entry->object, &original) || original.is_program)
        return NULL;
    __atomic_store_n(&entry->object, object, __ATOMIC_RELAXED);
    return entry;
}

/* Copies the name, truncated and terminated, because another process may change the object's memory. */
static void copy_name(void *object, enum dm_literal_kind kind, char ret_name[DMUTEX_PRIVATE_NAME_ROOM])
{
    const char *from = dm_literal_name(object, kind);
    size_t length = 0;

    while (length <= DMUTEX_NAME_MAX_NP && (ret_name[length] = __atomic_load_n(&from[length], __ATOMIC_RELAXED)))
        length++;
    ret_name[length] = '\0';
}

/*
 * The name comes from the list and not from the object, which may have been assigned to (rule 1). Two threads may come
 * here at once; both find the same entry and write the same name.
 */
int dm_automatic_settle(void *object, enum dm_literal_kind kind)
{
    char name[DMUTEX_PRIVATE_NAME_ROOM];
    struct entry *entry = find_object(object);
    int fault;

    copy_name(object, kind, name);
    if (!entry)
        entry = find_original(object, name);
    if (!entry)
        return note_place(name, object);
    fault = __atomic_load_n(&entry->fault, __ATOMIC_RELAXED);
    if (fault)
        return fail((enum fault)fault, entry->name);
    write_name(object, kind, entry->name);
    return 0;
}
