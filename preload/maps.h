/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is mapped where, as the kernel tells it.
 */
#ifndef DM_PRELOAD_MAPS_H
#define DM_PRELOAD_MAPS_H

#include <stdbool.h>
#include <stdint.h>

#include "rules.h"

#define MAPS_PATH_ROOM 4097

/* The file that is mapped at this address, and where in it; false: none, or a deleted one. */
bool maps_find(const void *address, char ret_path[MAPS_PATH_ROOM], uint64_t *ret_offset);

/* The first shm: or map: rule for this place in this file; NULL. */
const struct rule *maps_rule(const char *path, uint64_t offset, bool is_condition);

#endif
