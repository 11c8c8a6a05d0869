/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/order.h"

#include <stdlib.h>

#define ROOM_MIN 16

/*
 * Called when a claim is made, which may fail; so dm_order_put(), which runs in every step of an attempt, cannot fail.
 * The room never shrinks. The array has one more pointer than the room, because place 0 stays empty and means "in no
 * order".
 */
bool dm_order_reserve(struct dm_order *order, size_t count)
{
    size_t room = order->room ? order->room : ROOM_MIN;
    struct dm_moment **heap;

    if (count <= order->room)
        return true;
    while (room < count)
        room *= 2;
    heap = realloc(order->heap, (room + 1) * sizeof *heap);
    if (!heap)
        return false;
    order->heap = heap;
    order->room = room;
    return true;
}

static void set(struct dm_order *order, size_t place, struct dm_moment *moment)
{
    order->heap[place] = moment;
    moment->place = place;
}

static void move_up(struct dm_order *order, struct dm_moment *moment)
{
    size_t place = moment->place;

    for (; place > 1 && order->heap[place / 2]->due_ns > moment->due_ns; place /= 2)
        set(order, place, order->heap[place / 2]);
    set(order, place, moment);
}

/* The earlier of the two places below, or 0. */
static size_t earlier_below(const struct dm_order *order, size_t place)
{
    size_t below = 2 * place;

    if (below > order->count)
        return 0;
    if (below < order->count && order->heap[below + 1]->due_ns < order->heap[below]->due_ns)
        return below + 1;
    return below;
}

static void move_down(struct dm_order *order, struct dm_moment *moment)
{
    size_t place = moment->place, below;

    while ((below = earlier_below(order, place)) != 0 && order->heap[below]->due_ns < moment->due_ns) {
        set(order, place, order->heap[below]);
        place = below;
    }
    set(order, place, moment);
}

/* The moment may have become earlier or later: at most one of the two calls moves it. */
void dm_order_put(struct dm_order *order, struct dm_moment *moment, int64_t due_ns)
{
    if (moment->place && moment->due_ns == due_ns)
        return;
    moment->due_ns = due_ns;
    if (!moment->place)
        set(order, ++order->count, moment);
    move_up(order, moment);
    move_down(order, moment);
}

/* The last moment fills the gap, and may have to move up as well as down: the gap need not be above its old place. */
void dm_order_remove(struct dm_order *order, struct dm_moment *moment)
{
    size_t place = moment->place;
    struct dm_moment *last;

    if (!place)
        return;
    moment->place = 0;
    last = order->heap[order->count--];
    if (last == moment)
        return;
    set(order, place, last);
    move_up(order, last);
    move_down(order, last);
}

struct dm_moment *dm_order_first(const struct dm_order *order)
{
    return order->count ? order->heap[1] : NULL;
}

void dm_order_clear(struct dm_order *order)
{
    free(order->heap);
    *order = (struct dm_order){ 0 };
}
