/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dmutex-keeper holds the lock files of dmutex-run(1) on behalf of jobs.  We ask a keeper of this user on this host
 * which job it holds a lock for.
 */
#ifndef DM_TOOLS_KEEPER_H
#define DM_TOOLS_KEEPER_H

#include <dmutex/types.h>
#include <stdbool.h>
#include <stdint.h>

struct keeper_job {
    uint32_t pid;     /* 0: not known */
    char program[65]; /* any bytes */
    char path[512];   /* of the lock file */
};

/* True if the holder is a keeper, and says which job has the lock file. */
bool keeper_find_job(const dmutex_info_t *holder, const char *name, struct keeper_job *ret_job);

#endif
