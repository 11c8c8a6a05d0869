/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds the files in the memory of a starting program, and runs nothing: neither the program nor the loader,
 * because a file may name any program as the loader, and any library as an auditor.
 */
#ifndef DM_RUN_LOADED_H
#define DM_RUN_LOADED_H

#include <stdbool.h>

#include <glib.h>

#include "program.h"

struct loaded {
    char *name;        /* as the loader names the library: /lib/libx.so.1 */
    char *path;        /* the same, resolved: /usr/lib/libx.so.1.2 */
    bool has_variants; /* builds for newer processors lie beside the file: the loader may take another build */
};

/*
 * Lists the program, then the libraries of LD_PRELOAD, then all needed libraries, in the search order of ld.so(8).
 * Leaves missing libraries out.  The caller frees the list.
 */
GPtrArray *loaded_find(const struct program *program);

/*
 * The runtime of AddressSanitizer, as the loader names it, if the program needs it as a library; NULL: it does not. The
 * runtime ends a program in which another library is loaded before. The caller frees the text.
 */
char *loaded_find_asan(const struct program *program);

#endif
