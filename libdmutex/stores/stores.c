/* SPDX-License-Identifier: BSD-2-Clause */
#include "store/drivers.h"

static struct dm_store *open_quorum(struct dm_url *url, const struct dm_ident *ident, const struct dm_host *host,
                                    char ret_reason[DM_REASON_ROOM])
{
    return dm_quorum_open(url, ident, host, dm_store_open, ret_reason);
}

static dm_open_fn *const openers[] = {
    [DM_URL_TCP] = dm_redis_open,
    [DM_URL_UNIX] = dm_redis_open,
    [DM_URL_LOCAL] = dm_redis_open,
    [DM_URL_SENTINEL] = dm_redis_open,
    [DM_URL_CLUSTER] = dm_redis_open,
    [DM_URL_QUORUM] = open_quorum,
    [DM_URL_POSTGRES] = dm_postgres_store_open,
    [DM_URL_ETCD] = dm_etcd_store_open,
    [DM_URL_MEMCACHED] = dm_memcached_store_open,
    [DM_URL_MARIADB] = dm_mariadb_store_open,
    [DM_URL_ZOOKEEPER] = dm_zookeeper_store_open,
};

struct dm_store *dm_store_open(struct dm_url *url, const struct dm_ident *ident, const struct dm_host *host,
                               char ret_reason[DM_REASON_ROOM])
{
    return openers[url->kind](url, ident, host, ret_reason);
}

struct dm_module *dm_store_module(const struct dm_url *url)
{
    if (url->kind == DM_URL_POSTGRES)
        return dm_postgres_module();
    return url->kind == DM_URL_MARIADB ? dm_mariadb_module() : NULL;
}
