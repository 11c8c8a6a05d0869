/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A group of Sentinel: a master with two replicas, and three sentinels that promote a replica when the master has been
 * silent for two seconds; all on loopback.
 */
#ifndef TEST_SENTINELS_H
#define TEST_SENTINELS_H

#include "server.h"

#define SENTINELS 3
#define REPLICAS 2

struct sentinels {
    struct server *data[1 + REPLICAS]; /* the first is the initial master */
    struct server *sentinel[SENTINELS];
    bool is_out[SENTINELS]; /* cut off by the test: nobody asks them what the others do */
};

/*
 * Starts all, and waits until every sentinel knows all others.  `lines`: further lines for the sentinels' files, or "".
 */
void sentinels_start(struct sentinels *group, const char *lines);

/* The same on hosts (hosts.h): the host of each data server and of each sentinel. */
void sentinels_start_on(struct sentinels *group, const char *lines, const int *data_hosts, const int *sentinel_hosts);
void sentinels_end(struct sentinels *group);

/* A group for a whole group of tests. */
extern struct sentinels *the_sentinels;
int sentinels_group_setup(void **state);
int sentinels_group_teardown(void **state);

/* The URL with all sentinels; options such as "?grace=off", or "", are appended. */
const char *sentinels_url(const struct sentinels *group, const char *options);

/* The index in `data` of the master according to sentinel `by`; -1: another address. */
int sentinels_master(const struct sentinels *group, int by);

/* The number of the newest promotion (config-epoch) that the sentinel knows; -1: it does not say. */
long long sentinels_epoch_by(const struct sentinels *group, int by);

/* Below, "sentinels" are those that run and are not out. */

/* The greatest of their numbers. */
long long sentinels_epoch(const struct sentinels *group);

/* Waits until all sentinels know a promotion after `epoch` and name the same master.  Returns its index. */
int sentinels_await_switch(const struct sentinels *group, long long epoch);

/* True if all sentinels know a promotion after `epoch` within `ms`. */
bool sentinels_switch_within(const struct sentinels *group, long long epoch, int64_t ms);

/*
 * True if the sentinels name several masters with the same number of a promotion.  They never agree then before the
 * next failover: a manual failover takes the next number and asks nobody, so a concurrent one may take the same number.
 */
bool sentinels_are_parted(const struct sentinels *group);

/* Orders a failover from the first sentinel that accepts it.  Returns false if none does. */
bool sentinels_order_failover(const struct sentinels *group);

/* Prints what sentinels and servers say about themselves, for a test that fails because the sentinels do not agree. */
void sentinels_show(const struct sentinels *group);

/* Orders a failover while everything works, and waits for it.  Returns the new master's index. */
int sentinels_switch(const struct sentinels *group);

#endif
