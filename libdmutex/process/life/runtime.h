/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The library in this process: made at the first use of a mutex, made anew in a forked child, and for another server.
 * No runtime is ever freed: a thread may still be about to use the runtime.
 */
#ifndef DM_PROCESS_LIFE_RUNTIME_H
#define DM_PROCESS_LIFE_RUNTIME_H

#include <sys/types.h>

#include "base/ident.h"
#include "dmutex/error.h"
#include "process/claims/registry.h"
#include "process/claims/stats.h"
#include "process/keep/metrics.h"
#include "process/life/settings.h"
#include "store/calls.h"

struct dm_loop;

/* Of one server of the store. */
struct dm_lane {
    unsigned under_way[2];                 /* batches of renewals, of polls: see pump.c */
    int64_t ahead_least_ns, ahead_most_ns; /* the server's clock minus ours; both 0: not known */
};

struct dm_runtime {
    pid_t pid; /* a child that was not made by fork() must not speak in our name */
    struct dm_settings settings;
    struct dm_ident ident;
    struct dm_url *url;
    struct dm_store *store;
    struct dm_loop *loop;
    struct dm_metrics metrics;
    struct dm_runtime *retired_before; /* the list of the retired runtimes */

    /* Guarded by dm_state_lock(). */
    bool is_retired; /* takes no new claims */
    struct dm_registry registry;
    struct dm_stats stats;
    char refusal[80]; /* the last error to a posted command, so that the error is logged once */
    struct dm_lane lanes[DM_LANES];
    unsigned lane_count;   /* the highest lane that was used, and one */
    unsigned under_way[2]; /* batches of all lanes */
};

/*
 * The runtime; started if need be, which blocks for no network.  0, or an errno value, noted.
 */
int dm_runtime_get(struct dm_runtime **ret_runtime);

/* The runtime if started, else NULL. */
struct dm_runtime *dm_runtime_peek(void);

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

/* Sums the counters of all runtimes of this process up; struct_size is set.  Starts none.  No lock of rank START on. */
void dm_runtime_count(dmutex_stats_t *ret_stats);

void dm_runtime_set_lost(dmutex_lost_fn lost, void *user);
void dm_runtime_get_lost(dmutex_lost_fn *ret_lost, void **ret_user);

/* How long a call that must not wait for a lease may take. */
struct dm_deadline dm_runtime_call_deadline(const struct dm_runtime *runtime);

/* The server answered that the server is not ready: waits a little.  False when the deadline has passed. */
bool dm_runtime_pause(const struct dm_deadline *deadline);

#endif
