/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stands in for stores/redis/cluster/fleet.c in programs that replace the node: one server, `the_member`.  Included by
 * one file of a program.
 */
#ifndef TEST_FLEET_OF_ONE_H
#define TEST_FLEET_OF_ONE_H

#include <stdio.h>
#include <string.h>

#include "stores/redis/cluster/fleet.h"

static struct dm_member the_member;
static uint64_t since_us;  /* of the server */
static bool is_wished;     /* a post could not be sent */
static bool is_sending_on; /* follows redirects, as a Cluster does */

/* The last redirect. */
static struct {
    int times;
    char key[80], error[80];
} redirected;

struct dm_member *dm_fleet_of_args(struct dm_fleet *fleet, struct dm_args *args)
{
    (void)args;
    the_member.fleet = fleet;
    return &the_member;
}

struct dm_member *dm_fleet_of_slot(const struct dm_fleet *fleet, unsigned slot)
{
    (void)fleet;
    (void)slot;
    return &the_member;
}

void dm_node_hold(struct dm_node *node)
{
    (void)node;
}

void dm_node_let_go(struct dm_node *node)
{
    (void)node;
}

uint64_t dm_node_link_server(struct dm_node_link *line, struct dm_server *ret_server)
{
    (void)line;
    *ret_server = (struct dm_server){ .since_us = since_us };
    return 1;
}

struct dm_member *dm_fleet_await(struct dm_fleet *fleet, struct dm_args *args, const struct dm_deadline *deadline)
{
    (void)deadline;
    return dm_fleet_of_args(fleet, args);
}

bool dm_fleet_redirect(struct dm_fleet *fleet, const struct dm_member *from, const char *key, size_t length,
                       const char *error)
{
    (void)fleet;
    (void)from;
    redirected.times++;
    snprintf(redirected.key, sizeof redirected.key, "%.*s", (int)length, key);
    snprintf(redirected.error, sizeof redirected.error, "%s", error);
    return is_sending_on && (strncmp(error, "MOVED ", 6) == 0 || strncmp(error, "ASK ", 4) == 0);
}

void dm_fleet_wish(struct dm_fleet *fleet, struct dm_member *member)
{
    (void)fleet;
    (void)member;
    is_wished = true;
}

void dm_fleet_reason(struct dm_fleet *fleet, char ret_reason[DM_REASON_ROOM])
{
    (void)fleet;
    ret_reason[0] = '\0';
}

#endif
