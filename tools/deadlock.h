/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Deadlocks over names, in one process or several: a circle of threads, each of which has the lock that the one before
 * it waits for.
 *
 * The names were read one after the other, so a circle may be made of holds of different moments.  A circle that is
 * there in two snapshots, with the same tokens, is a deadlock, unless a thread waits with a deadline.
 */
#ifndef DM_TOOLS_DEADLOCK_H
#define DM_TOOLS_DEADLOCK_H

#include "gather.h"

#define DEADLOCK_MOST 16

/* One circle: the holder of names[i] waits for names[i + 1], and the last holder for names[0]. */
struct deadlock {
    const struct seen *names[DEADLOCK_MOST];
    int count;
};

/* Finds circles of at most DEADLOCK_MOST names, each once.  Returns how many, at most `room`. */
int deadlock_find(const struct gathered *gathered, struct deadlock *ret_deadlocks, int room);

#endif
