/* SPDX-License-Identifier: BSD-2-Clause */
#include "clusters.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "testlib.h"

/* ---- nodes ------------------------------------------------------------------------------- */

static bool is_running(const struct cluster *cluster, int node)
{
    const struct server *server = cluster->nodes[node];

    return server && server->pid && server->side && !cluster->is_stopped[node];
}

static int any_running(const struct cluster *cluster)
{
    int node = 0;

    while (node < cluster->count && !is_running(cluster, node))
        node++;
    assert_within(node, 0, cluster->count - 1);
    return node;
}

static struct side *side_of(const struct cluster *cluster, int node)
{
    return cluster->nodes[node]->side;
}

/* The usual bus port, 10000 higher, may not exist.  A master without slots stays a master. */
static int start_node(struct cluster *cluster)
{
    int node = cluster->count++, bus_port = server_free_port();
    char bus[16], timeout[16];

    assert_within(node, 0, CLUSTER_NODES - 1);
    snprintf(bus, sizeof bus, "%d", bus_port);
    snprintf(timeout, sizeof timeout, "%d", late_stretched_ms(cluster->timeout_ms));
    cluster->nodes[node] = server_start_with(
        true, "--cluster-enabled", "yes", "--cluster-port", bus, "--cluster-node-timeout", timeout,
        "--cluster-replica-validity-factor", "0", "--cluster-allow-replica-migration", "no",
        "--cluster-require-full-coverage", cluster->is_sparse ? "no" : "yes", "--repl-diskless-sync-delay", "0", NULL);
    cluster->bus_ports[node] = bus_port;
    snprintf(cluster->ids[node], sizeof cluster->ids[node], "%s", side_text(side_of(cluster, node), "CLUSTER MYID"));
    return node;
}

/* Meets every earlier node: nodes that only hear of each other from others need seconds. */
static void meet(const struct cluster *cluster, int node)
{
    for (int i = 0; i < node; i++) {
        if (cluster->nodes[i])
            side_text(side_of(cluster, i), "CLUSTER MEET 127.0.0.1 %d %d", cluster->nodes[node]->port,
                      cluster->bus_ports[node]);
    }
}

static int count_nodes(const struct cluster *cluster)
{
    int count = 0;

    for (int i = 0; i < cluster->count; i++)
        count += cluster->nodes[i] != NULL;
    return count;
}

static int count_words(const char *text, const char *word)
{
    int count = 0;

    while ((text = strstr(text, word))) {
        count++;
        text++;
    }
    return count;
}

/* A node is well if it can reach every node, and no node is said to have failed. */
static bool is_well(const struct cluster *cluster, int node)
{
    const char *text = side_text(side_of(cluster, node), "CLUSTER NODES");

    return count_words(text, " connected") == count_nodes(cluster) && !strstr(text, "fail") &&
           !strstr(text, "handshake");
}

static bool are_all_well(const struct cluster *cluster)
{
    for (int i = 0; i < cluster->count; i++) {
        if (is_running(cluster, i) && !is_well(cluster, i))
            return false;
    }
    return true;
}

static bool serves(const struct cluster *cluster, int node)
{
    struct side *side = side_of(cluster, node);

    return side_says(side, "cluster_state:ok", "CLUSTER INFO") &&
           (side_says(side, "role:master", "INFO replication") ||
            side_says(side, "master_link_status:up", "INFO replication"));
}

static bool do_all_serve(const struct cluster *cluster)
{
    for (int i = 0; i < cluster->count; i++) {
        if (is_running(cluster, i) && !serves(cluster, i))
            return false;
    }
    return true;
}

static int replica_of(const struct cluster *cluster, int master)
{
    char own_line[80];

    snprintf(own_line, sizeof own_line, "myself,slave %s", cluster->ids[master]);
    for (int i = 0; i < cluster->count; i++) {
        if (is_running(cluster, i) && side_says(side_of(cluster, i), own_line, "CLUSTER NODES"))
            return i;
    }
    return -1;
}

static int epoch_of(const struct cluster *cluster, int node)
{
    return atoi(strstr(side_text(side_of(cluster, node), "CLUSTER INFO"), "current_epoch:") + strlen("current_epoch:"));
}

/* A replica that knows an older epoch may be elected, but then nobody accepts it. */
static bool know_all_the_epoch(const struct cluster *cluster)
{
    int epoch = epoch_of(cluster, any_running(cluster));

    for (int i = 0; i < cluster->count; i++) {
        if (is_running(cluster, i) && epoch_of(cluster, i) != epoch)
            return false;
    }
    return true;
}

void cluster_await_epoch(const struct cluster *cluster)
{
    wait_until(know_all_the_epoch(cluster));
}

/*
 * A master sends nothing to a new replica before the replica's first message, which may come a second after the data.
 * So we write something without effect, and wait until it is confirmed.
 */
static bool are_all_followed(const struct cluster *cluster)
{
    for (int i = 0; i < cluster->count; i++) {
        if (!is_running(cluster, i) || replica_of(cluster, i) < 0)
            continue;
        side_text(side_of(cluster, i), "FUNCTION FLUSH");
        if (side_int(side_of(cluster, i), "WAIT 1 1000") < 1)
            return false;
    }
    return true;
}

/* ---- the whole --------------------------------------------------------------------------- */

/*
 * Gives each node its own epoch from the beginning: of two masters with the same epoch, one takes a new one at some
 * later moment, and a replica that is elected just then has the older one.
 */
static void set_epochs(const struct cluster *cluster)
{
    for (int i = 0; i < cluster->count; i++)
        side_text(side_of(cluster, i), "CLUSTER SET-CONFIG-EPOCH %d", i + 1);
}

static void share_slots(const struct cluster *cluster)
{
    for (int i = 0; i < cluster->masters; i++) {
        int first = CLUSTER_SLOTS * i / cluster->masters, next = CLUSTER_SLOTS * (i + 1) / cluster->masters;

        side_text(side_of(cluster, i), "CLUSTER ADDSLOTSRANGE %d %d", first, next - 1);
    }
}

static bool do_all_know(const struct cluster *cluster, const char *word, int times)
{
    for (int i = 0; i < cluster->count; i++) {
        if (is_running(cluster, i) && count_words(side_text(side_of(cluster, i), "CLUSTER NODES"), word) != times)
            return false;
    }
    return true;
}

/* All replicas have all data, and each node knows the replicas. */
static void add_replicas(const struct cluster *cluster)
{
    for (int i = cluster->masters; i < cluster->count; i++)
        side_text(side_of(cluster, i), "CLUSTER REPLICATE %s", cluster->ids[i - cluster->masters]);
    wait_until(do_all_know(cluster, "slave ", cluster->count - cluster->masters));
}

static void join(const struct cluster *cluster)
{
    set_epochs(cluster);
    for (int i = 1; i < cluster->count; i++)
        meet(cluster, i);
    wait_until(are_all_well(cluster));
}

void cluster_start(struct cluster *cluster, int masters, bool has_replicas, int timeout_ms)
{
    *cluster = (struct cluster){ .masters = masters, .timeout_ms = timeout_ms };
    for (int i = 0; i < (has_replicas ? 2 * masters : masters); i++)
        start_node(cluster);
    share_slots(cluster);
    join(cluster);
    add_replicas(cluster);
    wait_until(do_all_serve(cluster));
    wait_until(are_all_followed(cluster));
}

static char sparse_groups[CLUSTER_NODES][24];

const char *cluster_sparse_group(int node)
{
    return sparse_groups[node];
}

/* A name whose slot is in the node's share. */
static int find_sparse_group(const struct cluster *cluster, int node)
{
    int number = 0, slot;

    do {
        snprintf(sparse_groups[node], sizeof sparse_groups[node], "only%d-%d", node, number++);
        slot = cluster_slot(cluster, sparse_groups[node]);
    } while (slot * cluster->masters / CLUSTER_SLOTS != node);
    return slot;
}

void cluster_start_sparse(struct cluster *cluster, int masters, int timeout_ms)
{
    *cluster = (struct cluster){ .masters = masters, .timeout_ms = timeout_ms, .is_sparse = true };
    for (int i = 0; i < masters; i++) {
        start_node(cluster);
        side_text(side_of(cluster, i), "CLUSTER ADDSLOTS %d", find_sparse_group(cluster, i));
    }
    join(cluster);
    wait_until(do_all_serve(cluster));
}

void cluster_end(struct cluster *cluster)
{
    for (int i = 0; i < cluster->count; i++) {
        if (cluster->nodes[i])
            server_end(cluster->nodes[i]);
    }
}

struct cluster *the_cluster;

static int set_up(int timeout_ms)
{
    static struct cluster cluster;

    the_cluster = &cluster;
    cluster_start(the_cluster, 3, true, timeout_ms);
    return 0;
}

int cluster_group_setup(void **state)
{
    (void)state;
    return set_up(CLUSTER_CALM_MS);
}

int cluster_group_setup_fast(void **state)
{
    (void)state;
    return set_up(CLUSTER_FAST_MS);
}

int cluster_group_teardown(void **state)
{
    (void)state;
    cluster_end(the_cluster);
    return 0;
}

const char *cluster_url(const struct cluster *cluster, const char *options)
{
    static char url[512];

    snprintf(url, sizeof url, "redis+cluster://127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d%s", cluster->nodes[0]->port,
             cluster->nodes[1]->port, cluster->nodes[2]->port, options);
    return url;
}

const char *cluster_url_of(const struct cluster *cluster, int node, const char *options)
{
    static char url[512];

    snprintf(url, sizeof url, "redis+cluster://127.0.0.1:%d%s", cluster->nodes[node]->port, options);
    return url;
}

/* ---- the map ----------------------------------------------------------------------------- */

int cluster_slot(const struct cluster *cluster, const char *group)
{
    return (int)side_int(side_of(cluster, any_running(cluster)), "CLUSTER KEYSLOT {%s}", group);
}

static int node_by_id(const struct cluster *cluster, const char *id)
{
    for (int i = 0; i < cluster->count; i++) {
        if (cluster->nodes[i] && strncmp(cluster->ids[i], id, strlen(cluster->ids[i])) == 0)
            return i;
    }
    return -1;
}

/*
 * The fields after the eighth in a line of CLUSTER NODES: "5461", "0-5460", and "[7->-id]" for a slot that is moving.
 */
static bool has_slot(char *line, int slot)
{
    char *word, *rest = line;
    int first, last;

    for (int i = 0; (word = strsep(&rest, " ")); i++) {
        if (i < 8 || word[0] == '[')
            continue;
        if (sscanf(word, "%d-%d", &first, &last) < 2)
            last = first;
        if (first <= slot && slot <= last)
            return true;
    }
    return false;
}

int cluster_master_by(const struct cluster *cluster, int by, int slot)
{
    char *text = strdup(side_text(side_of(cluster, by), "CLUSTER NODES")), *rest = text, *line;
    int node = -1;

    while (node < 0 && (line = strsep(&rest, "\n"))) {
        int its_node = node_by_id(cluster, line);

        if (has_slot(line, slot))
            node = its_node;
    }
    free(text);
    return node;
}

/* The master that all running nodes name, or -1 if they disagree. */
static int agreed_master(const struct cluster *cluster, int slot)
{
    int master = cluster_master_by(cluster, any_running(cluster), slot);

    for (int i = 0; i < cluster->count; i++) {
        if (is_running(cluster, i) && cluster_master_by(cluster, i, slot) != master)
            return -1;
    }
    return master;
}

int cluster_master(const struct cluster *cluster, int slot)
{
    int node;

    wait_until((node = agreed_master(cluster, slot)) >= 0);
    return node;
}

struct side *cluster_side(struct cluster *cluster, const char *group)
{
    struct server *server = cluster->nodes[cluster_master(cluster, cluster_slot(cluster, group))];

    server_reconnect(server);
    return server->side;
}

const char *cluster_group_on(const struct cluster *cluster, int node, const char *word)
{
    static char names[4][32];
    static unsigned last;
    char *name = names[last++ % 4];
    int number = 0;

    do
        snprintf(name, sizeof names[0], "%s%d", word, number++);
    while (cluster_master_by(cluster, node, cluster_slot(cluster, name)) != node);
    return name;
}

/* ---- nodes that fail --------------------------------------------------------------------- */

/*
 * Redis keeps the votes of an election for this long after its start.  A node that is elected again sooner counts them
 * once more: it becomes the master without new votes, with its old epoch, and no other node accepts it.
 */
static int64_t votes_end_ms(const struct cluster *cluster, int node)
{
    int timeout_ms = late_stretched_ms(cluster->timeout_ms);
    int64_t elected_ms = cluster->elected_ms[node];

    return elected_ms ? elected_ms + 2 * (timeout_ms > 1000 ? 2 * timeout_ms : 2000) : 0;
}

static bool is_master(const struct cluster *cluster, int node)
{
    return is_running(cluster, node) && side_says(side_of(cluster, node), "role:master", "INFO replication");
}

/* Node i and node i + masters take turns as master and replica. */
static void await_end_of_votes(const struct cluster *cluster, int node)
{
    int other = (node + cluster->masters) % (2 * cluster->masters);

    if (node < 2 * cluster->masters && cluster->count >= 2 * cluster->masters && !is_master(cluster, other))
        wait_until(wait_now_ms() > votes_end_ms(cluster, other));
}

void cluster_kill(struct cluster *cluster, int node)
{
    await_end_of_votes(cluster, node);
    server_kill(cluster->nodes[node]);
    cluster->is_stopped[node] = false;
}

void cluster_restart(struct cluster *cluster, int node)
{
    cluster->elected_ms[node] = 0;
    server_restart(cluster->nodes[node]);
}

void cluster_stop(struct cluster *cluster, int node)
{
    await_end_of_votes(cluster, node);
    server_stop(cluster->nodes[node]);
    cluster->is_stopped[node] = true;
}

void cluster_cont(struct cluster *cluster, int node)
{
    server_cont(cluster->nodes[node]);
    cluster->is_stopped[node] = false;
}

static bool is_failed_over(const struct cluster *cluster, int slot, int before)
{
    int master = agreed_master(cluster, slot);

    return master >= 0 && master != before && serves(cluster, master);
}

int cluster_await_failover(struct cluster *cluster, int slot, int before)
{
    int master;

    wait_until(is_failed_over(cluster, slot, before));
    master = agreed_master(cluster, slot);
    cluster->elected_ms[master] = wait_now_ms();
    return master;
}

int cluster_replica(const struct cluster *cluster, int slot)
{
    return replica_of(cluster, cluster_master(cluster, slot));
}

/* A manual failover is given up after five seconds, if the master or the vote is late. */
#define FAILOVER_MS 6000
#define FAILOVERS 3

static bool is_failed_over_soon(const struct cluster *cluster, int slot, int before)
{
    int64_t began_ms = wait_now_ms();

    while (!is_failed_over(cluster, slot, before)) {
        if (wait_now_ms() > began_ms + FAILOVER_MS)
            return false;
        wait_pause(began_ms);
    }
    return true;
}

/* Prints what each node knows when a failover does not come. */
static void show_nodes(const struct cluster *cluster)
{
    for (int i = 0; i < cluster->count; i++) {
        if (is_running(cluster, i))
            print_error("node %d:\n%s\n", i, side_text(side_of(cluster, i), "CLUSTER NODES"));
    }
}

static void command_replica(const struct cluster *cluster, int replica, const char *command, int slot, int before)
{
    int64_t began_ms = wait_now_ms();

    while (!side_try(side_of(cluster, replica), command) && !is_failed_over(cluster, slot, before)) {
        if (wait_now_ms() > began_ms + WAIT_LIMIT_MS) {
            show_nodes(cluster);
            fail_msg("%s to node %d: %s", command, replica, side_error(side_of(cluster, replica)));
        }
        wait_pause(began_ms);
    }
}

static int fail_over(struct cluster *cluster, int slot, const char *command)
{
    int before = cluster_master_by(cluster, any_running(cluster), slot), replica = replica_of(cluster, before);
    int tries = 0;

    assert_within(replica, 0, cluster->count - 1);
    await_end_of_votes(cluster, before);
    cluster_await_epoch(cluster);
    do
        command_replica(cluster, replica, command, slot, before);
    while (!is_failed_over_soon(cluster, slot, before) && ++tries < FAILOVERS);
    return cluster_await_failover(cluster, slot, before);
}

/* A master ignores a replica that it does not know as one, as just after another failover. */
static bool knows_replica(const struct cluster *cluster, int master, int replica)
{
    const char *text = side_text(side_of(cluster, master), "CLUSTER NODES"), *line;
    char start[64], end[80];

    snprintf(start, sizeof start, "%.40s 127.0.0.1:%d@", cluster->ids[replica], cluster->nodes[replica]->port);
    snprintf(end, sizeof end, " slave %.40s", cluster->ids[master]);
    line = strstr(text, start);
    text = line ? strstr(line, end) : NULL;
    return text && text < line + strcspn(line, "\n");
}

static bool can_fail_over(const struct cluster *cluster, int slot)
{
    int master = cluster_master(cluster, slot), replica = replica_of(cluster, master);

    return replica >= 0 && serves(cluster, replica) && knows_replica(cluster, master, replica);
}

int cluster_fail_over(struct cluster *cluster, int slot)
{
    wait_until(can_fail_over(cluster, slot));
    return fail_over(cluster, slot, "CLUSTER FAILOVER");
}

int cluster_force_over(struct cluster *cluster, int slot)
{
    return fail_over(cluster, slot, "CLUSTER FAILOVER FORCE");
}

void cluster_part(struct cluster *cluster, int slot)
{
    side_text(side_of(cluster, cluster_master(cluster, slot)), "CLIENT KILL TYPE replica");
}

void cluster_heal(struct cluster *cluster)
{
    for (int i = 0; i < cluster->count; i++) {
        if (!cluster->nodes[i])
            continue;
        if (!cluster->nodes[i]->pid)
            cluster_restart(cluster, i);
        cluster_cont(cluster, i);
    }
    wait_until(are_all_well(cluster) && do_all_serve(cluster));
    wait_until(are_all_followed(cluster));
    cluster_await_epoch(cluster);
}

/* ---- nodes that come and go -------------------------------------------------------------- */

int cluster_add_node(struct cluster *cluster)
{
    int node = start_node(cluster);

    meet(cluster, node);
    wait_until(do_all_know(cluster, " connected", count_nodes(cluster)) && are_all_well(cluster));
    wait_until(do_all_serve(cluster));
    return node;
}

void cluster_forget_node(struct cluster *cluster, int node)
{
    for (int i = 0; i < cluster->count; i++) {
        if (i != node && is_running(cluster, i))
            side_text(side_of(cluster, i), "CLUSTER FORGET %s", cluster->ids[node]);
    }
    server_end(cluster->nodes[node]);
    cluster->nodes[node] = NULL;
}
