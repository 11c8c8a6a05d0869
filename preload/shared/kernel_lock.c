/* SPDX-License-Identifier: BSD-2-Clause */
#include "kernel_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "text.h"

#define FDINFO_ROOM 1536
#define WORDS 6 /* KIND ADVISORY MODE PID INODE, and one more */
#define WORD_ROOM 48

static const char *const kinds[] = {
    [LOCK_OF_FLOCK] = "FLOCK", [LOCK_OF_PROCESS] = "POSIX", [LOCK_OF_FILE] = "OFDLCK"
};
#define KINDS (sizeof kinds / sizeof kinds[0])

static bool read_kind(const char *word, enum kernel_lock_kind *ret_kind)
{
    for (size_t i = 0; i < KINDS; i++)
        if (strcmp(word, kinds[i]) == 0) {
            *ret_kind = (enum kernel_lock_kind)i;
            return true;
        }
    return false;
}

static bool read_pid(const char *word, long *ret_pid)
{
    bool is_minus = *word == '-';
    uint64_t number;

    if (!text_number(word + is_minus, &number) || number > INT32_MAX)
        return false;
    *ret_pid = is_minus ? -(long)number : (long)number;
    return true;
}

/* Copies the words, up to the end of the line. Returns how many there are, at most WORDS. */
static int split(const char *line, char words[WORDS][WORD_ROOM])
{
    int count = 0;

    while (count < WORDS) {
        size_t length;

        line += strspn(line, " \t");
        length = strcspn(line, " \t\n");
        if (length == 0 || length >= WORD_ROOM)
            break;
        memcpy(words[count], line, length);
        words[count++][length] = '\0';
        line += length;
    }
    return count;
}

/* `lock:` precedes the kind only in fdinfo, `NUMBER:` always, and `->` precedes the kind of a waiter. */
bool kernel_lock_read(const char *line, struct kernel_lock *ret_lock)
{
    struct kernel_lock lock;
    char words[WORDS][WORD_ROOM];

    if (strncmp(line, "lock:", 5) == 0)
        line += 5;
    line += strspn(line, " \t");
    line += strspn(line, "0123456789");
    if (*line != ':' || split(line + 1, words) < WORDS - 1)
        return false;
    if (!read_kind(words[0], &lock.kind) || !read_pid(words[3], &lock.pid))
        return false;
    lock.is_exclusive = strcmp(words[2], "WRITE") == 0;
    lock.device = 0;
    lock.number = 0;
    memcpy(lock.inode, words[4], sizeof lock.inode);
    *ret_lock = lock;
    return true;
}

void kernel_lock_write(const struct kernel_lock *lock, struct text *text)
{
    text_add(text, kinds[lock->kind]);
    text_add(text, lock->pid < 0 ? " -" : " ");
    text_add_number(text, (uint64_t)labs(lock->pid));
    text_add(text, " ");
    text_add(text, lock->inode);
}

bool kernel_lock_parse(const char *text, struct kernel_lock *ret_lock)
{
    struct kernel_lock lock = { .is_exclusive = true };
    char words[WORDS][WORD_ROOM];

    if (split(text, words) != 3 || !read_kind(words[0], &lock.kind) || !read_pid(words[1], &lock.pid))
        return false;
    memcpy(lock.inode, words[2], sizeof lock.inode);
    *ret_lock = lock;
    return true;
}

bool kernel_lock_is_of_other(const struct kernel_lock *one, const struct kernel_lock *other)
{
    return one->kind == other->kind && one->pid > 0 && other->pid > 0 && one->pid != other->pid &&
           strcmp(one->inode, other->inode) == 0;
}

/*
 * Reads as much as fits, terminated. False, with errno, if the kernel does not let us. A descriptor with more than a
 * few locks has no whole-file lock.
 */
static bool read_fdinfo(int folder, const char *fd, char ret_content[FDINFO_ROOM])
{
    char path[32];
    struct text text = text_in(path, sizeof path);
    size_t length = 0;
    ssize_t got;
    int file, error;

    text_add(&text, "fdinfo/");
    text_add(&text, fd);
    file = openat(folder, path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return false;
    while ((got = read(file, ret_content + length, FDINFO_ROOM - 1 - length)) > 0)
        length += (size_t)got;
    error = errno;
    close(file);
    errno = error;
    ret_content[length] = '\0';
    return got >= 0;
}

/* `scm_fds: N`, since Linux 5.6. */
static bool has_files_underway(const char *content)
{
    static const char key[] = "\nscm_fds:";
    const char *line = strstr(content, key);

    return line && strtoul(line + sizeof key - 1, NULL, 10) > 0;
}

bool kernel_lock_of_descriptor(int folder, const char *fd, enum kernel_lock_kind kind, struct kernel_lock *ret_lock)
{
    char content[FDINFO_ROOM];
    struct kernel_lock lock;

    if (!read_fdinfo(folder, fd, content))
        return false;
    for (const char *line = strstr(content, "\nlock:"); line; line = strstr(line + 1, "\nlock:")) {
        if (kernel_lock_read(line + 1, &lock) && lock.kind == kind && lock.is_exclusive) {
            *ret_lock = lock;
            return true;
        }
    }
    errno = has_files_underway(content) ? EINPROGRESS : 0;
    return false;
}
