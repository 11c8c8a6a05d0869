/* SPDX-License-Identifier: BSD-2-Clause */
#include "sentinels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hooks.h"
#include "words.h"
#include "world.h"

/* How late the data of a master reach a replica. */
#define LAG_NS (20 * MS)
#define LAG_WAIT_NS (2 * MS)
#define LAG_WAIT_MOST_NS (60 * MS)
#define LAG_MOST_NS (600 * MS)

struct sentinel {
    struct link *links; /* the newest first */
    uint32_t master;
    uint64_t epoch;
    bool is_down, is_deaf;
};

static struct sentinel sentinels[SENTINELS];
static bool are_there;
static uint32_t master; /* by the newest failover */
static uint64_t epoch;
static unsigned wait; /* for this many replicas */

bool sentinels_are_there(void)
{
    return are_there;
}

/* ---- clients ----------------------------------------------------------------------------- */

static struct sentinel *sentinel_of(const struct link *link)
{
    return &sentinels[link->server - SERVERS_MAX];
}

struct link **sentinel_links(const struct link *link)
{
    return &sentinel_of(link)->links;
}

bool sentinel_accept(struct link *link)
{
    struct sentinel *sentinel = sentinel_of(link);

    if (sentinel->is_down)
        return false;
    link->is_known_to_server = true;
    link->next = sentinel->links;
    sentinel->links = link;
    return true;
}

static void say_others(const struct sentinel *sentinel, struct bytes *reply)
{
    bytes_print(reply, "*%d\r\n", SENTINELS - 1);
    for (int i = 0; i < SENTINELS; i++) {
        if (&sentinels[i] != sentinel)
            bytes_print(reply,
                        "*6\r\n$5\r\nrunid\r\n$40\r\n%040d\r\n$2\r\nip\r\n$8\r\n10.0.0.1\r\n$4\r\nport\r\n$1\r\n%d\r\n",
                        i + 1, SERVERS_MAX + i + 1);
    }
}

static void say_epoch(const struct sentinel *sentinel, struct bytes *reply)
{
    if (hooks_has(SENTINELS_TELL_NO_EPOCH)) {
        bytes_print(reply, "-NOPERM\r\n");
        return;
    }
    bytes_print(reply, "*2\r\n$12\r\nconfig-epoch\r\n$8\r\n%08llu\r\n", (unsigned long long)sentinel->epoch);
}

static void run_command(struct link *link, const struct text *words, int count)
{
    const struct sentinel *sentinel = sentinel_of(link);
    struct bytes reply = { 0 };

    if (text_is(words[0], "SUBSCRIBE")) {
        snprintf(link->channel, sizeof link->channel, "%s", words[1].bytes);
        bytes_print(&reply, "*3\r\n$9\r\nsubscribe\r\n$%zu\r\n%s\r\n:1\r\n", words[1].length, words[1].bytes);
    } else if (count == 2 && text_is(words[1], "MYID")) {
        bytes_print(&reply, "$40\r\n%040d\r\n", (int)(sentinel - sentinels) + 1);
    } else if (text_is(words[1], "sentinels")) {
        say_others(sentinel, &reply);
    } else if (text_is(words[1], "master")) {
        say_epoch(sentinel, &reply);
    } else if (text_is(words[1], "get-master-addr-by-name")) {
        bytes_print(&reply, "*2\r\n$8\r\n10.0.0.1\r\n$1\r\n%u\r\n", sentinel->master + 1);
    } else {
        bytes_print(&reply, "-ERR unknown command\r\n");
    }
    net_send(link, TO_CLIENT, reply.data, reply.length);
    free(reply.data);
}

void sentinel_bytes(struct link *link, const char *bytes, size_t length)
{
    bytes_add(&link->in, bytes, length);
    words_run(link, run_command);
}

/* ---- views ------------------------------------------------------------------------------- */

static void tell_switch(const struct sentinel *sentinel)
{
    static const char message[] = "*3\r\n$7\r\nmessage\r\n$14\r\n+switch-master\r\n$23\r\nm 10.0.0.1 1 10.0.0.1 2\r\n";

    for (struct link *link = sentinel->links; link; link = link->next) {
        if (link->channel[0])
            net_send(link, TO_CLIENT, message, sizeof message - 1);
    }
}

/* A sentinel that is in touch with the others hears of the newest failover. */
static void learn(void *object, uint64_t number)
{
    struct sentinel *sentinel = object;

    (void)number;
    if (sentinel->is_down || sentinel->is_deaf || sentinel->epoch == epoch)
        return;
    sentinel->master = master;
    sentinel->epoch = epoch;
    world_note("sentinel %d: the master is server %u", (int)(sentinel - sentinels), master);
    tell_switch(sentinel);
}

static void tell_all(void)
{
    for (int i = 0; i < SENTINELS; i++)
        world_at(world_now() + chance_below(CHANCE_FAULTS, SENTINELS_SWITCH_MS / 2) * MS, learn, &sentinels[i], 0);
}

static int count_in_touch(void)
{
    int count = 0;

    for (int i = 0; i < SENTINELS; i++)
        count += !sentinels[i].is_down && !sentinels[i].is_deaf;
    return count;
}

static void come_back(void *object, uint64_t number)
{
    struct sentinel *sentinel = object;

    sentinel->is_down = sentinel->is_deaf = false;
    learn(sentinel, number);
}

void sentinels_lose(uint32_t number, bool is_deaf, int64_t for_ns)
{
    struct sentinel *sentinel = &sentinels[number % SENTINELS];

    if (count_in_touch() < SENTINELS)
        return;
    sentinel->is_deaf = is_deaf;
    sentinel->is_down = !is_deaf;
    while (sentinel->is_down && sentinel->links)
        net_reset(sentinel->links);
    world_at(world_now() + for_ns, come_back, sentinel, 0);
}

/* ---- the servers ------------------------------------------------------------------------- */

/* WAIT asks the replicas at once; a control that believes without WAIT has the usual lag. */
static int64_t some_lag_ns(void)
{
    bool is_asked = wait && !hooks_has(LINK_AWAITS_NO_REPLICA);

    return is_asked ? chance_delay(CHANCE_NETWORK, LAG_WAIT_NS, LAG_WAIT_MOST_NS)
                    : chance_delay(CHANCE_NETWORK, LAG_NS, LAG_MOST_NS);
}

static void replicate(void *object, uint64_t number)
{
    server_choose((uint32_t)number);
    if (number != master)
        server_catch_up(master);
    world_at(world_now() + some_lag_ns(), replicate, object, number);
}

/* Real sentinels leave a master that has come back alone for this long: it may be promoted again in that time. */
#define DEMOTED_AFTER_NS (10000 * MS)

/* The sentinels make a server that still says "master" a replica, as soon as it can be reached. */
static void demote(void *object, uint64_t number)
{
    if (number == master)
        return;
    server_choose((uint32_t)number);
    if (server_is_down())
        world_at(world_now() + 100 * MS, demote, object, number);
    else
        server_follow(master);
}

static bool is_usable(uint32_t number)
{
    server_choose(number);
    return number != master && !server_is_down();
}

/* The server that is not the master and was not the previous one. */
static uint32_t third_of(uint32_t before)
{
    return 0 + 1 + 2 - before - master;
}

/*
 * A manual failover takes the next epoch and asks nobody, so a concurrent one may have the same epoch: the third server
 * is a master, too, until it is made a replica, and one sentinel names it until the next failover.
 */
static void promote_twin(uint32_t before, int64_t blind_ns)
{
    struct sentinel *by = &sentinels[before];
    uint32_t twin = third_of(before);

    server_choose(twin);
    if (by->is_down || by->is_deaf || server_is_down()) {
        demote(NULL, twin);
        return;
    }
    server_take_over();
    by->master = twin;
    by->epoch = epoch;
    world_note("sentinel %u: the master is server %u, by the same epoch", before, twin);
    tell_switch(by);
    world_at(world_now() + blind_ns, demote, NULL, twin);
}

void sentinels_fail_over(uint32_t number, enum old_master old, bool has_twin, int64_t blind_ns)
{
    uint32_t before = master, next = number % SENTINELS_SERVERS;

    if (!is_usable(next))
        next = (next + 1) % SENTINELS_SERVERS;
    if (!is_usable(next) || count_in_touch() < 2)
        return;
    server_choose(before);
    if (old == OLD_STALLS)
        server_stall(blind_ns / 2);
    if (old == OLD_RESTARTS)
        server_restart(KEEPS_ALL, blind_ns / 2);
    if (old == OLD_RESTARTS_EMPTY) {
        server_restart(KEEPS_NOTHING, blind_ns / 8);
        blind_ns += DEMOTED_AFTER_NS;
    }
    server_choose(next);
    server_take_over();
    master = next;
    epoch++;
    counters.switches++;
    world_note("server %u is the master instead of %u", master, before);
    if (has_twin)
        promote_twin(before, blind_ns);
    else
        demote(NULL, third_of(before));
    tell_all();
    world_at(world_now() + blind_ns, demote, NULL, before);
}

/* ---- beginning --------------------------------------------------------------------------- */

void sentinels_none(void)
{
    are_there = false;
}

unsigned sentinels_wait(void)
{
    return wait;
}

void sentinels_begin(unsigned wanted)
{
    are_there = true;
    wait = wanted;
    memset(sentinels, 0, sizeof sentinels);
    master = 0;
    epoch = 0;
    for (uint32_t i = 1; i < SENTINELS_SERVERS; i++) {
        server_choose(i);
        server_follow(0);
        replicate(NULL, i);
    }
    replicate(NULL, 0);
    server_choose(0);
}
