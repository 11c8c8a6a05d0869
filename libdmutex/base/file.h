/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files that the user names: read without waiting for whoever is at the other end, since there must be none.
 *
 * Root reads only what nobody else can change (base/place.h): another user could exchange the file, or lead root by a
 * link to a secret, whose first line would go to a server as a password.
 */
#ifndef DM_BASE_FILE_H
#define DM_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Opens a regular file for reading.  Refuses a FIFO, a socket, a device or a folder, whose open() or read() could wait
 * for ever, and a call or a fork() for it.  The descriptor does not outlive an exec() of another thread.  -1 with
 * errno, which is EINVAL for a file that is not regular, and EPERM for one that root does not read.
 */
int dm_file_open(const char *path);

/* False with EPERM, or another errno value: a file or folder that root does not read.  True for other users. */
bool dm_file_is_safe(const char *path);

/* A sentence about the errno value of a function here. */
const char *dm_file_reason(int error);

/*
 * All bytes of a regular file, with a NUL behind them, to be freed; NULL with errno: EFBIG if the file is longer than
 * `most`.
 */
char *dm_file_read(const char *path, size_t most, size_t *ret_length);

/* The same from a descriptor, which stays open. */
char *dm_file_read_open(int fd, size_t most, size_t *ret_length);

#endif
