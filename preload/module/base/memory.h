/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory that lasts as long as the process, without malloc: it may be the allocator that calls the module. */
#ifndef DM_PRELOAD_MEMORY_H
#define DM_PRELOAD_MEMORY_H

#include <stddef.h>

/* Returns zeroed pages. Without memory, prints the reason and ends the process with this exit status. */
void *memory_get(size_t size, const char *purpose, int exit_status);

#endif
