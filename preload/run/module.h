/* SPDX-License-Identifier: BSD-2-Clause */
/* The place of the module, and the module's entry in the environment. */
#ifndef DM_RUN_MODULE_H
#define DM_RUN_MODULE_H

#include <stdbool.h>

#include <glib.h>

/*
 * The absolute path of a module: of the build tree in which this program lies, of the directories below which both were
 * installed, or of the directories for which both were built. The caller frees *ret_path.
 */
bool module_find(const char *file_name, char **ret_path, GError **error);

/* The module, and the second module that --list loads besides. */
#define MODULE_FILE "libdmutex-preload.so"
#define MODULE_OBSERVER_FILE "libdmutex-observer.so"

/* The value of LD_PRELOAD with the module in front, once. `before`: the present value; NULL. To be freed. */
char *module_add(const char *before, const char *module);

#endif
