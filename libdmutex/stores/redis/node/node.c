/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Number and identity: a greeting that finds another server, or the same one with another birth, increments the number
 * of its link.  A command that names its server carries the number, and the link refuses to send it to another
 * (DM_LINK_OTHER); then the node writes the command again.  So a script never gets a birth or a run id that is not its
 * server's.
 *
 * The node's lock guards only the two identities, and is held just to copy them: a greeting takes it under a link's
 * lock, and threads that hold the state lock take it to get the number of the server.
 */
#include "stores/redis/node/node.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "link/tls.h"
#include "stores/redis/wire/reply.h"
#include "stores/redis/wire/tls_of.h"

/* The shortest pause of the loop thread before the next check. */
#define IDENTIFY_AGAIN_NS (50 * DM_NS_PER_MS)

/* The part of command_timeout; usually a hundred times the lag of two replicas. */
#define CONFIRM_PART 20
#define CONFIRM_LEAST_MS 50

static const char no_vouchers[] =
    "too few masters of the Cluster have named this node recently: this process must reach "
    "the other masters, too";
static const char no_word[] = "no majority of the sentinels has said recently that this server is the master";

/*
 * Reads both under the lock, because the number belongs to the server.  Takes no other lock, so that the caller may
 * hold the link's.
 */
uint64_t dm_node_link_server(struct dm_node_link *link, struct dm_server *ret_server)
{
    uint64_t number;

    dm_mutex_lock(&link->node->lock);
    number = link->number;
    *ret_server = link->server;
    dm_mutex_unlock(&link->node->lock);
    return number;
}

/* ---- the greeting of a link --------------------------------------------------------------- */

/* The link calls these functions with its lock held, which guards the greeting. */

/* Runs in a thread of its own, before the greeting of that connection begins. */
static void read_login(void *user)
{
    struct dm_node_link *link = user;

    dm_greeting_read_login(&link->greeting);
}

/* The last connection's identity becomes "old" before anything is known of the new one. */
static void begin(void *user)
{
    struct dm_node_link *link = user;

    dm_assert_held(DM_RANK_CONN);
    dm_greeting_begin(&link->greeting);
}

/* No bytes with steps means "without memory": the session fails then. */
static int next_round(void *user, struct dm_command *ret_round)
{
    struct dm_node_link *link = user;

    dm_assert_held(DM_RANK_CONN);
    *ret_round = dm_greeting_round(&link->greeting);
    return link->greeting.step_count;
}

static bool take(void *user, const redisReply *reply, char ret_reason[DM_REASON_ROOM])
{
    struct dm_node_link *link = user;
    bool is_good = dm_greeting_take(&link->greeting, reply, ret_reason);

    dm_assert_held(DM_RANK_CONN);
    if (!is_good)
        __atomic_store_n(&link->is_denied, link->greeting.is_denied, __ATOMIC_RELAXED);
    return is_good;
}

/* Commands that were written for the previous server must not be sent to this one. */
static uint64_t note_server(void *user)
{
    struct dm_node_link *link = user;
    const struct dm_server *server = &link->greeting.server;
    uint64_t number;

    dm_assert_held(DM_RANK_CONN);
    __atomic_store_n(&link->is_denied, false, __ATOMIC_RELAXED);
    dm_mutex_lock(&link->node->lock);
    if (!dm_server_is_same(server, &link->server) || server->since_us != link->server.since_us)
        link->number++;
    link->server = *server;
    number = link->number;
    dm_mutex_unlock(&link->node->lock);
    return number;
}

/* The inbox only listens and cannot ask; it is connected to the same server, so the commands' link asks for both. */
static struct dm_command identify(void *user)
{
    const struct dm_node_link *link = user;

    dm_assert_held(DM_RANK_CONN);
    return dm_greeting_identify(&link->greeting);
}

static enum dm_identified take_identity(void *user, const redisReply *reply, char ret_reason[DM_REASON_ROOM])
{
    struct dm_node_link *link = user;

    dm_assert_held(DM_RANK_CONN);
    return dm_greeting_take_identity(&link->greeting, reply, ret_reason);
}

/* ---- replicas ---------------------------------------------------------------------------- */

/* How long the server waits for the replicas, during which it answers nothing else on the link. */
static unsigned confirm_ms(const struct dm_url *url)
{
    unsigned part_ms = url->command_timeout_ms / CONFIRM_PART;

    return part_ms > CONFIRM_LEAST_MS ? part_ms : CONFIRM_LEAST_MS;
}

/* The server counts the replicas that have all writes of this connection. */
static struct dm_command confirm(void *user)
{
    const struct dm_node_link *link = user;
    const struct dm_url *url = link->node->url;
    struct dm_command command = { 0 };
    struct dm_args args;

    dm_assert_held(DM_RANK_CONN);
    if (dm_args_init(&args, 3, 2) < 0)
        return command;
    dm_args_text(&args, "WAIT");
    dm_args_number(&args, url->wait);
    dm_args_number(&args, confirm_ms(url));
    command = dm_args_format(&args);
    dm_args_free(&args);
    return command;
}

/* The operator sets the number so that a master that was cut off has too few replicas. */
static bool take_confirm(void *user, const redisReply *reply, char ret_reason[DM_REASON_ROOM])
{
    const struct dm_node_link *link = user;
    unsigned wait = link->node->url->wait;

    dm_assert_held(DM_RANK_CONN);
    if (reply->type == REDIS_REPLY_INTEGER && reply->integer >= (long long)wait)
        return true;
    if (reply->type == REDIS_REPLY_INTEGER)
        snprintf(ret_reason, DM_REASON_ROOM,
                 "%lld replicas have confirmed, and wait=%u wants more: start the missing replicas", reply->integer,
                 wait);
    else
        snprintf(ret_reason, DM_REASON_ROOM, "WAIT is refused: %.100s", reply->str ? reply->str : "no number");
    return false;
}

/* ---- a server whose address may change --------------------------------------------------- */

/* A certificate is made out to the address, unless the URL gives another name. */
static void go_to_master(const struct dm_node_link *link, struct dm_link_options *options)
{
    bool is_ipv6 = strchr(link->master.host, ':');

    options->address = (struct dm_address){ .host = link->master.host, .port = link->master.port };
    if (!link->node->url->servername)
        options->tls.name = link->master.host;
    snprintf(options->name, sizeof options->name, "%s%.60s%s:%s", is_ipv6 ? "[" : "", link->master.host,
             is_ipv6 ? "]" : "", link->master.port);
}

static enum dm_located locate(void *user, struct dm_link_options *options, char ret_reason[DM_REASON_ROOM])
{
    struct dm_node_link *link = user;
    const struct dm_node *node = link->node;
    enum dm_master_watch_found found = dm_master_watch_find(node->master_watch, &link->master, &link->word, ret_reason);

    dm_assert_held(DM_RANK_CONN);
    if (found != DM_MASTER_FOUND)
        return found == DM_MASTER_NEVER ? DM_LOCATED_NEVER : DM_LOCATED_LATER;
    link->greeting.config = link->master.epoch;
    go_to_master(link, options);
    return DM_LOCATED;
}

static bool is_master(void *user, bool is_for_any, char ret_reason[DM_REASON_ROOM])
{
    const struct dm_node_link *link = user;

    (void)is_for_any;
    dm_assert_held(DM_RANK_CONN);
    if (dm_master_watch_is_fresh(link->node->master_watch, link->word))
        return true;
    snprintf(ret_reason, DM_REASON_ROOM, "%s", no_word);
    return false;
}

/* The place of a node of a Cluster; by its number we see later whether the node has moved. */
static void note_place(struct dm_node_link *link, struct dm_link_options *options)
{
    struct dm_node *node = link->node;

    dm_mutex_lock(&node->lock);
    link->master = node->place;
    link->word = node->place_number;
    dm_mutex_unlock(&node->lock);
    go_to_master(link, options);
}

static bool is_vouched(void *user)
{
    const struct dm_node *node = ((struct dm_node_link *)user)->node;

    dm_assert_held(DM_RANK_CONN);
    return node->hooks.is_vouched(node->hooks.user);
}

static bool is_node(void *user, bool is_for_any, char ret_reason[DM_REASON_ROOM])
{
    const struct dm_node_link *link = user;
    bool is_at_place = link->word == __atomic_load_n(&link->node->place_number, __ATOMIC_RELAXED);

    dm_assert_held(DM_RANK_CONN);
    if (is_at_place && (is_for_any || is_vouched(user)))
        return true;
    snprintf(ret_reason, DM_REASON_ROOM, "%s", is_at_place ? no_vouchers : "is no longer a master of the Cluster");
    return false;
}

void dm_node_move(struct dm_node *node, const char *host, const char *port)
{
    dm_mutex_lock(&node->lock);
    snprintf(node->place.host, sizeof node->place.host, "%s", host);
    snprintf(node->place.port, sizeof node->place.port, "%s", port);
    __atomic_store_n(&node->place_number, node->place_number + 1, __ATOMIC_RELAXED);
    dm_mutex_unlock(&node->lock);
}

/*
 * The slots of a node change, so a node without slots is tried again when the map has changed.  After a greeting that
 * has met a moving slot the next one uses another slot, and the one after that the first again.
 */
static enum dm_located find_tag(void *user, struct dm_link_options *options, char ret_reason[DM_REASON_ROOM])
{
    struct dm_node_link *link = user;
    const struct dm_node *node = link->node;
    struct dm_greeting *greeting = &link->greeting;
    bool is_found = node->hooks.find_tag(node->hooks.user, greeting->is_tag_under_way, greeting->tag, ret_reason);

    dm_assert_held(DM_RANK_CONN);
    note_place(link, options);
    greeting->is_tag_under_way = false;
    return is_found ? DM_LOCATED : DM_LOCATED_LATER;
}

/* The master watch's hooks. */
static void word_came(void *user)
{
    struct dm_node *node = user;

    dm_link_retry_soon(node->commands.link);
    dm_link_retry_soon(node->inbox.link);
}

/* Holds go on until they are no longer certain, and the pump renews them on the server of the next word. */
static void word_ended(void *user, const char *reason)
{
    struct dm_node *node = user;

    dm_link_close(node->commands.link, reason);
    dm_link_close(node->inbox.link, reason);
}

static void master_watch_changed(void *user)
{
    const struct dm_node *node = user;

    if (node->hooks.on_change)
        node->hooks.on_change(node->hooks.user);
}

static bool open_master_watch(struct dm_node *node)
{
    const struct dm_master_watch_hooks hooks = {
        .on_word = word_came,
        .on_doubt = word_ended,
        .on_change = master_watch_changed,
        .user = node,
    };

    if (node->url->kind != DM_URL_SENTINEL)
        return true;
    node->master_watch = dm_master_watch_new(node->url, &hooks);
    return node->master_watch != NULL;
}

/* ---- the hooks of a link ----------------------------------------------------------------- */

/* The host's function starts the server only once for all processes of the user. */
static int open_local(void *user, bool may_block, char ret_reason[DM_REASON_ROOM])
{
    struct dm_node *node = user;

    return node->hooks.open_local(node->url, may_block, ret_reason);
}

/* The link with the latest greeting is right; a server that does not give its identity may be any. */
static void keep_together(struct dm_node_link *newest, struct dm_node_link *other)
{
    struct dm_server right, server;
    uint64_t number;

    dm_node_link_server(newest, &right);
    number = dm_node_link_server(other, &server);
    if (right.run && server.run && !dm_server_is_same(&right, &server))
        dm_link_distrust(other->link, number, "leads to another server than before");
}

/*
 * The server may be another one than before.  The sender of a post whose script the server does not know sends it
 * again, if it still exists; the release of a quorum's hold does not, once a majority has answered.
 */
static void forget_scripts(struct dm_node *node)
{
    for (int i = 0; i < DM_OPS; i++)
        __atomic_store_n(&node->is_unknown[i], true, __ATOMIC_RELAXED);
}

/* The inbox may be in a long pause between retries, but this link has just shown that the server is there. */
static void commands_ready(void *user)
{
    struct dm_node *node = ((struct dm_node_link *)user)->node;

    dm_link_retry_soon(node->inbox.link);
    keep_together(&node->commands, &node->inbox);
    forget_scripts(node);
    if (!node->hooks.is_vouched || node->hooks.is_vouched(node->hooks.user))
        __atomic_store_n(&node->is_wished, false, __ATOMIC_RELAXED);
    if (node->hooks.on_ready)
        node->hooks.on_ready(node->hooks.user);
}

/* From now on a waiter may ask for a place in the queue. */
static void inbox_ready(void *user)
{
    struct dm_node *node = ((struct dm_node_link *)user)->node;

    keep_together(&node->inbox, &node->commands);
    if (node->hooks.on_inbox)
        node->hooks.on_inbox(node->hooks.user);
}

/* A message that is read after another server has come counts as from an unknown server. */
static void take_message(void *user, const redisReply *reply, uint64_t peer)
{
    struct dm_node_link *link = user;
    const struct dm_node_hooks *hooks = &link->node->hooks;
    bool is_message = dm_reply_is(reply, hooks->find_tag ? "smessage" : "message");
    struct dm_server server;

    if (!is_message && hooks->on_inbox_reply)
        hooks->on_inbox_reply(hooks->user, reply);
    if (!is_message || reply->elements != 3 || reply->element[2]->type != REDIS_REPLY_STRING)
        return;
    if (dm_node_link_server(link, &server) != peer)
        server = (struct dm_server){ 0 };
    hooks->on_message(hooks->user, reply->element[2]->str, &server);
}

/* Makes the loop thread plan its sleep again. */
static void note_change(void *user)
{
    const struct dm_node *node = ((struct dm_node_link *)user)->node;

    if (node->hooks.on_change)
        node->hooks.on_change(node->hooks.user);
}

/* ---- start, end, fork ---------------------------------------------------------------- */

static bool is_always(void *user, bool is_for_any, char ret_reason[DM_REASON_ROOM])
{
    (void)user;
    (void)is_for_any;
    (void)ret_reason;
    return true;
}

/* NULL for a single server, if we do not wait for its replicas. */
static const struct dm_belief *choose_belief(struct dm_node_link *link, bool is_inbox)
{
    const struct dm_node *node = link->node;
    bool is_watched = node->master_watch, is_clustered = node->hooks.find_tag, waits = node->url->wait && !is_inbox;

    link->belief = (struct dm_belief){
        .may_send = is_clustered ? is_vouched : NULL,
        .may_believe = is_watched     ? is_master
                       : is_clustered ? is_node
                                      : is_always,
        .confirm = waits ? confirm : NULL,
        .take_confirm = take_confirm,
    };
    return is_watched || is_clustered || waits ? &link->belief : NULL;
}

static struct dm_link *open_link(struct dm_node_link *link, void (*on_ready)(void *user))
{
    struct dm_node *node = link->node;
    const struct dm_url *url = node->url;
    bool is_inbox = link->greeting.role == DM_GREETS_FOR_INBOX;
    struct dm_link_options options = {
        .address = { .host = url->host, .port = url->port, .path = url->path },
        .tls = dm_redis_tls_of(url),
        .open = url->kind == DM_URL_LOCAL ? open_local : NULL,
        .open_user = node,
        .connect_timeout_ms = url->connect_timeout_ms,
        .command_timeout_ms = url->command_timeout_ms,
        .is_listening = is_inbox,
    };
    const struct dm_greeter greeter = {
        .prepare = url->user_file || url->password_file ? read_login : NULL,
        .locate = node->master_watch     ? locate
                  : node->hooks.find_tag ? find_tag
                                         : NULL,
        .belief = choose_belief(link, is_inbox),
        .begin = begin,
        .round = next_round,
        .take = take,
        .ready = note_server,
        .identify = is_inbox ? NULL : identify,
        .take_identity = take_identity,
        .user = link,
    };
    const struct dm_link_hooks hooks = {
        .on_ready = on_ready,
        .on_message = take_message,
        .on_change = note_change,
        .user = link,
    };

    dm_url_describe(url, options.name, sizeof options.name);
    return dm_link_new(&options, &greeter, &hooks);
}

/*
 * The links begin with number 1, which no greeting gives: a command written before the first greeting is written
 * again for the server that comes.
 */
bool dm_node_init(struct dm_node *node, struct dm_url *url, const char *channel, const struct dm_node_hooks *hooks)
{
    *node = (struct dm_node){ .url = url, .hooks = *hooks };
    node->lock = (struct dm_mutex)DM_MUTEX_INITIALIZER(DM_RANK_NODE);
    snprintf(node->channel, sizeof node->channel, "%s", channel);
    node->commands = (struct dm_node_link){ .node = node, .number = 1 };
    node->inbox = (struct dm_node_link){ .node = node, .number = 1 };
    node->commands.greeting = (struct dm_greeting){ .url = url, .is_clustered = hooks->find_tag != NULL };
    node->inbox.greeting = (struct dm_greeting){ .url = url,
                                                 .role = DM_GREETS_FOR_INBOX,
                                                 .inbox = node->channel[0] ? node->channel : NULL,
                                                 .is_clustered = hooks->find_tag != NULL };
    if (hooks->find_tag)
        dm_node_move(node, url->host, url->port);
    if (url->has_tls && !url->is_verified)
        dm_log_warn("verify=none: anyone between here and the server can read the password, and grant and break locks");
    if (open_master_watch(node)) {
        node->commands.link = open_link(&node->commands, commands_ready);
        node->inbox.link = open_link(&node->inbox, inbox_ready);
    }
    if (node->commands.link && node->inbox.link)
        return true;
    dm_node_clear_unused(node);
    return false;
}

/* Either link may be NULL, after an initialisation that failed half-way. */
void dm_node_clear_unused(struct dm_node *node)
{
    dm_link_free_unused(node->commands.link);
    dm_link_free_unused(node->inbox.link);
    dm_master_watch_free_unused(node->master_watch);
}

/* The commands' link ends first, so that no answer can come that would want the inbox. */
void dm_node_end(struct dm_node *node)
{
    static const char *const reason = "this process uses another server now";

    dm_link_end(node->commands.link, reason);
    dm_link_end(node->inbox.link, reason);
    if (node->master_watch)
        dm_master_watch_end(node->master_watch);
}

/* In the order of the ranks: the links of all nodes, and of the master watch; then the nodes; and TLS last. */
void dm_node_fork_prepare_links(struct dm_node *node)
{
    dm_link_fork_prepare(node->commands.link);
    dm_link_fork_prepare(node->inbox.link);
    if (node->master_watch)
        dm_master_watch_fork_prepare(node->master_watch);
}

void dm_node_fork_prepare(struct dm_node *node)
{
    dm_mutex_lock(&node->lock);
}

void dm_node_fork_parent(struct dm_node *node)
{
    dm_mutex_unlock(&node->lock);
    if (node->master_watch)
        dm_master_watch_fork_parent(node->master_watch);
    dm_link_fork_parent(node->inbox.link);
    dm_link_fork_parent(node->commands.link);
}

/*
 * Locks are reset instead of unlocked: after a fork without the handlers' locks, a thread that the child does not have
 * may hold them.
 */
void dm_node_fork_child(struct dm_node *node)
{
    dm_mutex_reset(&node->lock);
    if (node->master_watch)
        dm_master_watch_fork_child(node->master_watch);
    dm_link_fork_child(node->inbox.link);
    dm_link_fork_child(node->commands.link);
}

/* ---- commands ---------------------------------------------------------------------------- */

/*
 * Writes the command for the present server.  A master that was replaced may be believed for `switch`, so the grace
 * begins later by that time (R3).  A server of a quorum checks its mark (lua/_origin.lua).
 */
static struct dm_command format(struct dm_node *node, struct dm_args *args)
{
    struct dm_command command;
    struct dm_server server;
    uint64_t number = dm_node_link_server(&node->commands, &server);
    int64_t since_us = server.since_us ? (int64_t)(server.since_us + node->url->switch_ms * UINT64_C(1000)) : 0;

    dm_args_set_server(args, node->url->is_part ? -since_us : since_us, server.run);
    command = dm_args_format(args);
    if (args->origin_at)
        command.peer = number;
    return command;
}

/* Each turn of the loop has met a new server; the deadline ends it. */
enum dm_link_result dm_node_call(struct dm_node *node, struct dm_args *args, const struct dm_deadline *deadline,
                                 redisReply **ret_reply)
{
    struct dm_command command;
    enum dm_link_result result;

    do {
        command = format(node, args);
        result = dm_link_call(node->commands.link, &command, deadline, ret_reply);
        dm_command_free(&command);
    } while (result == DM_LINK_OTHER);
    return result;
}

/* As dm_node_call(), without waiting. */
enum dm_link_result dm_node_post(struct dm_node *node, struct dm_args *args, dm_reply_fn handler, void *user)
{
    struct dm_command command;
    enum dm_link_result result;

    do {
        command = format(node, args);
        result = dm_link_post_quietly(node->commands.link, &command, handler, user);
        dm_command_free(&command);
    } while (result == DM_LINK_OTHER);
    return result;
}

void dm_node_hold(struct dm_node *node)
{
    dm_link_hold(node->commands.link);
}

void dm_node_let_go(struct dm_node *node)
{
    dm_link_let_go(node->commands.link);
}

/* The commands' link is enough: a node without an inbox still locks, without a queue. */
bool dm_node_is_ready(struct dm_node *node)
{
    return dm_link_is_ready(node->commands.link);
}

/* Without a server the links have no reason of their own. */
void dm_node_reason(struct dm_node *node, struct dm_link *link, char ret_reason[DM_REASON_ROOM])
{
    struct dm_master master;
    uint64_t number;

    if (!node->master_watch ||
        dm_master_watch_find(node->master_watch, &master, &number, ret_reason) == DM_MASTER_FOUND)
        dm_link_reason(link, ret_reason);
}

bool dm_node_is_denied(struct dm_node *node)
{
    return __atomic_load_n(&node->commands.is_denied, __ATOMIC_RELAXED) ||
           __atomic_load_n(&node->inbox.is_denied, __ATOMIC_RELAXED) ||
           (node->master_watch && dm_master_watch_is_denied(node->master_watch));
}

/* Only the commands' link: its next greeting decides, and keep_together() makes the inbox follow. */
void dm_node_distrust(struct dm_node *node, const char *reason)
{
    dm_link_distrust(node->commands.link, 0, reason);
}

/* Without memory for the command the check is still due, but the loop comes back a little later, not at once. */
int64_t dm_node_identify(struct dm_node *node)
{
    int64_t next_ns = dm_link_identify(node->commands.link), soon_ns = dm_clock_boot_ns() + IDENTIFY_AGAIN_NS;

    return next_ns > soon_ns ? next_ns : soon_ns;
}
