/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The files that a program has in memory when it begins, found without running anything: neither the program
 * nor its loader, which a file can name, and which obeys what the file says.
 */
#ifndef DM_RUN_LOADED_H
#define DM_RUN_LOADED_H

#include <stdbool.h>

#include <glib.h>

#include "program.h"

struct loaded {
    char *name;        /* as the loader calls it: /lib/libx.so.1 */
    char *path;        /* the same, resolved: /usr/lib/libx.so.1.2 */
    bool has_variants; /* there are builds for newer processors beside it, and the loader takes one of these */
};

/*
 * The program first, then what LD_PRELOAD names and the libraries that they need, as ld.so(8) looks for them.  What
 * is not found is left out.  The caller frees the list.
 */
GPtrArray *loaded_find(const struct program *program);

#endif
