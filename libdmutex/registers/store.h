/* SPDX-License-Identifier: BSD-2-Clause */
/* A lock store (store/store.h) on a driver of registers: store_parts.h lists its parts. */
#ifndef DM_REGISTERS_STORE_H
#define DM_REGISTERS_STORE_H

#include "registers/driver.h"
#include "store/store.h"

/* Opens the driver, which is not connected yet.  NULL with the reason. */
typedef struct dm_reg_driver *dm_reg_make_fn(void *user, const struct dm_reg_client *client,
                                             char ret_reason[DM_REASON_ROOM]);

/*
 * `ident` stays the caller's, and must live as long as the store; `host` is copied.  NULL with the reason,
 * which is "" without memory.
 */
struct dm_store *dm_registers_open(const struct dm_ident *ident, const struct dm_host *host, dm_reg_make_fn *make,
                                   void *user, char ret_reason[DM_REASON_ROOM]);

/* Before the first use: new data need not have been quiet, because nobody can hold anything in them (grace=off). */
void dm_registers_trust_data(struct dm_store *store);

#endif
