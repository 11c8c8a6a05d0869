/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds what GKeyFile does not tell: the line of a key, and that a section or key is there twice. GKeyFile merges
 * the two, the last wins, and one of two rules would silently be none.
 */
#ifndef DM_RUN_CONFIG_LINES_H
#define DM_RUN_CONFIG_LINES_H

#include <stdbool.h>

#include <glib.h>

/* From "[section]" to "FILE:LINE", over all files. */
GHashTable *config_lines_new(void);

/* Notes the sections of this file; refuses a section that any file had before, and a key that is repeated. */
bool config_lines_check(GHashTable *sections, const char *path, const char *text, GError **error);

#endif
