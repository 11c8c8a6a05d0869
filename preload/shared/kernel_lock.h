/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A file lock as the kernel shows it, in /proc/locks and in /proc/PID/fdinfo/FD:
 *
 *     1: FLOCK  ADVISORY  WRITE 4711 fe:00:9977962 0 EOF
 *
 * Used by the module, even in a signal handler: no malloc, no stdio; and by the keeper.
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
     * The owner's pid. PROCESS: the owner. FILE: -1, every process that has the open file description. FLOCK: the
     * process that called flock(), which may have ended since; outside the first pid namespace the kernel then shows 0.
     */
    long pid;
    char inode[48]; /* MAJOR:MINOR:INODE. The device may differ from stat()'s, so it is only compared. */
    bool is_exclusive;

    /*
     * Another file may have the same `inode` if stat() returns a different device or number: subvolumes of btrfs number
     * their inodes independently, and so do the file systems below overlayfs. In that case these are the file's values
     * by stat(); 0: `inode` identifies the file.
     */
    dev_t device;
    ino_t number;
};

/* Reads a line, up to the newline. False if it is no held lock, but a waiter or a lease. */
bool kernel_lock_read(const char *line, struct kernel_lock *ret_lock);

/* `KIND PID INODE`, and back. */
void kernel_lock_write(const struct kernel_lock *lock, struct text *text);
bool kernel_lock_parse(const char *text, struct kernel_lock *ret_lock);

/*
 * True if, by its pid, another process took this lock, so that the first lock is over: a file has at most one exclusive
 * lock of a kind. A lock without a pid may be either.
 */
bool kernel_lock_is_of_other(const struct kernel_lock *one, const struct kernel_lock *other);

/*
 * The exclusive lock of this kind that this descriptor has, in the process whose /proc/PID `folder` is. False with
 * errno 0: there is none; EINPROGRESS: none, but the descriptor is a socket with open files on their way to the
 * process; any other errno: the kernel does not say.
 */
bool kernel_lock_of_descriptor(int folder, const char *fd, enum kernel_lock_kind kind, struct kernel_lock *ret_lock);

#endif
