/* SPDX-License-Identifier: BSD-2-Clause */
#include "plans.h"

#include <glib.h>
#include <inttypes.h>

#include "world.h"

enum kind { POLLS, RENEWALS, RELEASES, KINDS };

static const struct {
    enum dm_want sent;
    enum dm_event_kind answered;
} kinds[KINDS] = {
    [POLLS] = { DM_WANTS_POLL, DM_EV_POLLED },
    [RENEWALS] = { DM_WANTS_RENEW, DM_EV_RENEWED },
    [RELEASES] = { DM_WANTS_RELEASE, DM_EV_RELEASED },
};

/* How many requests of a kind are on their way, by the attempt's serial. */
static GHashTable *on_way[KINDS];

void plans_begin(void)
{
    for (int kind = 0; kind < KINDS; kind++) {
        g_clear_pointer(&on_way[kind], g_hash_table_destroy);
        on_way[kind] = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
    }
}

static int count(enum kind kind, const struct dm_hold *hold)
{
    return GPOINTER_TO_INT(g_hash_table_lookup(on_way[kind], &hold->serial));
}

static void add(enum kind kind, const struct dm_hold *hold, int difference)
{
    int number = count(kind, hold) + difference;

    if (number > 0)
        g_hash_table_insert(on_way[kind], g_memdup2(&hold->serial, sizeof hold->serial), GINT_TO_POINTER(number));
    else
        g_hash_table_remove(on_way[kind], &hold->serial);
}

void plans_sent(const struct dm_hold *hold, enum dm_want want)
{
    for (int kind = 0; kind < KINDS; kind++) {
        if (kinds[kind].sent == want)
            add(kind, hold, 1);
    }
}

void plans_answered(const struct dm_hold *hold, enum dm_event_kind event)
{
    for (int kind = 0; kind < KINDS; kind++) {
        if (kinds[kind].answered == event)
            add(kind, hold, -1);
    }
}

static void want_plan(const struct dm_hold *hold, bool is_needed, int64_t due_ns, enum kind kind, const char *what)
{
    if (is_needed && due_ns == DM_NEVER && count(kind, hold) == 0)
        world_break("liveness: no %s is planned or on its way for attempt %" PRIu64, what, hold->serial);
}

void plans_check(const struct dm_hold *hold)
{
    want_plan(hold, hold->back.is_pending, hold->back.due_ns, RELEASES, "release");
    if (hold->is_asked)
        return;
    want_plan(hold, dm_hold_is_waiting(hold), hold->poll_ns, POLLS, "poll");
    want_plan(hold, hold->phase == DM_HELD, hold->renew_ns, RENEWALS, "renewal");
}
