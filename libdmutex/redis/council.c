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
 * A listed sentinel that cannot be reached has no id, and is perhaps one of the learned sentinels; so the length of the
 * list alone counts such a sentinel.
 */
int dm_council_size(const struct dm_council *council)
{
    int ids = 0;

    for (int i = 0; i < council->count; i++)
        ids += council->opinions[i].id[0] && !is_double(council, i);
    return ids > council->listed ? ids : council->listed;
}

int dm_council_majority(const struct dm_council *council)
{
    return dm_council_size(council) / 2 + 1;
}

bool dm_council_may_add(const struct dm_council *council, const char *id)
{
    for (int i = 0; i < council->count && id[0]; i++) {
        if (strcmp(council->opinions[i].id, id) == 0)
            return false;
    }
    return council->count < DM_COUNCIL_MOST;
}

int dm_council_add(struct dm_council *council, const char *id)
{
    int index = council->count++;

    council->listed += !id[0];
    council->opinions[index] = (struct dm_opinion){ .asked_ns = 0 };
    dm_council_name(council, index, id);
    return index;
}

void dm_council_name(struct dm_council *council, int index, const char *id)
{
    snprintf(council->opinions[index].id, DM_SENTINEL_ID, "%s", id);
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
        if (!is_double(council, i) && !counts_from(council, i, now_ns))
            return i;
    }
    return -1;
}

/*
 * Until when a majority for that master counts, from the oldest question of the newest majority on.  0: no majority.
 */
static int64_t agreed_until(const struct dm_council *council, const struct dm_master *master, int64_t now_ns)
{
    int64_t newest[DM_COUNCIL_MOST];
    int count = 0, majority = dm_council_majority(council);

    for (int i = 0; i < council->count; i++) {
        int64_t asked_ns = is_same(&council->opinions[i].master, master) ? counts_from(council, i, now_ns) : 0;
        int at = count;

        if (!asked_ns)
            continue;
        for (count++; at > 0 && newest[at - 1] < asked_ns; at--)
            newest[at] = newest[at - 1];
        newest[at] = asked_ns;
    }
    return count >= majority ? newest[majority - 1] + council->fresh_ns : 0;
}

static enum dm_council_news doubt(struct dm_council *council, int64_t now_ns)
{
    council->until_ns = 0;
    council->doubt_ns = now_ns;
    return DM_COUNCIL_DOUBT;
}

/* A majority has agreed on the master, until then. */
static enum dm_council_news agree(struct dm_council *council, const struct dm_master *master, int64_t until_ns)
{
    bool was_counting = council->until_ns != 0, was_refused = council->is_refused;

    council->is_refused = master->host[0] == '\0';
    if (council->is_refused) {
        council->until_ns = 0;
        return was_refused ? DM_COUNCIL_SAME : DM_COUNCIL_NAME;
    }
    council->until_ns = until_ns;
    if (was_counting && is_same(&council->word, master))
        return DM_COUNCIL_SAME;
    if (!is_same(&council->word, master))
        council->number++;
    council->word = *master;
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
    int64_t until_ns;

    opinion->master = *master;
    opinion->asked_ns = asked_ns;
    if (council->until_ns && is_news && !is_same(&council->word, master))
        return doubt(council, now_ns);
    until_ns = agreed_until(council, master, now_ns);
    return until_ns ? agree(council, master, until_ns) : dm_council_look(council, now_ns);
}

enum dm_council_news dm_council_look(struct dm_council *council, int64_t now_ns)
{
    return council->until_ns && council->until_ns < now_ns ? doubt(council, now_ns) : DM_COUNCIL_SAME;
}

bool dm_council_is_fresh(const struct dm_council *council, uint64_t number, int64_t now_ns)
{
    return number == council->number && now_ns <= council->until_ns;
}
