/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Processes of the library that serve all programs of the user, but descend from the program that needed them first:
 * the keeper of lock files, and the server of local:.
 */
#ifndef DM_TOOLS_SERVANT_H
#define DM_TOOLS_SERVANT_H

#include <stdbool.h>
#include <sys/types.h>

/* True if the process is a keeper or a local server. */
bool servant_is(pid_t pid);

#endif
