/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sentinels of one group, what each says, and what a majority says: which server the master is.  Decides only; has
 * no socket, no thread and no clock.
 *
 * The word of a majority counts for a while from the questions on: a sentinel that has not heard of a failover yet
 * answers in good faith, so the word is asked for again and again (doc/design/sentinel.md).
 */
#ifndef DM_REDIS_COUNCIL_H
#define DM_REDIS_COUNCIL_H

#include <stdbool.h>
#include <stdint.h>

#define DM_COUNCIL_MOST 15 /* sentinels; more are not learned */
#define DM_SENTINEL_ID 41  /* bytes of an id with its NUL */

/* The address of a master. */
struct dm_master {
    char host[256]; /* "": none */
    char port[8];
};

/* What one sentinel says. */
struct dm_opinion {
    char id[DM_SENTINEL_ID]; /* drawn by the sentinel itself; "": not known yet */
    struct dm_master master; /* of the newest answer; no host: the sentinel knows no group of that name */
    int64_t asked_ns;        /* when the question was sent that was answered last; 0: nothing was answered yet */
};

struct dm_council {
    struct dm_opinion opinions[DM_COUNCIL_MOST];
    int count;
    int listed;       /* of those, in the URL: added without an id */
    int64_t fresh_ns; /* so long an answer counts, from its question on */
    int64_t doubt_ns; /* answers to questions that were not sent after this moment do not count */

    struct dm_master word; /* of the last majority; no host: none was there yet */
    uint64_t number;       /* of the word: another number is another address; 0: no word yet */
    int64_t until_ns;      /* so long the word counts; 0: it does not */
    bool is_refused;       /* a majority knows no group of that name */
};

/* What a change of the council means. */
enum dm_council_news {
    DM_COUNCIL_SAME,  /* nothing to do; the word may count for longer */
    DM_COUNCIL_WORD,  /* there is a word now, after none or another */
    DM_COUNCIL_DOUBT, /* the word counts no more, and all sentinels are to be asked anew */
    DM_COUNCIL_NAME   /* is_refused, for the first time in a row */
};

/* False: the id is there already, or there is no room. */
bool dm_council_may_add(const struct dm_council *council, const char *id);

/* Adds a sentinel, by its id or with "".  Returns its index. */
int dm_council_add(struct dm_council *council, const char *id);

/* The id of sentinel `index` has become known. */
void dm_council_name(struct dm_council *council, int index, const char *id);

/* Sentinel `index` has answered a question that was sent at asked_ns.  A master without host: no such group. */
enum dm_council_news dm_council_take(struct dm_council *council, int index, const struct dm_master *master,
                                     int64_t asked_ns, int64_t now_ns);

/* Time has passed: the word may count no more. */
enum dm_council_news dm_council_look(struct dm_council *council, int64_t now_ns);

/* True while the word of that number counts. */
bool dm_council_is_fresh(const struct dm_council *council, uint64_t number, int64_t now_ns);

/* How many sentinels there are, by their ids, and how many of them a majority is. */
int dm_council_size(const struct dm_council *council);
int dm_council_majority(const struct dm_council *council);

/* Of how many sentinels an answer counts now; and the first of whom none does, -1: of all one does. */
int dm_council_heard(const struct dm_council *council, int64_t now_ns);
int dm_council_missing(const struct dm_council *council, int64_t now_ns);

#endif
