/* SPDX-License-Identifier: BSD-2-Clause */
#include "report.h"

#include <errno.h>
#include <string.h>

#include "module/base/now.h"
#include "module/base/settings.h"
#include "report_output.h"

/* The part of a token that counts the holds passed on within one process. */
#define LOCAL_PART 4096

/* ---- counting ---------------------------------------------------------------------------- */

bool report_is_wanted(void)
{
    return settings_get()->report != NULL;
}

static void add(uint64_t *count, uint64_t more)
{
    __atomic_add_fetch(count, more, __ATOMIC_RELAXED);
}

void report_begin_hold(struct object *object, const struct library *library)
{
    uint64_t token;

    if (!report_is_wanted())
        return;
    add(&object->counts.locks, 1);
    if (library->mutex_token(&object->mutex, &token) == 0 && token % LOCAL_PART != 0)
        add(&object->counts.handoffs, 1);
    if (!object->counts.since_ns)
        object->counts.since_ns = now_ns();
}

/* Only an owner's last unlock ends a hold; a wait gives up a recursive mutex at any depth. */
void report_end_hold(struct object *object, const struct library *library, bool is_wait)
{
    unsigned depth;

    if (!report_is_wanted() || library->mutex_holdcount(&object->mutex, &depth) != 0 || depth == 0)
        return;
    if ((depth == 1 || is_wait) && object->counts.since_ns) {
        add(&object->counts.hold_ns, now_ns() - object->counts.since_ns);
        object->counts.since_ns = 0;
    }
}

int report_lock(struct object *object, const struct library *library)
{
    int result = library->mutex_trylock(&object->mutex);
    uint64_t since;

    if (result == ENOLCK && object->rule->on_down == DOWN_BLOCK)
        return library->mutex_lock(&object->mutex);
    if (result != EBUSY)
        return result;
    since = now_ns();
    result = library->mutex_lock(&object->mutex);
    if (result == 0 || result == EOWNERDEAD) {
        add(&object->counts.waits, 1);
        add(&object->counts.wait_ns, now_ns() - since);
    }
    return result;
}

/* ---- lock files -------------------------------------------------------------------------- */

/* A name that a signal handler and the interrupted code use for the first time may be there twice. */
static struct file {
    enum file_state { FREE, IN_MAKING, MADE } state;
    char name[MAPPED_NAME_ROOM];
    struct object_counts counts;
} files[64];
#define FILES (sizeof files / sizeof files[0])

/* The counts of a lock file's name. NULL: no report is wanted, or there are too many names. */
static struct object_counts *counts_of(const char *name)
{
    if (!report_is_wanted())
        return NULL;
    for (struct file *file = files; file < files + FILES; file++) {
        enum file_state state = FREE;

        if (__atomic_compare_exchange_n(&file->state, &state, IN_MAKING, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            strcpy(file->name, name);
            __atomic_store_n(&file->state, MADE, __ATOMIC_RELEASE);
            return &file->counts;
        }
        if (state == MADE && strcmp(file->name, name) == 0)
            return &file->counts;
    }
    return NULL;
}

/* The process has the lock, after a wait since `waiting_since`, if that is not 0. */
static void begin_file_hold(struct object_counts *counts, uint64_t waiting_since)
{
    uint64_t now = now_ns();

    add(&counts->locks, 1);
    if (waiting_since) {
        add(&counts->waits, 1);
        add(&counts->wait_ns, now - waiting_since);
    }
    if (!counts->since_ns)
        counts->since_ns = now;
}

static void end_file_hold(struct object_counts *counts)
{
    if (counts->since_ns)
        add(&counts->hold_ns, now_ns() - counts->since_ns);
    counts->since_ns = 0;
}

/* True if a try has failed where a wait may succeed. */
static bool is_worth_waiting(const struct mapped *file)
{
    return errno == EAGAIN || (errno == ENOLCK && file->rule->on_down == DOWN_BLOCK);
}

/* Counts. A try comes before a wait. */
static int lock_and_count(const struct mapped *file, bool is_wait, struct object_counts *counts)
{
    int kept = errno, result = mapped_lock(file, false);
    uint64_t since = 0;

    if (result < 0 && is_wait && is_worth_waiting(file)) {
        errno = kept;
        since = now_ns();
        result = mapped_lock(file, true);
    }
    if (result == 0)
        begin_file_hold(counts, since);
    return result;
}

int report_lock_file(const struct mapped *file, bool is_wait)
{
    struct object_counts *counts = counts_of(file->name);

    return counts ? lock_and_count(file, is_wait, counts) : mapped_lock(file, is_wait);
}

int report_unlock_file(const struct mapped *file)
{
    struct object_counts *counts = counts_of(file->name);
    uint64_t since = counts ? __atomic_exchange_n(&counts->since_ns, 0, __ATOMIC_RELAXED) : 0, until = now_ns();

    if (mapped_unlock(file) < 0) {
        if (counts)
            counts->since_ns = since;
        return -1;
    }
    if (since)
        add(&counts->hold_ns, until - since);
    return 0;
}

void report_in_child(void)
{
    for (struct file *file = files; file < files + FILES; file++)
        file->counts = (struct object_counts){ 0 };
}

/* ---- writing ----------------------------------------------------------------------------- */

/* The next mutex with this name, from this object on; one that is gone has been counted, too. */
static struct object *of_same_name(struct object *object, const char *name)
{
    while (object && (object->rule->is_condition || strcmp(object->name, name) != 0))
        object = object->next;
    return object;
}

/* The sum over all objects of the name. */
static struct object_counts sum_of(const char *name)
{
    struct object_counts sum = { 0 };

    for (struct object *at = of_same_name(objects_first(), name); at; at = of_same_name(at->next, name)) {
        sum.locks += at->counts.locks;
        sum.waits += at->counts.waits;
        sum.wait_ns += at->counts.wait_ns;
        sum.hold_ns += at->counts.hold_ns;
        sum.losses += at->counts.losses;
        sum.handoffs += at->counts.handoffs;
    }
    return sum;
}

static void write_mutexes(struct report_output *output)
{
    struct object_counts sum;

    for (struct object *object = objects_first(); object; object = object->next) {
        if (object->rule->is_condition || of_same_name(objects_first(), object->name) != object)
            continue;
        sum = sum_of(object->name);
        report_output_add(output, object->name, &sum);
    }
}

/* A mutex that is still locked counts as locked until now. */
static void write_files(struct report_output *output)
{
    for (struct file *file = files; file < files + FILES; file++) {
        if (__atomic_load_n(&file->state, __ATOMIC_ACQUIRE) != MADE)
            continue;
        end_file_hold(&file->counts);
        report_output_add(output, file->name, &file->counts);
    }
}

/* Libraries may lock after the report; the report only reads. */
__attribute__((destructor)) static void write_report(void)
{
    /* static, because exit() may be called on a small stack; it is called once */
    static struct report_output output = { .fd = -1 };

    if (!report_is_wanted())
        return;
    write_mutexes(&output);
    write_files(&output);
    report_output_end(&output);
}
