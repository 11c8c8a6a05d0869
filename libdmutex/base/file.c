/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void close_quietly(int fd)
{
    int error = errno;

    close(fd);
    errno = error;
}

int dm_file_open(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat status;

    if (fd < 0 || (fstat(fd, &status) == 0 && S_ISREG(status.st_mode)))
        return fd;
    close(fd);
    errno = EINVAL;
    return -1;
}

const char *dm_file_reason(int error)
{
    return error == EINVAL ? "it is not a regular file" : error == EFBIG ? "it is too long" : strerror(error);
}

/* False with errno, unless all was read.  `room` counts the byte behind `most`, which tells that the file is longer. */
static bool read_all(int fd, char *bytes, size_t room, size_t *ret_length)
{
    size_t length = 0;
    ssize_t got;

    while (length < room && (got = read(fd, bytes + length, room - length)) != 0) {
        if (got < 0 && errno != EINTR)
            return false;
        length += got > 0 ? (size_t)got : 0;
    }
    errno = EFBIG;
    *ret_length = length;
    return length < room;
}

/*
 * A file that grows meanwhile is refused as too long: it is being written, and half of it is of no use.  A size of 0
 * says nothing: files of /proc have it, and those of some file systems in user space.
 */
char *dm_file_read_open(int fd, size_t most, size_t *ret_length)
{
    struct stat status;
    size_t room = most + 1, length = 0;
    char *bytes;

    if (fstat(fd, &status) == 0 && status.st_size > 0 && (size_t)status.st_size < most)
        room = (size_t)status.st_size + 1;
    bytes = malloc(room + 1);
    if (bytes && !read_all(fd, bytes, room, &length)) {
        free(bytes);
        return NULL;
    }
    if (bytes) {
        bytes[length] = '\0';
        *ret_length = length;
    }
    return bytes;
}

char *dm_file_read(const char *path, size_t most, size_t *ret_length)
{
    int fd = dm_file_open(path);
    char *bytes;

    if (fd < 0)
        return NULL;
    bytes = dm_file_read_open(fd, most, ret_length);
    close_quietly(fd);
    return bytes;
}
