/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The program and the libraries that are loaded, and what the rules name in them.
 */
#ifndef DM_PRELOAD_MODULES_H
#define DM_PRELOAD_MODULES_H

#include <stdbool.h>
#include <stdint.h>

#include "maps.h"

/*
 * Finds what sym: and off: rules name in modules that were not there before, and forgets what was in
 * those that are gone.  A required object that is not in its module ends the program, with a sentence.
 */
void modules_update(void);

/*
 * Once, at the beginning: a rule for this program alone (program=) that is required=yes ends it if its
 * module is not there.  Others are not looked at, for the program's children have them too.
 */
void modules_require(void);

/* Called in a child of fork(): nobody is in the middle of modules_update(). */
void modules_in_child(void);

/* The module in which this address lies; false: in none. */
bool modules_find(const void *address, char ret_path[MAPS_PATH_ROOM], uint64_t *ret_offset);

#endif
