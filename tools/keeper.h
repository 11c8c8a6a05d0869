/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lock files of dmutex-run(1) are held by dmutex-keeper, in the place of jobs.  A keeper of this user on this host is
 * asked for the job.
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

/* True if the holder is a keeper that says which job has the lock file. */
bool keeper_find_job(const dmutex_info_t *holder, const char *name, struct keeper_job *ret_job);

#endif
