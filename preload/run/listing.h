/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What --list prints: rules for all that the command used, from what the module has noted (seen.h).
 */
#ifndef DM_RUN_LISTING_H
#define DM_RUN_LISTING_H

#include <stdio.h>

/*
 * Prints what the files of the folder say, what was used most first:
 *
 *     COUNT  RULE  [# remark]
 *
 * and below it what cannot be named, in lines that begin with #.
 */
void listing_print(const char *folder, FILE *to);

/* Removes the folder and the files in it. */
void listing_remove(const char *folder);

#endif
