/* SPDX-License-Identifier: BSD-2-Clause */
#include "report.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/place.h"
#include "mapped.h"
#include "now.h"
#include "settings.h"
#include "text.h"

/* The part of a token that counts the holds handed on inside one process. */
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

/* Only an owner's last unlock ends a hold; a wait gives a recursive mutex up at any depth. */
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

/* A name that a handler and the interrupted code use for the first time may be there twice. */
static struct file {
    enum file_state { FREE, IN_MAKING, MADE } state;
    char name[MAPPED_NAME_ROOM];
    struct object_counts counts;
} files[64];
#define FILES (sizeof files / sizeof files[0])

struct object_counts *report_of_file(const char *name)
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

void report_file_locked(struct object_counts *counts, uint64_t waiting_since)
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

void report_file_unlocked(struct object_counts *counts)
{
    if (counts->since_ns)
        add(&counts->hold_ns, now_ns() - counts->since_ns);
    counts->since_ns = 0;
}

void report_in_child(void)
{
    for (struct file *file = files; file < files + FILES; file++)
        file->counts = (struct object_counts){ 0 };
}

/* ---- writing ----------------------------------------------------------------------------- */

/* %p is the process's number, so that children do not overwrite the file. */
static void expand(struct text *path, const char *pattern)
{
    for (; *pattern; pattern++) {
        if (pattern[0] == '%' && pattern[1] == 'p') {
            text_add_number(path, (uint64_t)getpid());
            pattern++;
        } else {
            text_add_bytes(path, pattern, 1);
        }
    }
}

static void add_count(struct text *line, const char *name, uint64_t count)
{
    text_add(line, " ");
    text_add(line, name);
    text_add(line, "=");
    text_add_number(line, count);
}

static bool write_line(int fd, const char *name, const struct object_counts *counts)
{
    char bytes[512];
    struct text line = text_in(bytes, sizeof bytes);

    text_add(&line, name);
    add_count(&line, "locks", counts->locks);
    add_count(&line, "waits", counts->waits);
    add_count(&line, "wait_us", counts->wait_ns / 1000);
    add_count(&line, "hold_us", counts->hold_ns / 1000);
    add_count(&line, "losses", counts->losses);
    add_count(&line, "handoffs", counts->handoffs);
    text_add(&line, "\n");
    return write(fd, bytes, line.length) == (ssize_t)line.length;
}

/* The next mutex of the name, from this object on; a mutex that is gone has been counted, too. */
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

/* Opens the report when there is something to write. */
struct report {
    int fd;
    bool is_broken; /* and has been told */
    char path[4096];
};

/*
 * In a folder that strangers can change, a stranger's link could lead anywhere. The caller answers for a relative path.
 */
static int open_in_folder(const char *path, int flags, const char **ret_reason)
{
    struct dm_fault fault;
    const char *leaf;
    int folder, fd;

    if (path[0] != '/')
        return open(path, flags, 0666);
    folder = dm_place_open_parent(path, &leaf, &fault);
    if (folder < 0) {
        *ret_reason = fault.kind == DM_FAULT_OWNER ? "other users can change a folder above it" : NULL;
        errno = fault.error;
        return -1;
    }
    fd = openat(folder, leaf, flags, 0666);
    close(folder);
    return fd;
}

/*
 * Opens a new file, a file of this user, which is emptied, or a device as /dev/null. Refuses a link, which may lead to
 * a file that a stranger wants to be overwritten, and a FIFO, which would block.
 */
static int open_report(const char *path, const char **ret_reason)
{
    int fd = open_in_folder(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, ret_reason);
    struct stat status;

    if (fd < 0 && errno == ELOOP)
        *ret_reason = "it is a symbolic link";
    if (fd < 0 || fstat(fd, &status) < 0)
        return fd;
    if (S_ISCHR(status.st_mode))
        return fd;
    if (S_ISREG(status.st_mode) && status.st_uid == geteuid() && status.st_nlink == 1 && ftruncate(fd, 0) == 0)
        return fd;
    *ret_reason = "it is no file of this user alone";
    close(fd);
    return -1;
}

static void write_counts(struct report *report, const char *name, const struct object_counts *counts)
{
    struct text path = text_in(report->path, sizeof report->path);
    const char *reason = NULL;

    if (counts->locks == 0 || report->is_broken)
        return;
    if (report->fd < 0) {
        expand(&path, settings_get()->report);
        report->fd = open_report(report->path, &reason);
    }
    if (report->fd >= 0 && write_line(report->fd, name, counts))
        return;
    text_say("the report cannot be written to ", report->path, ": ", reason ? reason : strerrordesc_np(errno), NULL);
    report->is_broken = true;
}

static void write_mutexes(struct report *report)
{
    struct object_counts sum;

    for (struct object *object = objects_first(); object; object = object->next) {
        if (object->rule->is_condition || of_same_name(objects_first(), object->name) != object)
            continue;
        sum = sum_of(object->name);
        write_counts(report, object->name, &sum);
    }
}

/* Counts a mutex that is still locked as locked until now, for this process. */
static void write_files(struct report *report)
{
    for (struct file *file = files; file < files + FILES; file++) {
        if (__atomic_load_n(&file->state, __ATOMIC_ACQUIRE) != MADE)
            continue;
        report_file_unlocked(&file->counts);
        write_counts(report, file->name, &file->counts);
    }
}

/* Libraries may lock after the report; the report only reads. */
__attribute__((destructor)) static void write_report(void)
{
    struct report report = { .fd = -1 };

    if (!report_is_wanted())
        return;
    write_mutexes(&report);
    write_files(&report);
    if (report.fd >= 0)
        close(report.fd);
}
