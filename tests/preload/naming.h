/* SPDX-License-Identifier: BSD-2-Clause */
/* Is a program's mutex distributed under a name? */
#ifndef TEST_PRELOAD_NAMING_H
#define TEST_PRELOAD_NAMING_H

#include "programs.h"

/*
 * The program's mutex is the one that libdmutex calls so: what this test holds it does not get, and what it
 * holds this test does not.
 */
void check_named(struct actor *actor, const char *object, const char *name);

/* It is the program's own: locking it sends nothing to the server. */
void check_local(struct actor *actor, const char *object);

/* This test holds what is called so, for a long lease; and gives it back. */
void hold_here(dmutex_t *mutex, const char *name);
void give_back_here(dmutex_t *mutex);

/* The program waits in `call`, whose answer is "0", until this test gives the name back. */
void check_waits(struct actor *actor, const char *name, const char *call);

#endif
