/* SPDX-License-Identifier: BSD-2-Clause */
/* The library's process/claims/process.h: a runtime for each process, and the store that the run is about. */
#include "process.h"

#include <stdio.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "check.h"
#include "cluster.h"
#include "hooks.h"
#include "marks.h"
#include "plain.h"
#include "process/keep/inbox.h"
#include "process/keep/pump.h"
#include "process/life/fork.h"
#include "process/life/lifetime.h"
#include "registers.h"
#include "sentinels.h"
#include "store/drivers.h"
#include "world.h"

static bool has_grace;

void process_set_grace(bool has)
{
    has_grace = has;
}

static void lost(const char *name, uint64_t token, void *user)
{
    (void)user;
    check_lost(name, token);
}

struct dm_runtime *dm_runtime_peek(void)
{
    struct process *process = process_current();

    return process ? &process->runtime : NULL;
}

void dm_runtime_get_lost(dmutex_lost_fn *ret_lost, void **ret_user)
{
    *ret_lost = lost;
    *ret_user = NULL;
}

void dm_runtime_count(dmutex_stats_t *ret_stats)
{
    *ret_stats = (dmutex_stats_t){ .struct_size = sizeof *ret_stats };
    dm_stats_add(&process_current()->runtime, ret_stats);
}

struct dm_deadline dm_runtime_call_deadline(const struct dm_runtime *runtime)
{
    return dm_deadline_in_ms(runtime->url->command_timeout_ms);
}

bool dm_runtime_pause(const struct dm_deadline *deadline)
{
    struct dm_deadline pause = dm_deadline_sooner(deadline, 5 * MS);

    dm_self_sleep(dm_self_get(), &pause);
    return dm_deadline_left_ns(deadline) > 0;
}

void dm_runtime_fork_prepare(void)
{
}

void dm_runtime_fork_parent(void)
{
}

void dm_runtime_fork_child(void)
{
}

static void store_ready(void *user)
{
    dm_pump_reconnected(user);
}

static void store_tells(void *user)
{
    dm_pump_resubscribed(user);
}

static void changed(void *user)
{
    dm_alarm_ring(((struct dm_runtime *)user)->alarm);
}

static bool is_in_need(void *user, unsigned *ret_lease_ms)
{
    if (ret_lease_ms)
        *ret_lease_ms = 0; /* tries are as rare as without holds */
    return ((struct dm_runtime *)user)->registry.claims != NULL;
}

static void open_store(struct dm_runtime *runtime)
{
    const struct dm_host host = {
        .user = runtime,
        .on_ready = store_ready,
        .on_inbox = store_tells,
        .on_message = dm_inbox_take,
        .on_change = changed,
        .is_in_need = is_in_need,
    };
    char reason[DM_REASON_ROOM];

    if (plain_is_there())
        runtime->store = plain_open(process_current(), &host);
    else if (registers_are_there())
        runtime->store = registers_open(process_current(), &host);
    else
        runtime->store = dm_store_open(runtime->url, &runtime->ident, &host, reason);
    marks_put(runtime->store);
    hooks_put(runtime->store);
}

/* The port of a server, and of a sentinel, is its number and one. */
static void list_hosts(struct dm_url *url, int before, int hosts)
{
    static const char *const ports[SERVERS_MAX + SENTINELS] = { "1", "2", "3", "4", "5", "6", "7", "8", "9" };

    url->host_count = hosts;
    for (int i = 0; i < hosts; i++)
        url->hosts[i] = (struct dm_url_host){ (char *)"10.0.0.1", (char *)ports[before + i] };
}

static void point_at_sentinels(struct dm_url *url)
{
    url->kind = DM_URL_SENTINEL;
    url->master = (char *)"m";
    url->wait = sentinels_wait();
    url->switch_ms = url->connect_timeout_ms = url->command_timeout_ms = SENTINELS_SWITCH_MS;
    list_hosts(url, SERVERS_MAX, SENTINELS);
}

static void point_at_cluster(struct dm_url *url)
{
    url->kind = DM_URL_CLUSTER;
    url->switch_ms = CLUSTER_SWITCH_MS;
    list_hosts(url, 0, CLUSTER_SHARDS);
}

static void point_at_quorum(struct dm_url *url)
{
    url->kind = DM_URL_QUORUM;
    list_hosts(url, 0, server_count());
}

void process_make_runtime(struct process *process)
{
    struct dm_runtime *runtime = &process->runtime;

    process->url = (struct dm_url){ .kind = DM_URL_TCP,
                                    .host = (char *)"10.0.0.1",
                                    .port = (char *)"1",
                                    .prefix = (char *)"d",
                                    .connect_timeout_ms = 400,
                                    .has_grace = has_grace,
                                    .command_timeout_ms = 200 + 50 * chance_below(CHANCE_WORK, 10) };
    if (sentinels_are_there())
        point_at_sentinels(&process->url);
    else if (cluster_is_there())
        point_at_cluster(&process->url);
    else if (server_count() > 1)
        point_at_quorum(&process->url);
    process->loop = (struct loop){ .alarm = { .bell = dm_bell_open(), .due_ns = DM_NEVER }, .process = process };
    runtime->pid = getpid();
    runtime->url = &process->url;
    runtime->alarm = &process->loop.alarm;
    snprintf(runtime->ident.uuid, sizeof runtime->ident.uuid, "%08x%024llx", (unsigned)process->number,
             (unsigned long long)chance_word(CHANCE_WORK));
    snprintf(runtime->ident.label, sizeof runtime->ident.label, "%d host sim", process->number);
    open_store(runtime);
    dm_registry_init(&runtime->registry, runtime->store, UINT64_C(9223372036854770000) + process->number);
}
