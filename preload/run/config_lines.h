/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds what GKeyFile does not report: the line of a key, and a section or key that occurs twice. GKeyFile merges the
 * two and the last one wins, so that one of two rules would silently be lost.
 */
#ifndef DM_RUN_CONFIG_LINES_H
#define DM_RUN_CONFIG_LINES_H

#include <stdbool.h>

#include <glib.h>

/* From "[section]" to "FILE:LINE", for all files. */
GHashTable *config_lines_new(void);

/* Records the sections of this file. Refuses a section that any earlier file had, and a key that is repeated. */
bool config_lines_check(GHashTable *sections, const char *path, const char *text, GError **error);

#endif
