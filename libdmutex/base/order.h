/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Moments in order: the earliest is found in constant time; adding and removing one takes logarithmic time.
 *
 * A binary heap of pointers to moments that are embedded in the caller's records.  The caller serialises all calls.
 */
#ifndef DM_BASE_ORDER_H
#define DM_BASE_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dm_moment {
    int64_t due_ns;
    size_t place; /* in the heap, from 1; 0: in none */
};

struct dm_order {
    struct dm_moment **heap; /* from 1 */
    size_t count, room;
};

/* Makes room for `count` moments in all.  False without memory; then nothing has changed. */
bool dm_order_reserve(struct dm_order *order, size_t count);

/* Inserts a moment, or moves it if it is already in; there must be room. */
void dm_order_put(struct dm_order *order, struct dm_moment *moment, int64_t due_ns);

/* Removes a moment, if it is in. */
void dm_order_remove(struct dm_order *order, struct dm_moment *moment);

/* The earliest moment, or NULL. */
struct dm_moment *dm_order_first(const struct dm_order *order);

/* Frees the heap; the moments are not touched. */
void dm_order_clear(struct dm_order *order);

#endif
