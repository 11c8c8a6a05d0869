/* SPDX-License-Identifier: BSD-2-Clause */
#include "plans.h"

#include <glib.h>
#include <inttypes.h>

#include "world.h"

/* How many polls and renewals of each attempt are on their way, by the attempt's serial. */
static GHashTable *polls, *renewals;

static GHashTable *table_new(void)
{
    return g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
}

void plans_begin(void)
{
    g_clear_pointer(&polls, g_hash_table_destroy);
    g_clear_pointer(&renewals, g_hash_table_destroy);
    polls = table_new();
    renewals = table_new();
}

static int count(GHashTable *table, const struct dm_hold *hold)
{
    return GPOINTER_TO_INT(g_hash_table_lookup(table, &hold->serial));
}

static void set(GHashTable *table, const struct dm_hold *hold, int number)
{
    if (number > 0)
        g_hash_table_insert(table, g_memdup2(&hold->serial, sizeof hold->serial), GINT_TO_POINTER(number));
    else
        g_hash_table_remove(table, &hold->serial);
}

void plans_sent(const struct dm_hold *hold, enum dm_want want)
{
    if (want == DM_WANTS_POLL)
        set(polls, hold, count(polls, hold) + 1);
    if (want == DM_WANTS_RENEW)
        set(renewals, hold, count(renewals, hold) + 1);
}

void plans_answered(const struct dm_hold *hold, enum dm_event_kind kind)
{
    if (kind == DM_EV_POLLED)
        set(polls, hold, count(polls, hold) - 1);
    if (kind == DM_EV_RENEWED)
        set(renewals, hold, count(renewals, hold) - 1);
}

void plans_check(const struct dm_hold *hold)
{
    if (hold->is_asked)
        return;
    if (dm_hold_is_waiting(hold) && hold->poll_ns == DM_NEVER && count(polls, hold) == 0)
        world_break("liveness: an attempt waits, and no poll is planned or on its way: %" PRIu64, hold->serial);
    if (hold->phase == DM_HELD && hold->renew_ns == DM_NEVER && count(renewals, hold) == 0)
        world_break("liveness: a hold has no renewal planned or on its way: %" PRIu64, hold->serial);
}
