/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `dmutex-run --list`: the objects that a process has used. Each process keeps a file of this form in the folder that
 * DMUTEX_LIST names. The file is named after the pid, and mapped shared, so that it remains however the process ends.
 * dmutex-run reads all files when the command has ended.
 */
#ifndef DM_PRELOAD_SEEN_H
#define DM_PRELOAD_SEEN_H

#include <stdint.h>

#define SEEN_VERSION 1
#define SEEN_ENTRIES 4096
#define SEEN_PATH_ROOM 232

enum seen_kind { SEEN_NOTHING, SEEN_MUTEX, SEEN_CONDITION, SEEN_FLOCK, SEEN_FCNTL };

/* Where the object is. */
enum seen_place {
    SEEN_IN_MODULE,  /* path: the ELF file, offset: from the load address */
    SEEN_IN_MAPPING, /* path: the mapped file, offset: in the file */
    SEEN_IN_FILE,    /* path: the lock file */
    SEEN_NOWHERE     /* heap, stack, anonymous memory: no rule can name the object */
};

struct seen {
    uint8_t kind;  /* enum seen_kind; written last */
    uint8_t place; /* enum seen_place */
    uint16_t bits; /* of a mutex: glibc's kind, 0x10 robust, 0x20 and 0x40 priorities, 0x80 shared; of a file: below */
    uint32_t pad;
    uint64_t count; /* locks, or waits on a condition */
    uint64_t offset;
    char path[SEEN_PATH_ROOM];
};

/* How else a file was locked. */
enum { SEEN_PART = 1, SEEN_SHARED = 2 };

/* Files that were made, not locked (observer.c). */
#define MADE_FILE "made"
enum { MADE_BY_OPEN = 'x', MADE_BY_LINK = 'l', MADE_BY_MKDIR = 'm' };

struct seen_file {
    uint32_t version;
    uint32_t is_full; /* more was used than fits */
    char program[SEEN_PATH_ROOM];
    struct seen entries[SEEN_ENTRIES];
};

/*
 * Opens or makes a file of this user in the folder of the reports. A process may outlive dmutex-run, and a stranger may
 * then make the folder again: so the folder is checked each time, as the keeper's is, and the file must not be a link.
 * -1: nobody is left to report to (ENOENT), or the folder belongs to another user (EPERM).
 */
int seen_open(const char *folder, const char *name, int flags);

#endif
