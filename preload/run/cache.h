/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The dynamic loader's cache, /etc/ld.so.cache: where the libraries of the system's folders are.
 */
#ifndef DM_RUN_CACHE_H
#define DM_RUN_CACHE_H

#include <stdbool.h>

#include <glib.h>

/*
 * The first file of the name that `is_fit` takes, which the caller frees; NULL: no file, or the cache cannot be read.
 */
char *cache_find(const char *name, bool (*is_fit)(const char *path));

#endif
