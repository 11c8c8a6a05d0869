/* SPDX-License-Identifier: BSD-2-Clause */
#include "observe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/shield.h"
#include "module/base/own_lock.h"
#include "module/base/scratch.h"
#include "module/base/settings.h"
#include "module/names/maps.h"
#include "module/names/modules.h"
#include "shared/text.h"

static struct seen_file *file;                              /* mapped; NULL: not yet, or the mapping failed */
static size_t room;                                         /* how many bytes of the file have disk space */
static pid_t owner;                                         /* the process that owns the file */
static pthread_mutex_t writing = PTHREAD_MUTEX_INITIALIZER; /* uses libc's own functions */

#define ROOM_STEP (1 << 16)

/* Caches what was found for an address. Read without a lock. */
#define KNOWN_SIZE (4 * SEEN_ENTRIES)
static struct known {
    const void *address; /* written last */
    struct seen *seen;
} known[KNOWN_SIZE];

/* The search for an object's place may itself lock the object. */
static __thread bool is_observing __attribute__((tls_model("initial-exec")));

/* ---- the file ---------------------------------------------------------------------------- */

/*
 * Reserves disk space for the first bytes of the file. If the disk is full, the kernel would end the program with
 * SIGBUS as soon as it touches them. Kernels before Linux 5.14 cannot be asked.
 */
static bool has_room_for(struct seen_file *mapped, size_t bytes)
{
    while (room < bytes) {
        size_t rest = sizeof *mapped - room, step = rest < ROOM_STEP ? rest : ROOM_STEP;

        if (madvise((char *)mapped + room, step, MADV_POPULATE_WRITE) < 0 && errno == EFAULT)
            return false;
        room += step;
    }
    return true;
}

static struct seen_file *open_file(void)
{
    char name[12];
    struct text text = text_in(name, sizeof name);
    void *memory = MAP_FAILED;
    struct dm_shield shield;
    int fd;

    text_add_number(&text, (uint64_t)getpid());
    fd = seen_open(settings_get()->list_folder, name, O_RDWR);
    if (fd < 0 && errno == EPERM)
        text_say("the list lacks what process ", name, " uses: its user is another one than that of dmutex-run", NULL);
    if (fd < 0)
        return NULL;
    dm_shield_raise(&shield);
    if (ftruncate(fd, sizeof *file) == 0)
        memory = mmap(NULL, sizeof *file, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    dm_shield_lower(&shield);
    close(fd);
    room = 0;
    if (memory != MAP_FAILED && has_room_for(memory, 1))
        return memory;
    text_say("the list lacks what a process uses: there is no room in ", settings_get()->list_folder,
             ": set TMPDIR to another folder", NULL);
    if (memory != MAP_FAILED)
        munmap(memory, sizeof *file);
    return NULL;
}

/* `writing` is held. A forked child has its own file. */
static bool is_open(void)
{
    struct text program;

    if (owner == getpid())
        return file != NULL;
    owner = getpid();
    memset(known, 0, sizeof known);
    file = open_file();
    if (!file)
        return false;
    file->version = SEEN_VERSION;
    program = text_in(file->program, sizeof file->program);
    text_add(&program, settings_get()->program);
    return true;
}

/* ---- entries ----------------------------------------------------------------------------- */

static bool is_same(const struct seen *one, const struct seen *other)
{
    return one->kind == other->kind && one->place == other->place && one->offset == other->offset &&
           strcmp(one->path, other->path) == 0;
}

/* The entry equal to *what, made if necessary. `writing` is held. */
static struct seen *entry_of(const struct seen *what)
{
    for (size_t i = 0; i < SEEN_ENTRIES; i++) {
        struct seen *entry = &file->entries[i];

        if (!has_room_for(file, offsetof(struct seen_file, entries) + (i + 1) * sizeof *entry))
            break;
        if (entry->kind == SEEN_NOTHING) {
            *entry = *what;
            return entry;
        }
        if (is_same(entry, what))
            return entry;
    }
    file->is_full = 1;
    return NULL;
}

static void find_place(struct seen *seen, const void *address)
{
    char *path = scratch_take(MAPS_PATH_ROOM);

    seen->place = SEEN_NOWHERE;
    if (!path)
        return;
    if (modules_find(address, path, &seen->offset))
        seen->place = SEEN_IN_MODULE;
    else if ((seen->bits & 0x80) && maps_find(address, path, &seen->offset))
        seen->place = SEEN_IN_MAPPING;
    if (seen->place != SEEN_NOWHERE && strlen(path) < sizeof seen->path) {
        strcpy(seen->path, path);
    } else {
        seen->place = SEEN_NOWHERE;
        seen->offset = 0;
    }
    scratch_give(path, MAPS_PATH_ROOM);
}

static struct known *slot_of(const void *address)
{
    size_t at = (size_t)(((uint64_t)(uintptr_t)address * UINT64_C(0x9e3779b97f4a7c15)) >> 32);
    size_t tries = 0;

    for (; tries < KNOWN_SIZE; at++, tries++) {
        struct known *slot = &known[at % KNOWN_SIZE];
        const void *there = __atomic_load_n(&slot->address, __ATOMIC_ACQUIRE);

        if (!there || there == address)
            return slot;
    }
    return NULL;
}

/* The entry of an address that is seen for the first time. */
static struct seen *meet(const void *address, enum seen_kind kind, unsigned bits)
{
    struct seen what = { .kind = (uint8_t)kind, .bits = (uint16_t)bits };
    struct known *slot;
    struct seen *entry = NULL;
    int cancel_state;

    find_place(&what, address);
    cancel_state = own_lock(&writing);
    if (is_open())
        entry = entry_of(&what);
    slot = entry ? slot_of(address) : NULL;
    if (slot) {
        slot->seen = entry;
        __atomic_store_n(&slot->address, address, __ATOMIC_RELEASE);
    }
    own_unlock(&writing, cancel_state);
    return entry;
}

static void observe(const void *address, enum seen_kind kind, unsigned bits)
{
    const struct known *slot;
    struct seen *entry;
    int error = errno;

    if (is_observing || !settings_get()->list_folder)
        return;
    is_observing = true;
    slot = slot_of(address);
    entry = slot && slot->address && owner == getpid() ? slot->seen : meet(address, kind, bits);
    if (entry)
        __atomic_add_fetch(&entry->count, 1, __ATOMIC_RELAXED);
    is_observing = false;
    errno = error;
}

void observe_mutex(const pthread_mutex_t *mutex)
{
    observe(mutex, SEEN_MUTEX, (unsigned)mutex->__data.__kind & 0xff);
}

void observe_condition(const pthread_cond_t *condition)
{
    observe(condition, SEEN_CONDITION, condition->__data.__wrefs & 1 ? 0x80 : 0);
}

void observe_file(enum seen_kind kind, const char *path, unsigned bits)
{
    struct seen what = { .kind = (uint8_t)kind, .place = SEEN_IN_FILE };
    struct seen *entry;
    int cancel_state;

    if (!settings_get()->list_folder || strlen(path) >= sizeof what.path)
        return;
    strcpy(what.path, path);
    cancel_state = own_lock(&writing);
    entry = is_open() ? entry_of(&what) : NULL;
    if (entry) {
        __atomic_add_fetch(&entry->count, 1, __ATOMIC_RELAXED);
        __atomic_or_fetch(&entry->bits, (uint16_t)bits, __ATOMIC_RELAXED);
    }
    own_unlock(&writing, cancel_state);
}

void observe_in_child(void)
{
    const pthread_mutex_t unlocked = PTHREAD_MUTEX_INITIALIZER;

    writing = unlocked;
}
