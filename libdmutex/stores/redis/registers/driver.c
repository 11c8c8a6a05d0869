/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The way to the server that has the data, and the driver's operations.
 *
 *   resting      nobody needs a connection
 *   connecting   until the link to the server that serves our slot can be used
 *   asking       for the epoch of its data, which is the identity
 *   ready        until that link breaks, another server serves the slot, or a script finds another epoch
 *
 * Links, sentinels and the map of a Cluster are those of the lock store (node/, sentinel/, cluster/).  They may call
 * their hooks on any thread, and while the client's lock is held; a hook notes what has come, and wakes whoever polls.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/descriptor.h"
#include "stores/redis/registers/parts.h"
#include "stores/redis/wire/slots.h"

#define LEASE_MIN_MS 500

/* A server that is not ready, or that refuses the epoch, is asked again after this. */
#define RESEND_NS (20 * DM_NS_PER_MS)
#define ASK_AGAIN_NS DM_NS_PER_S

/* How often the map of a Cluster is asked for while no node can be used. */
#define MAP_NS (250 * DM_NS_PER_MS)

/* Nodes that redirect a request in a circle may soon agree. */
#define REDIRECTS_MOST 5

/* How long messages may wait while answers come. */
#define INBOX_NS DM_NS_PER_MS

/* Why a link is closed that nobody needs. */
static const char at_rest[] = "is not needed now";

static struct dm_rr *rr_of(struct dm_reg_driver *driver)
{
    return (struct dm_rr *)(void *)driver;
}

/* ---- hooks --------------------------------------------------------------------------------- */

static void note_inbox(void *user)
{
    struct dm_rr *rr = user;

    __atomic_store_n(&rr->has_inbox_news, true, __ATOMIC_RELEASE);
    dm_rr_ring(rr);
}

/* The hooks of a server, or of a Cluster. */
static void wake(void *user)
{
    dm_rr_ring(user);
}

static void inbox_of_node_ready(void *user, struct dm_cluster_node *node)
{
    struct dm_rr *rr = user;

    dm_groups_inbox_ready(rr->groups, node);
}

/* Any client with the right may publish, so the text may be anything. */
static void message_came(void *user, const char *text, const struct dm_server *server)
{
    struct dm_rr *rr = user;
    size_t room = strlen(text) / 2;
    struct dm_rr_tell *tell = room <= DM_REG_TELL_MAX ? malloc(sizeof *tell + room + 1) : NULL;

    (void)server;
    if (!tell || !dm_rr_read_tell(text, tell->bytes, room, &tell->size)) {
        free(tell);
        return;
    }
    tell->arrival.came = DM_RR_CAME_TELL;
    dm_rr_push(rr, &tell->arrival);
}

static void inbox_replied(void *user, struct dm_cluster_node *node, const struct redisReply *reply)
{
    struct dm_rr *rr = user;

    dm_groups_take_reply(rr->groups, node, reply);
}

static void map_changed(void *user)
{
    struct dm_rr *rr = user;

    dm_groups_map_changed(rr->groups);
    dm_rr_ring(rr);
}

/* ---- answers ------------------------------------------------------------------------------ */

static void append(struct dm_rr *rr, struct dm_rr_request *request)
{
    request->next = NULL;
    request->link = rr->end;
    *rr->end = request;
    rr->end = &request->next;
}

static void take_out(struct dm_rr_request *request)
{
    struct dm_rr *rr = request->rr;

    *request->link = request->next;
    if (request->next)
        request->next->link = request->link;
    else
        rr->end = request->link;
    request->link = NULL;
}

static void answer_list(struct dm_rr_request *request)
{
    const struct dm_reg_client *client = &request->rr->client;
    const struct dm_rr_list *list = request->list;
    bool is_whole = request->reply.outcome == DM_REG_DONE && !list->is_short_of_memory;

    if (is_whole)
        client->on_list(client->user, request->ticket, (const char *const *)list->keys,
                        list->count < list->most ? list->count : list->most, list->count <= list->most, NULL);
    else
        client->on_list(client->user, request->ticket, NULL, -1, true, request->reply.reason);
}

/* The request is no longer under way for the client.  It is freed once no link has it. */
static void answer(struct dm_rr_request *request)
{
    const struct dm_reg_client *client = &request->rr->client;

    take_out(request);
    request->is_given_up = true;
    request->reply.reason = request->reply.outcome == DM_REG_DONE ? NULL : request->text;
    if (request->kind == DM_RR_LIST)
        answer_list(request);
    else if (request->kind != DM_RR_EPOCH)
        client->on_reply(client->user, request->ticket, request->index, &request->reply);
    if (!request->is_under_way)
        dm_rr_request_free(request);
}

/* A handler may be writing into the request: the reply here is another. */
static void answer_unknown(struct dm_rr_request *request, const char *reason)
{
    const struct dm_reg_client *client = &request->rr->client;
    const struct dm_reg_reply reply = { .outcome = DM_REG_UNKNOWN, .age_ms = -1, .reason = reason };

    take_out(request);
    request->is_given_up = true;
    if (request->kind == DM_RR_LIST)
        client->on_list(client->user, request->ticket, NULL, -1, true, reason);
    else if (request->kind != DM_RR_EPOCH)
        client->on_reply(client->user, request->ticket, request->index, &reply);
    if (!request->is_under_way)
        dm_rr_request_free(request);
}

/* Told once, until there is another reason, or a connection. */
static void tell_down(struct dm_rr *rr, const char *reason)
{
    if (strcmp(rr->told, reason) == 0)
        return;
    snprintf(rr->told, sizeof rr->told, "%s", reason);
    rr->client.on_down(rr->client.user, rr->told, false);
}

static void break_off(struct dm_rr *rr, const char *reason)
{
    char text[DM_REASON_ROOM];

    snprintf(text, sizeof text, "%s", reason);
    if (rr->phase == DM_RR_READY)
        rr->told[0] = '\0';
    rr->phase = DM_RR_CONNECTING;
    rr->home = NULL;
    rr->wanted_ns = dm_clock_boot_ns();
    rr->resend_ns = DM_NEVER;
    while (rr->first)
        answer_unknown(rr->first, text);
    if (rr->is_inbox_open) {
        rr->is_inbox_open = false;
        rr->client.on_inbox(rr->client.user, false);
    }
    tell_down(rr, text);
}

/* ---- replies ------------------------------------------------------------------------------ */

static void send_later(struct dm_rr_request *request)
{
    int64_t now_ns = dm_clock_boot_ns();

    if (now_ns > request->until_ns)
        answer_unknown(request, request->text);
    else if (request->rr->resend_ns == DM_NEVER)
        request->rr->resend_ns = now_ns + RESEND_NS;
}

static void repeat(struct dm_rr_request *request)
{
    struct dm_rr *rr = request->rr;
    const char *key = request->key ?: rr->epoch_key;
    bool is_way = true;

    if (request->is_redirect)
        is_way = dm_route_redirect(&rr->route, request->node, key, strlen(key), request->text) &&
                 ++request->redirects % REDIRECTS_MOST != 0;
    if (dm_clock_boot_ns() > request->until_ns || !is_way || !dm_rr_send(request))
        send_later(request);
}

static void be_ready(struct dm_rr *rr, const char *epoch)
{
    memcpy(rr->epoch, epoch, sizeof rr->epoch); /* take_epoch() of requests.c has counted the digits */
    memset(rr->knows, 0, sizeof rr->knows);
    rr->told[0] = '\0';
    rr->phase = DM_RR_READY;
    rr->client.on_ready(rr->client.user, rr->epoch);
}

static void take_epoch(struct dm_rr_request *request)
{
    struct dm_rr *rr = request->rr;
    bool is_known = request->reply.outcome == DM_REG_DONE && request->text;
    char text[DM_REASON_ROOM];

    snprintf(text, sizeof text, "%.230s", request->text ?: "out of memory");
    answer(request);
    if (is_known) {
        be_ready(rr, text);
        return;
    }
    rr->ask_again_ns = dm_clock_boot_ns() + ASK_AGAIN_NS;
    break_off(rr, text);
}

static void take_reply(struct dm_rr_request *request)
{
    struct dm_rr *rr = request->rr;

    request->is_under_way = false;
    if (request->is_given_up) {
        dm_rr_request_free(request);
        return;
    }
    if (request->is_distrusted)
        dm_node_distrust(request->node, request->text ?: "the server is another one now");
    switch (request->meaning) {
    case DM_RR_ANSWERED:
        if (request->kind == DM_RR_EPOCH)
            take_epoch(request);
        else
            answer(request);
        break;
    case DM_RR_LOST:
        answer_unknown(request, request->text);
        break;
    case DM_RR_REPEAT:
        repeat(request);
        break;
    case DM_RR_WAIT:
        send_later(request);
        break;
    case DM_RR_OTHER:
        break_off(rr, "the data of the locks have been deleted or replaced");
        break;
    }
}

static void take_all(struct dm_rr *rr)
{
    struct dm_rr_arrival *arrival = dm_rr_take_arrivals(rr), *next;

    for (; arrival; arrival = next) {
        struct dm_rr_tell *tell = (struct dm_rr_tell *)(void *)arrival;

        next = arrival->next;
        if (arrival->came == DM_RR_CAME_REPLY) {
            take_reply((struct dm_rr_request *)(void *)arrival);
            continue;
        }
        if (rr->phase == DM_RR_READY)
            rr->client.on_tell(rr->client.user, tell->bytes, tell->size);
        free(tell);
    }
}

/* Those that a break has answered meanwhile are no longer in the list. */
static void send_again(struct dm_rr *rr)
{
    struct dm_rr_request *request = rr->first, *next;

    if (dm_clock_boot_ns() < rr->resend_ns)
        return;
    rr->resend_ns = DM_NEVER;
    for (; request; request = next) {
        next = request->next;
        if (!request->is_under_way && !dm_rr_send(request))
            send_later(request);
    }
}

/* ---- the connection ----------------------------------------------------------------------- */

static struct dm_node *find_home(const struct dm_rr *rr)
{
    return dm_route_of_slot(&rr->route, rr->slot);
}

static uint64_t openings_of(struct dm_link *link)
{
    struct dm_link_traffic traffic;

    dm_link_count(link, &traffic);
    return traffic.reconnects;
}

static void find_reason(struct dm_rr *rr, struct dm_node *node, char ret_reason[DM_REASON_ROOM])
{
    if (node)
        dm_node_reason(node, node->commands.link, ret_reason);
    else
        dm_cluster_reason(rr->route.cluster, ret_reason);
}

/* True if the link is closed although it is wanted: it has failed, and waits for the next try. */
static bool has_failed(struct dm_link *link)
{
    struct dm_link_watch watch;

    dm_link_watch(link, &watch);
    if (!watch.is_closed)
        return false;
    dm_link_want(link);
    dm_link_watch(link, &watch);
    return watch.is_closed;
}

/* The sentinels have said where the server is; without any, the URL has. */
static bool is_located(const struct dm_node *node)
{
    struct dm_master_watch *watch = node->master_watch;
    char reason[DM_REASON_ROOM];
    struct dm_master master;
    uint64_t number;

    return !watch || dm_master_watch_find(watch, &master, &number, reason) == DM_MASTER_FOUND;
}

static void ask_for_epoch(struct dm_rr *rr, struct dm_node *node)
{
    struct dm_rr_request *request = dm_rr_request_new(rr, DM_RR_EPOCH, 0, 0, NULL);

    rr->home = node;
    rr->opened = openings_of(node->commands.link);
    if (!request)
        return;
    append(rr, request);
    rr->phase = DM_RR_ASKING;
    if (!dm_rr_send(request))
        send_later(request);
}

static void connect_home(struct dm_rr *rr)
{
    struct dm_node *node = find_home(rr);
    bool is_late = dm_clock_boot_ns() > rr->wanted_ns + rr->url->connect_timeout_ms * DM_NS_PER_MS, is_failed = false;
    char reason[DM_REASON_ROOM];

    if (node) {
        is_failed = has_failed(node->commands.link) && is_located(node);
        if (dm_link_is_ready(node->commands.link)) {
            if (dm_clock_boot_ns() >= rr->ask_again_ns)
                ask_for_epoch(rr, node);
            return;
        }
    }
    if (rr->is_clustered)
        dm_cluster_wish(rr->route.cluster);
    if (!is_failed && !is_late)
        return;
    find_reason(rr, node, reason);
    if (!strstr(reason, at_rest))
        tell_down(rr, reason);
}

static bool is_at_home(const struct dm_rr *rr)
{
    struct dm_link *link = rr->home->commands.link;

    return rr->home == find_home(rr) && dm_link_is_ready(link) && rr->opened == openings_of(link);
}

static bool is_heard(struct dm_rr *rr)
{
    if (!rr->channel)
        return false;
    if (!rr->groups)
        return !has_failed(rr->home->inbox.link) && dm_link_is_ready(rr->home->inbox.link);
    if (dm_groups_is_heard(rr->groups, &rr->place))
        return true;
    dm_groups_want(rr->groups, &rr->place);
    return false;
}

static void follow_inbox(struct dm_rr *rr)
{
    bool is_news = __atomic_exchange_n(&rr->has_inbox_news, false, __ATOMIC_ACQ_REL), is_open = is_heard(rr);

    if (rr->is_inbox_open && (is_news || !is_open)) {
        rr->is_inbox_open = false;
        rr->client.on_inbox(rr->client.user, false);
    }
    if (is_open && !rr->is_inbox_open) {
        rr->is_inbox_open = true;
        rr->client.on_inbox(rr->client.user, true);
    }
}

static void follow(struct dm_rr *rr)
{
    char reason[DM_REASON_ROOM];

    if ((rr->phase == DM_RR_ASKING || rr->phase == DM_RR_READY) && !is_at_home(rr)) {
        find_reason(rr, rr->home, reason);
        break_off(rr, reason);
    }
    if (rr->phase == DM_RR_CONNECTING)
        connect_home(rr);
    if (rr->phase == DM_RR_READY)
        follow_inbox(rr);
}

/* ---- turns -------------------------------------------------------------------------------- */

static bool is_wanted(const struct dm_rr *rr)
{
    return rr->has_route && rr->phase != DM_RR_RESTING && rr->phase != DM_RR_ENDED;
}

/*
 * The commands first: if they have brought something, that was why we were woken, and the inbox has its turn with the
 * next event.  So an answer does not cost a look at the inbox, too.
 */
static void work_links(struct dm_rr *rr)
{
    int64_t now_ns = dm_clock_boot_ns();
    bool is_inbox_late = now_ns - rr->heard_ns >= INBOX_NS;

    for (unsigned i = 0, count = dm_route_count(&rr->route); i < count; i++) {
        struct dm_node *node = dm_route_node(&rr->route, i);

        if (node->master_watch)
            dm_master_watch_turn(node->master_watch); /* first: what the links read may no longer count */
        dm_link_work(node->commands.link);
        if (!is_inbox_late && __atomic_load_n(&rr->arrivals, __ATOMIC_RELAXED))
            continue;
        dm_link_work(node->inbox.link);
        rr->heard_ns = now_ns;
    }
    if (!rr->groups)
        return;
    dm_groups_note_use(rr->groups, &rr->place);
    dm_link_work(dm_slot_map_link(rr->route.cluster->slot_map));
    dm_cluster_turn(rr->route.cluster);
    dm_groups_turn(rr->groups);
}

static void turn(struct dm_reg_driver *driver)
{
    struct dm_rr *rr = rr_of(driver);

    dm_rr_begin_work(rr);
    if (is_wanted(rr))
        work_links(rr);
    take_all(rr);
    if (is_wanted(rr)) {
        follow(rr);
        send_again(rr);
    }
    dm_rr_end_work(rr);
}

/* Links mind the stack themselves. */
static size_t stack(const struct dm_reg_driver *driver)
{
    (void)driver;
    return 0;
}

static void watch_link(struct dm_link *link, struct dm_watch *watched)
{
    struct dm_link_watch watch;

    dm_link_watch(link, &watch);
    if (watch.fd >= 0)
        dm_watch_poll(watched, watch.fd, watch.events);
    dm_watch_until(watched, watch.due_ns);
}

static void watch_map(struct dm_rr *rr, struct dm_watch *watched)
{
    dm_slot_map_watch(rr->route.cluster->slot_map, watched);
    dm_groups_watch(rr->groups, watched);
    dm_watch_until(watched, dm_cluster_ask_due_ns(rr->route.cluster));
    if (__atomic_load_n(&rr->route.cluster->is_wished, __ATOMIC_RELAXED))
        dm_watch_until(watched, __atomic_load_n(&rr->route.cluster->refreshed_ns, __ATOMIC_RELAXED) + MAP_NS);
}

static void watch_links(struct dm_rr *rr, struct dm_watch *watched)
{
    for (unsigned i = 0, count = dm_route_count(&rr->route); i < count; i++) {
        struct dm_node *node = dm_route_node(&rr->route, i);

        watch_link(node->inbox.link, watched);
        watch_link(node->commands.link, watched);
        if (node->master_watch)
            dm_master_watch_watch(node->master_watch, watched);
    }
    if (rr->groups)
        watch_map(rr, watched);
}

static void watch(struct dm_reg_driver *driver, struct dm_watch *watched)
{
    struct dm_rr *rr = rr_of(driver);
    int64_t now_ns = dm_clock_boot_ns(), late_ns = rr->wanted_ns + rr->url->connect_timeout_ms * DM_NS_PER_MS;

    if (!is_wanted(rr))
        return;
    dm_watch_poll(watched, rr->bell, POLLIN);
    watch_links(rr, watched);
    dm_watch_until(watched, rr->resend_ns);
    if (rr->phase == DM_RR_CONNECTING && rr->ask_again_ns > now_ns)
        dm_watch_until(watched, rr->ask_again_ns);
    if (rr->phase == DM_RR_CONNECTING && late_ns > now_ns)
        dm_watch_until(watched, late_ns);
    if (__atomic_load_n(&rr->arrivals, __ATOMIC_RELAXED))
        dm_watch_until(watched, now_ns);
}

/* ---- requests ----------------------------------------------------------------------------- */

/* False if the store cannot keep it: answered without the server. */
static bool is_small(const struct dm_rr_request *request)
{
    return request->kind != DM_RR_SWAP || request->size == 0 ||
           (request->size >= DM_REG_VERSION_SIZE && request->size <= DM_RR_VALUE_MAX);
}

static void begin_request(struct dm_rr_request *request)
{
    append(request->rr, request);
    if (is_small(request)) {
        if (!dm_rr_send(request))
            send_later(request);
        return;
    }
    request->is_under_way = true;
    request->meaning = DM_RR_ANSWERED;
    request->reply = (struct dm_reg_reply){ .outcome = DM_REG_TOO_LARGE, .age_ms = -1 };
    dm_rr_push(request->rr, &request->arrival);
}

/* All or none.  Several go out in one write. */
static bool ask(struct dm_rr *rr, enum dm_rr_kind kind, uint64_t ticket, const struct dm_reg_item *items, int count)
{
    struct dm_rr_request **made = rr->phase == DM_RR_READY ? calloc((size_t)count + 1, sizeof *made) : NULL;
    struct dm_node *home = rr->home;
    int i = 0;

    for (; made && i < count; i++) {
        made[i] = dm_rr_request_new(rr, kind, ticket, i, &items[i]);
        if (!made[i])
            break;
    }
    if (!made || i < count) {
        for (i = 0; made && made[i]; i++)
            dm_rr_request_free(made[i]);
        free(made);
        return false;
    }
    if (count > 1)
        dm_node_hold(home);
    for (i = 0; i < count; i++)
        begin_request(made[i]);
    if (count > 1)
        dm_node_let_go(home);
    free(made);
    return true;
}

static bool read_items(struct dm_reg_driver *driver, uint64_t ticket, const struct dm_reg_item *items, int count)
{
    return ask(rr_of(driver), DM_RR_READ, ticket, items, count);
}

static bool swap_items(struct dm_reg_driver *driver, uint64_t ticket, const struct dm_reg_item *items, int count)
{
    return ask(rr_of(driver), DM_RR_SWAP, ticket, items, count);
}

static bool list_keys(struct dm_reg_driver *driver, uint64_t ticket, const char *prefix, const char *after, int most)
{
    struct dm_rr *rr = rr_of(driver);
    struct dm_rr_request *request =
        rr->phase == DM_RR_READY ? dm_rr_request_new(rr, DM_RR_LIST, ticket, 0, NULL) : NULL;

    if (request)
        request->list = dm_rr_list_new(rr, prefix, after, most);
    if (!request || !request->list) {
        if (request)
            dm_rr_request_free(request);
        return false;
    }
    begin_request(request);
    return true;
}

/* ---- beginning and end -------------------------------------------------------------------- */

static bool route_to_one(struct dm_rr *rr)
{
    const struct dm_node_hooks hooks = {
        .on_ready = wake,
        .on_inbox = note_inbox,
        .on_message = message_came,
        .on_change = wake,
        .user = rr,
    };

    return dm_route_to_one(&rr->route, rr->url, rr->channel ?: "", &hooks);
}

static bool route_to_cluster(struct dm_rr *rr)
{
    const struct dm_cluster_hooks hooks = {
        .on_ready = wake,
        .on_inbox = inbox_of_node_ready,
        .on_message = message_came,
        .on_inbox_reply = inbox_replied,
        .on_map = map_changed,
        .on_change = wake,
        .user = rr,
    };

    if (!dm_route_to_cluster(&rr->route, rr->url, &hooks))
        return false;
    rr->groups = dm_groups_new(rr->route.cluster, rr->inbox, note_inbox, rr);
    if (rr->groups)
        return true;
    dm_route_clear_unused(&rr->route);
    return false;
}

/* Opened late: the name of the inbox belongs to the links. */
static bool open_route(struct dm_rr *rr)
{
    if (rr->bell < 0)
        rr->bell = dm_bell_open();
    if (!rr->has_route && rr->bell >= 0)
        rr->has_route = rr->is_clustered ? route_to_cluster(rr) : route_to_one(rr);
    return rr->has_route;
}

static bool listen_to(struct dm_reg_driver *driver, const char *inbox)
{
    struct dm_rr *rr = rr_of(driver);
    size_t length;

    snprintf(rr->inbox, sizeof rr->inbox, "%s", inbox);
    rr->channel = dm_rr_channel(rr, inbox);
    length = rr->channel ? strlen(rr->channel) - strlen(inbox) : 0;
    if (!rr->channel || strlen(rr->channel) >= sizeof((struct dm_node *)NULL)->channel)
        return false;
    rr->place = (struct dm_place){ .inbox = strndup(rr->channel, length), .slot = (uint16_t)rr->slot };
    return rr->place.inbox && open_route(rr);
}

static void want(struct dm_reg_driver *driver)
{
    struct dm_rr *rr = rr_of(driver);

    if (rr->phase != DM_RR_RESTING || !open_route(rr))
        return;
    rr->phase = DM_RR_CONNECTING;
    rr->wanted_ns = dm_clock_boot_ns();
    rr->told[0] = '\0';
    dm_rr_ring(rr);
}

/* What is under way is answered by nobody. */
static void stop(struct dm_rr *rr, enum dm_rr_phase phase)
{
    rr->phase = phase;
    rr->home = NULL;
    rr->resend_ns = DM_NEVER;
    rr->is_inbox_open = false;
    while (rr->first) {
        struct dm_rr_request *request = rr->first;

        take_out(request);
        request->is_given_up = true;
        if (!request->is_under_way)
            dm_rr_request_free(request);
    }
}

static void rest(struct dm_reg_driver *driver)
{
    struct dm_rr *rr = rr_of(driver);

    if (!is_wanted(rr))
        return;
    stop(rr, DM_RR_RESTING);
    dm_rr_begin_work(rr);
    for (unsigned i = 0, count = dm_route_count(&rr->route); i < count; i++) {
        dm_link_rest(dm_route_node(&rr->route, i)->commands.link, at_rest);
        dm_link_rest(dm_route_node(&rr->route, i)->inbox.link, at_rest);
    }
    take_all(rr);
    dm_rr_end_work(rr);
}

static void end(struct dm_reg_driver *driver)
{
    struct dm_rr *rr = rr_of(driver);

    if (rr->phase == DM_RR_ENDED)
        return;
    stop(rr, DM_RR_ENDED);
    dm_rr_begin_work(rr);
    if (rr->has_route)
        dm_route_end(&rr->route);
    take_all(rr);
    dm_rr_end_work(rr);
    dm_bell_close(rr->bell);
    rr->bell = DM_BELL_GONE;
}

static void forget(struct dm_reg_driver *driver)
{
    struct dm_rr *rr = rr_of(driver);

    rr->phase = DM_RR_ENDED;
    if (rr->has_route)
        dm_route_fork_child(&rr->route);
    dm_bell_close(rr->bell);
    rr->bell = DM_BELL_GONE;
}

static void say_place(struct dm_reg_driver *driver, char *ret_text, size_t room)
{
    dm_url_describe(rr_of(driver)->url, ret_text, room);
}

static void free_unused(struct dm_reg_driver *driver)
{
    struct dm_rr *rr = rr_of(driver);

    if (rr->phase == DM_RR_ENDED)
        return; /* it was wanted: a thread of a link may be about to use it */
    if (rr->has_route)
        dm_route_clear_unused(&rr->route);
    dm_groups_free_unused(rr->groups);
    dm_bell_close(rr->bell);
    free((void *)rr->place.inbox);
    free(rr->channel);
    free(rr->prefix);
    free(rr->epoch_key);
    free(rr);
}

static bool load(struct dm_reg_driver *driver)
{
    return !rr_of(driver)->route.url->has_tls || dm_tls_load_here();
}

static const struct dm_reg_driver_ops ops = {
    .want = want,
    .rest = rest,
    .read = read_items,
    .swap = swap_items,
    .list = list_keys,
    .listen = listen_to,
    .watch = watch,
    .turn = turn,
    .stack = stack,
    .load = load,
    .place = say_place,
    .end = end,
    .forget = forget,
    .free_unused = free_unused,
};

/* PREFIX:TAG:WORD */
static char *make_key(const struct dm_url *url, const char *word)
{
    size_t room = strlen(url->prefix) + sizeof DM_RR_TAG + strlen(word) + 2;
    char *text = malloc(room);

    if (text)
        snprintf(text, room, "%s:" DM_RR_TAG ":%s", url->prefix, word);
    return text;
}

struct dm_reg_driver *dm_redis_registers_open(struct dm_url *url, const struct dm_reg_client *client,
                                              char ret_reason[DM_REASON_ROOM])
{
    struct dm_rr *rr = calloc(1, sizeof *rr);

    snprintf(ret_reason, DM_REASON_ROOM, "out of memory");
    if (!rr)
        return NULL;
    __atomic_store_n(&url->has_grace, false, __ATOMIC_RELAXED);
    rr->driver.ops = &ops;
    rr->driver.can = (struct dm_reg_abilities){ .has_tells = true,
                                                .has_ages = true,
                                                .has_lists = true,
                                                .value_max = DM_RR_VALUE_MAX,
                                                .lease_ms_min = LEASE_MIN_MS };
    rr->client = *client;
    rr->url = url;
    rr->is_clustered = url->kind == DM_URL_CLUSTER;
    rr->bell = -1;
    rr->end = &rr->first;
    rr->resend_ns = DM_NEVER;
    rr->prefix = make_key(url, "register:");
    rr->epoch_key = make_key(url, "epoch");
    if (rr->prefix && rr->epoch_key) {
        rr->slot = rr->is_clustered ? dm_slot_of(rr->epoch_key, strlen(rr->epoch_key)) : 0;
        return &rr->driver;
    }
    free_unused(&rr->driver);
    return NULL;
}
