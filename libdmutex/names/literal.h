/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Static initialisers with names, found in memory or in a file by their bytes: dmutex_t and dcond_t as
 * DMUTEX_INITIALIZER() and the like leave them before first use.
 */
#ifndef DM_NAMES_LITERAL_H
#define DM_NAMES_LITERAL_H

#include <stddef.h>

enum dm_literal_kind { DM_LITERAL_NONE, DM_LITERAL_MUTEX, DM_LITERAL_COND };

#define DM_LITERAL_SIZE 256 /* bytes of an object of either kind */
#define DM_LITERAL_ALIGN 8

/* dm_named of an object: its name is given, or made by <dmutex/pthread.h> and not yet checked. */
#define DM_NAMED 1
#define DM_NAMED_AUTOMATICALLY 2

/* Returns the kind of object in the DM_LITERAL_SIZE bytes, which are aligned to DM_LITERAL_ALIGN. */
enum dm_literal_kind dm_literal_at(const void *bytes);

/* The object's dm_named and dm_name: `kind` is not DM_LITERAL_NONE. */
unsigned char *dm_literal_named(void *object, enum dm_literal_kind kind);
char *dm_literal_name(void *object, enum dm_literal_kind kind);

/*
 * Brings an automatic name, "group/unit:number", into the form that is the same wherever the unit is
 * compiled from: without "./" and "//".  False, with the name unchanged, if the unit is an absolute path or
 * has a part "..": then the name depends on the folder of the build.
 */
int dm_literal_normalise(char *name);

#endif
