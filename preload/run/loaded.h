/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds the files that will be in the memory of a program, and runs nothing, neither the program nor the loader: a file
 * may name any program as its loader, and any library as an auditor.
 */
#ifndef DM_RUN_LOADED_H
#define DM_RUN_LOADED_H

#include <stdbool.h>

#include <glib.h>

#include "program.h"

struct loaded {
    char *name;        /* as the loader names the library: /lib/libx.so.1 */
    char *path;        /* the same, resolved: /usr/lib/libx.so.1.2 */
    bool has_variants; /* there are builds for newer processors next to the file: the loader may take one of them */
};

/*
 * Lists the program, then the libraries of LD_PRELOAD, then all libraries that are needed, in the search order of
 * ld.so(8). Missing libraries are left out. The caller frees the list.
 */
GPtrArray *loaded_find(const struct program *program);

/*
 * AddressSanitizer's runtime, as the loader names it, if the program needs it as a library; else NULL. The runtime ends
 * a program in which another library is loaded before it. The caller frees it.
 */
char *loaded_find_asan(const struct program *program);

#endif
