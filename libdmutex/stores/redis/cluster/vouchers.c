/* SPDX-License-Identifier: BSD-2-Clause */
#include "stores/redis/cluster/vouchers.h"

#include <stddef.h>

unsigned dm_vouchers_needed(unsigned masters)
{
    unsigned majority = masters / 2 + 1;

    return majority < DM_VOUCHERS_MOST ? majority : DM_VOUCHERS_MOST;
}

/* The slot with the voucher of `by`, or with the oldest one. */
static struct dm_voucher *place_for(struct dm_vouchers *vouchers, unsigned by)
{
    size_t i = 0;

    while (i < DM_VOUCHERS_MOST - 1 && vouchers->newest[i].by != by)
        i++;
    return &vouchers->newest[i];
}

/* Answers of two masters may arrive in another order than the requests were sent. */
void dm_vouchers_take(struct dm_vouchers *vouchers, unsigned by, int64_t asked_ns)
{
    struct dm_voucher *at = place_for(vouchers, by);

    if (at->asked_ns >= asked_ns)
        return;
    for (; at > vouchers->newest && at[-1].asked_ns < asked_ns; at--)
        at[0] = at[-1];
    *at = (struct dm_voucher){ by, asked_ns };
}

int64_t dm_vouchers_since_ns(const struct dm_vouchers *vouchers, unsigned needed)
{
    return vouchers->newest[needed - 1].asked_ns;
}
