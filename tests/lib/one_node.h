/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stands in for stores/redis/cluster/cluster.c in programs that replace the node: the only server, or the only one of a
 * Cluster, is `the_node`.  Included by
 * one file of a program.
 */
#ifndef TEST_ONE_NODE_H
#define TEST_ONE_NODE_H

#include <stdio.h>
#include <string.h>

#include "stores/redis/route.h"

static struct dm_cluster the_cluster;
static struct dm_cluster_node the_cluster_node;
static struct dm_node *const the_node = &the_cluster_node.base;
static uint64_t since_us;  /* of the server */
static bool is_sending_on; /* follows redirects, as a Cluster does */

/* The last redirect. */
static struct {
    int times;
    char key[80], error[80];
} redirected;

struct dm_cluster_node *dm_cluster_of_args(struct dm_cluster *cluster, struct dm_args *args)
{
    (void)cluster;
    (void)args;
    return &the_cluster_node;
}

struct dm_cluster_node *dm_cluster_of_slot(const struct dm_cluster *cluster, unsigned slot)
{
    (void)cluster;
    (void)slot;
    return &the_cluster_node;
}

void dm_node_hold(struct dm_node *node)
{
    (void)node;
}

void dm_node_let_go(struct dm_node *node)
{
    (void)node;
}

uint64_t dm_node_link_server(struct dm_node_link *link, struct dm_server *ret_server)
{
    (void)link;
    *ret_server = (struct dm_server){ .since_us = since_us };
    return 1;
}

struct dm_cluster_node *dm_cluster_await(struct dm_cluster *cluster, struct dm_args *args,
                                         const struct dm_deadline *deadline)
{
    (void)deadline;
    return dm_cluster_of_args(cluster, args);
}

bool dm_cluster_redirect(struct dm_cluster *cluster, const struct dm_cluster_node *from, const char *key, size_t length,
                         const char *error)
{
    (void)cluster;
    (void)from;
    redirected.times++;
    snprintf(redirected.key, sizeof redirected.key, "%.*s", (int)length, key);
    snprintf(redirected.error, sizeof redirected.error, "%s", error);
    return is_sending_on && (strncmp(error, "MOVED ", 6) == 0 || strncmp(error, "ASK ", 4) == 0);
}

void dm_cluster_wish(struct dm_cluster *cluster)
{
    (void)cluster;
}

void dm_cluster_reason(struct dm_cluster *cluster, char ret_reason[DM_REASON_ROOM])
{
    (void)cluster;
    ret_reason[0] = '\0';
}

/* The way to that server. */
static inline struct dm_route one_node_route(bool is_cluster)
{
    return (struct dm_route){ .one = is_cluster ? NULL : the_node, .cluster = is_cluster ? &the_cluster : NULL };
}

#endif
