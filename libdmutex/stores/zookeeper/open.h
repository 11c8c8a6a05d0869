/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens the driver of registers (registers/driver.h) on ZooKeeper. */
#ifndef DM_ZOOKEEPER_OPEN_H
#define DM_ZOOKEEPER_OPEN_H

#include "config/url.h"
#include "registers/driver.h"

/*
 * A driver that is not connected yet.  `url` stays the caller's, and must live as long as the driver; `client` is
 * copied.  NULL with the reason, which is "" without memory.
 */
struct dm_reg_driver *dm_zookeeper_driver_open(const struct dm_url *url, const struct dm_reg_client *client,
                                               char ret_reason[DM_REASON_ROOM]);

#endif
