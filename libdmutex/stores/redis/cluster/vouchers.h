/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which masters of a Cluster have named one of them as a master, and when they were asked.  A master that was stopped
 * and goes on does not know yet that another server has taken its place; the other masters do, because they have
 * elected that server.  Pure functions, without sockets, threads or clocks.
 */
#ifndef DM_REDIS_CLUSTER_VOUCHERS_H
#define DM_REDIS_CLUSTER_VOUCHERS_H

#include <stdint.h>

#define DM_VOUCHERS_MOST 3

struct dm_voucher {
    unsigned by; /* the number of a master, from 1 on; 0: none */
    int64_t asked_ns;
};

/* All zero: no master has named it. */
struct dm_vouchers {
    struct dm_voucher newest[DM_VOUCHERS_MOST]; /* the newest first, each by another master */
};

/* How many of `masters` must name a master: the majority that elects, but no more than DM_VOUCHERS_MOST. */
unsigned dm_vouchers_needed(unsigned masters);

/* Master `by` has named this one, and was asked at asked_ns. */
void dm_vouchers_take(struct dm_vouchers *vouchers, unsigned by, int64_t asked_ns);

/* The time since which all of the newest `needed` vouchers were asked for; 0: there are fewer. */
int64_t dm_vouchers_since_ns(const struct dm_vouchers *vouchers, unsigned needed);

#endif
