/* SPDX-License-Identifier: BSD-2-Clause */
/* Actors whose connections are open, so that only locks cost commands. */
#ifndef TEST_WARM_H
#define TEST_WARM_H

#include "../lib/testlib.h"

/*
 * An actor that has both connections, because it has waited in a queue; it knows the mutex `name` with this lease.
 * words: options for the actor's init.
 */
struct actor *start_warm(const char *name, unsigned lease_ms, const char *words);

#endif
