/* SPDX-License-Identifier: BSD-2-Clause */
/* The program and the loaded libraries, and the objects that the rules name in the modules. */
#ifndef DM_PRELOAD_MODULES_H
#define DM_PRELOAD_MODULES_H

#include <stdbool.h>
#include <stdint.h>

#include "maps.h"

/*
 * Finds the objects of sym: and off: rules in modules that are new, and forgets objects of modules that are gone. A
 * required object that is missing from a present module ends the program, with a sentence.
 */
void modules_update(void);

/*
 * Called once, at the beginning: a rule for this program alone (program=) with required=yes ends the program if the
 * rule's module is absent. Other rules are not checked, because the program's children have the same rules.
 */
void modules_require(void);

/* Called in a child of fork(): nobody is in the middle of modules_update(). */
void modules_in_child(void);

/* The module in which this address lies; false: in none. */
bool modules_find(const void *address, char ret_path[MAPS_PATH_ROOM], uint64_t *ret_offset);

#endif
