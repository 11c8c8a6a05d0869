/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The reaper: a small process that runs one server in one directory for this process.  When this process ends, for
 * whatever reason, the reaper ends the server and deletes the directory.
 *
 * The reaper is a child of this process that wait() does not see and that sends no SIGCHLD, because the program may
 * wait for children of its own.  The server is the reaper's child, so its pid cannot be reused unnoticed.
 *
 * The reaper notices the end of this process by the end of the conversation, and by a pidfd, because a forked child
 * keeps the conversation open and may live on.  PR_SET_PDEATHSIG would not do: it is sent when the thread that forked
 * ends.  The reaper has a session of its own, so that a signal to the program's process group does not end it too
 * early, and keeps none of the program's descriptors.
 */
#ifndef DM_SPAWN_REAPER_H
#define DM_SPAWN_REAPER_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/fileid.h"

struct dm_pgserver;

struct dm_reaper {
    pid_t pid;
    int fd;                /* our end of the conversation */
    struct dm_fileid file; /* of fd: the program may have closed it, and use the number for another file */
};

/* Orders to the reaper. */
enum dm_reaper_order {
    DM_REAPER_START,  /* starts the server, again if it is running, and waits until it answers */
    DM_REAPER_KILL,   /* sends SIGKILL, and waits for the server's end */
    DM_REAPER_PAUSE,  /* sends SIGSTOP, and waits until the server has stopped */
    DM_REAPER_RESUME, /* sends SIGCONT */
    DM_REAPER_END     /* used by dm_reaper_end() */
};

/* Results of an order, other than 0 and the errno values of a program that cannot be executed. */
enum {
    DM_REAPER_ENDED = -1,   /* the server has ended by itself */
    DM_REAPER_SILENT = -2,  /* the server was started, but does not answer */
    DM_REAPER_NOTHING = -3, /* the server is not running */
    DM_REAPER_GONE = -4,    /* the reaper is gone */
    DM_REAPER_BLIND = -5    /* without /proc the server's processes cannot be found */
};

/*
 * Starts the reaper; `directory` is absolute, with the server's socket at `path` inside.  `postgres`: which PostgreSQL
 * it runs; NULL: Redis.  Blocks the calling thread's signals during the call. 0 or an errno value.
 */
int dm_reaper_begin(struct dm_reaper *ret_reaper, const char *directory, const char *path,
                    const struct dm_pgserver *postgres);

/* Sends an order, and waits until the reaper has carried it out. */
int dm_reaper_do(const struct dm_reaper *reaper, enum dm_reaper_order order);

/* Ends the server, deletes the directory with all files in it, and ends the reaper; all is done on return. */
void dm_reaper_end(struct dm_reaper *reaper);

#endif
