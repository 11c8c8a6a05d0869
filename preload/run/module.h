/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the module is, and its entry in the environment. */
#ifndef DM_RUN_MODULE_H
#define DM_RUN_MODULE_H

#include <stdbool.h>

#include <glib.h>

/*
 * The absolute path of a module: in the build tree that contains this program, below the directories where both were
 * installed, or in those for which both were built. The caller frees *ret_path.
 */
bool module_find(const char *file_name, char **ret_path, GError **error);

/* The module, and the second one that --list also loads. */
#define MODULE_FILE "libdmutex-preload.so"
#define MODULE_OBSERVER_FILE "libdmutex-observer.so"

/* The value of LD_PRELOAD with the module in front, once. `before`: the current value, or NULL. To be freed. */
char *module_add(const char *before, const char *module);

#endif
