/* SPDX-License-Identifier: BSD-2-Clause */
/* --holders: which processes of this host have the lock files for which this user's keepers hold distributed locks. */
#ifndef DM_RUN_HOLDERS_H
#define DM_RUN_HOLDERS_H

#include <stdbool.h>

#include <glib.h>

/*
 * Asks each keeper of this user, and prints NAME PATH PID PROGRAM for each lock. Refuses if a keeper cannot be asked.
 */
bool holders_print(GError **error);

#endif
