/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How the library begins in this process, and goes to another server: a runtime is made at the first use of a mutex,
 * and again in a forked child, and for another server.
 */
#ifndef DM_PROCESS_LIFE_RUNTIME_H
#define DM_PROCESS_LIFE_RUNTIME_H

#include "process/claims/process.h"

/*
 * The runtime; started if need be, which blocks for no network.  0, or an errno value, noted.
 */
int dm_runtime_get(struct dm_runtime **ret_runtime);

/* Names the server, before the first use. */
int dm_runtime_configure(const char *url);

/*
 * From now on this process uses the server of `url`, whatever server is configured; NULL: the configured server.  The
 * runtime is retired: the connections end, the names are forgotten, and the next use of a mutex makes another runtime,
 * which reads the settings anew and is another owner.
 *
 * Refused while a thread holds a mutex or waits for a mutex, or a loss is to be told.  Pending releases are awaited
 * for `patience_ms` at most, then left to their lease.  A call that another thread is making meanwhile finds the server
 * gone.  0 or an errno value, noted; nothing has changed then.  No lock held.
 */
int dm_runtime_switch(const char *url, unsigned patience_ms);

#endif
