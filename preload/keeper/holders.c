/* SPDX-License-Identifier: BSD-2-Clause */
#include "holders.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The pid may be told otherwise by now, and a file has one exclusive lock at most. */
static bool has_locked(int folder, const char *fd, const struct kernel_lock *lock)
{
    struct kernel_lock found;

    return kernel_lock_of_descriptor(folder, fd, lock->kind, &found) && strcmp(found.inode, lock->inode) == 0;
}

/* Goes on from where the listing is. */
static struct dirent *next_number(DIR *listing)
{
    struct dirent *entry;

    while (listing && (entry = readdir(listing)))
        if (entry->d_name[0] >= '0' && entry->d_name[0] <= '9')
            return entry;
    return NULL;
}

/* Processes come and go while /proc is read: a process whose folder cannot be opened any more is no holder. */
static DIR *list(int folder, const char *name)
{
    int fd = openat(folder, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *listing = fd >= 0 ? fdopendir(fd) : NULL;

    if (fd >= 0 && !listing)
        close(fd);
    return listing;
}

/* True if the process at this folder has the file locked; then tells the descriptor. */
static bool find_in(int folder, const struct kernel_lock *lock, char ret_fd[12])
{
    DIR *descriptors = list(folder, "fd");
    struct dirent *entry;
    bool is_found = false;

    while (!is_found && (entry = next_number(descriptors))) {
        is_found = strlen(entry->d_name) < 12 && has_locked(folder, entry->d_name, lock);
        if (is_found)
            strcpy(ret_fd, entry->d_name);
    }
    if (descriptors)
        closedir(descriptors);
    return is_found;
}

/* The next of all processes that has the file locked: the /proc folder, which the caller closes, or -1. */
static int next_holder(DIR *processes, const struct kernel_lock *lock, pid_t *ret_pid, char ret_fd[12])
{
    struct dirent *entry;

    while ((entry = next_number(processes))) {
        int folder = openat(dirfd(processes), entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        if (folder >= 0 && find_in(folder, lock, ret_fd)) {
            *ret_pid = (pid_t)atol(entry->d_name);
            return folder;
        }
        if (folder >= 0)
            close(folder);
    }
    return -1;
}

void holder_forget(struct holder *known)
{
    if (known->folder)
        close(known->folder);
    known->folder = 0;
}

/* Costs one read.  A process that has the lock no more is forgotten. */
static bool has_still(struct holder *known, const struct kernel_lock *lock)
{
    if (known->folder && has_locked(known->folder, known->fd, lock))
        return true;
    holder_forget(known);
    return false;
}

/*
 * The remembered process costs one read; all processes with all their descriptors may be thousands of reads, and follow
 * only when the remembered process has the lock no more. A folder of /proc stands for one process for good: reads fail
 * if the pid is used again.
 */
bool holders_is_any(const struct kernel_lock *lock, struct holder *known)
{
    DIR *processes;
    pid_t pid;
    int folder;

    if (has_still(known, lock))
        return true;
    processes = opendir("/proc");
    folder = next_holder(processes, lock, &pid, known->fd);
    if (processes)
        closedir(processes);
    if (folder >= 0)
        known->folder = folder;
    return folder >= 0;
}

/* One process is asked, not all: the lists of locks have spoken already. */
bool holders_is_owner(const struct kernel_lock *lock, struct holder *known)
{
    char path[32];
    int folder;

    if (has_still(known, lock))
        return true;
    if (lock->pid <= 0)
        return false;
    snprintf(path, sizeof path, "/proc/%ld", lock->pid);
    folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder >= 0 && find_in(folder, lock, known->fd))
        known->folder = folder;
    else if (folder >= 0)
        close(folder);
    return known->folder != 0;
}

/*
 * The folder stands for this very process, also if the pid is used again later; before Linux 5.1 the pid has to do.
 * After other errors than ENOSYS the pid is not used, because the pid may belong to another process by then.
 */
static bool send_signal(int folder, pid_t pid, int number)
{
#ifdef SYS_pidfd_send_signal
    if (syscall(SYS_pidfd_send_signal, folder, number, NULL, 0) == 0)
        return true;
    if (errno != ENOSYS)
        return false;
#endif
    return kill(pid, number) == 0;
}

/* Reads the program's name as the kernel tells the name, without the newline. */
static void read_program(int folder, char ret_program[HOLDER_PROGRAM_ROOM])
{
    int fd = openat(folder, "comm", O_RDONLY | O_CLOEXEC);
    ssize_t length = fd >= 0 ? read(fd, ret_program, HOLDER_PROGRAM_ROOM - 1) : 0;

    ret_program[length > 0 ? length : 0] = '\0';
    ret_program[strcspn(ret_program, "\n")] = '\0';
    if (fd >= 0)
        close(fd);
}

bool holders_find(const struct kernel_lock *lock, pid_t *ret_pid, char ret_program[HOLDER_PROGRAM_ROOM])
{
    DIR *processes = opendir("/proc");
    char fd[12];
    int folder = next_holder(processes, lock, ret_pid, fd);

    if (folder >= 0) {
        read_program(folder, ret_program);
        close(folder);
    }
    if (processes)
        closedir(processes);
    return folder >= 0;
}

/* Standard errors that were written to. */
struct told {
    struct stat files[16];
    int count;
};

static bool is_new(struct told *told, const struct stat *status)
{
    for (int i = 0; i < told->count; i++)
        if (told->files[i].st_dev == status->st_dev && told->files[i].st_ino == status->st_ino)
            return false;
    if (told->count < (int)(sizeof told->files / sizeof told->files[0]))
        told->files[told->count++] = *status;
    return true;
}

/*
 * Opens the file anew, so that neither offset nor flags are shared with the process. O_NONBLOCK, because a pipe may be
 * full, and a FIFO without a reader would wait; O_NOCTTY, because the keeper, a leader of its session, would get the
 * terminal.
 */
static void tell(int folder, const char *line, struct told *told)
{
    int fd = openat(folder, "fd/2", O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct stat status;

    if (fd < 0)
        return;
    if (fstat(fd, &status) == 0 && is_new(told, &status) && write(fd, line, strlen(line)) < 0)
        errno = 0; /* no process reads the line */
    close(fd);
}

void holders_tell(const struct kernel_lock *lock, const char *line)
{
    DIR *processes = opendir("/proc");
    struct told told = { .count = 0 };
    char fd[12];
    pid_t pid;
    int folder;

    while ((folder = next_holder(processes, lock, &pid, fd)) >= 0) {
        tell(folder, line, &told);
        close(folder);
    }
    if (processes)
        closedir(processes);
}

int holders_signal(const struct kernel_lock *lock, int number)
{
    DIR *processes = opendir("/proc");
    int folder, count = 0;
    char fd[12];
    pid_t pid;

    while ((folder = next_holder(processes, lock, &pid, fd)) >= 0) {
        count += send_signal(folder, pid, number);
        close(folder);
    }
    if (processes)
        closedir(processes);
    return count;
}
