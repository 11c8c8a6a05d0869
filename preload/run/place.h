/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Paths of lock files and programs as the kernel knows them. The module compares with paths from /proc, where
 * /var/run/crond.pid is /run/crond.pid: a rule that goes through a symbolic link would never match.
 */
#ifndef DM_RUN_PLACE_H
#define DM_RUN_PLACE_H

#include <glib.h>

/* Resolves the longest part of the path that exists, and appends the rest: to be freed. NULL: unchanged. */
char *place_resolve(const char *path);

/* Resolves a glob up to its first part with a wildcard; the rest stays unchanged. */
char *place_resolve_glob(const char *glob);

#endif
