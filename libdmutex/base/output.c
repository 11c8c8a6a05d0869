/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/place.h"

/*
 * Root does not write where another user could redirect the path. (A relative path is the caller's responsibility.) A
 * user who can write to the folder can replace the log by a file of their own, or by another name of a file of root's:
 * see is_of_root().
 */
static int open_as_root(const char *path, int flags, const char **ret_why)
{
    struct dm_fault fault;
    const char *leaf;
    int folder = dm_place_open_parent_of_output(path, &leaf, &fault), fd, error;

    if (folder < 0) {
        if (fault.kind == DM_FAULT_OWNER)
            *ret_why = fault.is_open ? "is in a folder that all may change" : "is behind another user's link";
        errno = fault.kind == DM_FAULT_OWNER ? EPERM : fault.error;
        return -1;
    }
    fd = openat(folder, leaf, flags, 0600);
    error = errno;
    close(folder);
    errno = error;
    return fd;
}

static bool is_of_root(const struct stat *status)
{
    return !S_ISREG(status->st_mode) || (status->st_nlink <= 1 && dm_place_is_trusted(status->st_uid));
}

int dm_output_open(const char *path, const char **ret_why)
{
    int flags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
    bool is_root = geteuid() == 0 && path[0] == '/';
    struct stat status;
    int fd;

    *ret_why = "cannot be opened";
    fd = is_root ? open_as_root(path, flags, ret_why) : open(path, flags, 0600);
    if (fd < 0) {
        *ret_why = errno == ELOOP ? "is a symbolic link" : errno == ENXIO ? "is a FIFO or a socket" : *ret_why;
        return -1;
    }
    *ret_why = "is neither a file nor a device";
    if (fstat(fd, &status) == 0 && (S_ISREG(status.st_mode) || S_ISCHR(status.st_mode))) {
        if (!is_root || is_of_root(&status))
            return fd;
        *ret_why = "is a file of another user, or has a second name";
    }
    close(fd);
    errno = EINVAL;
    return -1;
}
