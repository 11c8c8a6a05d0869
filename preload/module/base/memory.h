/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory that stays for the whole life of the process, without malloc: the allocator may be what calls the module. */
#ifndef DM_PRELOAD_MEMORY_H
#define DM_PRELOAD_MEMORY_H

#include <stddef.h>

/* Returns zeroed pages. Without memory the process ends with this exit status, after a sentence. */
void *memory_get(size_t size, const char *purpose, int exit_status);

#endif
