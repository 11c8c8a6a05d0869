/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opens a store by its URL.  The table of the stores is in stores/stores.c, above them all, so that code which opens a
 * store includes no header of its room, and no store knows another.
 */
#ifndef DM_STORE_DRIVERS_H
#define DM_STORE_DRIVERS_H

#include "base/module.h"
#include "store/store.h"

/*
 * Opens a store, without connecting.  `url` and `ident` stay the caller's, and must live as long as the store; `host`
 * is copied.  NULL with the reason if the store cannot be used, and with "" without memory or descriptors.
 */
typedef struct dm_store *dm_open_fn(struct dm_url *url, const struct dm_ident *ident, const struct dm_host *host,
                                    char ret_reason[DM_REASON_ROOM]);

/* Uses the table, which has a store for each kind of URL. */
dm_open_fn dm_store_open;

/* The module that must be loaded before the store of this URL is opened; NULL: none. */
struct dm_module *dm_store_module(const struct dm_url *url);

/* Redis or Valkey: one server, a group of Sentinel, or a Cluster. */
dm_open_fn dm_redis_open;

/* PostgreSQL, by its module. */
dm_open_fn dm_postgres_store_open;
struct dm_module *dm_postgres_module(void);

/* MariaDB and MySQL, by a module. */
dm_open_fn dm_mariadb_store_open;
struct dm_module *dm_mariadb_module(void);

/* etcd, and ZooKeeper. */
dm_open_fn dm_etcd_store_open;
dm_open_fn dm_zookeeper_store_open;

/* memcached. */
dm_open_fn dm_memcached_store_open;

/*
 * A quorum: a store for each host of the URL, opened by open_child; a majority of them decides.  `url` is needed only
 * during the call.
 */
struct dm_store *dm_quorum_open(struct dm_url *url, const struct dm_ident *ident, const struct dm_host *host,
                                dm_open_fn *open_child, char ret_reason[DM_REASON_ROOM]);

#endif
