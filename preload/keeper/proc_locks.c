/* SPDX-License-Identifier: BSD-2-Clause */
#include "proc_locks.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "shared/kernel_lock.h"
#include "shared/text.h"

#define LOCK_ROOM 128

/*
 * The kernel fills a page per read, and stops before a lock that does not fit. The next read continues by number, and
 * finds nothing more if enough locks have ended in between (finding 131). So a list of more than half a page may have
 * been cut. A lock with many waiters can make the kernel stop sooner; therefore we read the list twice, and a lock
 * counts as listed if it is in either.
 */
#define WHOLE_MOST 2048
#define LISTS 2
#define CUT_AT (1 << 18)

/* The kernel's number for the pid namespace of the boot (PROC_PID_INIT_INO); the same since Linux 3.8. */
#define FIRST_PID_NAMESPACE 0xEFFFFFFCU

static char *write_lock(const struct kernel_lock *lock, char room[LOCK_ROOM])
{
    struct text text = text_in(room, LOCK_ROOM);

    kernel_lock_write(lock, &text);
    return room;
}

/* A container may have an empty file here, which hides the kernel's list. */
static bool is_of_kernel(int file)
{
    struct statfs status;

    return fstatfs(file, &status) == 0 && status.f_type == PROC_SUPER_MAGIC;
}

/* False if the list cannot be read. The buffer is static, because only the main loop reads. */
static bool read_all(GString *ret_content, size_t most)
{
    static char piece[1 << 16];
    int file = open("/proc/locks", O_RDONLY | O_CLOEXEC);
    ssize_t got = -1;

    while (file >= 0 && is_of_kernel(file) && ret_content->len < most && (got = read(file, piece, sizeof piece)) > 0)
        g_string_append_len(ret_content, piece, got);
    if (file >= 0)
        close(file);
    return got >= 0;
}

static void note(struct proc_locks *locks, struct kernel_lock lock)
{
    char room[LOCK_ROOM];

    g_hash_table_add(locks->listed, g_strdup(write_lock(&lock, room)));
    if (lock.pid <= 0)
        return;
    lock.pid = 0;
    g_hash_table_add(locks->taken, g_strdup(write_lock(&lock, room)));
}

/* Only exclusive locks: the keeper has no holds for shared ones. */
static void note_lines(struct proc_locks *locks, const char *content)
{
    struct kernel_lock lock;

    for (const char *line = content; *line; line += *line == '\n') {
        if (kernel_lock_read(line, &lock) && lock.is_exclusive)
            note(locks, lock);
        line += strcspn(line, "\n");
    }
}

void proc_locks_read(struct proc_locks *ret_locks, bool is_needed_whole)
{
    GString *content = g_string_new(NULL);
    size_t most = is_needed_whole ? SIZE_MAX : CUT_AT;

    *ret_locks = (struct proc_locks){
        .is_readable = true,
        .is_whole = true,
        .listed = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL),
        .taken = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL),
    };
    for (int i = 0; i < LISTS; i++) {
        g_string_truncate(content, 0);
        ret_locks->is_readable = read_all(content, most) && ret_locks->is_readable;
        ret_locks->is_cut |= content->len >= most;
        ret_locks->is_whole = content->len <= WHOLE_MOST && ret_locks->is_whole;
        note_lines(ret_locks, content->str);
    }
    ret_locks->is_readable &= !ret_locks->is_cut;
    g_string_free(content, TRUE);
}

void proc_locks_clear(struct proc_locks *locks)
{
    g_hash_table_unref(locks->listed);
    g_hash_table_unref(locks->taken);
}

bool proc_locks_has(const struct proc_locks *locks, const struct kernel_lock *lock)
{
    char room[LOCK_ROOM];

    return g_hash_table_contains(locks->listed, write_lock(lock, room));
}

bool proc_locks_has_next(const struct proc_locks *locks, const struct kernel_lock *lock)
{
    struct kernel_lock any = *lock;
    char room[LOCK_ROOM];

    any.pid = 0;
    return lock->pid > 0 && !proc_locks_has(locks, lock) && g_hash_table_contains(locks->taken, write_lock(&any, room));
}

bool proc_locks_is_complete(void)
{
    struct stat status;

    return stat("/proc/self/ns/pid", &status) == 0 && status.st_ino == FIRST_PID_NAMESPACE;
}
