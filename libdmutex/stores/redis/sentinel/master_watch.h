/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Watches the master of a group of Sentinel: keeps asking all sentinels, and says which server a majority names, and
 * for how long that word counts (doc/design/sentinel.md).
 *
 * The loop thread asks; other threads read the word.
 */
#ifndef DM_REDIS_SENTINEL_MASTER_WATCH_H
#define DM_REDIS_SENTINEL_MASTER_WATCH_H

#include "store/store.h"
#include "stores/redis/sentinel/council.h"

struct dm_master_watch;

/* Called by the loop thread, without locks. */
struct dm_master_watch_hooks {
    /* There is a new word; or a majority has said that there is no such group. */
    void (*on_word)(void *user);
    /* The word no longer counts, for this reason: no answer of the master may be believed. */
    void (*on_doubt)(void *user, const char *reason);
    /* The result of dm_master_watch_watch() may have changed.  Called by any thread. */
    void (*on_change)(void *user);
    void *user;
};

/* Borrows the URL for as long as the master watch exists.  NULL if memory or descriptors run out. */
struct dm_master_watch *dm_master_watch_new(const struct dm_url *url, const struct dm_master_watch_hooks *hooks);
void dm_master_watch_free_unused(struct dm_master_watch *master_watch);

enum dm_master_watch_found {
    DM_MASTER_FOUND,
    DM_MASTER_LATER, /* no majority has named a master yet, or its word no longer counts */
    DM_MASTER_NEVER  /* the majority knows no group of that name */
};

/*
 * The master, and the number of the word.  The first call makes the loop thread start asking.  Sets the reason unless
 * FOUND.  Never blocks; takes locks of rank CONN, of a sentinel's link, and MASTER_WATCH, so a link's lock may be held.
 */
enum dm_master_watch_found dm_master_watch_find(struct dm_master_watch *master_watch, struct dm_master *ret_master,
                                                uint64_t *ret_number, char ret_reason[DM_REASON_ROOM]);

/* True while the word of that number counts: an answer of that master may be believed.  Locks as above. */
bool dm_master_watch_is_fresh(struct dm_master_watch *master_watch, uint64_t number);

/* True if there is no word, and a sentinel asks for another login or more rights.  Takes rank MASTER_WATCH. */
bool dm_master_watch_is_denied(struct dm_master_watch *master_watch);

/* For the loop thread, as the functions of struct dm_store_ops. */
void dm_master_watch_watch(struct dm_master_watch *master_watch, struct dm_watch *watch);
void dm_master_watch_turn(struct dm_master_watch *master_watch);
void dm_master_watch_end(struct dm_master_watch *master_watch);
void dm_master_watch_fork_prepare(struct dm_master_watch *master_watch);
void dm_master_watch_fork_parent(struct dm_master_watch *master_watch);
void dm_master_watch_fork_child(struct dm_master_watch *master_watch);

#endif
