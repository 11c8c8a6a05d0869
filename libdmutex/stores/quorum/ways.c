/* SPDX-License-Identifier: BSD-2-Clause */
/* Which children can be asked, and which one first. */
#include <stdio.h>
#include <string.h>

#include "stores/quorum/parts.h"

/* How long one child is waited for while others are being opened, too. */
#define SLICE_MS 10

/* A child that returns "not able" with more than this left of its slice has given up. */
#define GIVEN_UP_NS (2 * DM_NS_PER_MS)

static int majority(const struct dm_quorum_store *all)
{
    return all->count / 2 + 1;
}

static int count_able(struct dm_quorum_store *all, const struct dm_place *place, enum dm_way way)
{
    int able = 0;

    for (int i = 0; i < all->count; i++)
        able += dm_quorum_may_ask(&all->children[i], place, way);
    return able;
}

bool dm_quorum_is_able(struct dm_store *store, const struct dm_place *place, enum dm_way way)
{
    struct dm_quorum_store *all = dm_quorum_of(store);

    return count_able(all, place, way) >= majority(all);
}

void dm_quorum_want(struct dm_store *store, const struct dm_place *place, enum dm_way way)
{
    struct dm_quorum_store *all = dm_quorum_of(store);

    for (int i = 0; i < all->count; i++) {
        if (!dm_store_is_able(all->children[i].store, place, way))
            dm_store_want(all->children[i].store, place, way);
    }
}

/* Waits a little for each child that is not able, until `needed` are.  Returns how many have given up. */
static int await_each(struct dm_quorum_store *all, const struct dm_place *place, enum dm_way way, int needed,
                      const struct dm_deadline *deadline)
{
    int given_up = 0;

    for (int i = 0; i < all->count && count_able(all, place, way) < needed; i++) {
        struct dm_deadline slice = dm_deadline_sooner(deadline, SLICE_MS * DM_NS_PER_MS);

        if (all->children[i].same >= 0)
            given_up++;
        else if (!dm_store_await_able(all->children[i].store, place, way, &slice))
            given_up += dm_deadline_left_ns(&slice) > GIVEN_UP_NS;
    }
    return given_up;
}

/* Also false, before the deadline, if so many children have given up that fewer than `needed` are left. */
static bool await_some(struct dm_store *store, const struct dm_place *place, enum dm_way way, int needed,
                       const struct dm_deadline *deadline)
{
    struct dm_quorum_store *all = dm_quorum_of(store);
    int given_up = 0;

    if (count_able(all, place, way) == all->count)
        return true;
    dm_quorum_want(store, place, way);
    while (count_able(all, place, way) < needed) {
        if (dm_deadline_left_ns(deadline) == 0 || given_up > all->count - needed)
            return false;
        given_up = await_each(all, place, way, needed, deadline);
    }
    return true;
}

bool dm_quorum_await_able(struct dm_store *store, const struct dm_place *place, enum dm_way way,
                          const struct dm_deadline *deadline)
{
    return await_some(store, place, way, majority(dm_quorum_of(store)), deadline);
}

void dm_quorum_await_all(struct dm_store *store, const struct dm_place *place, const struct dm_deadline *deadline)
{
    struct dm_deadline soon = dm_deadline_sooner(deadline, DM_QUORUM_JOIN_NS);

    await_some(store, place, DM_ASKS, dm_quorum_of(store)->count, &soon);
}

struct dm_deadline dm_quorum_share(const struct dm_quorum_store *all, int server, const struct dm_deadline *deadline)
{
    int64_t left_ns = dm_deadline_left_ns(deadline);

    return dm_deadline_sooner(deadline, left_ns / (all->count - server));
}

struct dm_deadline dm_quorum_short_share(const struct dm_quorum_store *all, int server, int answered,
                                         const struct dm_deadline *deadline)
{
    struct dm_deadline share = dm_quorum_share(all, server, deadline);

    return answered < majority(all) ? share : dm_deadline_sooner(&share, DM_QUORUM_JOIN_NS);
}

void dm_quorum_explain_same(const struct dm_quorum_child *child, const struct dm_quorum_child *other,
                            char ret_reason[DM_REASON_ROOM])
{
    snprintf(ret_reason, DM_REASON_ROOM, "%.80s is the same server as %.80s: name each server of a quorum once",
             dm_url_place(child->url->host, child->url->port).text,
             dm_url_place(other->url->host, other->url->port).text);
}

static void explain(const struct dm_quorum_store *all, int index, const struct dm_place *place, enum dm_way way,
                    char ret_reason[DM_REASON_ROOM])
{
    const struct dm_quorum_child *child = &all->children[index];
    int same = __atomic_load_n(&child->same, __ATOMIC_RELAXED);

    if (same < 0)
        dm_store_reason(child->store, place, way, ret_reason);
    else
        dm_quorum_explain_same(child, &all->children[same], ret_reason);
}

void dm_quorum_reason(struct dm_store *store, const struct dm_place *place, enum dm_way way,
                      char ret_reason[DM_REASON_ROOM])
{
    struct dm_quorum_store *all = dm_quorum_of(store);
    int missing = all->count - count_able(all, place, way);
    char why[DM_REASON_ROOM];
    size_t length;

    if (missing == 0) {
        snprintf(ret_reason, DM_REASON_ROOM, "no majority of %d servers has answered in time", all->count);
        return;
    }
    snprintf(ret_reason, DM_REASON_ROOM, "%d of %d servers cannot be used now", missing, all->count);
    for (int i = 0; i < all->count; i++) {
        if (dm_quorum_may_ask(&all->children[i], place, way))
            continue;
        explain(all, i, place, way, why);
        length = strlen(ret_reason);
        snprintf(ret_reason + length, DM_REASON_ROOM - length, "; %s", why);
    }
}

/* One is enough: the sentence has the reasons of all servers that are missing. */
bool dm_quorum_is_denied(struct dm_store *store)
{
    struct dm_quorum_store *all = dm_quorum_of(store);
    bool is_denied = false;

    for (int i = 0; i < all->count; i++)
        is_denied = is_denied || dm_store_is_denied(all->children[i].store);
    return is_denied;
}

static bool is_fit(const struct dm_quorum_child *child, const struct dm_place *place, bool is_for_queue, int64_t now_ns,
                   int demand)
{
    return dm_quorum_may_ask(child, place, DM_ASKS) &&
           (demand < 1 || !is_for_queue || dm_store_is_able(child->store, place, DM_TELLS)) &&
           (demand < 2 || (child->grace_until_ns <= now_ns && child->shunned_until_ns <= now_ns));
}

/* The name's number decides, so that all processes start with the same server. */
int dm_quorum_home(const struct dm_quorum_store *all, const struct dm_place *place)
{
    return place ? (int)(dm_store_spread(all->children[0].store, place) % (unsigned)all->count) : 0;
}

struct dm_quorum_crowd *dm_quorum_crowd_of(struct dm_quorum_store *all, const struct dm_place *place)
{
    dm_assert_held(DM_RANK_QUORUM);
    return &all->crowds[place ? dm_store_spread(all->children[0].store, place) % DM_QUORUM_CROWDS : 0];
}

/* The home, or the next suitable server. */
int dm_quorum_choose_first(struct dm_quorum_store *all, const struct dm_place *place, bool is_for_queue)
{
    const struct dm_quorum_crowd *crowd = dm_quorum_crowd_of(all, place);
    int begin = dm_quorum_home(all, place);
    int64_t now_ns = dm_clock_boot_ns();
    int passed = now_ns < crowd->passed_until_ns ? crowd->passed : -1;

    dm_assert_held(DM_RANK_QUORUM);
    for (int demand = 2; demand >= 0; demand--) {
        for (int i = 0; i < all->count; i++) {
            int server = (begin + i) % all->count;

            if ((demand < 2 || server != passed) && is_fit(&all->children[server], place, is_for_queue, now_ns, demand))
                return server;
        }
    }
    return begin;
}
