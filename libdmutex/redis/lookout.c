/* SPDX-License-Identifier: BSD-2-Clause */
#include "redis/lookout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rank.h"
#include "redis/sentinel.h"

/* All sentinels are asked so often within `switch`; an answer counts for half of it. */
#define ROUNDS_IN_SWITCH 4

/* In every such round the sentinels are asked for each other, too; and in each round while there is no word. */
#define ROUNDS_OF_OTHERS 16

/* The shortest time between two rounds. */
#define PAUSE_NS (20 * DM_NS_PER_MS)

struct dm_lookout {
    const struct dm_url *url;
    struct dm_lookout_hooks hooks;
    struct dm_sentinel_hooks of_sentinels;

    struct dm_mutex lock; /* Rank LOOKOUT: guards the following; nothing but LOG nests in it */
    struct dm_council council;
    bool is_wanted, is_ended;
    struct dm_sentinel *sentinels[DM_COUNCIL_MOST]; /* as in the council; added by the loop thread alone */
    int count;

    /* The loop thread's. */
    int64_t last_round_ns, next_round_ns;
    unsigned rounds;
};

/* ---- the word ---------------------------------------------------------------------------- */

/* Lock held.  Returns a sentinel that has not answered, for add_reason(). */
static struct dm_sentinel *describe(const struct dm_lookout *lookout, char ret_reason[DM_REASON_ROOM])
{
    const struct dm_council *council = &lookout->council;
    int64_t now_ns = dm_clock_boot_ns();
    int missing = dm_council_missing(council, now_ns);
    int heard = dm_council_heard(council, now_ns), majority = dm_council_majority(council);

    dm_assert_held(DM_RANK_LOOKOUT);
    if (council->is_refused) {
        snprintf(ret_reason, DM_REASON_ROOM,
                 "the sentinels know no master named \"%.60s\": correct the name in the URL", lookout->url->master);
        return NULL;
    }
    snprintf(ret_reason, DM_REASON_ROOM,
             "%d of %d sentinels have answered lately, and %d must agree on who the master is%s", heard,
             dm_council_size(council), majority, heard < majority ? ": list the present ones in the URL" : "");
    return missing >= 0 ? lookout->sentinels[missing] : NULL;
}

/* Without the lock: the link of a sentinel has a lock of a lower rank. */
static void add_reason(struct dm_sentinel *sentinel, char reason[DM_REASON_ROOM])
{
    size_t used = strlen(reason);
    char why[DM_REASON_ROOM];

    if (!sentinel)
        return;
    dm_sentinel_reason(sentinel, why);
    snprintf(reason + used, DM_REASON_ROOM - used, "; %.180s", why);
}

enum dm_lookout_found dm_lookout_find(struct dm_lookout *lookout, struct dm_master *ret_master, uint64_t *ret_number,
                                      char ret_reason[DM_REASON_ROOM])
{
    const struct dm_council *council = &lookout->council;
    enum dm_lookout_found found = DM_LOOKOUT_FOUND;
    struct dm_sentinel *missing = NULL;

    dm_mutex_lock(&lookout->lock);
    lookout->is_wanted = true;
    if (dm_council_is_fresh(council, council->number, dm_clock_boot_ns())) {
        *ret_master = council->word;
        *ret_number = council->number;
    } else {
        found = council->is_refused ? DM_LOOKOUT_NEVER : DM_LOOKOUT_LATER;
        missing = describe(lookout, ret_reason);
    }
    dm_mutex_unlock(&lookout->lock);
    add_reason(missing, ret_reason);
    return found;
}

bool dm_lookout_is_fresh(struct dm_lookout *lookout, uint64_t number)
{
    bool is_fresh;

    dm_mutex_lock(&lookout->lock);
    is_fresh = dm_council_is_fresh(&lookout->council, number, dm_clock_boot_ns());
    dm_mutex_unlock(&lookout->lock);
    return is_fresh;
}

/* When the word stops to count, if no answer comes before; DM_NEVER: there is no word. */
static int64_t word_ends_ns(struct dm_lookout *lookout)
{
    int64_t until_ns;

    dm_mutex_lock(&lookout->lock);
    until_ns = lookout->council.until_ns;
    dm_mutex_unlock(&lookout->lock);
    return until_ns ? until_ns + 1 : DM_NEVER;
}

/* ---- questions --------------------------------------------------------------------------- */

static void ask_all(struct dm_lookout *lookout)
{
    bool with_others = lookout->rounds++ % ROUNDS_OF_OTHERS == 0 || word_ends_ns(lookout) == DM_NEVER;

    lookout->last_round_ns = dm_clock_boot_ns();
    lookout->next_round_ns = lookout->last_round_ns + lookout->url->switch_ms * (DM_NS_PER_MS / ROUNDS_IN_SWITCH);
    for (int i = 0; i < lookout->count; i++) {
        if (!dm_council_is_forgotten(&lookout->council, i)) /* the loop thread alone changes the list */
            dm_sentinel_ask(lookout->sentinels[i], with_others && i < lookout->council.listed);
    }
}

/* As soon as a round may follow the round before: news that never end must not keep everybody busy. */
static void ask_soon(struct dm_lookout *lookout)
{
    int64_t soon_ns = lookout->last_round_ns + PAUSE_NS;

    if (soon_ns <= dm_clock_boot_ns())
        ask_all(lookout);
    else if (soon_ns < lookout->next_round_ns)
        lookout->next_round_ns = soon_ns;
}

/* Why the word counts no more: who has named another master, NULL if nobody has, or who is missing. */
static void explain(struct dm_lookout *lookout, const struct dm_sentinel *teller, const struct dm_master *told,
                    char ret_reason[DM_REASON_ROOM])
{
    struct dm_sentinel *missing = NULL;

    dm_mutex_lock(&lookout->lock);
    if (teller && told->host[0] && !dm_council_is_word(&lookout->council, told))
        snprintf(ret_reason, DM_REASON_ROOM,
                 "the sentinel %.100s:%.8s names another master, %.100s:%.8s: all are asked again", teller->host,
                 teller->port, told->host, told->port);
    else if (teller && !told->host[0])
        snprintf(ret_reason, DM_REASON_ROOM, "the sentinel %.100s:%.8s knows no such master: all are asked again",
                 teller->host, teller->port);
    else
        missing = describe(lookout, ret_reason);
    dm_mutex_unlock(&lookout->lock);
    add_reason(missing, ret_reason);
}

/* Acts on what the council says, because of what a sentinel has told, if any; no lock held. */
static void heed(struct dm_lookout *lookout, enum dm_council_news news, const struct dm_sentinel *teller,
                 const struct dm_master *told)
{
    char reason[DM_REASON_ROOM];

    switch (news) {
    case DM_COUNCIL_SAME:
        return;
    case DM_COUNCIL_WORD:
    case DM_COUNCIL_NAME:
        lookout->hooks.on_word(lookout->hooks.user);
        return;
    case DM_COUNCIL_DOUBT:
        explain(lookout, teller, told, reason);
        lookout->hooks.on_doubt(lookout->hooks.user, reason);
        ask_soon(lookout);
        return;
    }
}

/* ---- what the sentinels say -------------------------------------------------------------- */

static void sentinel_ready(void *user, struct dm_sentinel *sentinel, const char *id)
{
    struct dm_lookout *lookout = user;

    dm_mutex_lock(&lookout->lock);
    dm_council_name(&lookout->council, sentinel->index, id);
    dm_mutex_unlock(&lookout->lock);
    dm_sentinel_ask(sentinel, sentinel->index < lookout->council.listed);
}

static void master_said(void *user, struct dm_sentinel *sentinel, const struct dm_master *master, int64_t asked_ns)
{
    struct dm_lookout *lookout = user;
    enum dm_council_news news;

    dm_mutex_lock(&lookout->lock);
    news = dm_council_take(&lookout->council, sentinel->index, master, asked_ns, dm_clock_boot_ns());
    dm_mutex_unlock(&lookout->lock);
    heed(lookout, news, sentinel, master);
}

/* A listed sentinel, with `other` NULL, or a learned one.  False without memory; the sentinel is not known then. */
static bool add(struct dm_lookout *lookout, const char *host, const char *port, const struct dm_other *other)
{
    struct dm_sentinel *sentinel = dm_sentinel_new(lookout->url, lookout->count, host, port, &lookout->of_sentinels);
    bool is_late;

    if (!sentinel)
        return false;
    dm_mutex_lock(&lookout->lock);
    is_late = lookout->is_ended;
    if (!is_late && other)
        dm_council_learn(&lookout->council, lookout->count, other);
    else if (!is_late)
        dm_council_add_listed(&lookout->council);
    if (!is_late)
        lookout->sentinels[lookout->count++] = sentinel;
    dm_mutex_unlock(&lookout->lock);
    if (is_late)
        dm_sentinel_free_unused(sentinel);
    return true;
}

/* In the place of a forgotten one. */
static void replace(struct dm_lookout *lookout, int place, const struct dm_other *other)
{
    dm_mutex_lock(&lookout->lock);
    dm_council_learn(&lookout->council, place, other);
    dm_mutex_unlock(&lookout->lock);
    dm_sentinel_move(lookout->sentinels[place], other->host, other->port);
}

/*
 * A learned sentinel is asked from the next round on; without memory it is learned later.  Nobody is asked, or given
 * the sentinels' password, who is not named by a majority of the listed ones.
 */
static void learn(struct dm_lookout *lookout, const struct dm_other *other)
{
    int place = dm_council_place_for(&lookout->council, other);

    if (place >= 0 && place < lookout->count)
        replace(lookout, place, other);
    else if (place >= 0)
        add(lookout, other->host, other->port, other);
}

/* The loop thread alone changes the list of sentinels and their answers, and reads both without the lock. */
static void others_said(void *user, struct dm_sentinel *sentinel, const struct dm_other *others, int count)
{
    struct dm_lookout *lookout = user;

    dm_mutex_lock(&lookout->lock);
    dm_council_take_list(&lookout->council, sentinel->index, others, count);
    dm_mutex_unlock(&lookout->lock);
    for (int i = 0; i < count; i++)
        learn(lookout, &others[i]);
}

/* Now, and not by the next round. */
static void switch_said(void *user)
{
    ask_soon(user);
}

static void change_said(void *user)
{
    const struct dm_lookout *lookout = user;

    lookout->hooks.on_change(lookout->hooks.user);
}

/* ---- the loop thread --------------------------------------------------------------------- */

static bool is_wanted(struct dm_lookout *lookout)
{
    bool is_so;

    dm_mutex_lock(&lookout->lock);
    is_so = lookout->is_wanted && !lookout->is_ended;
    dm_mutex_unlock(&lookout->lock);
    return is_so;
}

void dm_lookout_watch(struct dm_lookout *lookout, struct dm_watch *watch)
{
    if (!is_wanted(lookout))
        return;
    dm_watch_until(watch, lookout->next_round_ns);
    dm_watch_until(watch, word_ends_ns(lookout));
    for (int i = 0; i < lookout->count; i++)
        dm_sentinel_watch(lookout->sentinels[i], watch);
}

void dm_lookout_turn(struct dm_lookout *lookout)
{
    enum dm_council_news news;

    if (!is_wanted(lookout))
        return;
    for (int i = 0; i < lookout->count; i++)
        dm_sentinel_turn(lookout->sentinels[i]);
    dm_mutex_lock(&lookout->lock);
    news = dm_council_look(&lookout->council, dm_clock_boot_ns());
    dm_mutex_unlock(&lookout->lock);
    heed(lookout, news, NULL, NULL);
    if (lookout->next_round_ns <= dm_clock_boot_ns())
        ask_all(lookout);
}

/* ---- beginning, end, fork ---------------------------------------------------------------- */

struct dm_lookout *dm_lookout_new(const struct dm_url *url, const struct dm_lookout_hooks *hooks)
{
    struct dm_lookout *lookout = calloc(1, sizeof *lookout);

    if (!lookout)
        return NULL;
    lookout->url = url;
    lookout->hooks = *hooks;
    lookout->of_sentinels = (struct dm_sentinel_hooks){
        .on_ready = sentinel_ready,
        .on_master = master_said,
        .on_others = others_said,
        .on_switch = switch_said,
        .on_change = change_said,
        .user = lookout,
    };
    lookout->lock = (struct dm_mutex)DM_MUTEX_INITIALIZER(DM_RANK_LOOKOUT);
    lookout->council.fresh_ns = url->switch_ms * DM_NS_PER_MS / 2;
    for (int i = 0; i < url->host_count; i++) {
        if (add(lookout, url->hosts[i].host, url->hosts[i].port, NULL))
            continue;
        dm_lookout_free_unused(lookout);
        return NULL;
    }
    return lookout;
}

void dm_lookout_free_unused(struct dm_lookout *lookout)
{
    for (int i = 0; lookout && i < lookout->count; i++)
        dm_sentinel_free_unused(lookout->sentinels[i]);
    if (lookout)
        dm_council_clear(&lookout->council);
    free(lookout);
}

/* Any thread; the loop thread may be in a turn, and finds ended links. */
void dm_lookout_end(struct dm_lookout *lookout)
{
    int count;

    dm_mutex_lock(&lookout->lock);
    lookout->is_ended = true;
    lookout->council.until_ns = 0;
    count = lookout->count;
    dm_mutex_unlock(&lookout->lock);
    for (int i = 0; i < count; i++)
        dm_sentinel_end(lookout->sentinels[i]);
}

/* The gate is taken, so the loop thread adds no sentinel meanwhile. */
void dm_lookout_fork_prepare(struct dm_lookout *lookout)
{
    for (int i = 0; i < lookout->count; i++)
        dm_sentinel_fork_prepare(lookout->sentinels[i]);
    dm_mutex_lock(&lookout->lock);
}

void dm_lookout_fork_parent(struct dm_lookout *lookout)
{
    dm_mutex_unlock(&lookout->lock);
    for (int i = lookout->count; i > 0; i--)
        dm_sentinel_fork_parent(lookout->sentinels[i - 1]);
}

void dm_lookout_fork_child(struct dm_lookout *lookout)
{
    dm_mutex_reset(&lookout->lock);
    for (int i = 0; i < lookout->count; i++)
        dm_sentinel_fork_child(lookout->sentinels[i]);
}
