/* SPDX-License-Identifier: BSD-2-Clause */
/* The lock store on ZooKeeper: the store on registers, with the driver. */
#include "registers/store.h"
#include "store/drivers.h"
#include "stores/zookeeper/open.h"

static struct dm_reg_driver *make(void *user, const struct dm_reg_client *client, char ret_reason[DM_REASON_ROOM])
{
    return dm_zookeeper_driver_open(user, client, ret_reason);
}

struct dm_store *dm_zookeeper_store_open(struct dm_url *url, const struct dm_ident *ident, const struct dm_host *host,
                                         char ret_reason[DM_REASON_ROOM])
{
    struct dm_store *store = dm_registers_open(ident, host, make, url, ret_reason);

    if (store && !url->has_grace)
        dm_registers_trust_data(store);
    return store;
}
