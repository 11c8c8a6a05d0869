/* SPDX-License-Identifier: BSD-2-Clause */
#include "server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "cluster.h"
#include "liar.h"
#include "sentinels.h"
#include "server_parts.h"
#include "words.h"
#include "world.h"

#define START_US INT64_C(1700000000000000)

struct server servers[SERVERS_MAX];
static int total;
static struct server *server;
static struct scripting *interpreter;
static bool has_ghosts;

void server_choose(uint32_t number)
{
    server = &servers[number % (uint32_t)total];
}

uint32_t server_number(void)
{
    return (uint32_t)(server - servers);
}

int server_count(void)
{
    return total;
}

bool server_is_judged(void)
{
    return total == 1;
}

int64_t server_now_us(void)
{
    return START_US + world_now() / 1000 + server->ahead_us;
}

uint64_t server_now_token(void)
{
    return (uint64_t)(server_now_us() - INT64_C(1577836800000000)); /* microseconds since 2020 */
}

struct store *server_store(void)
{
    server->store.now_ms = server_now_us() / 1000;
    return &server->store;
}

/* ---- messages ---------------------------------------------------------------------------- */

static bool is_master(const struct node *node)
{
    return node == server->master && !server->is_replica;
}

static bool is_at_master(const struct link *link)
{
    return &server->nodes[link->node] == server->master;
}

static bool is_subscribed(const struct link *link, struct text channel)
{
    bool is = link->channel[0] && text_is(channel, link->channel);

    for (int i = 0; i < SHARDS_MAX; i++)
        is = is || (link->shards[i][0] && text_is(channel, link->shards[i]));
    return is;
}

static int subscribers(void *user, struct text channel)
{
    int count = 0;

    (void)user;
    for (struct link *link = server->links; link; link = link->next)
        count += is_at_master(link) && is_subscribed(link, channel);
    return count;
}

/* Sends a message to all subscribers; counts the master's and pattern subscribers, not the replica's. */
static int publish(void *user, struct text channel, struct text message)
{
    struct bytes bytes = { 0 };

    check_told(channel, message);
    for (struct link *link = server->links; link; link = link->next) {
        if (!is_subscribed(link, channel))
            continue;
        bytes.length = 0;
        bytes_print(&bytes, "*3\r\n%s\r\n$%zu\r\n%.*s\r\n$%zu\r\n%.*s\r\n",
                    cluster_is_there() ? "$8\r\nsmessage" : "$7\r\nmessage", channel.length, (int)channel.length,
                    channel.bytes, message.length, (int)message.length, message.bytes);
        net_send(link, TO_CLIENT, bytes.data, bytes.length);
        counters.messages++;
    }
    free(bytes.data);
    return subscribers(user, channel) + server->has_monitor;
}

bool server_hears(struct text uuid)
{
    for (struct link *link = server->links; link; link = link->next) {
        size_t length = strlen(link->channel);

        if (is_at_master(link) && length >= uuid.length &&
            memcmp(link->channel + length - uuid.length, uuid.bytes, uuid.length) == 0)
            return true;
    }
    return false;
}

/* ---- commands ---------------------------------------------------------------------------- */

static const char *info_text(const struct node *node)
{
    static char text[400];
    /* as on real servers: up to a second too long */
    long long uptime = server_now_us() / 1000000 - node->started_us / 1000000;

    snprintf(text, sizeof text,
             "# Server\r\nredis_mode:%s\r\nrun_id:%016llx\r\nuptime_in_seconds:%lld\r\n"
             "# Memory\r\nmaxmemory_policy:noeviction\r\n# Replication\r\nrole:%s\r\n"
             "master_replid:%016llx\r\nmaster_replid2:%016llx\r\n",
             cluster_is_there() ? "cluster" : "standalone", (unsigned long long)node->run, uptime,
             is_master(node) ? "master" : "slave", (unsigned long long)server->replid,
             (unsigned long long)server->replid_before);
    return text;
}

static void info(const struct node *node, struct bytes *reply)
{
    const char *text = info_text(node);

    bytes_print(reply, "$%zu\r\n%s\r\n", strlen(text), text);
}

static void role(const struct node *node, struct bytes *reply)
{
    if (is_master(node))
        bytes_print(reply, "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n");
    else
        bytes_print(reply, "*5\r\n$5\r\nslave\r\n$6\r\nmaster\r\n:1\r\n$9\r\nconnected\r\n:0\r\n");
}

/* A script's commands are asked for as the script was. */
static bool is_here(void *user, const struct text *keys, int count)
{
    const struct link *link = user;

    return cluster_serves(keys, count, link->is_asking, NULL);
}

static bool is_liar(void)
{
    return server == servers && liar_is_there();
}

/* The prefix of inboxes is the sixth argument of an acquire, and its id begins with the process's. */
static void twist(int script, const struct text *arguments, struct bytes *reply)
{
    struct bytes message = { 0 }, channel = { 0 };

    liar_twists(scripting_name(script), reply);
    if (liar_tells(scripting_name(script), arguments, &message)) {
        bytes_print(&channel, "%.*s%.*s", (int)arguments[5].length, arguments[5].bytes,
                    (int)strcspn(arguments[0].bytes, ":"), arguments[0].bytes);
        publish(NULL, (struct text){ channel.data, channel.length }, (struct text){ message.data, message.length });
    }
    free(message.data);
    free(channel.data);
}

/* Runs a script; words: number of keys, keys, arguments. */
static void run_script(struct link *link, int script, const struct text *words, int count, struct bytes *reply)
{
    struct site site = { .store = server_store(),
                         .now_us = server_now_us(),
                         .info = info_text(server->master),
                         .is_node = cluster_is_there(),
                         .publish = publish,
                         .subscribers = subscribers,
                         .is_here = cluster_is_there() ? is_here : NULL,
                         .user = link };
    int keys = atoi(words[0].bytes);

    if (keys > count - 1)
        abort(); /* bytes are missing in between, impossible with TCP */
    if (server->is_full && scripting_needs_memory(script)) {
        bytes_print(reply, "-OOM allow-oom flag is not set on the script\r\n");
        return;
    }
    counters.scripts++;
    if (total > 1)
        world_note("server %u: script %s, %s", server_number(), scripting_name(script),
                   count > keys + 1 ? words[keys + 1].bytes : "");
    else
        world_note("script %s", scripting_name(script));
    if (site.is_node)
        cluster_before_script(words[1]);
    if (link->is_shut_by_client && link->replid != server->replid)
        check_late_script(script, words + 1 + keys);
    check_before_script(script, words + 1 + keys, count - 1 - keys);
    if (is_liar() && liar_answers(scripting_name(script), site.now_us, reply))
        return;
    scripting_run(interpreter, script, &site, words + 1, keys, words + 1 + keys, count - 1 - keys, reply);
    check_after_script(script, words + 1, keys, words + 1 + keys, count - 1 - keys);
    if (site.is_node)
        cluster_after_script(script, reply);
    if (is_liar())
        twist(script, words + 1 + keys, reply);
}

/* words: the script, the number of keys, keys. */
static bool is_refused(const struct link *link, const struct text *words, struct bytes *reply)
{
    int keys = atoi(words[1].bytes);

    return cluster_is_there() && keys > 0 && !cluster_serves(words + 2, keys, link->is_asking, reply);
}

static void eval(struct link *link, const struct text *words, int count, bool by_text, struct bytes *reply)
{
    struct node *node = &server->nodes[link->node];
    int script = by_text ? scripting_by_text(words[1]) : scripting_by_sha(words[1]);

    if (is_refused(link, words + 1, reply))
        return;
    if (script < 0) {
        bytes_print(reply, "-ERR this script is none of the library's\r\n");
    } else if (!by_text && !(node->known_scripts & 1u << script)) {
        bytes_print(reply, "-NOSCRIPT No matching script. Please use EVAL.\r\n");
    } else if (!is_master(node)) {
        bytes_print(reply, "-READONLY You can't write against a read only replica.\r\n");
    } else {
        node->known_scripts |= 1u << script;
        run_script(link, script, words + 2, count - 2, reply);
        link->written = ++server->offset;
    }
}

static int kill_client(int node, uint64_t id)
{
    for (struct link *link = server->links; link; link = link->next) {
        if (link->node == node && link->client_id == id) {
            if (!has_ghosts)
                net_reset(link);
            return 1;
        }
    }
    return 0;
}

static void subscribe(struct link *link, struct text channel, struct bytes *reply)
{
    snprintf(link->channel, sizeof link->channel, "%.*s", (int)channel.length, channel.bytes);
    bytes_print(reply, "*3\r\n$9\r\nsubscribe\r\n$%zu\r\n%s\r\n:1\r\n", channel.length, link->channel);
}

/* False: none of the commands of a Cluster. */
static bool run_cluster_command(struct link *link, const struct text *words, struct bytes *reply)
{
    if (!cluster_is_there())
        return false;
    if (text_is(words[0], "ASKING"))
        bytes_print(reply, "+OK\r\n");
    else if (text_is(words[0], "CLUSTER"))
        cluster_say_slots(reply);
    else if (text_is(words[0], "SSUBSCRIBE"))
        cluster_subscribe(link, words[1], reply);
    else if (text_is(words[0], "SUNSUBSCRIBE"))
        cluster_unsubscribe(link, words[1], reply);
    return reply->length > 0;
}

static void run_usual_command(struct link *link, const struct text *words, int count, struct bytes *reply)
{
    struct node *node = &server->nodes[link->node];

    if (text_is(words[0], "EVALSHA") || text_is(words[0], "EVAL"))
        eval(link, words, count, words[0].length == 4, reply);
    else if (text_is(words[0], "WAIT"))
        server_await_replicas(link, atoi(words[1].bytes), atoi(words[2].bytes), reply);
    else if (text_is(words[0], "ROLE"))
        role(node, reply);
    else if (text_is(words[0], "INFO"))
        info(node, reply);
    else if (text_is(words[0], "SUBSCRIBE"))
        subscribe(link, words[1], reply);
    else if (text_is(words[0], "CLIENT") && text_is(words[1], "ID"))
        bytes_print(reply, ":%llu\r\n", (unsigned long long)link->client_id);
    else if (text_is(words[0], "CLIENT") && text_is(words[1], "KILL"))
        bytes_print(reply, ":%d\r\n", kill_client(link->node, strtoull(words[3].bytes, NULL, 10)));
    else
        bytes_print(reply, "-ERR unknown command\r\n");
}

static bool is_loading(const struct link *link)
{
    return is_at_master(link) && server->loading_until_ns > world_now();
}

static void run_command(struct link *link, const struct text *words, int count)
{
    struct bytes reply = { 0 };

    if (is_loading(link))
        bytes_print(&reply, "-LOADING Redis is loading the dataset in memory\r\n");
    else if (!run_cluster_command(link, words, &reply))
        run_usual_command(link, words, count, &reply);
    link->is_asking = text_is(words[0], "ASKING");
    if (reply.length)
        net_send(link, TO_CLIENT, reply.data, reply.length);
    free(reply.data);
}

/* ---- bytes ------------------------------------------------------------------------------- */

void server_work_on(struct link *link)
{
    if (server->stalled_until_ns <= world_now())
        words_run(link, run_command);
}

void server_bytes(struct link *link, const char *bytes, size_t length)
{
    if (!link->is_known_to_server)
        return;
    if (link->server >= SERVERS_MAX) {
        sentinel_bytes(link, bytes, length);
        return;
    }
    server = &servers[link->server];
    bytes_add(&link->in, bytes, length);
    server_work_on(link);
}

/* ---- clients ----------------------------------------------------------------------------- */

bool server_accept(struct link *link)
{
    if (link->server >= SERVERS_MAX)
        return sentinel_accept(link);
    server = &servers[link->server];
    if (server->is_down)
        return false;
    link->node = (int)(server->master - server->nodes);
    link->client_id = ++server->master->last_client_id;
    link->replid = server->replid;
    link->is_known_to_server = true;
    link->next = server->links;
    server->links = link;
    return true;
}

/*
 * Removes a client.  Commands that were read from the client and not run yet are never run: server_work_on() runs those
 * of known links only.
 */
void server_gone(struct link *link)
{
    struct link **at = link->server >= SERVERS_MAX ? sentinel_links(link) : &servers[link->server].links;

    if (!link->is_known_to_server)
        return;
    while (*at != link)
        at = &(*at)->next;
    *at = link->next;
    link->is_known_to_server = false;
    link->channel[0] = '\0';
    memset(link->shards, 0, sizeof link->shards);
}

struct link *server_link(uint32_t number)
{
    struct link *link = server->links;
    uint32_t count = 0;

    for (struct link *each = server->links; each; each = each->next)
        count++;
    for (number = count ? number % count : 0; link && number > 0; number--)
        link = link->next;
    return link;
}

void server_kill_client(uint32_t number)
{
    struct link *link = server_link(number);

    if (link)
        net_reset(link);
}

/* ---- faults ------------------------------------------------------------------------------ */

static void wake(void *object, uint64_t number)
{
    struct link *link;

    (void)number;
    server = object;
    link = server->links;
    while (link) {
        struct link *next = link->next;

        if (link->in.length)
            server_work_on(link);
        link = link->is_known_to_server ? link->next : next;
    }
}

void server_stall(int64_t for_ns)
{
    server->stalled_until_ns = world_now() + for_ns;
    world_at(server->stalled_until_ns, wake, server, 0);
}

void server_load(int64_t for_ns)
{
    server->loading_until_ns = world_now() + for_ns;
}

static struct link *some_link_of_master(bool is_inbox_too)
{
    struct link *link = server->links;

    while (link && !(is_at_master(link) && (is_inbox_too || !link->channel[0])))
        link = link->next;
    return link;
}

void server_reset_links(bool is_inbox_too)
{
    struct link *link;

    while ((link = some_link_of_master(is_inbox_too)) != NULL)
        net_reset(link);
}

static void come_up(void *object, uint64_t number)
{
    struct server *back = object;

    if (number == back->ends)
        back->is_down = false;
}

static void go_down(int64_t down_ns)
{
    server->stalled_until_ns = server->loading_until_ns = 0;
    server->is_down = true;
    world_at(world_now() + down_ns, come_up, server, ++server->ends);
}

/* Begins a node's life under another run id. */
static void begin_node(struct node *node, int64_t started_us)
{
    *node = (struct node){ .run = ++server->last_run, .started_us = started_us };
}

void server_restart(enum keeps keeps, int64_t down_ns)
{
    server_reset_links(true);
    if (keeps == KEEPS_NOTHING)
        store_clear(&server->store);
    if (keeps == KEEPS_COPY)
        store_copy(&server->store, &server->copy);
    begin_node(server->master, server_now_us() + down_ns / 1000);
    server->replid = ++server->last_run;
    server->replid_before = 0;
    go_down(down_ns);
}

void server_draw_replid(void)
{
    server->replid_before = server->replid;
    server->replid = ++server->last_run;
}

void server_promote(enum keeps keeps)
{
    if (server->is_down)
        return;
    if (keeps == KEEPS_COPY)
        store_copy(&server->store, &server->copy);
    server->master = &server->nodes[server->master == server->nodes];
    server_draw_replid();
    server->stalled_until_ns = server->loading_until_ns = 0;
}

void server_promote_and_back(int64_t down_ns)
{
    if (server->is_down)
        return;
    server_reset_links(false);
    store_copy(&server->store, &server->copy);
    server_draw_replid();
    server_draw_replid();
    go_down(down_ns);
}

bool server_is_down(void)
{
    return server->is_down;
}

void server_set_monitor(bool is_there)
{
    server->has_monitor = is_there;
}

void server_copy(void)
{
    store_copy(&server->copy, &server->store);
}

void server_step_clock(int64_t us)
{
    server->ahead_us += us;
    if (server->ahead_us > server->most_ahead_us)
        server->most_ahead_us = server->ahead_us;
}

void server_set_clock(int64_t us)
{
    server->ahead_us = server->most_ahead_us = us;
}

bool server_is_clock_behind(void)
{
    return server->ahead_us < server->most_ahead_us;
}

bool server_right_clock(void)
{
    bool was_wrong = server_is_clock_behind();

    server->ahead_us = server->most_ahead_us;
    return was_wrong;
}

void server_let_ghosts_live(void)
{
    has_ghosts = true;
}

void server_set_full(bool is_full)
{
    server->is_full = is_full;
}

void server_flush_scripts(void)
{
    server->master->known_scripts = 0;
}

void server_flush_data(void)
{
    store_clear(&server->store);
}

void server_evict(uint32_t number)
{
    struct key *keys[64];
    int count = store_list(server_store(), keys, 64);

    if (count)
        store_delete(&server->store,
                     (struct text){ keys[number % (uint32_t)count]->name, keys[number % (uint32_t)count]->length });
}

/* ---- beginning and end ------------------------------------------------------------------- */

static void begin(struct server *new, int number)
{
    server = new;
    *server = (struct server){ .last_run = (uint64_t)number * 1000000 };
    server->master = server->nodes;
    for (int i = 0; i < 2; i++)
        begin_node(&server->nodes[i], START_US);
    server->replid = ++server->last_run;
}

void server_begin(struct scripting *scripting, int count)
{
    interpreter = scripting;
    has_ghosts = false;
    total = count;
    for (int i = count - 1; i >= 0; i--)
        begin(&servers[i], i);
}

void server_end(void)
{
    for (int i = 0; i < total; i++) {
        store_clear(&servers[i].store);
        store_clear(&servers[i].copy);
    }
}
