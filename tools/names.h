/* SPDX-License-Identifier: BSD-2-Clause */
/* The names that static initialisers give, in programs, libraries and object files. */
#ifndef DM_TOOLS_NAMES_H
#define DM_TOOLS_NAMES_H

#include "json.h"

enum { NAMES_FAULT = 1 /* a name that cannot be used */, NAMES_TROUBLE = 2 /* a file that cannot be read */ };

/*
 * Prints the names in the files, up to NULL: one line each, or as members of an array that is open in json.  caller: of
 * complaints, for people.  Returns 0, NAMES_FAULT or NAMES_TROUBLE.
 */
int names_print(const char *caller, char *const *paths, struct json *json);

/*
 * Compares the automatic names of two builds of a file, and prints those that are not of the same object in both.
 * Returns 0, NAMES_FAULT if a name means another object in the new build, or NAMES_TROUBLE.
 */
int names_diff(const char *caller, const char *old, const char *new, struct json *json);

#endif
