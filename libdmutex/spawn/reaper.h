/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The reaper: a small process that runs one server in one directory for this process, ends the server and deletes the
 * directory when this process ends, for whatever reason.
 *
 * The reaper is a child of this process that wait() does not see and that sends no SIGCHLD: the program may have
 * children of its own to wait for.  The server is the reaper's child, so the server's pid is never another process's.
 *
 * How the reaper learns of the end: by the end of the conversation, and by a pidfd, because a forked child keeps the
 * conversation open and may live on.  PR_SET_PDEATHSIG would not do: that signal tells the end of the thread that
 * forked.  The reaper is in a session of its own, so that a signal to the program's process group does not end the
 * reaper before the work is done, and keeps none of the program's descriptors.
 */
#ifndef DM_SPAWN_REAPER_H
#define DM_SPAWN_REAPER_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/fileid.h"

struct dm_reaper {
    pid_t pid;
    int fd;                /* our end of the conversation */
    struct dm_fileid file; /* of fd: the program may have closed the number, and use it for another file */
};

/* Orders to the reaper. */
enum dm_reaper_order {
    DM_REAPER_START,  /* starts the server, again if already running, and waits until the server answers */
    DM_REAPER_KILL,   /* SIGKILL, and waits for the server's end */
    DM_REAPER_PAUSE,  /* SIGSTOP, and waits until the server has stopped */
    DM_REAPER_RESUME, /* SIGCONT */
    DM_REAPER_END     /* for dm_reaper_end() */
};

/* Results of an order, beside 0 and the errno values of a program that cannot be executed. */
enum {
    DM_REAPER_ENDED = -1,   /* the server has ended by itself */
    DM_REAPER_SILENT = -2,  /* the server was started, and does not answer */
    DM_REAPER_NOTHING = -3, /* the server does not run */
    DM_REAPER_GONE = -4     /* there is no reaper any more */
};

/*
 * Starts the reaper; `directory` is absolute, with the server's socket at `path` inside.  0 or an errno value.  The
 * calling process's signals are blocked meanwhile.
 */
int dm_reaper_begin(struct dm_reaper *ret_reaper, const char *directory, const char *path);

/* Sends an order, and waits until the reaper has carried the order out. */
int dm_reaper_do(const struct dm_reaper *reaper, enum dm_reaper_order order);

/*
 * Ends the server, deletes the directory with all files inside, ends the reaper; all is done when this function
 * returns.
 */
void dm_reaper_end(struct dm_reaper *reaper);

#endif
