/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The files that a program has in memory when it begins, without running it.
 */
#ifndef DM_RUN_LOADED_H
#define DM_RUN_LOADED_H

#include <glib.h>

#include "program.h"

struct loaded {
    char *name; /* as the loader calls it: /lib/libx.so.1 */
    char *path; /* the same, resolved: /usr/lib/libx.so.1.2 */
};

/*
 * The program first, then its libraries as its own dynamic loader finds them.  When that cannot tell,
 * the program alone, with a warning.  The caller frees the list.
 */
GPtrArray *loaded_find(const struct program *program);

#endif
