/* SPDX-License-Identifier: BSD-2-Clause */
/* Output of --list: rules for all objects that the command used, from what the module recorded (seen.h). */
#ifndef DM_RUN_LISTING_H
#define DM_RUN_LISTING_H

#include <glib.h>
#include <stdbool.h>
#include <stdio.h>

/*
 * Prints the counts from the files in the folder, the most used object first:
 *
 *     COUNT  RULE  [# remark]
 *
 * and below, in lines that begin with #, the objects that no rule can name.
 */
void listing_print(int folder, FILE *to);

/* Makes the folder. Returns its path, which the caller frees, and a descriptor by O_PATH. */
bool listing_make(char **ret_path, int *ret_folder, GError **error);

/* Removes the files in the folder and the folder; closes the descriptor. */
void listing_remove(int folder, const char *path);

#endif
