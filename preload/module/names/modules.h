/* SPDX-License-Identifier: BSD-2-Clause */
/* The program and the loaded libraries, and the objects that the rules name in them. */
#ifndef DM_PRELOAD_MODULES_H
#define DM_PRELOAD_MODULES_H

#include <stdbool.h>
#include <stdint.h>

#include "maps.h"

/*
 * Finds the objects of sym: and off: rules in new modules, and forgets objects of modules that are gone. If a required
 * object is missing from a module that is there, reports it and ends the program.
 */
void modules_update(void);

/*
 * Called once, at the start: a rule for this program alone (program=) with required=yes ends the program if the rule's
 * module is missing. Other rules are not checked, because the program's children have the same rules.
 */
void modules_require(void);

/* Called in a child of fork(): no thread is inside modules_update(). */
void modules_in_child(void);

/* The module that contains this address; false if none does. */
bool modules_find(const void *address, char ret_path[MAPS_PATH_ROOM], uint64_t *ret_offset);

#endif
