/* SPDX-License-Identifier: BSD-2-Clause */
/* The environment in which the command runs: gives the module its orders. */
#ifndef DM_RUN_ENVIRONMENT_H
#define DM_RUN_ENVIRONMENT_H

#include <stdbool.h>

#include <glib.h>

#include "plan.h"

/*
 * Ours, with LD_PRELOAD, DMUTEX_RULES, DMUTEX_MAP, DMUTEX_URL.  `config`: the file that
 * was named, absolute, for a dmutex-run inside the command; NULL.  The caller frees the vector with g_strfreev().
 */
bool environment_make(const struct plan *plan, const char *config, char ***ret_environment, GError **error);

/* For --list: the folder in which modules note used objects, and the module that notes the making of lock files. */
bool environment_observe(char ***environment, const char *folder, GError **error);

/* Moves a library to the front of LD_PRELOAD, or adds it there. */
void environment_put_first(char ***environment, const char *library);

/* Prints the new or different variables, and the command, as a shell takes both; without passwords. */
void environment_print(char *const *environment, char *const *command);

#endif
