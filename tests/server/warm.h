/* SPDX-License-Identifier: BSD-2-Clause */
/* Actors whose connections are open, so that only locks cost commands. */
#ifndef TEST_WARM_H
#define TEST_WARM_H

#include "../lib/testlib.h"

/*
 * An actor that has been connected in both ways, because the actor has waited for a name in vain; it knows the mutex
 * `name` of this lease.  words: as an actor's init takes the words.
 */
struct actor *start_warm(const char *name, unsigned lease_ms, const char *words);

#endif
