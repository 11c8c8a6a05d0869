/* SPDX-License-Identifier: BSD-2-Clause */
/* The dynamic loader's cache, /etc/ld.so.cache, which says where the libraries in the system's folders are. */
#ifndef DM_RUN_CACHE_H
#define DM_RUN_CACHE_H

#include <stdbool.h>

#include <glib.h>

/*
 * The first file with this name that `is_fit` accepts, to be freed by the caller; NULL if there is none, or the cache
 * cannot be read.
 */
char *cache_find(const char *name, bool (*is_fit)(const char *path));

#endif
