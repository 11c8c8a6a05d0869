/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Asks for the map of a Cluster: a link of its own, to one server after another until one answers.  So a replica shows
 * the way, too.
 *
 * Once the nodes are known, and one can be asked, the map comes from there (redis/fleet.c).
 */
#ifndef DM_REDIS_GUIDE_H
#define DM_REDIS_GUIDE_H

#include "link/link.h"
#include "redis/council.h"
#include "redis/greeting.h"
#include "store/store.h"

struct dm_guide;

/* Called without locks. */
struct dm_guide_hooks {
    /* The server to ask at the try `number`, counted from 0 on.  Called under the link's lock. */
    void (*find_host)(void *user, unsigned number, struct dm_master *ret_place);
    /* An answer to CLUSTER SLOTS, of the server `host`.  False if the answer is of no use: another server is asked. */
    bool (*on_map)(void *user, const struct redisReply *reply, const char *host);
    /* As in struct dm_link_hooks. */
    void (*on_change)(void *user);
    void *user;
};

/* The URL is the caller's, for as long as the guide is there.  NULL without memory or descriptors. */
struct dm_guide *dm_guide_new(const struct dm_url *url, const struct dm_guide_hooks *hooks);
void dm_guide_free_unused(struct dm_guide *guide);

/* Opens the link if need be, and asks.  No lock held. */
void dm_guide_ask(struct dm_guide *guide);

/* CLUSTER SLOTS; bytes NULL without memory.  To be freed by dm_command_free(). */
struct dm_command dm_guide_question(void);

/* Waits until is_met() says so, as dm_link_await(); dm_guide_tell_news() lets the threads look again. */
bool dm_guide_await(struct dm_guide *guide, bool (*is_met)(void *user), void *user, const struct dm_deadline *deadline);
void dm_guide_tell_news(struct dm_guide *guide);

/* Copies a sentence for people: the server asked last, and why there is no answer. */
void dm_guide_reason(struct dm_guide *guide, char ret_reason[DM_REASON_ROOM]);

/* For the loop thread, as the functions of struct dm_store_ops. */
void dm_guide_watch(struct dm_guide *guide, struct dm_watch *watch);
void dm_guide_turn(struct dm_guide *guide);
void dm_guide_end(struct dm_guide *guide);
void dm_guide_fork_prepare(struct dm_guide *guide);
void dm_guide_fork_parent(struct dm_guide *guide);
void dm_guide_fork_child(struct dm_guide *guide);

#endif
