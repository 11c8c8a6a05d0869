/* SPDX-License-Identifier: BSD-2-Clause */
#include "redis/council.h"

#include <stdio.h>
#include <string.h>

/*
 * Two entries may be one sentinel: one entry by the name in the URL, one by the address that another sentinel told.
 * Once both ids are known, the later entry counts no more.
 */
static bool is_double(const struct dm_council *council, int index)
{
    const char *id = council->opinions[index].id;

    for (int i = 0; i < index && id[0]; i++) {
        if (strcmp(council->opinions[i].id, id) == 0)
            return true;
    }
    return false;
}

/*
 * So many lists: sentinels that an operator resets find each other anew within seconds, and the lists of some rounds
 * must agree.  Lists are counted, and not the time: a process that hears of nobody forgets nobody.
 */
#define LISTS_TO_FORGET (DM_COUNCIL_MOST + 1)

bool dm_council_is_forgotten(const struct dm_council *council, int index)
{
    return index >= council->listed && council->opinions[index].unnamed >= LISTS_TO_FORGET;
}

int dm_council_find(const struct dm_council *council, const char *id)
{
    for (int i = 0; i < council->count; i++) {
        if (strcmp(council->opinions[i].id, id) == 0)
            return i;
    }
    return -1;
}

int dm_council_place(const struct dm_council *council)
{
    int place = 0;

    while (place < council->count && !dm_council_is_forgotten(council, place))
        place++;
    return place < DM_COUNCIL_MOST ? place : -1;
}

int dm_council_add(struct dm_council *council, const char *id)
{
    int index = dm_council_place(council);

    council->count += index == council->count;
    council->listed += !id[0];
    council->opinions[index] = (struct dm_opinion){ .asked_ns = 0 };
    dm_council_name(council, index, id);
    return index;
}

void dm_council_name(struct dm_council *council, int index, const char *id)
{
    struct dm_opinion *opinion = &council->opinions[index];

    if (opinion->id[0] && strcmp(opinion->id, id) != 0)
        opinion->asked_ns = 0;
    snprintf(opinion->id, DM_SENTINEL_ID, "%s", id);
}

static bool is_named(const struct dm_opinion *opinion, const struct dm_other *others, int count)
{
    int at = 0;

    while (at < count && strcmp(others[at].id, opinion->id) != 0)
        at++;
    return at < count;
}

void dm_council_take_list(struct dm_council *council, int index, const struct dm_other *others, int count)
{
    council->opinions[index].others = count;
    for (int i = council->listed; i < council->count; i++) {
        struct dm_opinion *opinion = &council->opinions[i];

        if (is_named(opinion, others, count))
            opinion->unnamed = 0;
        else if (i != index && opinion->unnamed < LISTS_TO_FORGET)
            opinion->unnamed++;
    }
}

static bool is_same(const struct dm_master *master, const struct dm_master *other)
{
    return strcmp(master->host, other->host) == 0 && strcmp(master->port, other->port) == 0;
}

/* asked_ns of an opinion that counts now; 0: the opinion counts no more. */
static int64_t counts_from(const struct dm_council *council, int index, int64_t now_ns)
{
    const struct dm_opinion *opinion = &council->opinions[index];
    bool counts = opinion->asked_ns > council->doubt_ns && opinion->asked_ns + council->fresh_ns >= now_ns &&
                  !is_double(council, index);

    return counts ? opinion->asked_ns : 0;
}

/*
 * A listed sentinel that cannot be reached has no id, and is perhaps one of the learned sentinels; so the length of the
 * list alone counts such a sentinel.
 */
static int count_known(const struct dm_council *council)
{
    int ids = 0;

    for (int i = 0; i < council->count; i++)
        ids += council->opinions[i].id[0] && !is_double(council, i) && !dm_council_is_forgotten(council, i);
    return ids > council->listed ? ids : council->listed;
}

/* A sentinel has no place if there are too many, or no memory; it has a vote in the failover all the same. */
int dm_council_size(const struct dm_council *council, int64_t now_ns)
{
    int size = count_known(council);

    for (int i = 0; i < council->count; i++) {
        if (counts_from(council, i, now_ns) && council->opinions[i].others + 1 > size)
            size = council->opinions[i].others + 1;
    }
    return size;
}

int dm_council_majority(const struct dm_council *council, int64_t now_ns)
{
    return dm_council_size(council, now_ns) / 2 + 1;
}

bool dm_council_is_heard(const struct dm_council *council, int index, int64_t now_ns)
{
    return counts_from(council, index, now_ns) != 0;
}

int dm_council_heard(const struct dm_council *council, int64_t now_ns)
{
    int heard = 0;

    for (int i = 0; i < council->count; i++)
        heard += counts_from(council, i, now_ns) != 0;
    return heard;
}

int dm_council_missing(const struct dm_council *council, int64_t now_ns)
{
    for (int i = 0; i < council->count; i++) {
        if (!is_double(council, i) && !dm_council_is_forgotten(council, i) && !counts_from(council, i, now_ns))
            return i;
    }
    return -1;
}

/* The highest number that so many of the numbers reach. */
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

/*
 * Until when a majority for that master and that epoch counts, from the oldest question of the newest majority on; 0:
 * no majority.  A sentinel that tells no epoch agrees with each.
 */
static int64_t agreed_on(const struct dm_council *council, const struct dm_master *master, uint64_t epoch,
                         int64_t now_ns)
{
    int64_t asked_ns[DM_COUNCIL_MOST];
    int count = 0, majority = dm_council_majority(council, now_ns);

    for (int i = 0; i < council->count; i++) {
        const struct dm_master *told = &council->opinions[i].master;

        if (is_same(told, master) && (told->epoch == epoch || told->epoch == 0) && counts_from(council, i, now_ns))
            asked_ns[count++] = council->opinions[i].asked_ns;
    }
    return count < majority ? 0 : reached_by(asked_ns, count, majority) + council->fresh_ns;
}

/*
 * The same for the latest epoch that has a majority.  Sentinels with different epochs do not agree, though they name
 * one address: the master was replaced, and promoted again, and the sentinels of the earlier epoch know of neither.
 */
static int64_t agreed_until(const struct dm_council *council, const struct dm_master *master, int64_t now_ns,
                            uint64_t *ret_epoch)
{
    int64_t until_ns = 0;

    *ret_epoch = 0;
    for (int i = 0; i < council->count; i++) {
        const struct dm_master *told = &council->opinions[i].master;
        bool is_candidate = is_same(told, master) && told->epoch >= *ret_epoch && counts_from(council, i, now_ns);
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
 * True if a failover lies between the word and now, though the master has the same address: the master was replaced,
 * and promoted again.
 */
static bool is_back(const struct dm_council *council, const struct dm_master *master, uint64_t epoch)
{
    return is_same(&council->word, master) && epoch > council->word.epoch;
}

/* A majority has agreed on the master and the epoch, until then. */
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
    if (was_counting && is_back(council, master, epoch))
        return doubt(council, now_ns);
    council->until_ns = until_ns;
    if (was_counting && !is_other)
        return DM_COUNCIL_SAME;
    if (is_other) {
        council->number++;
        council->word = *master;
        council->word.epoch = epoch;
    }
    return DM_COUNCIL_WORD;
}

/*
 * A sentinel that begins to say another master than the word is the first to know of a failover, or is confused: from
 * that moment on only answers to newer questions count.  A sentinel that goes on to say another master is outvoted,
 * also if each answer names a new master: else that sentinel could end every word at once.
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
    opinion->unnamed = 0;
    if (council->until_ns && is_news && !is_same(&council->word, master))
        return doubt(council, now_ns);
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
