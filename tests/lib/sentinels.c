/* SPDX-License-Identifier: BSD-2-Clause */
#include "sentinels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hosts.h"
#include "testlib.h"

/*
 * With a configuration file, in which the sentinels record who replicates whom: a master that restarts is a master
 * again.
 */
static struct server *start_data(const struct server *master)
{
    static const char usual[] =
        "protected-mode no\nsave \"\"\nenable-debug-command local\nrepl-diskless-sync-delay 0\n";
    char text[512];

    snprintf(text, sizeof text, "%s", usual);
    if (master)
        snprintf(text, sizeof text, "%sreplicaof %s %d\n", usual, master->address, master->port);
    return server_start_by_file(text, NULL);
}

static struct server *start_sentinel(const struct server *master, const char *lines)
{
    char text[1024];

    snprintf(text, sizeof text,
             "sentinel monitor mymaster %s %d 2\n"
             "sentinel down-after-milliseconds mymaster 2000\n"
             "sentinel failover-timeout mymaster 3000\n"
             "%s\n",
             master->address, master->port, lines);
    return server_start_by_file(text, "--sentinel");
}

/* The sentinels find each other, and the replicas, through the master. */
static bool knows_all(const struct server *sentinel)
{
    char wanted[64];

    if (!side_info_says(sentinel->side, "status=ok,address="))
        return false;
    snprintf(wanted, sizeof wanted, "slaves=%d,sentinels=%d", REPLICAS, SENTINELS);
    return side_info_says(sentinel->side, wanted);
}

static void enter(const int *hosts, int number)
{
    if (hosts)
        hosts_enter(hosts[number]);
}

void sentinels_start_on(struct sentinels *group, const char *lines, const int *data_hosts, const int *sentinel_hosts)
{
    for (int i = 0; i <= REPLICAS; i++) {
        enter(data_hosts, i);
        group->data[i] = start_data(i ? group->data[0] : NULL);
    }
    for (int i = 1; i <= REPLICAS; i++)
        wait_until(side_info_says(group->data[i]->side, "master_link_status:up"));
    for (int i = 0; i < SENTINELS; i++) {
        enter(sentinel_hosts, i);
        group->sentinel[i] = start_sentinel(group->data[0], lines);
    }
    for (int i = 0; i < SENTINELS; i++)
        wait_until(knows_all(group->sentinel[i]));
}

void sentinels_start(struct sentinels *group, const char *lines)
{
    sentinels_start_on(group, lines, NULL, NULL);
}

void sentinels_end(struct sentinels *group)
{
    for (int i = 0; i < SENTINELS; i++)
        server_end(group->sentinel[i]);
    for (int i = 0; i <= REPLICAS; i++)
        server_end(group->data[i]);
}

struct sentinels *the_sentinels;

int sentinels_group_setup(void **state)
{
    static struct sentinels group;

    (void)state;
    the_sentinels = &group;
    sentinels_start(the_sentinels, "");
    return 0;
}

int sentinels_group_teardown(void **state)
{
    (void)state;
    sentinels_end(the_sentinels);
    return 0;
}

const char *sentinels_url(const struct sentinels *group, const char *options)
{
    static char url[512];

    snprintf(url, sizeof url, "redis+sentinel://%s,%s,%s/mymaster%s", server_place(group->sentinel[0]),
             server_place(group->sentinel[1]), server_place(group->sentinel[2]), options);
    return url;
}

int sentinels_master(const struct sentinels *group, int by)
{
    const char *text = side_text(group->sentinel[by]->side, "SENTINEL get-master-addr-by-name mymaster");
    const char *port = strchr(text, '\n');

    for (int i = 0; port && i <= REPLICAS; i++) {
        if (group->data[i]->port == atoi(port + 1))
            return i;
    }
    return -1;
}

long long sentinels_epoch_by(const struct sentinels *group, int by)
{
    const char *text = side_text(group->sentinel[by]->side, "SENTINEL MASTER mymaster");
    const char *epoch = strstr(text, "\nconfig-epoch\n");

    return epoch ? atoll(epoch + strlen("\nconfig-epoch\n")) : -1;
}

static bool is_asked(const struct sentinels *group, int number)
{
    return group->sentinel[number]->side && !group->is_out[number];
}

long long sentinels_epoch(const struct sentinels *group)
{
    long long most = -1;

    for (int i = 0; i < SENTINELS; i++) {
        long long epoch = is_asked(group, i) ? sentinels_epoch_by(group, i) : -1;

        most = epoch > most ? epoch : most;
    }
    return most;
}

static int any_master(const struct sentinels *group)
{
    for (int i = 0; i < SENTINELS; i++) {
        if (is_asked(group, i))
            return sentinels_master(group, i);
    }
    return -1;
}

/* The master itself shows nothing: after two promotions it may be the same again. */
static bool is_switched(const struct sentinels *group, long long epoch)
{
    int master = any_master(group);

    for (int i = 0; i < SENTINELS; i++) {
        if (!is_asked(group, i))
            continue;
        if (sentinels_master(group, i) != master || sentinels_epoch_by(group, i) <= epoch)
            return false;
    }
    return master >= 0;
}

int sentinels_await_switch(const struct sentinels *group, long long epoch)
{
    wait_until(is_switched(group, epoch));
    return any_master(group);
}

bool sentinels_switch_within(const struct sentinels *group, long long epoch, int64_t ms)
{
    int64_t began_ms = wait_now_ms();

    while (!is_switched(group, epoch)) {
        if (wait_now_ms() > began_ms + ms)
            return false;
        wait_pause(began_ms);
    }
    return true;
}

bool sentinels_are_parted(const struct sentinels *group)
{
    long long epoch = sentinels_epoch(group);
    int master = any_master(group);
    bool is_one_master = true;

    for (int i = 0; i < SENTINELS; i++) {
        if (!is_asked(group, i))
            continue;
        if (sentinels_epoch_by(group, i) != epoch)
            return false;
        is_one_master = is_one_master && sentinels_master(group, i) == master;
    }
    return !is_one_master;
}

bool sentinels_order_failover(const struct sentinels *group)
{
    for (int i = 0; i < SENTINELS; i++) {
        if (is_asked(group, i) && side_try(group->sentinel[i]->side, "SENTINEL FAILOVER mymaster"))
            return true;
    }
    return false;
}

/* As the sentinels say, and then the servers. */
void sentinels_show(const struct sentinels *group)
{
    for (int i = 0; i < SENTINELS; i++) {
        if (!is_asked(group, i))
            continue;
        print_error("sentinel %d:\n%s\n", i, side_text(group->sentinel[i]->side, "INFO sentinel"));
        print_error("%s\n", side_text(group->sentinel[i]->side, "SENTINEL MASTER mymaster"));
    }
    for (int i = 0; i <= REPLICAS; i++) {
        if (group->data[i]->pid && group->data[i]->side && side_try(group->data[i]->side, "PING"))
            print_error("server %d:\n%s\n", i, side_text(group->data[i]->side, "INFO replication"));
        else
            print_error("server %d does not answer\n", i);
    }
}

/* More than failover-timeout, after which the sentinels give up a failover whose replica does not answer. */
#define FAILOVER_MS 4000

static bool is_switched_when_asked(const struct sentinels *group, long long epoch)
{
    return side_try(group->sentinel[0]->side, "SENTINEL FAILOVER mymaster") &&
           sentinels_switch_within(group, epoch, FAILOVER_MS);
}

/* Refused during a failover and for a while after it; and the sentinels do not retry a manual failover. */
int sentinels_switch(const struct sentinels *group)
{
    long long epoch = sentinels_epoch(group);

    wait_until(is_switched_when_asked(group, epoch));
    return any_master(group);
}
