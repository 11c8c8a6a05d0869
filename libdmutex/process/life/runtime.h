/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How the library starts in this process, and switches to another server: a runtime is made at the first use of a
 * mutex, and again in a forked child and for another server.
 */
#ifndef DM_PROCESS_LIFE_RUNTIME_H
#define DM_PROCESS_LIFE_RUNTIME_H

#include "process/claims/process.h"

/*
 * The runtime; makes it if there is none, without waiting for the network.  0, or an errno value, noted.
 *
 * If the store needs a module, this takes as long as other threads are in dlopen(): until the deadline at most or, if
 * that is NULL, for command_timeout.  No lock held.
 */
int dm_runtime_get(const struct dm_deadline *deadline, struct dm_runtime **ret_runtime);

/* Names the server, before the first use. */
int dm_runtime_configure(const char *url);

/*
 * From now on this process uses the server of `url`, whatever is configured; NULL: the configured server.  The runtime
 * is retired: its connections end, its names are forgotten, and the next use of a mutex makes another runtime, which
 * reads the settings again and is another owner.
 *
 * Refused while a thread holds or waits for a mutex, or a loss is yet to be reported.  Waits for pending releases for
 * `patience_ms` at most, then leaves them to their leases.  A call that another thread is making at the time finds the
 * server gone.  0, or an errno value, noted, and then nothing has changed.  No lock held.
 */
int dm_runtime_switch(const char *url, unsigned patience_ms);

#endif
