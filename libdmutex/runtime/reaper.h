/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The reaper: a small process that runs one server in one directory for this process, and ends the
 * one and deletes the other when this process ends, however that happens.
 *
 * It is a child of this process, but one that wait() does not see and that sends no SIGCHLD: the
 * program may have children of its own to wait for.  The server is the reaper's child, so its pid
 * is never another process's.
 *
 * How it learns of the end: by the end of the conversation, and by a pidfd, for a forked child
 * keeps the conversation open and may live on.  PR_SET_PDEATHSIG would not do: it tells the end of
 * the thread that forked.  It is in a session of its own, so that what ends the program's process
 * group does not end it before its work is done, and keeps none of the program's descriptors.
 */
#ifndef DM_RUNTIME_REAPER_H
#define DM_RUNTIME_REAPER_H

#include <stdbool.h>
#include <sys/types.h>

struct dm_reaper {
    pid_t pid;
    int fd; /* our end of the conversation */
};

/* What it can be told to do. */
enum dm_reaper_order {
    DM_REAPER_START,  /* starts the server, again if it runs, and waits until it answers */
    DM_REAPER_KILL,   /* SIGKILL, and waits for its end */
    DM_REAPER_PAUSE,  /* SIGSTOP, and waits until it has stopped */
    DM_REAPER_RESUME, /* SIGCONT */
    DM_REAPER_END     /* for dm_reaper_end() */
};

/* Results of an order, beside 0 and the errno values of a program that cannot be executed. */
enum {
    DM_REAPER_ENDED = -1,   /* the server has ended by itself */
    DM_REAPER_SILENT = -2,  /* it was started, and does not answer */
    DM_REAPER_NOTHING = -3, /* it does not run */
    DM_REAPER_GONE = -4     /* there is no reaper any more */
};

/*
 * Starts the reaper; `directory` is absolute, with the server's socket in it at `path`.  0 or an
 * errno value.  The calling process's signals are blocked meanwhile.
 */
int dm_reaper_begin(struct dm_reaper *ret_reaper, const char *directory, const char *path);

/* Has an order carried out, and waits for it. */
int dm_reaper_do(const struct dm_reaper *reaper, enum dm_reaper_order order);

/* Ends the server, deletes the directory with all in it, ends the reaper; all is done when this returns. */
void dm_reaper_end(struct dm_reaper *reaper);

#endif
