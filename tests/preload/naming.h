/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks whether a program's mutex is distributed under a name. */
#ifndef TEST_PRELOAD_NAMING_H
#define TEST_PRELOAD_NAMING_H

#include "programs.h"

/* Checks that the program's mutex is libdmutex's mutex `name`: a hold of the test or the program excludes the other. */
void check_named(struct actor *actor, const char *object, const char *name);

/* Checks that the mutex is local: a lock sends nothing to the server. */
void check_local(struct actor *actor, const char *object);

/* Lock the name for the test, with a long lease; and unlock. */
void hold_here(dmutex_t *mutex, const char *name);
void give_back_here(dmutex_t *mutex);

/* Checks that the program waits in `call` while the test holds the name, and then answers "0". */
void check_waits(struct actor *actor, const char *name, const char *call);

#endif
