/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files that the user names.  They are read without waiting for another process: only regular files are accepted.
 *
 * Root reads only what nobody else can change (base/place.h).  Otherwise another user could replace the file, or lead
 * root by a link to a secret, whose first line would be sent to a server as a password.
 */
#ifndef DM_BASE_FILE_H
#define DM_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Opens a regular file for reading.  Refuses a FIFO, a socket, a device or a folder: its open() or read() could block
 * for ever, and with it a call or a fork().  The descriptor is closed on exec.  Returns -1 with errno, which is EINVAL
 * for a file that is not regular, and EPERM for one that root must not read.
 */
int dm_file_open(const char *path);

/*
 * False with EPERM or another errno value if this is root, and must not read the file or folder.  True for other users.
 */
bool dm_file_is_safe(const char *path);

/* The sentence for an errno value of these functions. */
const char *dm_file_reason(int error);

/*
 * Reads a whole regular file and appends a NUL.  The caller frees the result.  NULL with errno: EFBIG if the file is
 * longer than `most`.
 */
char *dm_file_read(const char *path, size_t most, size_t *ret_length);

/* The same from a descriptor, which stays open. */
char *dm_file_read_open(int fd, size_t most, size_t *ret_length);

#endif
