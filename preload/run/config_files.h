/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which files are the configuration, and may they be believed?
 */
#ifndef DM_RUN_CONFIG_FILES_H
#define DM_RUN_CONFIG_FILES_H

#include <stdbool.h>

#include <glib.h>

/*
 * The paths of the first of these that is there: `option` (NULL: not given), $DMUTEX_CONF,
 * ~/.config/dmutex/preload.conf, the system's file with what is in its .d directory.  The first two
 * must be there if they are named.  None at all: an empty list, which the caller frees.
 */
bool config_files_find(const char *option, const char *system_file, GPtrArray **ret_paths, GError **error);

/*
 * The file's text, which the caller frees.  NULL, refused: it cannot be read, or somebody else than
 * the user and root could have written it.
 */
char *config_files_load(const char *path, GError **error);

#endif
