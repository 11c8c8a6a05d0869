/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sentinels of one group, the answer of each, and the word of a majority: which server the master is.  Decides
 * only; has no socket, no thread and no clock.
 *
 * The word counts for a while from the questions on.  A sentinel that has not heard of a failover yet answers in good
 * faith, so the lookout asks again and again (doc/design/sentinel.md).
 */
#ifndef DM_REDIS_COUNCIL_H
#define DM_REDIS_COUNCIL_H

#include <stdbool.h>
#include <stdint.h>

#define DM_COUNCIL_MOST 15 /* sentinels; more are not learned */
#define DM_SENTINEL_ID 41  /* bytes of an id with its NUL */

/* A sentinel, as another sentinel names it; the texts are the caller's. */
struct dm_other {
    const char *id, *host, *port;
};

/* The address of a master. */
struct dm_master {
    char host[256]; /* "": none */
    char port[8];
    uint64_t epoch; /* the group's config epoch, which rises with each failover, and one; 0: not told */
};

/* The newest answer of one sentinel. */
struct dm_opinion {
    char id[DM_SENTINEL_ID]; /* drawn by the sentinel itself; "": not known yet */
    struct dm_master master; /* no host: the sentinel knows no group of that name */
    int64_t asked_ns;        /* when the question of that answer was sent; 0: no answer came yet */
    int others;              /* so many other sentinels are in its newest list */
    int unnamed;             /* lists of other sentinels in a row that did not name it, while it did not answer */
};

struct dm_council {
    struct dm_opinion opinions[DM_COUNCIL_MOST];
    int count;
    int listed;       /* of those, in the URL: added without an id */
    int64_t fresh_ns; /* so long an answer counts, from its question on */
    int64_t doubt_ns; /* only answers to later questions count */

    struct dm_master word; /* of the last majority; no host: no majority was there yet */
    uint64_t number;       /* of the word: another address, or a later epoch, has another number; 0: no word yet */
    int64_t until_ns;      /* so long the word counts; 0: the word does not count */
    bool is_refused;       /* a majority knows no group of that name */
};

/* News of a change. */
enum dm_council_news {
    DM_COUNCIL_SAME,  /* nothing to do; the word may count for longer */
    DM_COUNCIL_WORD,  /* there is a word now, and was no word or another word before */
    DM_COUNCIL_DOUBT, /* the word counts no more, and all sentinels are to be asked anew */
    DM_COUNCIL_NAME   /* is_refused, for the first time in a row */
};

/* The first sentinel of that id, -1: none. */
int dm_council_find(const struct dm_council *council, const char *id);

/* The place for one more sentinel, of a forgotten one perhaps; -1: there is no room. */
int dm_council_place(const struct dm_council *council);

/* Puts a sentinel into the place, by its id or with "".  Returns its index. */
int dm_council_add(struct dm_council *council, const char *id);

/* Sentinel `index` names these as all others. */
void dm_council_take_list(struct dm_council *council, int index, const struct dm_other *others, int count);

/* True for a sentinel that does not count any more: it is not in the URL, does not answer, and nobody names it. */
bool dm_council_is_forgotten(const struct dm_council *council, int index);

/* True while an answer of the sentinel counts. */
bool dm_council_is_heard(const struct dm_council *council, int index, int64_t now_ns);

/* The id of sentinel `index` has become known; an answer counts no more if it was another sentinel's. */
void dm_council_name(struct dm_council *council, int index, const char *id);

/* Sentinel `index` has answered a question that was sent at asked_ns.  A master without host: no such group. */
enum dm_council_news dm_council_take(struct dm_council *council, int index, const struct dm_master *master,
                                     int64_t asked_ns, int64_t now_ns);

/* The word may count no more, by the time. */
enum dm_council_news dm_council_look(struct dm_council *council, int64_t now_ns);

/* True while the word of that number counts. */
bool dm_council_is_fresh(const struct dm_council *council, uint64_t number, int64_t now_ns);

/*
 * The number of sentinels: by ids, or as the longest list says, since not each sentinel is learned; and the number of a
 * majority.
 */
int dm_council_size(const struct dm_council *council, int64_t now_ns);
int dm_council_majority(const struct dm_council *council, int64_t now_ns);

/* The number of sentinels of which an answer counts now; and the first other sentinel, -1: there is no other. */
int dm_council_heard(const struct dm_council *council, int64_t now_ns);
int dm_council_missing(const struct dm_council *council, int64_t now_ns);

#endif
