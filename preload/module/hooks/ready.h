/* SPDX-License-Identifier: BSD-2-Clause */
/* The first use of a named object: its dmutex_t or dcond_t is made, by one thread. */
#ifndef DM_PRELOAD_READY_H
#define DM_PRELOAD_READY_H

#include "module/names/library.h"
#include "module/names/objects.h"

/* Makes the object: READY, or REFUSED after a sentence. `bits`: what the program's own object says of itself. */
typedef enum object_state (*ready_make_fn)(struct object *object, const struct library *library, int bits);

/* The object, made if need be; NULL: the program's own is meant, also because the thread is inside libdmutex. */
struct object *ready_object(struct object *object, ready_make_fn make, int bits);

#endif
