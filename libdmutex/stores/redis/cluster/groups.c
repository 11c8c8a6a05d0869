/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The life of an inbox:
 *
 *   unsettled    no node is asked yet, or the node's link is down: tried again when that link is ready, when the map
 *                changes, and now and then
 *   asked        SSUBSCRIBE is on the way to a node
 *   heard        the node has confirmed it
 *
 * A node ends a subscription when the slot leaves it (sunsubscribe); then the inbox is unsettled.  All waiters poll
 * when an inbox is heard again, because grants may have been missed.
 *
 * The cluster's lock guards all; a link's lock nests in it.
 */
#include "stores/redis/cluster/groups.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "link/turns.h"
#include "stores/redis/wire/keys.h"
#include "stores/redis/wire/reply.h"

#define BUCKETS 1024
#define SLICE_MS 200
#define AGAIN_NS (100 * DM_NS_PER_MS) /* how often an unsettled inbox is tried again */
#define UNUSED_NS (60 * DM_NS_PER_S)
#define SWEEP_NS (10 * DM_NS_PER_S)

struct group {
    struct group *next;
    unsigned slot;
    unsigned users;                /* threads in dm_groups_await() */
    struct dm_cluster_node *asked; /* NULL: unsettled */
    bool is_heard;                 /* atomic: read under a link's lock, too */
    bool was_heard;                /* earlier: messages may have been missed since then */
    int64_t used_ns;
    char channel[];
};

struct dm_groups {
    struct dm_cluster *cluster;
    const char *uuid;
    void (*on_inbox)(void *user);
    void *user;
    struct group *buckets[BUCKETS];
    bool has_unsettled; /* atomic */
    bool is_poll_due;   /* an inbox is heard again.  Atomic */
    bool is_refused;    /* it has been logged that subscriptions are refused */
    int64_t again_ns, sweep_ns;
};

struct dm_groups *dm_groups_new(struct dm_cluster *cluster, const char *uuid, void (*on_inbox)(void *user), void *user)
{
    struct dm_groups *groups = calloc(1, sizeof *groups);

    if (groups)
        *groups = (struct dm_groups){ .cluster = cluster, .uuid = uuid, .on_inbox = on_inbox, .user = user };
    return groups;
}

void dm_groups_free_unused(struct dm_groups *groups)
{
    free(groups);
}

static bool is_set(const bool *flag)
{
    return __atomic_load_n(flag, __ATOMIC_RELAXED);
}

/* ---- finding ----------------------------------------------------------------------------- */

static struct group *find(const struct dm_groups *groups, unsigned slot, const char *inbox, size_t length,
                          const char *uuid)
{
    struct group *group = groups->buckets[slot % BUCKETS];

    dm_assert_held(DM_RANK_CLUSTER);
    while (group && (strncmp(group->channel, inbox, length) != 0 || strcmp(group->channel + length, uuid) != 0))
        group = group->next;
    return group;
}

/* Of a place; NULL: no thread of this process has waited there. */
static struct group *find_place(const struct dm_groups *groups, const struct dm_place *place)
{
    return find(groups, place->slot, place->inbox, strlen(place->inbox), groups->uuid);
}

static struct group *find_or_add(struct dm_groups *groups, const struct dm_place *place)
{
    struct group *group = find_place(groups, place), **bucket = &groups->buckets[place->slot % BUCKETS];
    size_t room = strlen(place->inbox) + strlen(groups->uuid) + 1;

    if (!group && (group = calloc(1, sizeof *group + room)) != NULL) {
        snprintf(group->channel, room, "%s%s", place->inbox, groups->uuid);
        group->slot = place->slot;
        group->next = *bucket;
        *bucket = group;
    }
    if (group)
        group->used_ns = dm_clock_boot_ns();
    return group;
}

/* ---- subscribing ------------------------------------------------------------------------- */

/* False without memory.  If the link breaks, it is opened again, and then everything is sent again. */
static bool say(struct dm_link *link, const char *word, const char *channel)
{
    struct dm_command command;
    struct dm_args args;
    bool is_written;

    if (dm_args_init(&args, 2, 0) < 0)
        return false;
    dm_args_text(&args, word);
    dm_args_text(&args, channel);
    command = dm_args_format(&args);
    is_written = command.bytes != NULL;
    if (is_written)
        dm_link_say(link, &command);
    dm_command_free(&command);
    dm_args_free(&args);
    return is_written;
}

static void set_heard(struct group *group, bool is_heard)
{
    group->was_heard = group->was_heard || is_heard;
    __atomic_store_n(&group->is_heard, is_heard, __ATOMIC_RELEASE);
}

static void unsettle(struct dm_groups *groups, struct group *group)
{
    dm_assert_held(DM_RANK_CLUSTER);
    group->asked = NULL;
    set_heard(group, false);
    __atomic_store_n(&groups->has_unsettled, true, __ATOMIC_RELAXED);
}

/* Asks the node that serves the slot now. */
static void subscribe(struct dm_groups *groups, struct group *group)
{
    struct dm_cluster_node *node = dm_cluster_of_slot(groups->cluster, group->slot);

    dm_assert_held(DM_RANK_CLUSTER);
    if (!node || !dm_link_is_ready(node->base.inbox.link)) {
        unsettle(groups, group);
        return;
    }
    group->asked = node;
    set_heard(group, false);
    if (!say(node->base.inbox.link, "SSUBSCRIBE", group->channel))
        unsettle(groups, group);
}

/* Asks the node that serves the slot now, unless that node was asked.  Returns the node, or NULL. */
static struct dm_cluster_node *settle(struct dm_groups *groups, struct group *group)
{
    struct dm_cluster_node *node = dm_cluster_of_slot(groups->cluster, group->slot);

    if (!node || group->asked != node)
        subscribe(groups, group);
    return node;
}

/* ---- waiting ----------------------------------------------------------------------------- */

static bool is_heard(void *user)
{
    const struct group *group = user;

    return __atomic_load_n(&group->is_heard, __ATOMIC_ACQUIRE);
}

bool dm_groups_is_heard(struct dm_groups *groups, const struct dm_place *place)
{
    struct group *group;
    bool is_able;

    dm_mutex_lock(&groups->cluster->lock);
    group = find_place(groups, place);
    if (group)
        group->used_ns = dm_clock_boot_ns();
    is_able = group && is_heard(group) && dm_link_is_ready(group->asked->base.inbox.link);
    dm_mutex_unlock(&groups->cluster->lock);
    return is_able;
}

void dm_groups_want(struct dm_groups *groups, const struct dm_place *place)
{
    struct group *group;
    struct dm_cluster_node *node;

    dm_mutex_lock(&groups->cluster->lock);
    group = find_or_add(groups, place);
    node = group ? settle(groups, group) : NULL;
    dm_mutex_unlock(&groups->cluster->lock);
    if (node)
        dm_link_want(node->base.inbox.link);
    else
        dm_cluster_refresh(groups->cluster);
}

void dm_groups_note_use(struct dm_groups *groups, const struct dm_place *place)
{
    struct group *group;

    dm_mutex_lock(&groups->cluster->lock);
    group = find_place(groups, place);
    if (group)
        group->used_ns = dm_clock_boot_ns();
    dm_mutex_unlock(&groups->cluster->lock);
}

/* A user prevents the group from being freed.  NULL without memory. */
static struct group *begin_use(struct dm_groups *groups, const struct dm_place *place)
{
    struct group *group;

    dm_mutex_lock(&groups->cluster->lock);
    group = find_or_add(groups, place);
    if (group)
        group->users++;
    dm_mutex_unlock(&groups->cluster->lock);
    return group;
}

static void end_use(struct dm_groups *groups, struct group *group)
{
    dm_mutex_lock(&groups->cluster->lock);
    group->users--;
    dm_mutex_unlock(&groups->cluster->lock);
}

/* One slice of the wait, for the node that serves the slot now. */
static bool await_slice(struct dm_groups *groups, struct group *group, const struct dm_place *place,
                        const struct dm_deadline *deadline)
{
    struct dm_deadline slice = dm_deadline_sooner(deadline, SLICE_MS * DM_NS_PER_MS);
    struct dm_cluster_node *node;

    dm_mutex_lock(&groups->cluster->lock);
    node = settle(groups, group);
    dm_mutex_unlock(&groups->cluster->lock);
    if (node)
        return dm_link_await(node->base.inbox.link, is_heard, group, &slice);
    dm_cluster_await_slot(groups->cluster, place->slot, &slice);
    return false;
}

bool dm_groups_await(struct dm_groups *groups, const struct dm_place *place, const struct dm_deadline *deadline)
{
    struct group *group = begin_use(groups, place);
    bool is_able = false;

    if (!group)
        return false;
    while (!is_able && !groups->cluster->is_ended) {
        is_able = await_slice(groups, group, place, deadline);
        if (is_able || dm_deadline_left_ns(deadline) == 0)
            break;
        dm_cluster_refresh(groups->cluster);
    }
    end_use(groups, group);
    return is_able;
}

/* ---- events -------------------------------------------------------------------------------- */

/* Calls `visit` for each group. */
static void for_each(struct dm_groups *groups, void (*visit)(struct dm_groups *, struct group *, void *), void *user)
{
    dm_assert_held(DM_RANK_CLUSTER);
    for (unsigned i = 0; i < BUCKETS; i++) {
        for (struct group *group = groups->buckets[i]; group; group = group->next)
            visit(groups, group, user);
    }
}

/* The link is new: the node has forgotten the subscriptions of the previous one. */
static void subscribe_again(struct dm_groups *groups, struct group *group, void *user)
{
    if (group->asked == user || dm_cluster_of_slot(groups->cluster, group->slot) == user)
        subscribe(groups, group);
}

void dm_groups_inbox_ready(struct dm_groups *groups, struct dm_cluster_node *node)
{
    dm_mutex_lock(&groups->cluster->lock);
    for_each(groups, subscribe_again, node);
    dm_mutex_unlock(&groups->cluster->lock);
    dm_link_work(node->base.inbox.link);
}

static void follow_slot(struct dm_groups *groups, struct group *group, void *user)
{
    (void)user;
    if (group->asked != dm_cluster_of_slot(groups->cluster, group->slot))
        subscribe(groups, group);
}

void dm_groups_map_changed(struct dm_groups *groups)
{
    dm_mutex_lock(&groups->cluster->lock);
    for_each(groups, follow_slot, NULL);
    dm_mutex_unlock(&groups->cluster->lock);
}

/* Any thread may have read the reply. */
static void tell_loop(const struct dm_groups *groups)
{
    if (is_set(&groups->has_unsettled) || is_set(&groups->is_poll_due))
        groups->cluster->hooks.on_change(groups->cluster->hooks.user);
}

/* The channel in an answer to a subscription, or NULL: "ssubscribe" CHANNEL COUNT. */
static struct group *group_of(const struct dm_groups *groups, const redisReply *reply)
{
    const redisReply *channel = reply->elements == 3 ? reply->element[1] : NULL;

    if (!channel || channel->type != REDIS_REPLY_STRING)
        return NULL;
    return find(groups, dm_slot_of(channel->str, channel->len), channel->str, channel->len, "");
}

/*
 * An inbox that was heard before may have missed messages, so the loop thread makes all waiters poll, once for many
 * inboxes.
 */
static void take_subscribed(struct dm_groups *groups, const struct dm_cluster_node *node, struct group *group)
{
    if (group->asked != node || is_heard(group))
        return;
    if (group->was_heard)
        __atomic_store_n(&groups->is_poll_due, true, __ATOMIC_RELAXED);
    set_heard(group, true);
}

static void unsettle_unheard(struct dm_groups *groups, struct group *group, void *user)
{
    if (group->asked == user && !is_heard(group))
        unsettle(groups, group);
}

/* The error does not say which subscription is refused, so all without an answer are requested again. */
static void take_error(struct dm_groups *groups, struct dm_cluster_node *node, const redisReply *reply)
{
    if (!dm_cluster_redirect(groups->cluster, node, NULL, 0, reply->str) && !groups->is_refused) {
        groups->is_refused = true;
        dm_log_warn("a subscription is refused, so waiters learn of grants late: %.200s", reply->str);
    }
    dm_mutex_lock(&groups->cluster->lock);
    for_each(groups, unsettle_unheard, node);
    dm_mutex_unlock(&groups->cluster->lock);
    tell_loop(groups);
}

void dm_groups_take_reply(struct dm_groups *groups, struct dm_cluster_node *node, const redisReply *reply)
{
    bool is_subscribed = dm_reply_is(reply, "ssubscribe"), is_ended = dm_reply_is(reply, "sunsubscribe");
    struct group *group;

    if (reply->type == REDIS_REPLY_ERROR)
        take_error(groups, node, reply);
    if (!is_subscribed && !is_ended)
        return;
    dm_mutex_lock(&groups->cluster->lock);
    group = group_of(groups, reply);
    if (group && is_subscribed)
        take_subscribed(groups, node, group);
    else if (group && group->asked == node)
        unsettle(groups, group);
    dm_mutex_unlock(&groups->cluster->lock);
    if (is_ended)
        dm_cluster_refresh(groups->cluster);
    else
        dm_link_tell_news(node->base.inbox.link);
    tell_loop(groups);
}

/* ---- the loop thread --------------------------------------------------------------------- */

/* Asks again, and notes the nodes with an inbox to be opened first. */
static void try_again(struct dm_groups *groups, struct group *group, void *user)
{
    bool *is_wanted = user;
    const struct dm_cluster_node *node;

    if (group->asked)
        return;
    subscribe(groups, group);
    node = dm_cluster_of_slot(groups->cluster, group->slot);
    if (!group->asked && node)
        is_wanted[node->base.index] = true;
}

static void try_all_again(struct dm_groups *groups)
{
    bool is_wanted[DM_CLUSTER_MOST] = { false };

    dm_mutex_lock(&groups->cluster->lock);
    __atomic_store_n(&groups->has_unsettled, false, __ATOMIC_RELAXED);
    for_each(groups, try_again, is_wanted);
    dm_mutex_unlock(&groups->cluster->lock);
    for (unsigned i = 0; i < dm_cluster_count(groups->cluster); i++) {
        if (is_wanted[i])
            dm_link_want(groups->cluster->nodes[i]->base.inbox.link);
    }
    if (is_set(&groups->has_unsettled))
        dm_cluster_refresh(groups->cluster);
}

/* The answer to SUNSUBSCRIBE finds no group. */
static void give_up(struct group *group)
{
    if (group->asked)
        say(group->asked->base.inbox.link, "SUNSUBSCRIBE", group->channel);
    free(group);
}

static void sweep(struct dm_groups *groups, int64_t now_ns)
{
    dm_mutex_lock(&groups->cluster->lock);
    for (unsigned i = 0; i < BUCKETS; i++) {
        struct group **at = &groups->buckets[i];

        while (*at) {
            struct group *group = *at;

            if (group->users || now_ns < group->used_ns + UNUSED_NS) {
                at = &group->next;
                continue;
            }
            *at = group->next;
            give_up(group);
        }
    }
    dm_mutex_unlock(&groups->cluster->lock);
}

void dm_groups_watch(const struct dm_groups *groups, struct dm_watch *watch)
{
    if (is_set(&groups->is_poll_due))
        dm_watch_until(watch, 0);
    if (is_set(&groups->has_unsettled))
        dm_watch_until(watch, groups->again_ns);
}

/* Sweeps only when the loop wakes up for another reason: a process that sleeps keeps its inboxes. */
void dm_groups_turn(struct dm_groups *groups)
{
    int64_t now_ns = dm_clock_boot_ns();

    if (__atomic_exchange_n(&groups->is_poll_due, false, __ATOMIC_RELAXED))
        groups->on_inbox(groups->user);
    if (is_set(&groups->has_unsettled) && now_ns >= groups->again_ns) {
        groups->again_ns = now_ns + AGAIN_NS;
        try_all_again(groups);
    }
    if (now_ns >= groups->sweep_ns) {
        groups->sweep_ns = now_ns + SWEEP_NS;
        sweep(groups, now_ns);
    }
}
