/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Automatic names: those that <dmutex/pthread.h> gives to static initialisers, "group/unit:number".
 *
 * A C compiler cannot tell whether an initialiser stands for one object.  So each module's objects are
 * listed when the module is loaded, before its code runs, by address:
 *
 *   1. An object has the name that its address had when the module was loaded, whatever initialiser
 *      is assigned to the object later.
 *   2. Two addresses with one name: neither object can be used (elements of an array, two units of one name).
 *   3. No name at the address: the object cannot be used (on the stack, on the heap, of a thread, or static but
 *      assigned by an init function).
 *   4. A unit's name that depends on the folder of the build: its objects cannot be used.
 *
 * Objects that can be used get dm_named DM_NAMED then and there, and cost nothing more.
 */
#ifndef DM_API_AUTOMATIC_H
#define DM_API_AUTOMATIC_H

#include "base/literal.h"

/*
 * Gives the object, whose dm_named is DM_NAMED_AUTOMATICALLY, its checked name.  0, or EINVAL, noted: the object
 * keeps DM_NAMED_AUTOMATICALLY.  Any thread, without a lock; does not block.
 */
int dm_automatic_settle(void *object, enum dm_literal_kind kind);

#endif
