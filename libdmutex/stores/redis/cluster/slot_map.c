/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whenever the link is opened, it goes to the next server of the URL: a server that cannot be reached, or does not know
 * the Cluster, costs one try of the link.
 */
#include "stores/redis/cluster/slot_map.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "link/turns.h"
#include "stores/redis/node/node.h"
#include "stores/redis/wire/reply.h"
#include "stores/redis/wire/slots.h"
#include "stores/redis/wire/tls_of.h"

struct dm_slot_map {
    const struct dm_url *url;
    struct dm_slot_map_hooks hooks;
    struct dm_link *link;
    bool is_denied; /* atomic */

    /* The link's lock guards them. */
    struct dm_greeting greeting;
    unsigned tries;         /* openings; the next one goes to the next server */
    struct dm_master asked; /* of the last one */
};

/* ---- the greeting ------------------------------------------------------------------------- */

static void read_login(void *user)
{
    struct dm_slot_map *slot_map = user;

    dm_greeting_read_login(&slot_map->greeting);
}

static enum dm_located locate(void *user, struct dm_link_options *options, char ret_reason[DM_REASON_ROOM])
{
    struct dm_slot_map *slot_map = user;
    bool is_ipv6;

    dm_assert_held(DM_RANK_CONN);
    (void)ret_reason;
    slot_map->hooks.find_host(slot_map->hooks.user, slot_map->tries++, &slot_map->asked);
    is_ipv6 = strchr(slot_map->asked.host, ':');
    options->address = (struct dm_address){ .host = slot_map->asked.host, .port = slot_map->asked.port };
    if (!slot_map->url->servername)
        options->tls.name = slot_map->asked.host;
    snprintf(options->name, sizeof options->name, "%s%.60s%s:%s", is_ipv6 ? "[" : "", slot_map->asked.host,
             is_ipv6 ? "]" : "", slot_map->asked.port);
    return DM_LOCATED;
}

static void begin(void *user)
{
    struct dm_slot_map *slot_map = user;

    dm_assert_held(DM_RANK_CONN);
    dm_greeting_begin(&slot_map->greeting);
}

static int next_round(void *user, struct dm_command *ret_round)
{
    struct dm_slot_map *slot_map = user;

    dm_assert_held(DM_RANK_CONN);
    *ret_round = dm_greeting_round(&slot_map->greeting);
    return slot_map->greeting.step_count;
}

static void set_denied(struct dm_slot_map *slot_map, bool is_denied)
{
    __atomic_store_n(&slot_map->is_denied, is_denied, __ATOMIC_RELAXED);
}

static bool take(void *user, const struct redisReply *reply, char ret_reason[DM_REASON_ROOM])
{
    struct dm_slot_map *slot_map = user;
    bool is_good = dm_greeting_take(&slot_map->greeting, reply, ret_reason);

    dm_assert_held(DM_RANK_CONN);
    if (!is_good)
        set_denied(slot_map, slot_map->greeting.is_denied);
    return is_good;
}

/* All servers have this number, because requests are for any of them. */
static uint64_t ready(void *user)
{
    (void)user;
    return 1;
}

/* ---- questions --------------------------------------------------------------------------- */

struct dm_command dm_slot_map_question(void)
{
    struct dm_command command = { 0 };
    struct dm_args args;

    if (dm_args_init(&args, 2, 0) < 0)
        return command;
    dm_args_text(&args, "CLUSTER");
    dm_args_text(&args, "SLOTS");
    command = dm_args_format(&args);
    command.is_for_any = true;
    command.summary = &dm_slots_summary;
    dm_args_free(&args);
    return command;
}

/* a dm_reply_fn; the host is that of the last opening, because the link has not been opened again since */
static void take_map(void *user, const struct redisReply *reply)
{
    struct dm_slot_map *slot_map = user;
    char reason[DM_REASON_ROOM];

    if (!reply)
        return;
    set_denied(slot_map, dm_reply_is_denial(reply));
    if (slot_map->hooks.on_map(slot_map->hooks.user, reply, slot_map->asked.host)) {
        dm_link_accept_answer(slot_map->link);
        return;
    }
    snprintf(reason, sizeof reason, "does not list the slots of a Cluster: %.150s",
             reply->type == REDIS_REPLY_ERROR ? reply->str : "the answer to CLUSTER SLOTS has an unknown shape");
    dm_link_refuse_answer(slot_map->link, reason);
}

static void post_question(struct dm_slot_map *slot_map)
{
    struct dm_command command = dm_slot_map_question();

    dm_link_post(slot_map->link, &command, take_map, slot_map);
    dm_command_free(&command);
}

static void link_ready(void *user)
{
    post_question(user);
}

static void note_change(void *user)
{
    const struct dm_slot_map *slot_map = user;

    slot_map->hooks.on_change(slot_map->hooks.user);
}

/* A closed link asks as soon as it is open. */
void dm_slot_map_ask(struct dm_slot_map *slot_map)
{
    if (dm_link_is_ready(slot_map->link))
        post_question(slot_map);
    else
        dm_link_want(slot_map->link);
}

struct dm_link *dm_slot_map_link(struct dm_slot_map *slot_map)
{
    return slot_map->link;
}

bool dm_slot_map_is_denied(const struct dm_slot_map *slot_map)
{
    return __atomic_load_n(&slot_map->is_denied, __ATOMIC_RELAXED);
}

/* ---- start and end ------------------------------------------------------------------- */

static void hear_nothing(void *user, const struct redisReply *reply, uint64_t peer)
{
    (void)user;
    (void)reply;
    (void)peer;
}

static struct dm_link *open_link(struct dm_slot_map *slot_map)
{
    const struct dm_url *url = slot_map->url;
    const struct dm_link_options options = {
        .tls = dm_redis_tls_of(url),
        .connect_timeout_ms = url->connect_timeout_ms,
        .command_timeout_ms = url->command_timeout_ms,
    };
    const struct dm_greeter greeter = {
        .prepare = url->user_file || url->password_file ? read_login : NULL,
        .locate = locate,
        .begin = begin,
        .round = next_round,
        .take = take,
        .ready = ready,
        .user = slot_map,
    };
    const struct dm_link_hooks hooks = {
        .on_ready = link_ready,
        .on_message = hear_nothing,
        .on_change = note_change,
        .user = slot_map,
    };

    return dm_link_new(&options, &greeter, &hooks);
}

struct dm_slot_map *dm_slot_map_new(const struct dm_url *url, const struct dm_slot_map_hooks *hooks)
{
    struct dm_slot_map *slot_map = calloc(1, sizeof *slot_map);

    if (!slot_map)
        return NULL;
    *slot_map = (struct dm_slot_map){ .url = url, .hooks = *hooks };
    slot_map->greeting = (struct dm_greeting){ .url = url, .role = DM_GREETS_FOR_MAP, .is_clustered = true };
    slot_map->link = open_link(slot_map);
    if (slot_map->link)
        return slot_map;
    free(slot_map);
    return NULL;
}

void dm_slot_map_free_unused(struct dm_slot_map *slot_map)
{
    if (slot_map)
        dm_link_free_unused(slot_map->link);
    free(slot_map);
}

void dm_slot_map_watch(struct dm_slot_map *slot_map, struct dm_watch *watch)
{
    struct dm_link_watch now;

    dm_link_watch(slot_map->link, &now);
    dm_watch_poll(watch, now.fd, now.events);
    dm_watch_until(watch, now.due_ns);
}
