/* SPDX-License-Identifier: BSD-2-Clause */
/* A network that is cut all the time, with two actors that count over it. */
#ifndef TEST_STORM_H
#define TEST_STORM_H

#include "actor.h"
#include "proxy.h"

/*
 * Cuts the proxy's connections anywhere until both actors have answered; then lets everything pass again.  Both count
 * in the file.  There is no cut before the count has grown since the last one; fails if it stops growing.
 */
void storm_while_counting(struct proxy *proxy, struct actor *one, struct actor *two, const char *file);

#endif
