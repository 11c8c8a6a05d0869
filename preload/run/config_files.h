/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the files of the configuration, and checks that the files may be believed. */
#ifndef DM_RUN_CONFIG_FILES_H
#define DM_RUN_CONFIG_FILES_H

#include <stdbool.h>

#include <glib.h>

/*
 * The paths of the first existing file of: `option` (NULL: not given), $DMUTEX_CONF, ~/.config/dmutex/preload.conf, the
 * system's file with the files in the .d directory. The first two must exist if named. None at all: an empty list,
 * which the caller frees.
 */
bool config_files_find(const char *option, const char *system_file, GPtrArray **ret_paths, GError **error);

/*
 * The file's text, which the caller frees. NULL, refused: the file cannot be read, or could have been written by users
 * other than the user and root.
 */
char *config_files_load(const char *path, GError **error);

#endif
