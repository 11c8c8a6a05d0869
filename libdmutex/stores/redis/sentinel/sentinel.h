/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One sentinel: a link that asks for the master of a group, and a link that subscribes to switches of masters.
 *
 * Only the loop thread opens, asks and reads, so the hooks are called in that thread, without locks.
 */
#ifndef DM_REDIS_SENTINEL_SENTINEL_H
#define DM_REDIS_SENTINEL_SENTINEL_H

#include "link/link.h"
#include "store/store.h"
#include "stores/redis/sentinel/council.h"

/* Bytes of an address with its NULs. */
#define DM_SENTINEL_HOST 256
#define DM_SENTINEL_PORT 8

struct dm_sentinel;

struct dm_sentinel_hooks {
    /* The sentinel's own id is known, and the first question may be asked. */
    void (*on_ready)(void *user, struct dm_sentinel *sentinel, const char *id);
    /* The answer to dm_sentinel_ask(); a master without a host: there is no group of that name. */
    void (*on_master)(void *user, struct dm_sentinel *sentinel, const struct dm_master *master, int64_t asked_ns);
    /* The sentinel names these as all others. */
    void (*on_others)(void *user, struct dm_sentinel *sentinel, const struct dm_other *others, int count);
    /* The sentinel reports a switch of our master. */
    void (*on_switch)(void *user);
    /* As in struct dm_link_hooks. */
    void (*on_change)(void *user);
    void *user;
};

/* The greeting of a link to a sentinel. */
struct dm_sentinel_greeting {
    struct dm_sentinel *sentinel;
    bool is_ear; /* of the link that subscribes to switches */
    int steps;   /* replies taken */
    int round;
    char host[DM_SENTINEL_HOST], port[DM_SENTINEL_PORT]; /* where the link was last opened to */
    unsigned move;                                       /* how often the sentinel had moved by then */
};

struct dm_sentinel {
    const struct dm_url *url;
    const struct dm_sentinel_hooks *hooks; /* the master watch's */
    int index;                             /* in the council */
    char host[DM_SENTINEL_HOST], port[DM_SENTINEL_PORT];
    unsigned moves;
    char id[DM_SENTINEL_ID];
    uint64_t epoch;  /* of the newest answer, as in struct dm_master */
    int64_t heed_ns; /* its messages of switches count from then on */
    struct dm_link *asks, *hears;
    bool is_denied; /* it asks for another login or more rights, and has named no master since.  Atomic */
    struct dm_sentinel_greeting asks_greeting, hears_greeting;
};

/* NULL if memory or descriptors run out. */
struct dm_sentinel *dm_sentinel_new(const struct dm_url *url, int index, const char *host, const char *port,
                                    const struct dm_sentinel_hooks *hooks);
void dm_sentinel_free_unused(struct dm_sentinel *sentinel);

/* From now on this is another sentinel, or the same one at another address. */
void dm_sentinel_move(struct dm_sentinel *sentinel, const char *host, const char *port);

/* For people: the address, and why there is no answer. */
void dm_sentinel_reason(struct dm_sentinel *sentinel, char ret_reason[DM_REASON_ROOM]);

/* Asks for the master and, with `with_others`, for the other sentinels; first opens links that are closed. */
void dm_sentinel_ask(struct dm_sentinel *sentinel, bool with_others);

/* For the loop thread, as the functions of struct dm_store_ops. */
void dm_sentinel_watch(struct dm_sentinel *sentinel, struct dm_watch *watch);
void dm_sentinel_turn(struct dm_sentinel *sentinel);
void dm_sentinel_end(struct dm_sentinel *sentinel);
void dm_sentinel_fork_prepare(struct dm_sentinel *sentinel);
void dm_sentinel_fork_parent(struct dm_sentinel *sentinel);
void dm_sentinel_fork_child(struct dm_sentinel *sentinel);

#endif
