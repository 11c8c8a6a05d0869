/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds static initialisers with names in memory or in a file, by their bytes: dmutex_t and dcond_t as
 * DMUTEX_INITIALIZER() and the like leave them before the first use.
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
 * Normalises an automatic name, "group/unit:number", so that it is the same from wherever the unit is compiled: removes
 * "./" and "//".  Returns false, with the name unchanged, if the unit is an absolute path or contains "..": the name
 * then depends on the build folder.
 */
int dm_literal_normalise(char *name);

#endif
