/* SPDX-License-Identifier: BSD-2-Clause */
/* All names of a server, or those that match a pattern: each once, sorted. */
#ifndef DM_TOOLS_GATHER_H
#define DM_TOOLS_GATHER_H

#include <stddef.h>

#include "seen.h"

struct gathered {
    const char *pattern; /* as in a shell; NULL: all names */
    bool has_idle;       /* free names without waiters are wanted, too */
    int waiters;         /* how many are listed for each name at most */
    struct seen *seen;
    size_t count, room;
};

/* Fills `seen`, which gather_clear() frees.  Returns 0 or an errno value; dmutex_strerror_np() then has the reason. */
int gather(struct gathered *gathered);
void gather_clear(struct gathered *gathered);

#endif
