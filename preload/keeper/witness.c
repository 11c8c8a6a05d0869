/* SPDX-License-Identifier: BSD-2-Clause */
#include "witness.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define FLAGS (O_CLOEXEC | O_NONBLOCK | O_NOCTTY)

/* Only files and folders, because opening anything else may have side effects. For a lock any mode will do. */
static int open_anew(int file)
{
    char path[32];
    struct stat status;
    int own;

    if (!file || fstat(file, &status) < 0 || !(S_ISREG(status.st_mode) || S_ISDIR(status.st_mode)))
        return 0;
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    own = open(path, O_RDONLY | FLAGS);
    if (own < 0 && errno == EACCES)
        own = open(path, O_WRONLY | FLAGS);
    return own < 0 ? 0 : own;
}

/* The only way to ask flock() is to lock. */
static enum witness_word ask_by_flock(int own)
{
    if (flock(own, LOCK_SH | LOCK_NB) < 0)
        return errno == EWOULDBLOCK ? WITNESS_LOCKED : WITNESS_SILENT;
    flock(own, LOCK_UN);
    return WITNESS_FREE;
}

/* If a shared lock is in the way, there is no exclusive one. */
static enum witness_word ask_by_fcntl(int own)
{
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

    if (fcntl(own, F_OFD_GETLK, &lock) < 0)
        return WITNESS_SILENT;
    return lock.l_type == F_WRLCK ? WITNESS_LOCKED : WITNESS_FREE;
}

/* The file stays open from then on: closing it would prompt the watch of this file, which would ask again. */
enum witness_word witness_ask(struct witness *witness, enum kernel_lock_kind kind)
{
    if (!witness->own)
        witness->own = open_anew(witness->file);
    if (!witness->own)
        return WITNESS_SILENT;
    return kind == LOCK_OF_FLOCK ? ask_by_flock(witness->own) : ask_by_fcntl(witness->own);
}

void witness_dismiss(struct witness *witness)
{
    if (witness->file)
        close(witness->file);
    if (witness->own)
        close(witness->own);
    *witness = (struct witness){ .file = 0 };
}
