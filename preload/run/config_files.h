/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the configuration files, and checks that they can be trusted. */
#ifndef DM_RUN_CONFIG_FILES_H
#define DM_RUN_CONFIG_FILES_H

#include <stdbool.h>

#include <glib.h>

/*
 * The paths of the first place that exists: `option` (NULL: not given), $DMUTEX_CONF, ~/.config/dmutex/preload.conf,
 * the system's file with the files in its .d directory. The first two must exist if named. If there is none, the list
 * is empty. The caller frees it.
 */
bool config_files_find(const char *option, const char *system_file, GPtrArray **ret_paths, GError **error);

/*
 * The file's text, which the caller frees. NULL, refused: it cannot be read, or users other than this user and root
 * could have written it.
 */
char *config_files_load(const char *path, GError **error);

#endif
