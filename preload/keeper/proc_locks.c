/* SPDX-License-Identifier: BSD-2-Clause */
#include "proc_locks.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shared/kernel_lock.h"
#include "shared/text.h"

#define LOCK_ROOM 128

/* The kernel's number for the pid namespace of the boot (PROC_PID_INIT_INO), the same in every kernel since 3.8. */
#define FIRST_PID_NAMESPACE 0xEFFFFFFCU

static char *write_lock(const struct kernel_lock *lock, char room[LOCK_ROOM])
{
    struct text text = text_in(room, LOCK_ROOM);

    kernel_lock_write(lock, &text);
    return room;
}

/*
 * Returns the number of reads, or -1 if the list cannot be read. The room is static, because only the main loop reads,
 * and larger than the page that one read of the kernel gives: the number of reads is the number of moments.
 */
static int read_all(GString *ret_content)
{
    static char piece[1 << 16];
    int file = open("/proc/locks", O_RDONLY | O_CLOEXEC), reads = 0;
    ssize_t got = -1;

    while (file >= 0 && (got = read(file, piece, sizeof piece)) > 0) {
        g_string_append_len(ret_content, piece, got);
        reads++;
    }
    if (file >= 0)
        close(file);
    return got < 0 ? -1 : reads;
}

/* Exclusive locks only: the keeper has no holds for shared ones. */
void proc_locks_read(struct proc_locks *ret_locks)
{
    GString *content = g_string_new(NULL);
    int reads = read_all(content);
    struct kernel_lock lock;
    char room[LOCK_ROOM];

    *ret_locks = (struct proc_locks){
        .is_readable = reads >= 0,
        .is_one_moment = reads <= 1,
        .listed = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL),
    };
    for (const char *line = content->str; *line; line += *line == '\n') {
        if (kernel_lock_read(line, &lock) && lock.is_exclusive)
            g_hash_table_add(ret_locks->listed, g_strdup(write_lock(&lock, room)));
        line += strcspn(line, "\n");
    }
    g_string_free(content, TRUE);
}

void proc_locks_clear(struct proc_locks *locks)
{
    g_hash_table_unref(locks->listed);
}

bool proc_locks_has(const struct proc_locks *locks, const struct kernel_lock *lock)
{
    char room[LOCK_ROOM];

    return g_hash_table_contains(locks->listed, write_lock(lock, room));
}

bool proc_locks_is_complete(void)
{
    struct stat status;

    return stat("/proc/self/ns/pid", &status) == 0 && status.st_ino == FIRST_PID_NAMESPACE;
}
