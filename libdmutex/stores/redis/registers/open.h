/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens the driver of registers (registers/driver.h) on Redis or Valkey. */
#ifndef DM_REDIS_REGISTERS_OPEN_H
#define DM_REDIS_REGISTERS_OPEN_H

#include "config/url.h"
#include "registers/driver.h"

/*
 * A driver on one server, a group of Sentinel, or a Cluster, not connected yet.  `url` stays the caller's, and must
 * live as long as the driver, which sets its `has_grace` to false: the mark of the registers is their grace.  `client`
 * is copied.  NULL with the reason.
 */
struct dm_reg_driver *dm_redis_registers_open(struct dm_url *url, const struct dm_reg_client *client,
                                              char ret_reason[DM_REASON_ROOM]);

#endif
