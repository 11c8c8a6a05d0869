/* SPDX-License-Identifier: BSD-2-Clause */
/* The environment of the command, which gives the module its orders. */
#ifndef DM_RUN_ENVIRONMENT_H
#define DM_RUN_ENVIRONMENT_H

#include <stdbool.h>

#include <glib.h>

#include "plan.h"

/*
 * Our environment, with LD_PRELOAD, DMUTEX_RULES, DMUTEX_MAP, DMUTEX_URL. `config`: the absolute path of the file that
 * was named, for a dmutex-run inside the command; or NULL. The caller frees the vector with g_strfreev().
 */
bool environment_make(const struct plan *plan, const char *config, char ***ret_environment, GError **error);

/* For --list: the folder in which modules record used objects, and the module that records the making of lock files. */
bool environment_observe(char ***environment, const char *folder, GError **error);

/* Moves a library to the front of LD_PRELOAD, or adds it there. */
void environment_put_first(char ***environment, const char *library);

/* Prints the new or changed variables, and the command, in shell syntax; without passwords. */
void environment_print(char *const *environment, char *const *command);

#endif
