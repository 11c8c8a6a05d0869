/* SPDX-License-Identifier: BSD-2-Clause */
#include "mapped.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "keeper_call.h"
#include "module/base/real.h"
#include "module/base/scratch.h"
#include "shared/rules.h"
#include "shared/text.h"

#define ENTRIES_ROOM 1024 /* of a folder, at a time */

/* ---- the kernel's lock ------------------------------------------------------------------- */

/* Sets F_WRLCK or F_UNLCK with the call that the program has made. */
static int set_local(const struct mapped *file, short type, bool is_wait)
{
    struct flock lock = { .l_type = type, .l_whence = SEEK_SET };

    if (file->kind == LOCK_OF_FLOCK)
        return real_get()->flock(file->fd, (type == F_UNLCK ? LOCK_UN : LOCK_EX) | (is_wait ? 0 : LOCK_NB));
    if (file->kind == LOCK_OF_FILE)
        return real_get()->fcntl(file->fd, is_wait ? F_OFD_SETLKW : F_OFD_SETLK, &lock);
    return real_get()->fcntl(file->fd, is_wait ? F_SETLKW : F_SETLK, &lock);
}

static int open_own_folder(void)
{
    return open("/proc/thread-self", O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static bool find_at(int folder, const struct mapped *file, struct kernel_lock *ret_lock)
{
    char number[12];
    struct text text = text_in(number, sizeof number);

    text_add_number(&text, (unsigned)file->fd);
    return kernel_lock_of_descriptor(folder, number, file->kind, ret_lock);
}

static bool is_same_file(const struct stat *status, const char *fd)
{
    uint64_t number;
    struct stat other;

    return text_number(fd, &number) && fstat((int)number, &other) == 0 && other.st_ino == status->st_ino &&
           other.st_dev == status->st_dev;
}

/* Searches the entries of a folder in the form in which getdents64() returned them. */
static bool find_among(int folder, const char *entries, size_t length, const struct mapped *file,
                       const struct stat *status, struct kernel_lock *ret_lock)
{
    for (size_t at = 0; at < length;) {
        const struct dirent64 *entry = (const void *)(entries + at);

        if (is_same_file(status, entry->d_name) &&
            kernel_lock_of_descriptor(folder, entry->d_name, file->kind, ret_lock))
            return true;
        at += entry->d_reclen;
    }
    return false;
}

/* The kernel shows a process's lock at the descriptor with which it was first taken. */
static __attribute__((__noinline__)) bool find_at_others(int folder, const struct mapped *file,
                                                         struct kernel_lock *ret_lock)
{
    char *entries = scratch_take(ENTRIES_ROOM);
    int list = openat(folder, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool is_found = false;
    struct stat status;
    ssize_t got;

    if (entries && list >= 0 && fstat(file->fd, &status) == 0)
        while (!is_found && (got = getdents64(list, entries, ENTRIES_ROOM)) > 0)
            is_found = find_among(folder, entries, (size_t)got, file, &status, ret_lock);
    if (list >= 0)
        close(list);
    scratch_give(entries, ENTRIES_ROOM);
    return is_found;
}

static bool had_before(const struct mapped *file)
{
    int folder = open_own_folder();
    struct kernel_lock lock;
    bool is_found = find_at(folder, file, &lock);

    if (folder >= 0)
        close(folder);
    return is_found;
}

/* Uses O_PATH: closing any other descriptor of the file would end all fcntl() locks of this process. */
static int open_by_path(int folder, const struct mapped *file)
{
    char path[20];
    struct text text = text_in(path, sizeof path);

    text_add(&text, "fd/");
    text_add_number(&text, (unsigned)file->fd);
    return openat(folder, path, O_PATH | O_CLOEXEC);
}

/*
 * False if the kernel does not show the lock that the process has just taken. *had: the lock is not new. The file must
 * be closed in any case.
 */
static bool find_lock(const struct mapped *file, struct kernel_lock *ret_lock, int *ret_file, bool *had)
{
    int folder = open_own_folder();
    bool is_found = find_at(folder, file, ret_lock);

    if (!is_found && file->kind == LOCK_OF_PROCESS) {
        is_found = find_at_others(folder, file, ret_lock);
        *had = is_found;
    }
    *ret_file = open_by_path(folder, file);
    if (folder >= 0)
        close(folder);
    return is_found && *ret_file >= 0;
}

/* ---- the distributed lock ---------------------------------------------------------------- */

/* What a cancelled wait has to undo. */
struct undo {
    const struct mapped *file;
    int by_path; /* the file's descriptor by O_PATH; -1 */
    bool had;    /* the program already had the lock */
};

static void undo(void *at)
{
    const struct undo *what = at;

    if (what->by_path >= 0)
        close(what->by_path);
    if (!what->had)
        set_local(what->file, F_UNLCK, false);
}

/* Returns an errno value. If it is cancelled during the wait, the kernel's lock is as before. */
static int lock_distributed(const struct mapped *file, bool is_wait, int cancel_state, bool *had)
{
    struct keeper_wish wish = {
        .rule = file->rule,
        .name = file->name,
        .path = file->path,
        .is_wait = is_wait,
        .cancel_state = file->kind == LOCK_OF_FLOCK ? PTHREAD_CANCEL_DISABLE : cancel_state,
    };
    struct undo cancelled = { .file = file };
    int error;

    if (!find_lock(file, &wish.lock, &wish.file, had)) {
        if (wish.file >= 0)
            close(wish.file);
        text_say(file->path,
                 ": the kernel says nothing about its lock: /proc is not mounted, or its file system keeps "
                 "its own locks",
                 NULL);
        return ENOLCK;
    }
    wish.is_again = *had;
    cancelled.by_path = wish.file;
    cancelled.had = *had;
    pthread_cleanup_push(undo, &cancelled);
    error = keeper_lock(&wish);
    pthread_cleanup_pop(false);
    close(wish.file);
    return error;
}

/*
 * A check by the keeper may briefly keep the lock of a process that has ended: the kernel keeps a file open while its
 * fdinfo is read, and the keeper takes a shared lock to see whether the file is locked. A process that comes after the
 * holder's end and does not wait must not find the lock taken.
 */
static __attribute__((__noinline__)) int try_after_look(const struct mapped *file)
{
    int kept = errno, state;
    bool is_settled;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    is_settled = keeper_settle();
    pthread_setcancelstate(state, NULL);
    errno = kept;
    return is_settled ? set_local(file, F_WRLCK, false) : -1;
}

/* A lock that belongs to the process ends with it, no matter who looks at the file. */
static int take_local(const struct mapped *file, bool is_wait)
{
    int result = set_local(file, F_WRLCK, is_wait);

    if (result < 0 && errno == EWOULDBLOCK && !is_wait && file->kind != LOCK_OF_PROCESS)
        return try_after_look(file);
    return result;
}

int mapped_lock(const struct mapped *file, bool is_wait)
{
    int kept = errno, state, error;
    bool had;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    had = had_before(file);
    pthread_setcancelstate(state, NULL);
    if (take_local(file, is_wait) < 0)
        return -1;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    error = lock_distributed(file, is_wait, state, &had);
    if (error && !had)
        set_local(file, F_UNLCK, false);
    pthread_setcancelstate(state, NULL);
    errno = error ? error : kept;
    return error ? -1 : 0;
}

int mapped_unlock(const struct mapped *file)
{
    int kept = errno, state;

    if (set_local(file, F_UNLCK, false) < 0)
        return -1;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    keeper_look();
    pthread_setcancelstate(state, NULL);
    errno = kept;
    return 0;
}

int mapped_test(const struct mapped *file, bool *ret_held)
{
    int kept = errno, state, error;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    error = keeper_test(file->rule, file->name, file->path);
    pthread_setcancelstate(state, NULL);
    if (error && error != EAGAIN) {
        errno = error;
        return -1;
    }
    *ret_held = error == EAGAIN;
    errno = kept;
    return 0;
}

int mapped_refuse(const struct mapped *file, enum mapped_refusal refusal)
{
    static const char *const sentences[] = {
        [MAPPED_SHARED] = ": a shared lock is not distributed: say shared=exclusive, or lock it exclusively",
        [MAPPED_PART] = ": a lock of a part of a file is not distributed",
    };
    static bool is_said[2];

    if (!__atomic_exchange_n(&is_said[refusal], true, __ATOMIC_RELAXED))
        text_say(file->path, sentences[refusal], NULL);
    errno = ENOLCK;
    return -1;
}
