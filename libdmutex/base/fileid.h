/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which open file a descriptor's number stands for.
 *
 * A program may close descriptors that it did not open, and then get their numbers for files of its own.  So code that
 * keeps a descriptor remembers its file, and checks it before using or closing the number.  This does not work for
 * eventfds, which share one inode: see dm_descriptor_tag().  Header only, because the modules of `preload/` use it,
 * too.
 */
#ifndef DM_BASE_FILEID_H
#define DM_BASE_FILEID_H

#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

struct dm_fileid {
    dev_t device;
    ino_t inode;
};

/* If the number is not open: all zeros, which no open file has. */
static inline struct dm_fileid dm_fileid_of(int fd)
{
    struct stat status;

    if (fd < 0 || fstat(fd, &status) < 0)
        return (struct dm_fileid){ 0 };
    return (struct dm_fileid){ status.st_dev, status.st_ino };
}

/* True if the number still stands for that file. */
static inline bool dm_fileid_has(const struct dm_fileid *file, int fd)
{
    struct dm_fileid now = dm_fileid_of(fd);

    return now.inode && now.inode == file->inode && now.device == file->device;
}

/* Closes the number unless it now stands for another file. */
static inline void dm_fileid_close(const struct dm_fileid *file, int fd)
{
    if (dm_fileid_has(file, fd))
        close(fd);
}

#endif
