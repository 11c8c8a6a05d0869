/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Views of names, for people: a majority decides who holds a mutex.  A single child may be new, may have granted to an
 * attempt that did not get the majority, or may lie.
 *
 * Shows every name that any child lists, once.  A child that lists names for much longer than a majority of the
 * children is dropped, and so is one that fails: the others have everything that a majority has.
 */
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stores/quorum/parts.h"

/* What one child says about a name, with room for what it points to. */
struct sight {
    struct dm_seen seen;
    char fault[64];
    char mutex[DM_MUTEX_KEY_ROOM];
    struct dm_seen_waiter waiters[DM_SEEN_WAITERS];
};

/* ---- what a majority says ---------------------------------------------------------------- */

static bool is_same_owner(const dmutex_info_t *a, const dmutex_info_t *b)
{
    return a->locked == b->locked && a->thread == b->thread && strcmp(a->owner, b->owner) == 0;
}

/* The index of an answer about whose owner a majority agrees; -1: none. */
static int find_agreed(const struct dm_quorum_store *all, const struct dm_info *const *infos, int count)
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
 * The token that a majority has reached: a child that joined the hold later may have a higher one of its own.  Children
 * without an answer count as having reached it.
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

/* As dmutex_info_t has them. */
enum health { CLEAN, DIED, NOT_RECOVERABLE };

/*
 * A death that a single child reports is reported, as to a robust lock; but only a majority can say that nobody can
 * have the lock.
 */
static uint32_t agreed_health(const struct dm_quorum_store *all, const struct dm_info *const *infos, int count)
{
    int dead = 0, lost = 0;

    for (int i = 0; i < count; i++) {
        dead += infos[i]->shown.health == DIED;
        lost += infos[i]->shown.health == NOT_RECOVERABLE;
    }
    if (lost > all->count / 2)
        return NOT_RECOVERABLE;
    return dead + lost ? DIED : CLEAN;
}

/*
 * Without an agreed owner the mutex is shown as free: an attempt that did not get the majority may have some of the
 * servers.
 */
struct dm_info dm_quorum_sum_up(const struct dm_quorum_store *all, const struct dm_info *const *infos, int count)
{
    struct dm_info sum = { .shown = { .struct_size = sizeof sum.shown } };
    int agreed = find_agreed(all, infos, count);

    if (agreed >= 0)
        sum = *infos[agreed];
    sum.shown.token = reached_token(all, infos, count);
    sum.shown.health = agreed_health(all, infos, count);
    for (int i = 0; i < count; i++) {
        const dmutex_info_t *shown = &infos[i]->shown;

        sum.shown.waiters = shown->waiters > sum.shown.waiters ? shown->waiters : sum.shown.waiters;
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

    snprintf(sight->fault, sizeof sight->fault, "%s", seen->fault ? seen->fault : "");
    snprintf(sight->mutex, sizeof sight->mutex, "%s", seen->mutex ? seen->mutex : "");
    memcpy(sight->waiters, seen->waiters, (size_t)seen->waiter_count * sizeof sight->waiters[0]);
    sight->seen = *seen;
    sight->seen.fault = seen->fault ? sight->fault : NULL;
    sight->seen.mutex = sight->mutex;
    sight->seen.waiters = sight->waiters;
}

static bool is_same_last(const struct dm_last *a, const struct dm_last *b)
{
    return a->is_known && b->is_known && a->thread == b->thread && a->pid == b->pid && strcmp(a->host, b->host) == 0 &&
           strcmp(a->program, b->program) == 0;
}

/* The last holder that a majority names: a single server may name an attempt that never had the majority. */
static struct dm_last agreed_last(const struct dm_quorum_store *all, const struct sight *sights, int count)
{
    for (int i = 0; i < count; i++) {
        int same = 0;

        for (int j = 0; j < count; j++)
            same += is_same_last(&sights[i].seen.last, &sights[j].seen.last);
        if (same > all->count / 2)
            return sights[i].seen.last;
    }
    return (struct dm_last){ 0 };
}

static void tell(const struct dm_quorum_store *all, const struct dm_view *view, const char *key,
                 const struct sight *sights, int count)
{
    const struct dm_info *infos[DM_QUORUM_MOST] = { NULL };
    const struct dm_seen *sound[DM_QUORUM_MOST] = { NULL }, *longest = &sights[0].seen;
    struct dm_seen seen = { .key = key };
    int sound_count = 0, agreed;

    for (int i = 0; i < count; i++) {
        const struct dm_seen *sight = &sights[i].seen;

        if (sight->waiter_count > longest->waiter_count)
            longest = sight;
        if (sight->fault) {
            seen.fault = sight->fault;
            continue;
        }
        infos[sound_count] = &sight->info;
        sound[sound_count++] = sight;
    }
    if (sound_count > all->count / 2)
        seen.fault = NULL;
    seen.info = dm_quorum_sum_up(all, infos, sound_count);
    seen.last = agreed_last(all, sights, count);
    seen.mutex = longest->mutex;
    seen.waiters = longest->waiters;
    seen.waiter_count = longest->waiter_count;
    agreed = find_agreed(all, infos, sound_count);
    if (agreed >= 0) {
        seen.lease_ms = sound[agreed]->lease_ms;
        seen.is_kept = sound[agreed]->is_kept;
    }
    view->handler(view->user, &seen);
}

/* How long a child that has made a view wait is asked only if the others are not a majority. */
#define UNSEEN_NS (2 * DM_NS_PER_S)

/* The children that a view asks first, a set of bits. */
static unsigned seen_children(struct dm_quorum_store *all)
{
    int64_t now_ns = dm_clock_boot_ns();
    unsigned seen = 0;

    dm_mutex_lock(&all->lock);
    for (int i = 0; i < all->count; i++) {
        if (all->children[i].unseen_until_ns <= now_ns)
            seen |= 1u << i;
    }
    dm_mutex_unlock(&all->lock);
    return seen;
}

static enum dm_verdict ask_child(struct dm_quorum_child *child, struct dm_view *view,
                                 const struct dm_deadline *deadline, char *ret_reason)
{
    enum dm_verdict verdict = DM_SAYS_NOTHING;

    if (!dm_quorum_may_ask(child, NULL, DM_ASKS))
        return DM_SAYS_NOTHING;
    verdict = dm_store_view(child->store, view, deadline, ret_reason);
    if (verdict == DM_SAYS_NOTHING) {
        dm_mutex_lock(&child->all->lock);
        child->unseen_until_ns = dm_clock_boot_ns() + UNSEEN_NS;
        dm_mutex_unlock(&child->all->lock);
    }
    return verdict;
}

/* A view of one name. */
struct look {
    const struct dm_view *view;
    const struct dm_deadline *deadline;
    char *ret_reason;
    struct sight *sights; /* one for each child; the first `count` have answered */
    int count;
    bool is_refused;
};

static void ask_children(struct dm_quorum_store *all, struct look *look, const char *key, unsigned children)
{
    for (int i = 0; i < all->count; i++) {
        struct dm_deadline until = dm_quorum_short_share(all, i, look->count, look->deadline);
        struct dm_view one = {
            .key = key, .waiters = look->view->waiters, .handler = note_sight, .user = &look->sights[look->count]
        };
        enum dm_verdict verdict;

        if (!(children & 1u << i))
            continue;
        verdict = ask_child(&all->children[i], &one, &until, look->ret_reason);
        look->is_refused = look->is_refused || verdict == DM_SAYS_REFUSED;
        look->count += verdict == DM_SAYS_DONE;
    }
}

/* Shows a majority's answer about one name. */
static enum dm_verdict look_at(struct dm_quorum_store *all, struct look *look, const char *key)
{
    unsigned seen = seen_children(all);

    look->count = 0;
    look->is_refused = false;
    ask_children(all, look, key, seen);
    if (look->count <= all->count / 2)
        ask_children(all, look, key, ~seen);
    if (look->count > all->count / 2) {
        tell(all, look->view, key, look->sights, look->count);
        return DM_SAYS_DONE;
    }
    if (look->is_refused)
        return DM_SAYS_REFUSED;
    dm_quorum_reason(&all->store, NULL, DM_ASKS, look->ret_reason);
    return DM_SAYS_NOTHING;
}

/* ---- all names --------------------------------------------------------------------------- */

/* The names of one call of a child, as keys one after the other, each with its NUL. */
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

/* A series of calls, each of which asks one child for some of its names.  The children take turns. */
struct row {
    uint64_t cursors[DM_QUORUM_MOST];
    bool is_over[DM_QUORUM_MOST]; /* the child has listed all its names, or has failed */
    int listed;                   /* how many children have listed all */
    bool is_refused;
    uint64_t calls, calls_most; /* calls_most 0: not known yet */
    void *told;                 /* a tree of keys, by tsearch() */
};

static void free_row(void *object)
{
    struct row *row = object;

    tdestroy(row->told, free);
    free(row);
}

static struct row *row_of(struct dm_view *view)
{
    if (!view->row)
        view->row = calloc(1, sizeof(struct row));
    view->free_row = free_row;
    return view->row;
}

/*
 * The next child to list names, beginning with the one whose turn it is; -1: none.  One that has made a view wait gets
 * its turns when the others have listed all.
 */
static int next_child(struct dm_quorum_store *all, const struct row *row)
{
    unsigned seen = seen_children(all);
    int next = -1;

    if (row->calls_most && row->calls > row->calls_most)
        return -1;
    for (int i = 0; i < all->count; i++) {
        int child = (int)((row->calls + (uint64_t)i) % (uint64_t)all->count);

        if (row->is_over[child])
            continue;
        if (seen & 1u << child)
            return child;
        next = next < 0 ? child : next;
    }
    return next;
}

/*
 * A child that is not done when a majority has listed all gets as many turns again: a few more names do not take more.
 */
static void note_over(const struct dm_quorum_store *all, struct row *row, int child, enum dm_verdict verdict)
{
    row->is_over[child] = true;
    row->is_refused = row->is_refused || verdict == DM_SAYS_REFUSED;
    row->listed += verdict == DM_SAYS_DONE;
    if (row->listed > all->count / 2 && !row->calls_most)
        row->calls_most = 2 * row->calls + (uint64_t)all->count;
}

static int compare(const void *one, const void *other)
{
    return strcmp(one, other);
}

static bool note_told(struct row *row, const char *key)
{
    char *copy = strdup(key);

    if (copy && tsearch(copy, &row->told, compare))
        return true;
    free(copy);
    return false;
}

/* Shows the names that no earlier call has shown. */
static enum dm_verdict look_at_new(struct dm_quorum_store *all, struct look *look, struct row *row,
                                   const struct names *names)
{
    enum dm_verdict verdict = names->is_short_of_memory ? DM_SAYS_NO_MEMORY : DM_SAYS_DONE;

    for (size_t at = 0; verdict == DM_SAYS_DONE && at < names->size; at += strlen(names->keys + at) + 1) {
        const char *key = names->keys + at;

        if (tfind(key, &row->told, compare))
            continue;
        verdict = look_at(all, look, key);
        if (verdict == DM_SAYS_DONE && !note_told(row, key))
            verdict = DM_SAYS_NO_MEMORY;
    }
    return verdict;
}

/* All children have had their turns.  The next series starts from the beginning. */
static enum dm_verdict end_row(struct dm_quorum_store *all, struct dm_view *view, struct row *row, char *ret_reason)
{
    bool is_whole = row->listed > all->count / 2, is_refused = row->is_refused;

    free_row(row);
    view->row = NULL;
    view->cursor = 0;
    if (is_whole)
        return DM_SAYS_DONE;
    if (is_refused)
        return DM_SAYS_REFUSED; /* with the reason of the last child that was asked */
    dm_quorum_reason(&all->store, NULL, DM_ASKS, ret_reason);
    return DM_SAYS_NOTHING;
}

static enum dm_verdict look_at_some(struct dm_quorum_store *all, struct look *look, struct dm_view *view)
{
    struct row *row = row_of(view);
    int child = row ? next_child(all, row) : 0;
    struct dm_deadline until = dm_quorum_short_share(all, 0, row ? row->listed : 0, look->deadline);
    struct names names = { 0 };
    struct dm_view some = {
        .group = view->group, .cursor = row ? row->cursors[child] : 0, .handler = note_name, .user = &names
    };
    enum dm_verdict verdict, listed;

    if (!row)
        return DM_SAYS_NO_MEMORY;
    listed = ask_child(&all->children[child], &some, &until, look->ret_reason);
    verdict = look_at_new(all, look, row, &names);
    free(names.keys);
    if (verdict != DM_SAYS_DONE)
        return verdict;
    row->calls++;
    row->cursors[child] = some.cursor;
    if (listed != DM_SAYS_DONE || some.cursor == 0)
        note_over(all, row, child, listed);
    view->cursor = row->calls;
    return next_child(all, row) < 0 ? end_row(all, view, row, look->ret_reason) : DM_SAYS_DONE;
}

enum dm_verdict dm_quorum_view(struct dm_store *store, struct dm_view *view, const struct dm_deadline *deadline,
                               char ret_reason[DM_REASON_ROOM])
{
    struct dm_quorum_store *all = dm_quorum_of(store);
    struct look look = { .view = view, .deadline = deadline, .ret_reason = ret_reason };
    enum dm_verdict verdict;

    if (!dm_quorum_await_able(store, NULL, DM_ASKS, deadline)) {
        dm_quorum_reason(store, NULL, DM_ASKS, ret_reason);
        return DM_SAYS_NOTHING;
    }
    dm_quorum_await_all(store, NULL, deadline);
    look.sights = calloc((size_t)all->count, sizeof *look.sights);
    if (!look.sights)
        verdict = DM_SAYS_NO_MEMORY;
    else
        verdict = view->key ? look_at(all, &look, view->key) : look_at_some(all, &look, view);
    free(look.sights);
    if (verdict == DM_SAYS_NO_MEMORY)
        snprintf(ret_reason, DM_REASON_ROOM, "out of memory");
    return verdict;
}
