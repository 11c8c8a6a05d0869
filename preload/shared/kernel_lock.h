/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A lock of a file as the kernel tells it, in /proc/locks and in /proc/PID/fdinfo/FD:
 *
 *     1: FLOCK  ADVISORY  WRITE 4711 fe:00:9977962 0 EOF
 *
 * Used by the module, in a signal handler, too: no malloc, no stdio; and by the keeper.
 */
#ifndef DM_PRELOAD_KERNEL_LOCK_H
#define DM_PRELOAD_KERNEL_LOCK_H

#include <stdbool.h>
#include <sys/types.h>

struct text;

enum kernel_lock_kind { LOCK_OF_FLOCK, LOCK_OF_PROCESS, LOCK_OF_FILE }; /* FLOCK, POSIX, OFDLCK */

struct kernel_lock {
    enum kernel_lock_kind kind;

    /*
     * The owner's pid. PROCESS: the owner; FILE: -1, every process with the description. FLOCK: the process that called
     * flock(), which may have ended since; outside the first pid namespace the kernel then tells 0.
     */
    long pid;
    char inode[48]; /* MAJOR:MINOR:INODE.  The device may be another than stat() tells: only compared */
    bool is_exclusive;

    /*
     * Another file may have the same `inode` where stat() tells another device or number: the subvolumes of btrfs count
     * their inodes each for itself, and so do the file systems below overlayfs. Then these are the file's by stat(); 0:
     * `inode` is this file alone.
     */
    dev_t device;
    ino_t number;
};

/* Reads a line, up to the newline; false: no held lock, but a waiter or a lease. */
bool kernel_lock_read(const char *line, struct kernel_lock *ret_lock);

/* `KIND PID INODE`, and back. */
void kernel_lock_write(const struct kernel_lock *lock, struct text *text);
bool kernel_lock_parse(const char *text, struct kernel_lock *ret_lock);

/*
 * True if another process took this lock, by the pid, and so the first one is over: a file has one exclusive lock of a
 * kind at most. A lock without a pid may be either.
 */
bool kernel_lock_is_of_other(const struct kernel_lock *one, const struct kernel_lock *other);

/*
 * The exclusive lock of this kind by this descriptor of the process that `folder`, an fd of /proc/PID, tells of. False
 * with errno 0: there is none; EINPROGRESS: none, but the descriptor is a socket with open files on their way to the
 * process; with another errno: the kernel does not tell.
 */
bool kernel_lock_of_descriptor(int folder, const char *fd, enum kernel_lock_kind kind, struct kernel_lock *ret_lock);

#endif
