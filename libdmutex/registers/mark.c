/* SPDX-License-Identifier: BSD-2-Clause */
#include "registers/mark.h"

#include <stdio.h>
#include <string.h>

#include "base/minmax.h"
#include "base/units.h"

/* A request without an answer is repeated after this time. */
#define RETRY_NS (50 * DM_NS_PER_MS)

/* Longer than any lease. */
#define FOR_EVER_MS (DM_REG_NUMBER_LIMIT - 1)

/* The reads that somebody waits for go on being wanted. */
void dm_reg_mark_begin(struct dm_reg_mark_watch *mark, const char *identity)
{
    struct dm_reg_mark_watch begun = { .reads = mark->reads,
                                       .reads_wanted = mark->reads_wanted,
                                       .wanted_ms = mark->wanted_ms,
                                       .is_trusting = mark->is_trusting };

    snprintf(begun.identity, sizeof begun.identity, "%s", identity);
    *mark = begun;
}

bool dm_reg_mark_is_ready(const struct dm_reg_mark_watch *mark)
{
    return mark->is_known && mark->is_ours;
}

uint64_t dm_reg_mark_quiet_ms(const struct dm_reg_mark_watch *mark)
{
    return dm_reg_mark_is_ready(mark) ? mark->quiet_ms : 0;
}

void dm_reg_mark_doubt(struct dm_reg_mark_watch *mark, uint64_t lease_ms)
{
    if (mark->wanted_ms < lease_ms)
        mark->wanted_ms = lease_ms;
}

/* A read that is under way was sent before. */
uint64_t dm_reg_mark_next_read(const struct dm_reg_mark_watch *mark)
{
    return mark->reads + (mark->under_way == DM_REG_MARK_READ ? 2 : 1);
}

bool dm_reg_mark_has_read(struct dm_reg_mark_watch *mark, uint64_t reads)
{
    if (mark->reads_wanted < reads)
        mark->reads_wanted = reads;
    return mark->reads >= reads;
}

/* ---- wants ------------------------------------------------------------------------------- */

/* When this process will have seen the mark for as long as somebody waits for. */
static int64_t quiet_ns(const struct dm_reg_mark_watch *mark)
{
    if (mark->quiet_ms >= mark->wanted_ms)
        return DM_NEVER;
    if (mark->is_trusting)
        return 0;
    return mark->since_ns + (int64_t)mark->wanted_ms * DM_NS_PER_MS;
}

static enum dm_reg_mark_want next_want(const struct dm_reg_mark_watch *mark)
{
    if (!mark->is_known || mark->reads < mark->reads_wanted)
        return DM_REG_MARK_READ;
    return DM_REG_MARK_SWAP;
}

int64_t dm_reg_mark_due_ns(const struct dm_reg_mark_watch *mark)
{
    if (mark->under_way != DM_REG_MARK_NOTHING || !mark->identity[0])
        return DM_NEVER;
    if (next_want(mark) == DM_REG_MARK_READ || !mark->is_ours)
        return mark->retry_ns;
    return dm_max64(mark->retry_ns, quiet_ns(mark));
}

enum dm_reg_mark_want dm_reg_mark_wants(const struct dm_reg_mark_watch *mark, int64_t now_ns)
{
    return dm_reg_mark_due_ns(mark) <= now_ns ? next_want(mark) : DM_REG_MARK_NOTHING;
}

static uint64_t seen_quiet_ms(const struct dm_reg_mark_watch *mark, int64_t now_ns)
{
    if (mark->is_trusting)
        return FOR_EVER_MS;
    return mark->is_ours ? (uint64_t)((now_ns - mark->since_ns) / DM_NS_PER_MS) : 0;
}

uint64_t dm_reg_mark_send(struct dm_reg_mark_watch *mark, enum dm_reg_mark_want want, int64_t now_ns)
{
    mark->under_way = want;
    if (want == DM_REG_MARK_SWAP)
        mark->next_quiet_ms = seen_quiet_ms(mark, now_ns);
    return mark->next_quiet_ms;
}

/* ---- events ------------------------------------------------------------------------------ */

/*
 * Another version counts from now, whatever it says: the data may be gone, and the mark made anew by others, who have
 * seen it for a shorter time than we have seen the former one.
 */
static void see(struct dm_reg_mark_watch *mark, const struct dm_reg_mark_event *event, int64_t now_ns)
{
    mark->version = event->version;
    mark->since_ns = now_ns;
    mark->is_ours = event->kind == DM_REG_MARK_EV_FOUND && strcmp(event->identity, mark->identity) == 0;
    mark->quiet_ms = mark->is_ours ? event->quiet_ms : 0;
}

static void take_done(struct dm_reg_mark_watch *mark, const struct dm_reg_mark_event *event, int64_t now_ns)
{
    if (!mark->is_ours)
        mark->since_ns = now_ns;
    mark->version = event->version;
    mark->is_ours = true;
    mark->quiet_ms = mark->next_quiet_ms;
}

void dm_reg_mark_step(struct dm_reg_mark_watch *mark, const struct dm_reg_mark_event *event, int64_t now_ns)
{
    mark->under_way = DM_REG_MARK_NOTHING;
    switch (event->kind) {
    case DM_REG_MARK_EV_FOUND:
    case DM_REG_MARK_EV_ABSENT:
        see(mark, event, now_ns);
        mark->is_known = true;
        mark->reads++;
        break;
    case DM_REG_MARK_EV_SAME:
        mark->is_known = true;
        mark->reads++;
        break;
    case DM_REG_MARK_EV_DONE:
        take_done(mark, event, now_ns);
        break;
    case DM_REG_MARK_EV_CONFLICT:
        mark->is_known = false;
        break;
    case DM_REG_MARK_EV_UNKNOWN:
        mark->is_known = false;
        mark->retry_ns = now_ns + RETRY_NS;
    }
}
