/* SPDX-License-Identifier: BSD-2-Clause */
/* The first use of a named object: one thread makes its dmutex_t or dcond_t. */
#ifndef DM_PRELOAD_READY_H
#define DM_PRELOAD_READY_H

#include "module/names/library.h"
#include "module/names/objects.h"

/*
 * Makes the object. Returns READY, or REFUSED after reporting why. `bits`: what the program's own object says about
 * itself.
 */
typedef enum object_state (*ready_make_fn)(struct object *object, const struct library *library, int bits);

/* The object, made if necessary. NULL: use the program's own, perhaps because the thread is inside libdmutex. */
struct object *ready_object(struct object *object, ready_make_fn make, int bits);

#endif
