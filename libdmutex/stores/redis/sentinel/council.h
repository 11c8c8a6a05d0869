/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sentinels of one group, the answer of each, and the word of a majority: which server is the master.  It only
 * decides; it has no socket, no thread and no clock.
 *
 * The word counts for a while after the questions.  A sentinel that does not know of a failover yet answers in good
 * faith, so the master watch keeps asking (doc/design/sentinel.md).
 *
 * The URL lists the sentinels that the user trusts collectively: fewer than a majority of them may lie.  So another
 * sentinel has a vote only while a majority of the listed ones names it, with its id and its address, and no sentinel
 * has two votes, whatever ids and addresses it claims.
 */
#ifndef DM_REDIS_SENTINEL_COUNCIL_H
#define DM_REDIS_SENTINEL_COUNCIL_H

#include <stdbool.h>
#include <stdint.h>

#define DM_COUNCIL_MOST 15 /* sentinels; no more are learned */
#define DM_SENTINEL_ID 41  /* bytes of an id with its NUL */

/* A sentinel, as another sentinel names it; the texts are the caller's. */
struct dm_other {
    const char *id, *host, *port;
};

/* The address of a master. */
struct dm_master {
    char host[256]; /* "": none */
    char port[8];
    uint64_t epoch; /* the group's config epoch, which rises with each failover, plus one; 0: not known */
};

/* Where another sentinel is, according to a listed one. */
struct dm_named {
    char id[DM_SENTINEL_ID], host[256], port[8];
};

/* One sentinel and its newest answer. */
struct dm_opinion {
    char id[DM_SENTINEL_ID]; /* drawn by the sentinel itself; "": not known yet */
    struct dm_master master; /* no host: the sentinel knows no group of that name */
    int64_t asked_ns;        /* when the question of that answer was sent; 0: there was no answer yet */
    int64_t calm_until_ns;   /* its answer alone raises no doubt before */

    /* Of a listed sentinel. */
    struct dm_named *others; /* its newest list; freed by dm_council_clear() */
    int other_count;
    /*
     * A majority, which may include itself, knows its id, and no other listed one claims that id.  Otherwise we cannot
     * tell who it is: it may be one of the learned ones under another id.
     */
    bool is_known;

    /* Of a learned sentinel. */
    struct dm_named named; /* as a majority of the listed ones names it */
    int unnamed;           /* how many lists in a row have left it without a majority that names it */
    bool is_stranger;      /* another sentinel answers at its address */
};

struct dm_council {
    struct dm_opinion opinions[DM_COUNCIL_MOST]; /* the listed ones come first */
    int count;
    int listed;       /* of those, in the URL */
    int64_t fresh_ns; /* how long an answer counts, from its question on */
    int64_t doubt_ns; /* only answers to later questions count */

    struct dm_master word; /* of the last majority; no host: there was no majority yet */
    uint64_t number;       /* of the word: another address, or a later epoch, has another number; 0: no word yet */
    int64_t until_ns;      /* until when the word counts; 0: it does not */
    bool is_refused;       /* a majority knows no group of that name */
};

/* What has changed. */
enum dm_council_news {
    DM_COUNCIL_SAME,  /* nothing to do; the word may count for longer */
    DM_COUNCIL_WORD,  /* there is a word now, and there was none or another one before */
    DM_COUNCIL_DOUBT, /* the word no longer counts, and all sentinels must be asked again */
    DM_COUNCIL_NAME   /* is_refused, for the first time in a row */
};

/* Adds a listed sentinel; all of them come before the first list. */
void dm_council_add_listed(struct dm_council *council);
void dm_council_clear(struct dm_council *council);

/*
 * Listed sentinel `index` names these as all others; the list of a learned one is ignored.  Without memory the previous
 * list stays.
 */
void dm_council_take_list(struct dm_council *council, int index, const struct dm_other *others, int count);

/*
 * The index for a sentinel to be learned, perhaps that of a forgotten one.  -1: no majority of the listed ones names
 * it, it is known already, or there is no room.
 */
int dm_council_place_for(const struct dm_council *council, const struct dm_other *other);
void dm_council_learn(struct dm_council *council, int place, const struct dm_other *other);

/* True for a learned sentinel that has lost its vote, because the listed ones have not named it for a long time. */
bool dm_council_is_forgotten(const struct dm_council *council, int index);

/* True while an answer of the sentinel counts. */
bool dm_council_is_heard(const struct dm_council *council, int index, int64_t now_ns);

/*
 * The id of sentinel `index` has become known; an earlier answer of another sentinel no longer counts.  A learned one
 * has the id by which it was named, or is a stranger without a vote.
 */
void dm_council_name(struct dm_council *council, int index, const char *id);

/* Sentinel `index` has answered a question that was sent at asked_ns.  A master without host: no such group. */
enum dm_council_news dm_council_take(struct dm_council *council, int index, const struct dm_master *master,
                                     int64_t asked_ns, int64_t now_ns);

/* Checks whether the word still counts at this time. */
enum dm_council_news dm_council_look(struct dm_council *council, int64_t now_ns);

/* True if this is the address of the word. */
bool dm_council_is_word(const struct dm_council *council, const struct dm_master *master);

/* True while the word of that number counts. */
bool dm_council_is_fresh(const struct dm_council *council, uint64_t number, int64_t now_ns);

/* How many sentinels have a vote; and how many are a majority. */
int dm_council_size(const struct dm_council *council);
int dm_council_majority(const struct dm_council *council);

/* Two sentinels whose answers count now and name different masters.  False: there are none. */
bool dm_council_differ(const struct dm_council *council, int64_t now_ns, int ret_pair[2]);

/* How many sentinels with a vote have an answer that counts now; and the first one without, -1: there is none. */
int dm_council_heard(const struct dm_council *council, int64_t now_ns);
int dm_council_missing(const struct dm_council *council, int64_t now_ns);

#endif
