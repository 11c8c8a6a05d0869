/* SPDX-License-Identifier: BSD-2-Clause */
/* The mappings of the process, as the kernel tells them. */
#ifndef DM_PRELOAD_MAPS_H
#define DM_PRELOAD_MAPS_H

#include <stdbool.h>
#include <stdint.h>

#include "shared/rules.h"

#define MAPS_PATH_ROOM 4097

/* The mapped file at this address, and the offset in the file; false: no file, or a deleted file. */
bool maps_find(const void *address, char ret_path[MAPS_PATH_ROOM], uint64_t *ret_offset);

/* The first shm: or map: rule for this place in this file; or NULL. */
const struct rule *maps_rule(const char *path, uint64_t offset, bool is_condition);

#endif
