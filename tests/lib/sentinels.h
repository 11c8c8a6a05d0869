/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A group of Sentinel: a master with two replicas, and three sentinels that promote one of the replicas when the master
 * has been silent for two seconds; all on loopback.
 */
#ifndef TEST_SENTINELS_H
#define TEST_SENTINELS_H

#include "server.h"

#define SENTINELS 3
#define REPLICAS 2

struct sentinels {
    struct server *data[1 + REPLICAS]; /* the first is the master at first */
    struct server *sentinel[SENTINELS];
    bool is_out[SENTINELS]; /* cut off from the others by the test: nobody asks them what the others do */
};

/* Starts all, and waits until every sentinel knows all.  `lines`: further lines of the sentinels' files, or "". */
void sentinels_start(struct sentinels *group, const char *lines);

/* The same on hosts (hosts.h): of each server with data and of each sentinel the host. */
void sentinels_start_on(struct sentinels *group, const char *lines, const int *data_hosts, const int *sentinel_hosts);
void sentinels_end(struct sentinels *group);

/* A group for a whole group of tests. */
extern struct sentinels *the_sentinels;
int sentinels_group_setup(void **state);
int sentinels_group_teardown(void **state);

/* The URL with all sentinels, and options behind it, as "?grace=off", or "". */
const char *sentinels_url(const struct sentinels *group, const char *options);

/* The number in `data` of the master, as sentinel `by` says; -1: another address. */
int sentinels_master(const struct sentinels *group, int by);

/* The number of the newest promotion (config-epoch) that the sentinel knows; -1: the sentinel does not say. */
long long sentinels_epoch_by(const struct sentinels *group, int by);

/* Below, sentinels are those that run and are not out. */

/* The greatest of their numbers. */
long long sentinels_epoch(const struct sentinels *group);

/* Waits until all sentinels know a promotion behind `epoch`, and say one master.  Returns its number. */
int sentinels_await_switch(const struct sentinels *group, long long epoch);

/* True if all sentinels know a promotion behind `epoch` within so many ms. */
bool sentinels_switch_within(const struct sentinels *group, long long epoch, int64_t ms);

/*
 * True if the sentinels say several masters by one number of a promotion.  They never agree then before the next
 * failover: a failover by hand takes the next number and asks nobody, so another one beside it may take the same.
 */
bool sentinels_are_parted(const struct sentinels *group);

/* Orders a failover of the first sentinel that accepts the order.  Returns false if none does. */
bool sentinels_order_failover(const struct sentinels *group);

/* Prints what sentinels and servers say of themselves, for a test that fails because the sentinels do not agree. */
void sentinels_show(const struct sentinels *group);

/* Asks for a failover while all are well, and waits for it.  Returns the new master's number. */
int sentinels_switch(const struct sentinels *group);

#endif
