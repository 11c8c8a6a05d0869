/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The stores that are compiled in.  Each is defined by its folder, which lies above this layer; process/ opens a store
 * by this declaration, and so includes no header of the folder.
 */
#ifndef DM_STORE_DRIVERS_H
#define DM_STORE_DRIVERS_H

#include "store/store.h"

/*
 * A Redis or Valkey server, by any URL of struct dm_url.  `url` and `ident` stay the caller's, for as long as the store
 * is there; `host` is copied.  Nothing is connected yet.  NULL without memory or descriptors.
 */
struct dm_store *dm_redis_open(struct dm_url *url, const struct dm_ident *ident, const struct dm_host *host);

/*
 * A quorum: one such server for each host of the URL, of which a majority decides.  Otherwise as dm_redis_open(); `url`
 * is needed during the call only.
 */
struct dm_store *dm_quorum_open(struct dm_url *url, const struct dm_ident *ident, const struct dm_host *host);

#endif
