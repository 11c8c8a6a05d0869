/* SPDX-License-Identifier: BSD-2-Clause */
/* A network that is cut all the time, below two actors that count. */
#ifndef TEST_STORM_H
#define TEST_STORM_H

#include "actor.h"
#include "proxy.h"

/*
 * Cuts the proxy's connections anywhere until both actors have answered; then all passes again.  The file is the count
 * of both.  No cut comes before the count has grown since the last cut; fails when the count stands still.
 */
void storm_while_counting(struct proxy *proxy, struct actor *one, struct actor *two, const char *file);

#endif
