/* SPDX-License-Identifier: BSD-2-Clause */
/* The automatic names of objects with static initialisers, in programs, libraries and object files. */
#ifndef DM_TOOLS_NAMES_H
#define DM_TOOLS_NAMES_H

#include "json.h"

enum { NAMES_FAULT = 1 /* a name that cannot be used */, NAMES_TROUBLE = 2 /* a file that cannot be read */ };

/*
 * Prints the names in the files; the list of paths ends with NULL.  One line each, or with `json` members of its open
 * array.  `caller` begins the error messages.  Returns 0, NAMES_FAULT or NAMES_TROUBLE.
 */
int names_print(const char *caller, char *const *paths, struct json *json);

/*
 * Compares the automatic names of two builds of a file, and prints those that do not mean the same object in both.
 * Returns 0, NAMES_FAULT if a name means another object in the new build, or NAMES_TROUBLE.
 */
int names_diff(const char *caller, const char *old, const char *new, struct json *json);

#endif
