/* SPDX-License-Identifier: BSD-2-Clause */
#include "seen.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/place.h"

static bool is_own(int fd)
{
    struct stat status;

    return fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid() && status.st_nlink == 1;
}

int seen_open(const char *folder, const char *name, int flags)
{
    struct dm_fault fault;
    int place = dm_place_open_own(folder, false, &fault);
    int fd = place < 0 ? -1 : openat(place, name, flags | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);

    if (place < 0)
        errno = fault.kind == DM_FAULT_OWNER ? EPERM : fault.error;
    else
        close(place);
    if (fd < 0 || is_own(fd))
        return fd;
    close(fd);
    errno = EPERM;
    return -1;
}
