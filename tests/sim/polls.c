/* SPDX-License-Identifier: BSD-2-Clause */
#include "polls.h"

#include <glib.h>
#include <inttypes.h>

#include "world.h"

/* How many polls of each attempt are on their way, by the attempt's serial. */
static GHashTable *on_way;

void polls_begin(void)
{
    g_clear_pointer(&on_way, g_hash_table_destroy);
    on_way = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
}

static int count(const struct dm_hold *hold)
{
    return GPOINTER_TO_INT(g_hash_table_lookup(on_way, &hold->serial));
}

static void set(const struct dm_hold *hold, int number)
{
    if (number > 0)
        g_hash_table_insert(on_way, g_memdup2(&hold->serial, sizeof hold->serial), GINT_TO_POINTER(number));
    else
        g_hash_table_remove(on_way, &hold->serial);
}

void polls_sent(const struct dm_hold *hold)
{
    set(hold, count(hold) + 1);
}

void polls_answered(const struct dm_hold *hold)
{
    set(hold, count(hold) - 1);
}

void polls_check(const struct dm_hold *hold)
{
    if (dm_hold_is_waiting(hold) && !hold->is_asked && hold->poll_ns == DM_NEVER && count(hold) == 0)
        world_break("liveness: an attempt waits, and no poll is planned or on its way: %" PRIu64, hold->serial);
}
