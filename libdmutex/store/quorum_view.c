/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Looks at names, for people: all children are asked, and a majority decides who holds a mutex.  One child alone may be
 * new, or may have granted to an attempt that has not got the majority.
 *
 * The names of all children are told, child after child; a name that an earlier child has is not told again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/quorum_parts.h"

/* What one child says of a name. */
struct sight {
    struct dm_info info;
    uint32_t lease_ms;
    struct dm_last last;
    bool is_kept, is_there; /* the child has data of the name */
    char fault[64];         /* "": none */
    char mutex[DM_MUTEX_KEY_ROOM];
    struct dm_seen_waiter waiters[DM_SEEN_WAITERS];
    int waiter_count;
};

/* ---- what a majority says ---------------------------------------------------------------- */

static bool is_same_owner(const dmutex_info_t *a, const dmutex_info_t *b)
{
    return a->locked == b->locked && a->thread == b->thread && strcmp(a->owner, b->owner) == 0;
}

int dm_quorum_agreed(const struct dm_quorum_store *all, const struct dm_info *const *infos, int count)
{
    for (int i = 0; i < count; i++) {
        int same = 0;

        for (int j = 0; j < count; j++)
            same += is_same_owner(&infos[i]->shown, &infos[j]->shown);
        if (same > all->count / 2)
            return i;
    }
    return -1;
}

/*
 * The token that a majority has reached: a child that the hold has come to later may have a higher one of its own.
 * Children without an answer are taken for children that have reached it.
 */
static uint64_t reached_token(const struct dm_quorum_store *all, const struct dm_info *const *infos, int count)
{
    int needed = count - all->count / 2;
    uint64_t token = 0;

    for (int i = 0; i < count; i++) {
        int reached = 0;

        for (int j = 0; j < count; j++)
            reached += infos[j]->shown.token >= infos[i]->shown.token;
        if (reached >= needed && infos[i]->shown.token > token)
            token = infos[i]->shown.token;
    }
    return token;
}

/* Without an agreed owner the mutex is shown as free: some servers are an attempt's that has not got the majority. */
struct dm_info dm_quorum_sum_up(const struct dm_quorum_store *all, const struct dm_info *const *infos, int count)
{
    struct dm_info sum = { .shown = { .struct_size = sizeof sum.shown } };
    int agreed = dm_quorum_agreed(all, infos, count);

    if (agreed >= 0)
        sum = *infos[agreed];
    sum.shown.token = reached_token(all, infos, count);
    for (int i = 0; i < count; i++) {
        const dmutex_info_t *shown = &infos[i]->shown;

        sum.shown.waiters = shown->waiters > sum.shown.waiters ? shown->waiters : sum.shown.waiters;
        sum.shown.health = shown->health > sum.shown.health ? shown->health : sum.shown.health;
        sum.position = infos[i]->position > sum.position ? infos[i]->position : sum.position;
        sum.grace_ms = infos[i]->grace_ms > sum.grace_ms ? infos[i]->grace_ms : sum.grace_ms;
    }
    return sum;
}

/* ---- one name ---------------------------------------------------------------------------- */

/* A dm_seen_fn. */
static void note_sight(void *user, const struct dm_seen *seen)
{
    struct sight *sight = user;

    sight->info = seen->info;
    sight->lease_ms = seen->lease_ms;
    sight->last = seen->last;
    sight->is_kept = seen->is_kept;
    sight->waiter_count = seen->waiter_count;
    sight->is_there = seen->fault || seen->info.shown.token || seen->info.shown.locked || seen->info.shown.waiters;
    snprintf(sight->fault, sizeof sight->fault, "%s", seen->fault ? seen->fault : "");
    snprintf(sight->mutex, sizeof sight->mutex, "%s", seen->mutex ? seen->mutex : "");
    memcpy(sight->waiters, seen->waiters, (size_t)seen->waiter_count * sizeof sight->waiters[0]);
}

static bool is_same_last(const struct dm_last *a, const struct dm_last *b)
{
    return a->is_known && b->is_known && a->thread == b->thread && a->pid == b->pid && strcmp(a->host, b->host) == 0 &&
           strcmp(a->program, b->program) == 0;
}

/* The last holder that a majority names: a server alone may name an attempt that never had the majority. */
static struct dm_last agreed_last(const struct dm_quorum_store *all, const struct sight *sights, int count)
{
    for (int i = 0; i < count; i++) {
        int same = 0;

        for (int j = 0; j < count; j++)
            same += is_same_last(&sights[i].last, &sights[j].last);
        if (same > all->count / 2)
            return sights[i].last;
    }
    return (struct dm_last){ 0 };
}

static void tell(const struct dm_quorum_store *all, const struct dm_view *view, const char *key,
                 const struct sight *sights, int count)
{
    const struct dm_info *infos[DM_QUORUM_MOST] = { NULL };
    const struct sight *longest = &sights[0], *faulty = NULL;
    struct dm_seen seen = { .key = key };
    int sound = 0, agreed;

    for (int i = 0; i < count; i++) {
        if (sights[i].fault[0])
            faulty = &sights[i];
        else
            infos[sound++] = &sights[i].info;
        if (sights[i].waiter_count > longest->waiter_count)
            longest = &sights[i];
    }
    seen.fault = sound <= all->count / 2 && faulty ? faulty->fault : NULL;
    seen.info = dm_quorum_sum_up(all, infos, sound);
    seen.last = agreed_last(all, sights, count);
    seen.mutex = longest->mutex;
    seen.waiters = longest->waiters;
    seen.waiter_count = longest->waiter_count;
    agreed = dm_quorum_agreed(all, infos, sound);
    for (int i = 0; agreed >= 0 && i < count; i++) {
        if (infos[agreed] == &sights[i].info) {
            seen.lease_ms = sights[i].lease_ms;
            seen.is_kept = sights[i].is_kept;
        }
    }
    view->handler(view->user, &seen);
}

/*
 * Asks all children for one name, and tells a majority's answer: nothing if a child before `first` has the name, which
 * is told in that child's turn.
 */
static enum dm_verdict look_at(struct dm_quorum_store *all, const struct dm_view *view, const char *key, int first,
                               struct sight *sights, const struct dm_deadline *deadline, char *ret_reason)
{
    bool is_told = false, is_refused = false;
    int count = 0;

    for (int i = 0; i < all->count && !is_told; i++) {
        struct dm_deadline until = dm_quorum_share(all, i, deadline);
        struct dm_view one = { .key = key, .waiters = view->waiters, .handler = note_sight, .user = &sights[count] };
        enum dm_verdict verdict = DM_SAYS_NOTHING;

        if (dm_store_is_able(all->children[i].store, NULL, DM_ASKS))
            verdict = dm_store_view(all->children[i].store, &one, &until, ret_reason);
        is_refused = is_refused || verdict == DM_SAYS_REFUSED;
        is_told = verdict == DM_SAYS_DONE && i < first && sights[count].is_there;
        count += verdict == DM_SAYS_DONE;
    }
    if (is_told)
        return DM_SAYS_DONE;
    if (count > all->count / 2) {
        tell(all, view, key, sights, count);
        return DM_SAYS_DONE;
    }
    if (is_refused)
        return DM_SAYS_REFUSED;
    dm_quorum_reason(&all->store, NULL, DM_ASKS, ret_reason);
    return DM_SAYS_NOTHING;
}

/* ---- all names --------------------------------------------------------------------------- */

/* The names of one call of a child, as keys one behind the other, each with its NUL. */
struct names {
    char *keys;
    size_t size;
    bool is_short_of_memory;
};

/* A dm_seen_fn. */
static void note_name(void *user, const struct dm_seen *seen)
{
    struct names *names = user;
    size_t length = strlen(seen->key) + 1;
    char *keys = realloc(names->keys, names->size + length);

    if (!keys) {
        names->is_short_of_memory = true;
        return;
    }
    memcpy(keys + names->size, seen->key, length);
    names->keys = keys;
    names->size += length;
}

/* The cursor has the number of the child in its highest byte, as for the nodes of a Cluster. */
#define CHILD_SHIFT 56

static int next_child(const struct dm_quorum_store *all, int child)
{
    while (child < all->count && !dm_store_is_able(all->children[child].store, NULL, DM_ASKS))
        child++;
    return child;
}

/* A child that fails in the middle is left, because the others have all that a majority has. */
static uint64_t cursor_behind(const struct dm_quorum_store *all, int child, uint64_t cursor)
{
    if (cursor == 0)
        child = next_child(all, child + 1);
    return child < all->count ? (uint64_t)child << CHILD_SHIFT | cursor : 0;
}

static enum dm_verdict look_at_some(struct dm_quorum_store *all, struct dm_view *view, struct sight *sights,
                                    const struct dm_deadline *deadline, char *ret_reason)
{
    int child = next_child(all, (int)(view->cursor >> CHILD_SHIFT));
    struct names names = { 0 };
    struct dm_view some = {
        .group = view->group,
        .cursor = child == (int)(view->cursor >> CHILD_SHIFT) ? view->cursor & ((UINT64_C(1) << CHILD_SHIFT) - 1) : 0,
        .handler = note_name,
        .user = &names,
    };
    struct dm_deadline until = dm_quorum_share(all, 0, deadline);
    enum dm_verdict verdict = DM_SAYS_DONE;

    if (child < all->count)
        verdict = dm_store_view(all->children[child].store, &some, &until, ret_reason);
    if (verdict != DM_SAYS_DONE)
        some.cursor = 0;
    verdict = verdict == DM_SAYS_REFUSED ? verdict : DM_SAYS_DONE;
    for (size_t at = 0; verdict == DM_SAYS_DONE && at < names.size; at += strlen(names.keys + at) + 1)
        verdict = look_at(all, view, names.keys + at, child, sights, deadline, ret_reason);
    if (verdict == DM_SAYS_DONE && names.is_short_of_memory) {
        snprintf(ret_reason, DM_REASON_ROOM, "out of memory");
        verdict = DM_SAYS_NO_MEMORY;
    }
    free(names.keys);
    if (verdict == DM_SAYS_DONE)
        view->cursor = cursor_behind(all, child, some.cursor);
    return verdict;
}

enum dm_verdict dm_quorum_view(struct dm_store *store, struct dm_view *view, const struct dm_deadline *deadline,
                               char ret_reason[DM_REASON_ROOM])
{
    struct dm_quorum_store *all = dm_quorum_of(store);
    enum dm_verdict verdict;
    struct sight *sights;

    if (!dm_quorum_await_able(store, NULL, DM_ASKS, deadline)) {
        dm_quorum_reason(store, NULL, DM_ASKS, ret_reason);
        return DM_SAYS_NOTHING;
    }
    dm_quorum_await_all(store, NULL, deadline);
    sights = calloc((size_t)all->count, sizeof *sights);
    if (!sights) {
        snprintf(ret_reason, DM_REASON_ROOM, "out of memory");
        return DM_SAYS_NO_MEMORY;
    }
    verdict = view->key ? look_at(all, view, view->key, 0, sights, deadline, ret_reason)
                        : look_at_some(all, view, sights, deadline, ret_reason);
    free(sights);
    return verdict;
}
