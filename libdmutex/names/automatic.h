/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Automatic names: <dmutex/pthread.h> gives names to static initialisers, "group/unit:number".
 *
 * A C compiler cannot tell whether an initialiser stands for one object.  So the loading of a module lists the objects
 * of the module by address, before the module's code runs:
 *
 *   1. An object has the name of its address at the loading of the module.  An initialiser that is assigned to the
 *      object later changes nothing.
 *   2. Two addresses with one name: neither object can be used (elements of an array, two units of one name).
 *   3. No name at the address: the object cannot be used (on the stack, on the heap, of a thread, or static but
 *      assigned by an init function).
 *   4. The name of a unit depends on the folder of the build: the objects of the unit cannot be used.
 *
 * Usable objects get dm_named DM_NAMED at the loading, and cost nothing more.
 */
#ifndef DM_NAMES_AUTOMATIC_H
#define DM_NAMES_AUTOMATIC_H

#include "names/literal.h"

/*
 * Gives the checked name to an object with dm_named DM_NAMED_AUTOMATICALLY.  0, or EINVAL, noted: the object
 * keeps DM_NAMED_AUTOMATICALLY.  Any thread, without a lock; does not block.
 */
int dm_automatic_settle(void *object, enum dm_literal_kind kind);

#endif
