/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Automatic names: <dmutex/pthread.h> names static initialisers "group/unit:number".
 *
 * The header cannot know whether an initialiser belongs to exactly one object.  So when a module is loaded, its objects
 * are listed by address, before its code runs:
 *
 *   1. An object has the name that was at its address when the module was loaded.  An initialiser that is assigned
 *      to it later changes nothing.
 *   2. Two addresses with one name: neither object can be used (elements of an array, or two units with the same
 *      name).
 *   3. No name at the address: the object cannot be used (it is on the stack, on the heap, thread-local, or static
 *      but assigned by an init function).
 *   4. The unit's name depends on the build folder: its objects cannot be used.
 *
 * Usable objects get dm_named DM_NAMED when the module is loaded, and have no further cost.
 */
#ifndef DM_NAMES_AUTOMATIC_H
#define DM_NAMES_AUTOMATIC_H

#include "names/literal.h"

/*
 * Gives an object with dm_named DM_NAMED_AUTOMATICALLY its checked name.  Returns 0, or EINVAL, recorded; then dm_named
 * is unchanged.  Any thread may call this; takes no lock of ours and does not block.
 */
int dm_automatic_settle(void *object, enum dm_literal_kind kind);

#endif
