/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fileid.h"
#include "base/place.h"
#include "base/text.h"

static void close_quietly(int fd)
{
    int error = errno;

    close(fd);
    errno = error;
}

/* False with errno.  Uses O_PATH, so that nothing is opened before it is known to be a regular file. */
static bool find(const char *path, struct dm_fileid *ret_file)
{
    struct dm_fault fault;
    int fd = dm_place_open(path, &fault), error = EINVAL;
    struct stat status;

    if (fd < 0) {
        errno = fault.kind == DM_FAULT_OWNER ? EPERM : fault.error;
        return false;
    }
    *ret_file = dm_fileid_of(fd);
    if (fstat(fd, &status) == 0 && (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode)))
        error = (status.st_mode & S_IWOTH) && !dm_place_is_read_only(fd) ? EPERM : 0;
    close(fd);
    errno = error;
    return !error;
}

bool dm_file_is_safe(const char *path)
{
    struct dm_fileid file;

    return geteuid() != 0 || find(path, &file);
}

/* A file that was replaced after the check has another identity, and is refused. */
int dm_file_open(const char *path)
{
    bool is_root = geteuid() == 0;
    struct dm_fileid file;
    struct stat status;
    int fd;

    if (is_root && !find(path, &file))
        return -1;
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return -1;
    errno = is_root && !dm_fileid_has(&file, fd) ? EPERM : EINVAL;
    if (errno == EINVAL && fstat(fd, &status) == 0 && S_ISREG(status.st_mode))
        return fd;
    close_quietly(fd);
    return -1;
}

const char *dm_file_reason(int error)
{
    switch (error) {
    case EINVAL:
        return "it is not a regular file";
    case EFBIG:
        return "it is too long";
    case EPERM:
        return "another user can change it, or the way to it, and this program is root's";
    default:
        return dm_text_error(error);
    }
}

/*
 * False with errno, unless all was read.  `room` includes one byte beyond `most`, which shows that the file is longer.
 */
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
 * A file that grows while it is read is refused as too long: it is being written, and half of it is of no use.  A size
 * of 0 means nothing: files in /proc and in some FUSE file systems report it.
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
