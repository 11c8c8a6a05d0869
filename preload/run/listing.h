/* SPDX-License-Identifier: BSD-2-Clause */
/* Output of --list: rules for all objects that the command used, from the notes of the module (seen.h). */
#ifndef DM_RUN_LISTING_H
#define DM_RUN_LISTING_H

#include <stdio.h>

/*
 * Prints the counts in the files of the folder, the most used object first:
 *
 *     COUNT  RULE  [# remark]
 *
 * and below, in lines that begin with #, the objects that no rule can name.
 */
void listing_print(const char *folder, FILE *to);

/* Removes the folder and the files inside. */
void listing_remove(const char *folder);

#endif
