/* SPDX-License-Identifier: BSD-2-Clause */
/* All names of a server, or those of a pattern, sorted by name; each once. */
#ifndef DM_TOOLS_GATHER_H
#define DM_TOOLS_GATHER_H

#include <stddef.h>

#include "seen.h"

struct gathered {
    const char *pattern; /* a shell's; NULL: all names */
    bool has_idle;       /* free names without waiters, too */
    int waiters;         /* told for each name at most */
    struct seen *seen;
    size_t count, room;
};

/* Fills `seen`, which gather_clear() frees.  0 or an errno value, with the sentence of the library. */
int gather(struct gathered *gathered);
void gather_clear(struct gathered *gathered);

#endif
