/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The library in this process: the runtime in use, and the earlier ones.  No runtime is ever freed, because a thread
 * may be about to use it.
 */
#ifndef DM_PROCESS_CLAIMS_PROCESS_H
#define DM_PROCESS_CLAIMS_PROCESS_H

#include <sys/types.h>

#include "base/ident.h"
#include "base/rank.h"
#include "dmutex/error.h"
#include "process/claims/metrics_due.h"
#include "process/claims/registry.h"
#include "process/claims/stats.h"
#include "process/settings.h"
#include "store/calls.h"

struct dm_alarm;

/* Of one server of the store. */
struct dm_lane {
    unsigned under_way[2];                 /* batches of renewals, of polls: see pump.c */
    int64_t ahead_least_ns, ahead_most_ns; /* the server's clock minus ours; both 0: not known */
};

struct dm_runtime {
    pid_t pid; /* a child that was not made by fork() must not use our identity */
    struct dm_settings settings;
    struct dm_ident ident;
    struct dm_url *url;
    struct dm_store *store;
    bool must_load;         /* libraries for the store; atomic, and only a hint */
    struct dm_alarm *alarm; /* wakes the loop thread */
    struct dm_metrics metrics;
    struct dm_runtime *retired_before; /* the list of the retired runtimes */

    /* Guarded by dm_state_lock(). */
    bool is_retired; /* takes no new claims */
    struct dm_registry registry;
    struct dm_stats stats;
    char refusal[80]; /* the last error reply to a posted command, so that it is logged once */
    struct dm_lane lanes[DM_LANES];
    unsigned lane_count;   /* the highest lane used, plus one */
    unsigned under_way[2]; /* batches of all lanes */
};

struct dm_process {
    struct dm_mutex start;      /* rank START: guards the making of a runtime, and all below; connections nest in it */
    struct dm_runtime *current; /* read without the lock, by an acquire load; NULL: none was made */
    struct dm_runtime *retired; /* all earlier ones, so that they stay reachable */
    unsigned forks;             /* between this process and the first one */
    dmutex_lost_fn lost;
    void *lost_user;
};

extern struct dm_process dm_process;

/* The runtime if there is one, else NULL. */
struct dm_runtime *dm_runtime_peek(void);

/*
 * Adds up the counters of all runtimes of this process; the caller has set struct_size.  Starts no runtime.  The caller
 * holds no lock of rank START or later.
 */
void dm_runtime_count(dmutex_stats_t *ret_stats);

void dm_runtime_set_lost(dmutex_lost_fn lost, void *user);
void dm_runtime_get_lost(dmutex_lost_fn *ret_lost, void **ret_user);

/* How long a call that must not wait for a lease may take. */
struct dm_deadline dm_runtime_call_deadline(const struct dm_runtime *runtime);

/* Waits a little, after the server answered that it is not ready.  False when the deadline has passed. */
bool dm_runtime_pause(const struct dm_deadline *deadline);

#endif
