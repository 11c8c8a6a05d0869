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
 * The fleet's lock guards all; a link's lock nests in it.
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
    unsigned users;          /* threads in dm_groups_await() */
    struct dm_member *asked; /* NULL: unsettled */
    bool is_heard;           /* atomic: read under a link's lock, too */
    bool was_heard;          /* earlier: messages may have been missed since then */
    int64_t used_ns;
    char channel[];
};

struct dm_groups {
    struct dm_fleet *fleet;
    const char *uuid;
    void (*on_inbox)(void *user);
    void *user;
    struct group *buckets[BUCKETS];
    bool has_unsettled; /* atomic */
    bool is_poll_due;   /* an inbox is heard again.  Atomic */
    bool is_refused;    /* it has been logged that subscriptions are refused */
    int64_t again_ns, sweep_ns;
};

struct dm_groups *dm_groups_new(struct dm_fleet *fleet, const char *uuid, void (*on_inbox)(void *user), void *user)
{
    struct dm_groups *groups = calloc(1, sizeof *groups);

    if (groups)
        *groups = (struct dm_groups){ .fleet = fleet, .uuid = uuid, .on_inbox = on_inbox, .user = user };
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

    dm_assert_held(DM_RANK_FLEET);
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
    dm_assert_held(DM_RANK_FLEET);
    group->asked = NULL;
    set_heard(group, false);
    __atomic_store_n(&groups->has_unsettled, true, __ATOMIC_RELAXED);
}

/* Asks the node that serves the slot now. */
static void subscribe(struct dm_groups *groups, struct group *group)
{
    struct dm_member *member = dm_fleet_of_slot(groups->fleet, group->slot);

    dm_assert_held(DM_RANK_FLEET);
    if (!member || !dm_link_is_ready(member->node.inbox.link)) {
        unsettle(groups, group);
        return;
    }
    group->asked = member;
    set_heard(group, false);
    if (!say(member->node.inbox.link, "SSUBSCRIBE", group->channel))
        unsettle(groups, group);
}

/* Asks the node that serves the slot now, unless that node was asked.  Returns the node, or NULL. */
static struct dm_member *settle(struct dm_groups *groups, struct group *group)
{
    struct dm_member *member = dm_fleet_of_slot(groups->fleet, group->slot);

    if (!member || group->asked != member)
        subscribe(groups, group);
    return member;
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

    dm_mutex_lock(&groups->fleet->lock);
    group = find_place(groups, place);
    if (group)
        group->used_ns = dm_clock_boot_ns();
    is_able = group && is_heard(group) && dm_link_is_ready(group->asked->node.inbox.link);
    dm_mutex_unlock(&groups->fleet->lock);
    return is_able;
}

void dm_groups_want(struct dm_groups *groups, const struct dm_place *place)
{
    struct group *group;
    struct dm_member *member;

    dm_mutex_lock(&groups->fleet->lock);
    group = find_or_add(groups, place);
    member = group ? settle(groups, group) : NULL;
    dm_mutex_unlock(&groups->fleet->lock);
    if (member)
        dm_link_want(member->node.inbox.link);
    else
        dm_fleet_refresh(groups->fleet);
}

void dm_groups_note_use(struct dm_groups *groups, const struct dm_place *place)
{
    struct group *group;

    dm_mutex_lock(&groups->fleet->lock);
    group = find_place(groups, place);
    if (group)
        group->used_ns = dm_clock_boot_ns();
    dm_mutex_unlock(&groups->fleet->lock);
}

/* A user prevents the group from being freed.  NULL without memory. */
static struct group *begin_use(struct dm_groups *groups, const struct dm_place *place)
{
    struct group *group;

    dm_mutex_lock(&groups->fleet->lock);
    group = find_or_add(groups, place);
    if (group)
        group->users++;
    dm_mutex_unlock(&groups->fleet->lock);
    return group;
}

static void end_use(struct dm_groups *groups, struct group *group)
{
    dm_mutex_lock(&groups->fleet->lock);
    group->users--;
    dm_mutex_unlock(&groups->fleet->lock);
}

/* One slice of the wait, for the node that serves the slot now. */
static bool await_slice(struct dm_groups *groups, struct group *group, const struct dm_place *place,
                        const struct dm_deadline *deadline)
{
    struct dm_deadline slice = dm_deadline_sooner(deadline, SLICE_MS * DM_NS_PER_MS);
    struct dm_member *member;

    dm_mutex_lock(&groups->fleet->lock);
    member = settle(groups, group);
    dm_mutex_unlock(&groups->fleet->lock);
    if (member)
        return dm_link_await(member->node.inbox.link, is_heard, group, &slice);
    dm_fleet_await_slot(groups->fleet, place->slot, &slice);
    return false;
}

bool dm_groups_await(struct dm_groups *groups, const struct dm_place *place, const struct dm_deadline *deadline)
{
    struct group *group = begin_use(groups, place);
    bool is_able = false;

    if (!group)
        return false;
    while (!is_able && !groups->fleet->is_ended) {
        is_able = await_slice(groups, group, place, deadline);
        if (is_able || dm_deadline_left_ns(deadline) == 0)
            break;
        dm_fleet_refresh(groups->fleet);
    }
    end_use(groups, group);
    return is_able;
}

/* ---- events -------------------------------------------------------------------------------- */

/* Calls `visit` for each group. */
static void for_each(struct dm_groups *groups, void (*visit)(struct dm_groups *, struct group *, void *), void *user)
{
    dm_assert_held(DM_RANK_FLEET);
    for (unsigned i = 0; i < BUCKETS; i++) {
        for (struct group *group = groups->buckets[i]; group; group = group->next)
            visit(groups, group, user);
    }
}

/* The link is new: the node has forgotten the subscriptions of the previous one. */
static void subscribe_again(struct dm_groups *groups, struct group *group, void *user)
{
    if (group->asked == user || dm_fleet_of_slot(groups->fleet, group->slot) == user)
        subscribe(groups, group);
}

void dm_groups_inbox_ready(struct dm_groups *groups, struct dm_member *member)
{
    dm_mutex_lock(&groups->fleet->lock);
    for_each(groups, subscribe_again, member);
    dm_mutex_unlock(&groups->fleet->lock);
    dm_link_work(member->node.inbox.link);
}

static void follow_slot(struct dm_groups *groups, struct group *group, void *user)
{
    (void)user;
    if (group->asked != dm_fleet_of_slot(groups->fleet, group->slot))
        subscribe(groups, group);
}

void dm_groups_map_changed(struct dm_groups *groups)
{
    dm_mutex_lock(&groups->fleet->lock);
    for_each(groups, follow_slot, NULL);
    dm_mutex_unlock(&groups->fleet->lock);
}

/* Any thread may have read the reply. */
static void tell_loop(const struct dm_groups *groups)
{
    if (is_set(&groups->has_unsettled) || is_set(&groups->is_poll_due))
        groups->fleet->hooks.on_change(groups->fleet);
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
static void take_subscribed(struct dm_groups *groups, const struct dm_member *member, struct group *group)
{
    if (group->asked != member || is_heard(group))
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
static void take_error(struct dm_groups *groups, struct dm_member *member, const redisReply *reply)
{
    if (!dm_fleet_redirect(groups->fleet, member, NULL, 0, reply->str) && !groups->is_refused) {
        groups->is_refused = true;
        dm_log_warn("a subscription is refused, so waiters learn of grants late: %.200s", reply->str);
    }
    dm_mutex_lock(&groups->fleet->lock);
    for_each(groups, unsettle_unheard, member);
    dm_mutex_unlock(&groups->fleet->lock);
    tell_loop(groups);
}

void dm_groups_take_reply(struct dm_groups *groups, struct dm_member *member, const redisReply *reply)
{
    bool is_subscribed = dm_reply_is(reply, "ssubscribe"), is_ended = dm_reply_is(reply, "sunsubscribe");
    struct group *group;

    if (reply->type == REDIS_REPLY_ERROR)
        take_error(groups, member, reply);
    if (!is_subscribed && !is_ended)
        return;
    dm_mutex_lock(&groups->fleet->lock);
    group = group_of(groups, reply);
    if (group && is_subscribed)
        take_subscribed(groups, member, group);
    else if (group && group->asked == member)
        unsettle(groups, group);
    dm_mutex_unlock(&groups->fleet->lock);
    if (is_ended)
        dm_fleet_refresh(groups->fleet);
    else
        dm_link_tell_news(member->node.inbox.link);
    tell_loop(groups);
}

/* ---- the loop thread --------------------------------------------------------------------- */

/* Asks again, and notes the nodes with an inbox to be opened first. */
static void try_again(struct dm_groups *groups, struct group *group, void *user)
{
    bool *is_wanted = user;
    const struct dm_member *member;

    if (group->asked)
        return;
    subscribe(groups, group);
    member = dm_fleet_of_slot(groups->fleet, group->slot);
    if (!group->asked && member)
        is_wanted[member->index] = true;
}

static void try_all_again(struct dm_groups *groups)
{
    bool is_wanted[DM_FLEET_MOST] = { false };

    dm_mutex_lock(&groups->fleet->lock);
    __atomic_store_n(&groups->has_unsettled, false, __ATOMIC_RELAXED);
    for_each(groups, try_again, is_wanted);
    dm_mutex_unlock(&groups->fleet->lock);
    for (unsigned i = 0; i < dm_fleet_count(groups->fleet); i++) {
        if (is_wanted[i])
            dm_link_want(groups->fleet->members[i]->node.inbox.link);
    }
    if (is_set(&groups->has_unsettled))
        dm_fleet_refresh(groups->fleet);
}

/* The answer to SUNSUBSCRIBE finds no group. */
static void give_up(struct group *group)
{
    if (group->asked)
        say(group->asked->node.inbox.link, "SUNSUBSCRIBE", group->channel);
    free(group);
}

static void sweep(struct dm_groups *groups, int64_t now_ns)
{
    dm_mutex_lock(&groups->fleet->lock);
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
    dm_mutex_unlock(&groups->fleet->lock);
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
