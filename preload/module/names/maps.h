/* SPDX-License-Identifier: BSD-2-Clause */
/* The mappings of the process, as the kernel reports them. */
#ifndef DM_PRELOAD_MAPS_H
#define DM_PRELOAD_MAPS_H

#include <stdbool.h>
#include <stdint.h>

#include "shared/rules.h"

#define MAPS_PATH_ROOM 4097

/* The file mapped at this address, and the offset in it; false if there is no file, or it was deleted. */
bool maps_find(const void *address, char ret_path[MAPS_PATH_ROOM], uint64_t *ret_offset);

/* The first shm: or map: rule for this position in this file, or NULL. */
const struct rule *maps_rule(const char *path, uint64_t offset, bool is_condition);

#endif
