/* SPDX-License-Identifier: BSD-2-Clause */
/* The servers of a group with sentinels, or of a shard: who replicates whom, and WAIT. */
#include <stdio.h>
#include <string.h>

#include "server_parts.h"
#include "world.h"

/* ---- WAIT -------------------------------------------------------------------------------- */

static int count_replicas(const struct link *link)
{
    int count = 0;

    for (int i = 0; i < server_count(); i++) {
        const struct server *replica = &servers[i];

        count += replica->is_replica && !replica->is_down && replica->follows == (uint32_t)link->server &&
                 replica->offset >= link->written;
    }
    return count;
}

static void end_wait(struct link *link)
{
    char reply[16];

    link->is_waiting = false;
    snprintf(reply, sizeof reply, ":%d\r\n", count_replicas(link));
    net_send(link, TO_CLIENT, reply, strlen(reply));
    server_choose((uint32_t)link->server);
    server_work_on(link);
}

static void end_wait_by_time(void *object, uint64_t number)
{
    struct link *link = object;
    int64_t stalled_until_ns = servers[link->server].stalled_until_ns;

    if (!link->is_known_to_server || !link->is_waiting || link->waits != number)
        return;
    if (stalled_until_ns > world_now())
        world_at(stalled_until_ns, end_wait_by_time, object, number);
    else
        end_wait(link);
}

void server_await_replicas(struct link *link, int replicas, int64_t limit_ms, struct bytes *reply)
{
    if (count_replicas(link) >= replicas) {
        bytes_print(reply, ":%d\r\n", count_replicas(link));
        return;
    }
    link->is_waiting = true;
    link->replicas_wanted = replicas;
    world_at(world_now() + limit_ms * MS, end_wait_by_time, link, ++link->waits);
}

/* The data of the master have reached a replica. */
static void look_at_waits(uint32_t master)
{
    struct link *link = servers[master].stalled_until_ns > world_now() ? NULL : servers[master].links;

    while (link) {
        struct link *next = link->next;

        if (link->is_waiting && count_replicas(link) >= link->replicas_wanted)
            end_wait(link);
        link = link->is_known_to_server ? link->next : next;
    }
}

/* ---- the group --------------------------------------------------------------------------- */

void server_become_master(void)
{
    struct server *server = &servers[server_number()];

    if (server->is_replica)
        server_draw_replid();
    server->is_replica = false;
}

void server_become_replica(uint32_t number)
{
    struct server *server = &servers[server_number()];
    const struct server *master = &servers[number];

    server->is_replica = true;
    server->follows = number;
    server->offset = master->offset;
    store_copy(&server->store, &master->store);
    server->replid = master->replid;
    server->replid_before = master->replid_before;
}

void server_take_over(void)
{
    server_become_master();
    server_reset_links(true);
}

void server_follow(uint32_t number)
{
    server_become_replica(number);
    server_reset_links(true);
}

void server_catch_up(uint32_t number)
{
    struct server *server = &servers[server_number()];
    const struct server *master = &servers[number];

    if (!server->is_replica || server->is_down || master->is_down || server->stalled_until_ns > world_now())
        return;
    store_copy(&server->store, &master->store);
    server->offset = master->offset;
    look_at_waits(number);
}
