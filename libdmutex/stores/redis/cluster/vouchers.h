/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which masters of a Cluster have named one of them as a master, and when they were asked.  A master that was stopped
 * and goes on does not know yet that another server has taken its place, but the other masters do: they have elected
 * that server.  Decides only; has no socket, no thread and no clock.
 */
#ifndef DM_REDIS_CLUSTER_VOUCHERS_H
#define DM_REDIS_CLUSTER_VOUCHERS_H

#include <stdint.h>

#define DM_VOUCHERS_MOST 3

struct dm_voucher {
    unsigned by; /* the number of a master, from 1 on; 0: none */
    int64_t asked_ns;
};

/* All zero: nobody has named the master. */
struct dm_vouchers {
    struct dm_voucher newest[DM_VOUCHERS_MOST]; /* the newest first; each by another master */
};

/* So many must name a master, of that many masters: the majority that elects, but no more than DM_VOUCHERS_MOST. */
unsigned dm_vouchers_needed(unsigned masters);

/* The master `by` has named the master, and was asked at that time. */
void dm_vouchers_take(struct dm_vouchers *vouchers, unsigned by, int64_t asked_ns);

/* All of the newest `needed` vouchers were asked for at that time or later; 0: there are fewer. */
int64_t dm_vouchers_since_ns(const struct dm_vouchers *vouchers, unsigned needed);

#endif
