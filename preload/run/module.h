/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where the module is, and how the environment names it.
 */
#ifndef DM_RUN_MODULE_H
#define DM_RUN_MODULE_H

#include <stdbool.h>

#include <glib.h>

/*
 * The absolute path of libdmutex-preload.so: of the build tree in which this program lies, of the
 * directories below which both were installed, or of those for which both were built.  The caller
 * frees *ret_path.
 */
bool module_find(char **ret_path, GError **error);

/* The value of LD_PRELOAD with the module in front, once.  `before`: what is there; NULL.  To be freed. */
char *module_add(const char *before, const char *module);

#endif
