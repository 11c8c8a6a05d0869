/* SPDX-License-Identifier: BSD-2-Clause */
#include "registers/watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/minmax.h"
#include "base/units.h"

/* A request without an answer is repeated after this part of the lease. */
#define RETRY_PART 20

/* ---- the table --------------------------------------------------------------------------- */

void dm_reg_watch_init(struct dm_reg_watch *watch, bool expires)
{
    memset(watch, 0, sizeof *watch);
    watch->expires = expires;
}

static unsigned bucket_of(const struct dm_reg_session_id *id)
{
    return (unsigned)((id->uuid[0] ^ id->uuid[15] ^ id->serial) % DM_REG_WATCH_BUCKETS);
}

void dm_reg_watch_clear(struct dm_reg_watch *watch)
{
    for (unsigned i = 0; i < DM_REG_WATCH_BUCKETS; i++) {
        while (watch->buckets[i]) {
            struct dm_reg_watched *watched = watch->buckets[i];

            watch->buckets[i] = watched->next;
            free(watched);
        }
    }
    watch->count = 0;
}

void dm_reg_watch_forget(struct dm_reg_watch *watch, int64_t before_ns)
{
    for (unsigned i = 0; i < DM_REG_WATCH_BUCKETS && watch->count; i++) {
        struct dm_reg_watched **at = &watch->buckets[i];

        while (*at) {
            struct dm_reg_watched *watched = *at;

            if (watched->wanted_ns < before_ns && watched->under_way == DM_REG_WATCH_NOTHING) {
                *at = watched->next;
                free(watched);
                watch->count--;
            } else {
                at = &watched->next;
            }
        }
    }
}

struct dm_reg_watched *dm_reg_watch_find(const struct dm_reg_watch *watch, const struct dm_reg_session_id *id)
{
    struct dm_reg_watched *watched = watch->buckets[bucket_of(id)];

    while (watched && !dm_reg_session_id_equals(&watched->id, id))
        watched = watched->next;
    return watched;
}

struct dm_reg_watched *dm_reg_watch_add(struct dm_reg_watch *watch, const struct dm_reg_session_id *id, int64_t now_ns)
{
    struct dm_reg_watched *watched = dm_reg_watch_find(watch, id);

    if (!watched) {
        watched = calloc(1, sizeof *watched);
        if (!watched)
            return NULL;
        watched->id = *id;
        watched->next = watch->buckets[bucket_of(id)];
        watch->buckets[bucket_of(id)] = watched;
        watch->count++;
    }
    watched->wanted_ns = now_ns;
    return watched;
}

bool dm_reg_watch_is_dead(const struct dm_reg_watch *watch, const struct dm_reg_session_id *id)
{
    const struct dm_reg_watched *watched = dm_reg_watch_find(watch, id);

    return watched && watched->is_dead;
}

/* ---- one session ------------------------------------------------------------------------- */

static int64_t lease_ns(const struct dm_reg_watched *watched)
{
    return watched->id.lease_ms * DM_NS_PER_MS;
}

enum dm_reg_watch_want dm_reg_watch_wants(const struct dm_reg_watched *watched, int64_t now_ns)
{
    if (dm_reg_watch_due_ns(watched) > now_ns)
        return DM_REG_WATCH_NOTHING;
    return watched->may_kill ? DM_REG_WATCH_KILL : DM_REG_WATCH_READ;
}

int64_t dm_reg_watch_due_ns(const struct dm_reg_watched *watched)
{
    if (watched->is_dead || watched->under_way != DM_REG_WATCH_NOTHING)
        return DM_NEVER;
    return watched->may_kill ? 0 : watched->read_ns;
}

bool dm_reg_watch_has_looked(struct dm_reg_watched *watched, int64_t asked_ns, int64_t now_ns)
{
    bool is_settled = watched->under_way == DM_REG_WATCH_NOTHING && !watched->may_kill;

    if (watched->is_dead)
        return false;
    if (now_ns < watched->alive_ns || (is_settled && watched->heard_ns >= asked_ns))
        return true;
    if (is_settled)
        watched->read_ns = dm_min64(watched->read_ns, now_ns);
    return false;
}

void dm_reg_watch_send(struct dm_reg_watched *watched, enum dm_reg_watch_want want)
{
    watched->under_way = want;
    watched->may_kill = false;
}

/*
 * S2.  A read shows a version that was there at some moment before its return, so the lease is counted from the return
 * of the first read, and its end is seen by a read that returns later.  The kill itself settles what lies between.
 */
static void judge(const struct dm_reg_watch *watch, struct dm_reg_watched *watched, int64_t age_ms, int64_t now_ns)
{
    int64_t end_ns = watched->since_ns + lease_ns(watched);
    bool is_absent = dm_reg_version_is_absent(&watched->version);

    watched->may_kill =
        now_ns >= end_ns || age_ms >= (int64_t)watched->id.lease_ms || (is_absent && watch->expires); /* S3 */
    if (age_ms >= 0 && !watched->may_kill)
        watched->young_ns = now_ns;
    watched->read_ns = now_ns + lease_ns(watched) / 3;
    if (now_ns < end_ns)
        watched->read_ns = dm_min64(watched->read_ns, end_ns);
    watched->alive_ns = age_ms >= 0 ? now_ns + lease_ns(watched) - age_ms * DM_NS_PER_MS : 0;
    if (age_ms >= 0)
        watched->read_ns = dm_min64(watched->read_ns, watched->alive_ns);
}

static void see(struct dm_reg_watched *watched, const struct dm_reg_version *version, int64_t now_ns)
{
    if (watched->is_seen && dm_reg_version_equals(&watched->version, version))
        return;
    if (watched->is_seen)
        watched->changed_ns = now_ns;
    watched->is_seen = true;
    watched->version = *version;
    watched->since_ns = now_ns;
}

bool dm_reg_watch_step(const struct dm_reg_watch *watch, struct dm_reg_watched *watched,
                       const struct dm_reg_watch_event *event, int64_t now_ns)
{
    static const struct dm_reg_version absent;
    bool was_dead = watched->is_dead;

    watched->under_way = DM_REG_WATCH_NOTHING;
    watched->heard_ns = now_ns;
    switch (event->kind) {
    case DM_REG_WATCH_EV_FOUND:
        watched->is_dead = watched->is_dead || event->is_dead;
        if (event->label)
            snprintf(watched->label, sizeof watched->label, "%s", event->label);
        see(watched, &event->version, now_ns);
        judge(watch, watched, event->age_ms, now_ns);
        break;
    case DM_REG_WATCH_EV_ABSENT:
        see(watched, &absent, now_ns);
        judge(watch, watched, -1, now_ns);
        break;
    case DM_REG_WATCH_EV_SAME:
        see(watched, &watched->version, now_ns);
        judge(watch, watched, event->age_ms, now_ns);
        break;
    case DM_REG_WATCH_EV_KILLED:
        watched->is_dead = true;
        break;
    case DM_REG_WATCH_EV_CONFLICT:
        watched->read_ns = now_ns;
        break;
    case DM_REG_WATCH_EV_UNKNOWN:
        watched->read_ns = now_ns + lease_ns(watched) / RETRY_PART;
    }
    return watched->is_dead && !was_dead;
}

/* ---- looks ------------------------------------------------------------------------------- */

bool dm_reg_watch_look(struct dm_reg_watch *watch, struct dm_reg_looks *looks, const struct dm_reg_session_id *before,
                       unsigned count, int64_t now_ns)
{
    unsigned most = looks->most ? looks->most : 1, watched_count = 0;
    bool is_alive = false;

    while (count > 0 && watched_count < most && !is_alive) {
        struct dm_reg_watched *watched = dm_reg_watch_add(watch, &before[--count], now_ns);

        if (!watched)
            return false;
        watched_count += !watched->is_dead;
        is_alive = looks->last_ns && watched->changed_ns > looks->last_ns && !watched->is_dead;
    }
    looks->last_ns = now_ns;
    looks->most = is_alive ? watched_count : most * 2;
    return true;
}
