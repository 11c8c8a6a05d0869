/* SPDX-License-Identifier: BSD-2-Clause */
#include "stores/redis/sentinel/council.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * The lists of several rounds must agree, because sentinels that an operator resets find each other again within
 * seconds.  We count lists, not time: a process that gets no lists forgets nobody.
 */
#define LISTS_TO_FORGET (DM_COUNCIL_MOST + 1)

/* For this many times `fresh_ns`, a sentinel that has raised a doubt raises no other one. */
#define CALM_ROUNDS 2

/* ---- who has a vote ---------------------------------------------------------------------- */

static bool is_listed(const struct dm_council *council, int index)
{
    return index < council->listed;
}

bool dm_council_is_forgotten(const struct dm_council *council, int index)
{
    return !is_listed(council, index) && council->opinions[index].unnamed >= LISTS_TO_FORGET;
}

/*
 * A stranger counts in the number of sentinels, for the one that is named at its address; only its answers do not
 * count.
 */
static bool has_vote(const struct dm_council *council, int index)
{
    return !dm_council_is_forgotten(council, index);
}

static bool is_majority_of_listed(const struct dm_council *council, int count)
{
    return count > council->listed / 2;
}

static bool is_at(const struct dm_named *named, const struct dm_other *other)
{
    return strcmp(named->id, other->id) == 0 && strcmp(named->host, other->host) == 0 &&
           strcmp(named->port, other->port) == 0;
}

/* True if the list of `by` has that sentinel, at that address. */
static bool names(const struct dm_opinion *by, const struct dm_other *other)
{
    int at = 0;

    while (at < by->other_count && !is_at(&by->others[at], other))
        at++;
    return at < by->other_count;
}

static bool is_named(const struct dm_council *council, const struct dm_other *other)
{
    int count = 0;

    for (int i = 0; i < council->listed; i++)
        count += names(&council->opinions[i], other);
    return is_majority_of_listed(council, count);
}

static bool names_id(const struct dm_opinion *by, const char *id)
{
    int at = 0;

    while (at < by->other_count && strcmp(by->others[at].id, id) != 0)
        at++;
    return at < by->other_count;
}

static bool is_known_by_majority(const struct dm_council *council, int index)
{
    const char *id = council->opinions[index].id;
    int count = 1;

    for (int i = 0; i < council->listed && id[0]; i++) {
        if (i != index && strcmp(council->opinions[i].id, id) == 0)
            return false;
        count += i != index && names_id(&council->opinions[i], id);
    }
    return id[0] && is_majority_of_listed(council, count);
}

/* After each new list and each new id. */
static void recognise(struct dm_council *council)
{
    for (int i = 0; i < council->listed; i++)
        council->opinions[i].is_known = is_known_by_majority(council, i);
}

/* A set of sentinels: a bit for each index. */
typedef unsigned set;

static bool is_in(set of, int index)
{
    return of >> index & 1;
}

/* True if an earlier member of the set has the same id. */
static bool is_double(const struct dm_council *council, set of, int index)
{
    const char *id = council->opinions[index].id;

    for (int i = 0; i < index && id[0]; i++) {
        if (is_in(of, i) && strcmp(council->opinions[i].id, id) == 0)
            return true;
    }
    return false;
}

/*
 * The votes of a set.  A listed sentinel that is not known, because it cannot be reached, is new, or lies about its id,
 * may be one of the learned ones.  So the two kinds are not added: otherwise such a sentinel would vote twice.
 */
static int count_votes(const struct dm_council *council, set of)
{
    int known = 0, unknown = 0, learned = 0;

    for (int i = 0; i < council->count; i++) {
        if (!is_in(of, i) || is_double(council, of, i))
            continue;
        learned += !is_listed(council, i);
        known += is_listed(council, i) && council->opinions[i].is_known;
        unknown += is_listed(council, i) && !council->opinions[i].is_known;
    }
    return known + (unknown > learned ? unknown : learned);
}

/* The highest number that `how_many` of the numbers reach. */
static int64_t reached_by(int64_t *numbers, int count, int how_many)
{
    for (int i = 1; i < count; i++) {
        for (int at = i; at > 0 && numbers[at - 1] < numbers[at]; at--) {
            int64_t lower = numbers[at - 1];

            numbers[at - 1] = numbers[at];
            numbers[at] = lower;
        }
    }
    return numbers[how_many - 1];
}

/* What a majority of the listed ones say: a sentinel that is not in this list still has a vote in the failover. */
static int size_by_lists(const struct dm_council *council)
{
    int64_t counts[DM_COUNCIL_MOST];

    for (int i = 0; i < council->listed; i++)
        counts[i] = council->opinions[i].other_count + 1;
    return (int)reached_by(counts, council->listed, council->listed / 2 + 1);
}

int dm_council_size(const struct dm_council *council)
{
    set all = 0;
    int size = council->listed, votes, by_lists = size_by_lists(council);

    for (int i = 0; i < council->count; i++)
        all |= (set)has_vote(council, i) << i;
    votes = count_votes(council, all);
    size = votes > size ? votes : size;
    return by_lists > size ? by_lists : size;
}

int dm_council_majority(const struct dm_council *council)
{
    return dm_council_size(council) / 2 + 1;
}

/* ---- sentinels come and go --------------------------------------------------------------- */

void dm_council_add_listed(struct dm_council *council)
{
    council->opinions[council->count] = (struct dm_opinion){ .asked_ns = 0 };
    council->listed = ++council->count;
}

void dm_council_clear(struct dm_council *council)
{
    for (int i = 0; i < council->listed; i++)
        free(council->opinions[i].others);
    council->count = council->listed = 0;
}

static struct dm_named copy_of(const struct dm_other *other)
{
    struct dm_named named;

    snprintf(named.id, sizeof named.id, "%s", other->id);
    snprintf(named.host, sizeof named.host, "%s", other->host);
    snprintf(named.port, sizeof named.port, "%s", other->port);
    return named;
}

static struct dm_other to_other(const struct dm_named *named)
{
    return (struct dm_other){ named->id, named->host, named->port };
}

/* After each list of a listed sentinel. */
static void count_unnamed(struct dm_council *council)
{
    for (int i = council->listed; i < council->count; i++) {
        struct dm_opinion *opinion = &council->opinions[i];
        struct dm_other other = to_other(&opinion->named);

        if (is_named(council, &other))
            opinion->unnamed = 0;
        else if (opinion->unnamed < LISTS_TO_FORGET)
            opinion->unnamed++;
    }
}

void dm_council_take_list(struct dm_council *council, int index, const struct dm_other *others, int count)
{
    struct dm_opinion *opinion = &council->opinions[index];
    struct dm_named *list = is_listed(council, index) ? malloc((size_t)(count + 1) * sizeof *list) : NULL;

    if (!list)
        return;
    for (int i = 0; i < count; i++)
        list[i] = copy_of(&others[i]);
    free(opinion->others);
    opinion->others = list;
    opinion->other_count = count;
    count_unnamed(council);
    recognise(council);
}

/*
 * A listed sentinel is asked at its address in the URL, and a learned one at each address where a majority has named
 * it.
 */
static bool is_here(const struct dm_council *council, const struct dm_other *other)
{
    for (int i = 0; i < council->count; i++) {
        const struct dm_opinion *opinion = &council->opinions[i];

        if (is_listed(council, i) ? strcmp(opinion->id, other->id) == 0
                                  : is_at(&opinion->named, other) && has_vote(council, i))
            return true;
    }
    return false;
}

int dm_council_place_for(const struct dm_council *council, const struct dm_other *other)
{
    int place = council->listed;

    if (is_here(council, other) || !is_named(council, other))
        return -1;
    while (place < council->count && has_vote(council, place))
        place++;
    return place < DM_COUNCIL_MOST ? place : -1;
}

void dm_council_learn(struct dm_council *council, int place, const struct dm_other *other)
{
    struct dm_opinion *opinion = &council->opinions[place];

    council->count += place == council->count;
    *opinion = (struct dm_opinion){ .named = copy_of(other) };
    snprintf(opinion->id, sizeof opinion->id, "%s", other->id);
}

void dm_council_name(struct dm_council *council, int index, const char *id)
{
    struct dm_opinion *opinion = &council->opinions[index];

    if (opinion->id[0] && strcmp(opinion->id, id) != 0)
        opinion->asked_ns = 0;
    if (is_listed(council, index))
        snprintf(opinion->id, DM_SENTINEL_ID, "%s", id);
    else
        opinion->is_stranger = strcmp(opinion->id, id) != 0;
    recognise(council);
}

/* ---- answers ----------------------------------------------------------------------------- */

static bool is_same(const struct dm_master *master, const struct dm_master *other)
{
    return strcmp(master->host, other->host) == 0 && strcmp(master->port, other->port) == 0;
}

/* True if an answer of the sentinel counts now. */
static bool counts(const struct dm_council *council, int index, int64_t now_ns)
{
    const struct dm_opinion *opinion = &council->opinions[index];

    return opinion->asked_ns > council->doubt_ns && opinion->asked_ns + council->fresh_ns >= now_ns &&
           has_vote(council, index) && !opinion->is_stranger;
}

bool dm_council_is_heard(const struct dm_council *council, int index, int64_t now_ns)
{
    return counts(council, index, now_ns);
}

static set heard(const struct dm_council *council, int64_t now_ns)
{
    set all = 0;

    for (int i = 0; i < council->count; i++)
        all |= (set)counts(council, i, now_ns) << i;
    return all;
}

int dm_council_heard(const struct dm_council *council, int64_t now_ns)
{
    return count_votes(council, heard(council, now_ns));
}

int dm_council_missing(const struct dm_council *council, int64_t now_ns)
{
    set here = heard(council, now_ns);

    for (int i = 0; i < council->count; i++) {
        if (has_vote(council, i) && !is_in(here, i) && !is_double(council, here, i))
            return i;
    }
    return -1;
}

bool dm_council_differ(const struct dm_council *council, int64_t now_ns, int ret_pair[2])
{
    int first = -1;

    for (int i = 0; i < council->count; i++) {
        if (!counts(council, i, now_ns))
            continue;
        if (first < 0)
            first = i;
        ret_pair[0] = first;
        ret_pair[1] = i;
        if (!is_same(&council->opinions[first].master, &council->opinions[i].master))
            return true;
    }
    return false;
}

/*
 * True if the sentinel gives that epoch.  Without the right to ask for it the epoch is 0, and such a sentinel agrees
 * with the word, whose epoch a majority has given: a single sentinel cannot set the word's epoch.
 */
static bool tells(const struct dm_council *council, int index, const struct dm_master *master, uint64_t epoch)
{
    const struct dm_master *told = &council->opinions[index].master;

    return is_same(told, master) && (told->epoch == epoch || (told->epoch == 0 && is_same(&council->word, master) &&
                                                              epoch == council->word.epoch));
}

/* The member of the set that was asked last; the set must not be empty. */
static int newest_of(const struct dm_council *council, set of)
{
    int newest = -1;

    for (int i = 0; i < council->count; i++) {
        if (is_in(of, i) && (newest < 0 || council->opinions[i].asked_ns > council->opinions[newest].asked_ns))
            newest = i;
    }
    return newest;
}

/*
 * Until when a majority for that master and that epoch counts, beginning with the oldest question of the newest
 * majority; 0: no majority.
 */
static int64_t agreed_on(const struct dm_council *council, const struct dm_master *master, uint64_t epoch,
                         int64_t now_ns)
{
    int majority = dm_council_majority(council);
    set agreeing = heard(council, now_ns), newest = 0;

    for (int i = 0; i < council->count; i++) {
        if (is_in(agreeing, i) && !tells(council, i, master, epoch))
            agreeing &= ~((set)1 << i);
    }
    while (agreeing) {
        int next = newest_of(council, agreeing);

        agreeing &= ~((set)1 << next);
        newest |= (set)1 << next;
        if (count_votes(council, newest) >= majority)
            return council->opinions[next].asked_ns + council->fresh_ns;
    }
    return 0;
}

/*
 * The same for the latest epoch that has a majority.  Sentinels with different epochs do not agree even if they name
 * the same address: the master was replaced and promoted again, and the sentinels of the earlier epoch know of neither.
 */
static int64_t agreed_until(const struct dm_council *council, const struct dm_master *master, int64_t now_ns,
                            uint64_t *ret_epoch)
{
    int64_t until_ns = 0;

    *ret_epoch = 0;
    for (int i = 0; i < council->count; i++) {
        const struct dm_master *told = &council->opinions[i].master;
        bool is_candidate = is_same(told, master) && told->epoch >= *ret_epoch && counts(council, i, now_ns);
        int64_t by_ns = is_candidate ? agreed_on(council, master, told->epoch, now_ns) : 0;

        if (by_ns) {
            *ret_epoch = told->epoch;
            until_ns = by_ns;
        }
    }
    return until_ns;
}

static enum dm_council_news doubt(struct dm_council *council, int64_t now_ns)
{
    council->until_ns = 0;
    council->doubt_ns = now_ns;
    return DM_COUNCIL_DOUBT;
}

/*
 * True if there was a failover after the word although the master has the same address: it was replaced, and promoted
 * again.
 */
static bool is_back(const struct dm_council *council, const struct dm_master *master, uint64_t epoch)
{
    return is_same(&council->word, master) && epoch > council->word.epoch;
}

/* A majority agrees on the master and the epoch, which counts until until_ns. */
static enum dm_council_news agree(struct dm_council *council, const struct dm_master *master, uint64_t epoch,
                                  int64_t until_ns, int64_t now_ns)
{
    bool was_counting = council->until_ns != 0, was_refused = council->is_refused;
    bool is_other = !is_same(&council->word, master) || is_back(council, master, epoch);

    council->is_refused = master->host[0] == '\0';
    if (council->is_refused) {
        council->until_ns = 0;
        return was_refused ? DM_COUNCIL_SAME : DM_COUNCIL_NAME;
    }
    if (was_counting && is_other)
        return doubt(council, now_ns);
    council->until_ns = until_ns;
    if (was_counting)
        return DM_COUNCIL_SAME;
    if (is_other) {
        council->number++;
        council->word = *master;
        council->word.epoch = epoch;
    }
    return DM_COUNCIL_WORD;
}

/*
 * A sentinel that starts to name another master than the word is the first to know of a failover, or is confused, or
 * lies: from then on only answers to newer questions count.  One that keeps naming other masters is outvoted, even if
 * each answer names a new one.  One that names the right master in between is believed again only after a while:
 * otherwise it could close our connections with every second answer.
 */
enum dm_council_news dm_council_take(struct dm_council *council, int index, const struct dm_master *master,
                                     int64_t asked_ns, int64_t now_ns)
{
    struct dm_opinion *opinion = &council->opinions[index];
    bool is_news = !opinion->asked_ns || is_same(&opinion->master, &council->word);
    uint64_t epoch = 0;
    int64_t until_ns;

    opinion->master = *master;
    opinion->asked_ns = asked_ns;
    if (!counts(council, index, now_ns))
        return dm_council_look(council, now_ns);
    if (council->until_ns && is_news && !is_same(&council->word, master) && now_ns >= opinion->calm_until_ns) {
        opinion->calm_until_ns = now_ns + CALM_ROUNDS * council->fresh_ns;
        return doubt(council, now_ns);
    }
    until_ns = agreed_until(council, master, now_ns, &epoch);
    return until_ns ? agree(council, master, epoch, until_ns, now_ns) : dm_council_look(council, now_ns);
}

enum dm_council_news dm_council_look(struct dm_council *council, int64_t now_ns)
{
    return council->until_ns && council->until_ns < now_ns ? doubt(council, now_ns) : DM_COUNCIL_SAME;
}

bool dm_council_is_fresh(const struct dm_council *council, uint64_t number, int64_t now_ns)
{
    return number == council->number && now_ns <= council->until_ns;
}

bool dm_council_is_word(const struct dm_council *council, const struct dm_master *master)
{
    return is_same(&council->word, master);
}
