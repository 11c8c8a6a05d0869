/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The link asks the next server of the URL whenever the link is opened: a server that cannot be reached, or does not
 * know the Cluster, costs one try of the link.
 */
#include "redis/guide.h"

#include <stdio.h>
#include <stdlib.h>

#include "link/turns.h"
#include "redis/node.h"
#include "redis/slots.h"

struct dm_guide {
    const struct dm_url *url;
    struct dm_guide_hooks hooks;
    struct dm_link *link;

    /* The link's lock guards them. */
    struct dm_greeting greeting;
    unsigned tries;         /* openings; the next opening goes to the next server */
    struct dm_master asked; /* of the last one */
};

/* ---- the greeter ------------------------------------------------------------------------- */

static void read_login(void *user)
{
    struct dm_guide *guide = user;

    dm_greeting_read_login(&guide->greeting);
}

static enum dm_located locate(void *user, struct dm_link_options *options, char ret_reason[DM_REASON_ROOM])
{
    struct dm_guide *guide = user;

    dm_assert_held(DM_RANK_CONN);
    (void)ret_reason;
    guide->hooks.find_host(guide->hooks.user, guide->tries++, &guide->asked);
    options->address = (struct dm_address){ .host = guide->asked.host, .port = guide->asked.port };
    if (!guide->url->servername)
        options->tls.name = guide->asked.host;
    snprintf(options->name, sizeof options->name, "%.60s:%s", guide->asked.host, guide->asked.port);
    return DM_LOCATED;
}

static void begin(void *user)
{
    struct dm_guide *guide = user;

    dm_assert_held(DM_RANK_CONN);
    dm_greeting_begin(&guide->greeting);
}

static int next_round(void *user, struct dm_command *ret_round)
{
    struct dm_guide *guide = user;

    dm_assert_held(DM_RANK_CONN);
    *ret_round = dm_greeting_round(&guide->greeting);
    return guide->greeting.step_count;
}

static bool take(void *user, const struct redisReply *reply, char ret_reason[DM_REASON_ROOM])
{
    struct dm_guide *guide = user;

    dm_assert_held(DM_RANK_CONN);
    return dm_greeting_take(&guide->greeting, reply, ret_reason);
}

/* All servers have this number: a question is for any of them. */
static uint64_t ready(void *user)
{
    (void)user;
    return 1;
}

/* ---- questions --------------------------------------------------------------------------- */

struct dm_command dm_guide_question(void)
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

/* A dm_reply_fn.  The name of the host is the last opening's: the link has not been opened again since. */
static void take_map(void *user, const struct redisReply *reply)
{
    struct dm_guide *guide = user;
    char reason[DM_REASON_ROOM];

    if (!reply)
        return;
    if (guide->hooks.on_map(guide->hooks.user, reply, guide->asked.host)) {
        dm_link_accept_answer(guide->link);
        return;
    }
    snprintf(reason, sizeof reason, "does not tell the slots of a Cluster: %.150s",
             reply->type == REDIS_REPLY_ERROR ? reply->str : "the answer to CLUSTER SLOTS is none of ours");
    dm_link_refuse_answer(guide->link, reason);
}

static void post_question(struct dm_guide *guide)
{
    struct dm_command command = dm_guide_question();

    dm_link_post(guide->link, &command, take_map, guide);
    dm_command_free(&command);
}

static void link_ready(void *user)
{
    post_question(user);
}

static void note_change(void *user)
{
    const struct dm_guide *guide = user;

    guide->hooks.on_change(guide->hooks.user);
}

/* A closed link asks as soon as the link is open. */
void dm_guide_ask(struct dm_guide *guide)
{
    if (dm_link_is_ready(guide->link))
        post_question(guide);
    else
        dm_link_want(guide->link);
}

bool dm_guide_await(struct dm_guide *guide, bool (*is_met)(void *user), void *user, const struct dm_deadline *deadline)
{
    return dm_link_await(guide->link, is_met, user, deadline);
}

void dm_guide_tell_news(struct dm_guide *guide)
{
    dm_link_tell_news(guide->link);
}

void dm_guide_reason(struct dm_guide *guide, char ret_reason[DM_REASON_ROOM])
{
    dm_link_reason(guide->link, ret_reason);
}

/* ---- beginning and end ------------------------------------------------------------------- */

static void hear_nothing(void *user, const struct redisReply *reply, uint64_t peer)
{
    (void)user;
    (void)reply;
    (void)peer;
}

static struct dm_link *open_link(struct dm_guide *guide)
{
    const struct dm_url *url = guide->url;
    const struct dm_link_options options = {
        .tls = dm_node_tls(url),
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
        .user = guide,
    };
    const struct dm_link_hooks hooks = {
        .on_ready = link_ready,
        .on_message = hear_nothing,
        .on_change = note_change,
        .user = guide,
    };

    return dm_link_new(&options, &greeter, &hooks);
}

struct dm_guide *dm_guide_new(const struct dm_url *url, const struct dm_guide_hooks *hooks)
{
    struct dm_guide *guide = calloc(1, sizeof *guide);

    if (!guide)
        return NULL;
    *guide = (struct dm_guide){ .url = url, .hooks = *hooks };
    guide->greeting = (struct dm_greeting){ .url = url, .role = DM_GREETS_FOR_MAP, .is_clustered = true };
    guide->link = open_link(guide);
    if (guide->link)
        return guide;
    free(guide);
    return NULL;
}

void dm_guide_free_unused(struct dm_guide *guide)
{
    if (guide)
        dm_link_free_unused(guide->link);
    free(guide);
}

/* ---- the loop thread, fork --------------------------------------------------------------- */

void dm_guide_watch(struct dm_guide *guide, struct dm_watch *watch)
{
    struct dm_link_watch now;

    dm_link_watch(guide->link, &now);
    dm_watch_poll(watch, now.fd, now.events);
    dm_watch_until(watch, now.due_ns);
}

void dm_guide_turn(struct dm_guide *guide)
{
    dm_link_work(guide->link);
}

void dm_guide_end(struct dm_guide *guide)
{
    dm_link_end(guide->link, "this process uses another server now");
}

void dm_guide_fork_prepare(struct dm_guide *guide)
{
    dm_link_fork_prepare(guide->link);
}

void dm_guide_fork_parent(struct dm_guide *guide)
{
    dm_link_fork_parent(guide->link);
}

void dm_guide_fork_child(struct dm_guide *guide)
{
    dm_link_fork_child(guide->link);
}
