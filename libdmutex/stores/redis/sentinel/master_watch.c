/* SPDX-License-Identifier: BSD-2-Clause */
#include "stores/redis/sentinel/master_watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rank.h"
#include "stores/redis/sentinel/sentinel.h"

/* How often all sentinels are asked within `switch`; an answer counts for half of it. */
#define ROUNDS_IN_SWITCH 4

/* Every this many rounds the sentinels are also asked for each other, and while there is no word in every round. */
#define ROUNDS_OF_OTHERS 16

/* The shortest time between two rounds. */
#define PAUSE_NS (20 * DM_NS_PER_MS)

struct dm_master_watch {
    const struct dm_url *url;
    struct dm_master_watch_hooks hooks;
    struct dm_sentinel_hooks of_sentinels;

    struct dm_mutex lock; /* rank MASTER_WATCH: guards the following; nothing but LOG nests in it */
    struct dm_council council;
    bool is_wanted, is_ended;
    struct dm_sentinel *sentinels[DM_COUNCIL_MOST]; /* as in the council; only the loop thread adds to them */
    int count;

    /* The loop thread's. */
    int64_t last_round_ns, next_round_ns;
    unsigned rounds;
};

/* ---- the word ---------------------------------------------------------------------------- */

/* Lock held.  Adds `before` and "SENTINEL says MASTER".  The address of a listed sentinel is constant. */
static void add_opinion(const struct dm_master_watch *master_watch, int index, const char *before, char *reason)
{
    const struct dm_opinion *opinion = &master_watch->council.opinions[index];
    const struct dm_sentinel *sentinel = master_watch->sentinels[index];
    bool is_listed = index < master_watch->council.listed;
    size_t used = strlen(reason);

    snprintf(
        reason + used, DM_REASON_ROOM - used, "%s%.70s says ", before,
        dm_url_place(is_listed ? sentinel->host : opinion->named.host, is_listed ? sentinel->port : opinion->named.port)
            .text);
    used = strlen(reason);
    snprintf(reason + used, DM_REASON_ROOM - used, "%.70s",
             opinion->master.host[0] ? dm_url_place(opinion->master.host, opinion->master.port).text : "none");
}

/* Too few have answered.  The URL need not list those that the listed ones name. */
static const char *advice(const struct dm_council *council)
{
    return dm_council_size(council) > council->listed ? ": start the missing ones, and list all of them in the URL"
                                                      : ": start the missing ones, or correct the URL";
}

/* Lock held.  Returns a sentinel that has not answered, for add_reason(). */
static struct dm_sentinel *describe(const struct dm_master_watch *master_watch, char ret_reason[DM_REASON_ROOM])
{
    const struct dm_council *council = &master_watch->council;
    int64_t now_ns = dm_clock_boot_ns();
    int missing = dm_council_missing(council, now_ns);
    int heard = dm_council_heard(council, now_ns), majority = dm_council_majority(council), pair[2];

    dm_assert_held(DM_RANK_MASTER_WATCH);
    if (council->is_refused) {
        snprintf(ret_reason, DM_REASON_ROOM,
                 "the sentinels know no master named \"%.60s\": correct the name in the URL",
                 master_watch->url->master);
        return NULL;
    }
    snprintf(ret_reason, DM_REASON_ROOM,
             "%d of %d sentinels have answered recently, and %d must agree on who the master is%s", heard,
             dm_council_size(council), majority, heard < majority ? advice(council) : "");
    if (heard >= majority && dm_council_differ(council, now_ns, pair)) {
        add_opinion(master_watch, pair[0], ": ", ret_reason);
        add_opinion(master_watch, pair[1], ", and ", ret_reason);
        return NULL;
    }
    return missing >= 0 ? master_watch->sentinels[missing] : NULL;
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

enum dm_master_watch_found dm_master_watch_find(struct dm_master_watch *master_watch, struct dm_master *ret_master,
                                                uint64_t *ret_number, char ret_reason[DM_REASON_ROOM])
{
    const struct dm_council *council = &master_watch->council;
    enum dm_master_watch_found found = DM_MASTER_FOUND;
    struct dm_sentinel *missing = NULL;

    dm_mutex_lock(&master_watch->lock);
    master_watch->is_wanted = true;
    if (dm_council_is_fresh(council, council->number, dm_clock_boot_ns())) {
        *ret_master = council->word;
        *ret_number = council->number;
    } else {
        found = council->is_refused ? DM_MASTER_NEVER : DM_MASTER_LATER;
        missing = describe(master_watch, ret_reason);
    }
    dm_mutex_unlock(&master_watch->lock);
    add_reason(missing, ret_reason);
    return found;
}

bool dm_master_watch_is_denied(struct dm_master_watch *master_watch)
{
    const struct dm_council *council = &master_watch->council;
    bool is_denied = false;

    dm_mutex_lock(&master_watch->lock);
    if (!dm_council_is_fresh(council, council->number, dm_clock_boot_ns())) {
        for (int i = 0; i < master_watch->count; i++)
            is_denied = is_denied || __atomic_load_n(&master_watch->sentinels[i]->is_denied, __ATOMIC_RELAXED);
    }
    dm_mutex_unlock(&master_watch->lock);
    return is_denied;
}

bool dm_master_watch_is_fresh(struct dm_master_watch *master_watch, uint64_t number)
{
    bool is_fresh;

    dm_mutex_lock(&master_watch->lock);
    is_fresh = dm_council_is_fresh(&master_watch->council, number, dm_clock_boot_ns());
    dm_mutex_unlock(&master_watch->lock);
    return is_fresh;
}

/* When the word ceases to count, unless there is an answer before; DM_NEVER: there is no word. */
static int64_t word_ends_ns(struct dm_master_watch *master_watch)
{
    int64_t until_ns;

    dm_mutex_lock(&master_watch->lock);
    until_ns = master_watch->council.until_ns;
    dm_mutex_unlock(&master_watch->lock);
    return until_ns ? until_ns + 1 : DM_NEVER;
}

/* ---- questions --------------------------------------------------------------------------- */

static void ask_all(struct dm_master_watch *master_watch)
{
    bool with_others = master_watch->rounds++ % ROUNDS_OF_OTHERS == 0 || word_ends_ns(master_watch) == DM_NEVER;

    master_watch->last_round_ns = dm_clock_boot_ns();
    master_watch->next_round_ns =
        master_watch->last_round_ns + master_watch->url->switch_ms * (DM_NS_PER_MS / ROUNDS_IN_SWITCH);
    for (int i = 0; i < master_watch->count; i++) {
        if (!dm_council_is_forgotten(&master_watch->council, i)) /* only the loop thread changes the list */
            dm_sentinel_ask(master_watch->sentinels[i], with_others && i < master_watch->council.listed);
    }
}

/* As soon as another round is allowed: endless news must not keep everybody busy. */
static void ask_soon(struct dm_master_watch *master_watch)
{
    int64_t soon_ns = master_watch->last_round_ns + PAUSE_NS;

    if (soon_ns <= dm_clock_boot_ns())
        ask_all(master_watch);
    else if (soon_ns < master_watch->next_round_ns)
        master_watch->next_round_ns = soon_ns;
}

/* Why the word no longer counts: who has named another master, NULL if nobody has, or who is missing. */
static void explain(struct dm_master_watch *master_watch, const struct dm_sentinel *teller,
                    const struct dm_master *told, char ret_reason[DM_REASON_ROOM])
{
    struct dm_sentinel *missing = NULL;

    dm_mutex_lock(&master_watch->lock);
    if (teller && told->host[0] && !dm_council_is_word(&master_watch->council, told))
        snprintf(ret_reason, DM_REASON_ROOM,
                 "the sentinel %.110s names another master, %.110s: asking all of them again",
                 dm_url_place(teller->host, teller->port).text, dm_url_place(told->host, told->port).text);
    else if (teller && !told->host[0])
        snprintf(ret_reason, DM_REASON_ROOM, "the sentinel %.110s knows no such master: asking all of them again",
                 dm_url_place(teller->host, teller->port).text);
    else
        missing = describe(master_watch, ret_reason);
    dm_mutex_unlock(&master_watch->lock);
    add_reason(missing, ret_reason);
}

/* Acts on the council's news, which may be due to what a sentinel has said; no lock held. */
static void heed(struct dm_master_watch *master_watch, enum dm_council_news news, const struct dm_sentinel *teller,
                 const struct dm_master *told)
{
    char reason[DM_REASON_ROOM];

    switch (news) {
    case DM_COUNCIL_SAME:
        return;
    case DM_COUNCIL_WORD:
    case DM_COUNCIL_NAME:
        master_watch->hooks.on_word(master_watch->hooks.user);
        return;
    case DM_COUNCIL_DOUBT:
        explain(master_watch, teller, told, reason);
        master_watch->hooks.on_doubt(master_watch->hooks.user, reason);
        ask_soon(master_watch);
        return;
    }
}

/* ---- what the sentinels say -------------------------------------------------------------- */

static void sentinel_ready(void *user, struct dm_sentinel *sentinel, const char *id)
{
    struct dm_master_watch *master_watch = user;

    dm_mutex_lock(&master_watch->lock);
    dm_council_name(&master_watch->council, sentinel->index, id);
    dm_mutex_unlock(&master_watch->lock);
    dm_sentinel_ask(sentinel, sentinel->index < master_watch->council.listed);
}

static void master_said(void *user, struct dm_sentinel *sentinel, const struct dm_master *master, int64_t asked_ns)
{
    struct dm_master_watch *master_watch = user;
    enum dm_council_news news;

    dm_mutex_lock(&master_watch->lock);
    news = dm_council_take(&master_watch->council, sentinel->index, master, asked_ns, dm_clock_boot_ns());
    dm_mutex_unlock(&master_watch->lock);
    heed(master_watch, news, sentinel, master);
}

/*
 * Adds a listed sentinel, with `other` NULL, or a learned one.  False without memory; then the sentinel is not known.
 */
static bool add(struct dm_master_watch *master_watch, const char *host, const char *port, const struct dm_other *other)
{
    struct dm_sentinel *sentinel =
        dm_sentinel_new(master_watch->url, master_watch->count, host, port, &master_watch->of_sentinels);
    bool is_late;

    if (!sentinel)
        return false;
    dm_mutex_lock(&master_watch->lock);
    is_late = master_watch->is_ended;
    if (!is_late && other)
        dm_council_learn(&master_watch->council, master_watch->count, other);
    else if (!is_late)
        dm_council_add_listed(&master_watch->council);
    if (!is_late)
        master_watch->sentinels[master_watch->count++] = sentinel;
    dm_mutex_unlock(&master_watch->lock);
    if (is_late)
        dm_sentinel_free_unused(sentinel);
    return true;
}

/* Puts it in the place of a forgotten one. */
static void replace(struct dm_master_watch *master_watch, int place, const struct dm_other *other)
{
    dm_mutex_lock(&master_watch->lock);
    dm_council_learn(&master_watch->council, place, other);
    dm_mutex_unlock(&master_watch->lock);
    dm_sentinel_move(master_watch->sentinels[place], other->host, other->port);
}

/*
 * A learned sentinel is asked from the next round on; without memory it is learned later.  Only a sentinel that a
 * majority of the listed ones name is asked and given the sentinels' password.
 */
static void learn(struct dm_master_watch *master_watch, const struct dm_other *other)
{
    int place = dm_council_place_for(&master_watch->council, other);

    if (place >= 0 && place < master_watch->count)
        replace(master_watch, place, other);
    else if (place >= 0)
        add(master_watch, other->host, other->port, other);
}

/* Only the loop thread changes the list of sentinels and their answers, so it reads both without the lock. */
static void others_said(void *user, struct dm_sentinel *sentinel, const struct dm_other *others, int count)
{
    struct dm_master_watch *master_watch = user;

    dm_mutex_lock(&master_watch->lock);
    dm_council_take_list(&master_watch->council, sentinel->index, others, count);
    dm_mutex_unlock(&master_watch->lock);
    for (int i = 0; i < count; i++)
        learn(master_watch, &others[i]);
}

/* Asks now, not in the next round. */
static void switch_said(void *user)
{
    ask_soon(user);
}

static void change_said(void *user)
{
    const struct dm_master_watch *master_watch = user;

    master_watch->hooks.on_change(master_watch->hooks.user);
}

/* ---- the loop thread --------------------------------------------------------------------- */

static bool is_wanted(struct dm_master_watch *master_watch)
{
    bool is_so;

    dm_mutex_lock(&master_watch->lock);
    is_so = master_watch->is_wanted && !master_watch->is_ended;
    dm_mutex_unlock(&master_watch->lock);
    return is_so;
}

void dm_master_watch_watch(struct dm_master_watch *master_watch, struct dm_watch *watch)
{
    if (!is_wanted(master_watch))
        return;
    dm_watch_until(watch, master_watch->next_round_ns);
    dm_watch_until(watch, word_ends_ns(master_watch));
    for (int i = 0; i < master_watch->count; i++)
        dm_sentinel_watch(master_watch->sentinels[i], watch);
}

void dm_master_watch_turn(struct dm_master_watch *master_watch)
{
    enum dm_council_news news;

    if (!is_wanted(master_watch))
        return;
    for (int i = 0; i < master_watch->count; i++)
        dm_sentinel_turn(master_watch->sentinels[i]);
    dm_mutex_lock(&master_watch->lock);
    news = dm_council_look(&master_watch->council, dm_clock_boot_ns());
    dm_mutex_unlock(&master_watch->lock);
    heed(master_watch, news, NULL, NULL);
    if (master_watch->next_round_ns <= dm_clock_boot_ns())
        ask_all(master_watch);
}

/* ---- start, end, fork ---------------------------------------------------------------- */

struct dm_master_watch *dm_master_watch_new(const struct dm_url *url, const struct dm_master_watch_hooks *hooks)
{
    struct dm_master_watch *master_watch = calloc(1, sizeof *master_watch);

    if (!master_watch)
        return NULL;
    master_watch->url = url;
    master_watch->hooks = *hooks;
    master_watch->of_sentinels = (struct dm_sentinel_hooks){
        .on_ready = sentinel_ready,
        .on_master = master_said,
        .on_others = others_said,
        .on_switch = switch_said,
        .on_change = change_said,
        .user = master_watch,
    };
    master_watch->lock = (struct dm_mutex)DM_MUTEX_INITIALIZER(DM_RANK_MASTER_WATCH);
    master_watch->council.fresh_ns = url->switch_ms * DM_NS_PER_MS / 2;
    for (int i = 0; i < url->host_count; i++) {
        if (add(master_watch, url->hosts[i].host, url->hosts[i].port, NULL))
            continue;
        dm_master_watch_free_unused(master_watch);
        return NULL;
    }
    return master_watch;
}

void dm_master_watch_free_unused(struct dm_master_watch *master_watch)
{
    for (int i = 0; master_watch && i < master_watch->count; i++)
        dm_sentinel_free_unused(master_watch->sentinels[i]);
    if (master_watch)
        dm_council_clear(&master_watch->council);
    free(master_watch);
}

/* Called by any thread; the loop thread may be in a turn, and then finds ended links. */
void dm_master_watch_end(struct dm_master_watch *master_watch)
{
    int count;

    dm_mutex_lock(&master_watch->lock);
    master_watch->is_ended = true;
    master_watch->council.until_ns = 0;
    count = master_watch->count;
    dm_mutex_unlock(&master_watch->lock);
    for (int i = 0; i < count; i++)
        dm_sentinel_end(master_watch->sentinels[i]);
}

/* The caller has taken the gate, so the loop thread adds no sentinel. */
void dm_master_watch_fork_prepare(struct dm_master_watch *master_watch)
{
    for (int i = 0; i < master_watch->count; i++)
        dm_sentinel_fork_prepare(master_watch->sentinels[i]);
    dm_mutex_lock(&master_watch->lock);
}

void dm_master_watch_fork_parent(struct dm_master_watch *master_watch)
{
    dm_mutex_unlock(&master_watch->lock);
    for (int i = master_watch->count; i > 0; i--)
        dm_sentinel_fork_parent(master_watch->sentinels[i - 1]);
}

void dm_master_watch_fork_child(struct dm_master_watch *master_watch)
{
    dm_mutex_reset(&master_watch->lock);
    for (int i = 0; i < master_watch->count; i++)
        dm_sentinel_fork_child(master_watch->sentinels[i]);
}
