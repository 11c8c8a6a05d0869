/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Deadlocks over names of one or several processes: threads of which each has a lock that the next waits for, in a
 * circle.
 *
 * The names were read one after the other, so a circle may be of holds of different moments: a circle that is there in
 * two looks, with the same tokens, is a deadlock, unless a thread waits with a deadline.
 */
#ifndef DM_TOOLS_DEADLOCK_H
#define DM_TOOLS_DEADLOCK_H

#include "gather.h"

#define DEADLOCK_MOST 16

/* One circle: the holder of names[i] waits for names[i + 1], and the holder of the last for the first. */
struct deadlock {
    const struct seen *names[DEADLOCK_MOST];
    int count;
};

/* Finds circles of at most DEADLOCK_MOST names, each once; returns how many, at most `room`. */
int deadlock_find(const struct gathered *gathered, struct deadlock *ret_deadlocks, int room);

#endif
