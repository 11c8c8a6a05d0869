/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/stderr.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fileid.h"

static struct dm_fileid at_start; /* zeros if 2 was closed */
static bool is_noted;

/* Called before the constructor only from another constructor of the same library, before there are other threads. */
__attribute__((constructor)) static void note(void)
{
    if (!is_noted)
        at_start = dm_fileid_of(STDERR_FILENO);
    is_noted = true;
}

static bool is_for_appending(int fd)
{
    int flags = fcntl(fd, F_GETFL);

    return flags >= 0 && (flags & O_APPEND) && (flags & O_ACCMODE) == O_WRONLY;
}

bool dm_stderr_is_usable(void)
{
    struct stat status;

    note();
    if (dm_fileid_has(&at_start, STDERR_FILENO))
        return true;
    if (fstat(STDERR_FILENO, &status) < 0)
        return false;
    if (S_ISREG(status.st_mode))
        return is_for_appending(STDERR_FILENO);
    return S_ISFIFO(status.st_mode) || (S_ISCHR(status.st_mode) && isatty(STDERR_FILENO));
}
