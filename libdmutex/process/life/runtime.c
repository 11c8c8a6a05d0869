/* SPDX-License-Identifier: BSD-2-Clause */
#include "process/life/runtime.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "base/rank.h"
#include "process/claims/alarm.h"
#include "process/claims/claim.h"
#include "process/claims/fast.h"
#include "process/claims/steps.h"
#include "process/keep/inbox.h"
#include "process/keep/loop.h"
#include "process/keep/metrics.h"
#include "process/keep/pump.h"
#include "process/keep/returns.h"
#include "process/life/fork.h"
#include "process/life/lifetime.h"
#include "spawn/local.h"
#include "store/drivers.h"

/* A load takes milliseconds; even a call whose deadline has passed may take that long. */
#define LOAD_MS 50

/* The server's URL; guarded by dm_process.start. */
static char *configured_url;
static char *switched_url; /* overrides configured_url */

/* ---- callbacks of the store -------------------------------------------------- */

/* Called without locks, by the thread that has read the last reply of the handshake. */
static void store_ready(void *user)
{
    dm_pump_reconnected(user);
}

/* Likewise, for the inbox. */
static void store_tells(void *user)
{
    dm_pump_resubscribed(user);
}

/* The store may have news before there is a loop, while the runtime is still being made. */
static void nudge(void *user)
{
    struct dm_runtime *runtime = user;

    if (runtime->alarm)
        dm_alarm_ring(runtime->alarm);
}

/* The shortest lease of all holds; 0: no hold. */
static unsigned shortest_lease_ms(const struct dm_runtime *runtime)
{
    unsigned shortest_ms = 0;

    for (const struct dm_claim *claim = runtime->registry.claims; claim; claim = claim->next) {
        const struct dm_hold *hold = &claim->hold;

        if (hold->phase == DM_HELD && (shortest_ms == 0 || hold->lease_ms < shortest_ms))
            shortest_ms = hold->lease_ms;
    }
    return shortest_ms;
}

/* A process without claims leaves a broken connection closed until the next call wants it. */
static bool is_in_need(void *user, unsigned *ret_lease_ms)
{
    struct dm_runtime *runtime = user;
    bool has_claims;

    dm_state_lock();
    has_claims = runtime->registry.claims != NULL;
    if (ret_lease_ms)
        *ret_lease_ms = shortest_lease_ms(runtime);
    dm_state_unlock();
    return has_claims;
}

/* Opens no connection: the first request does that, or the first wait.  NULL with the reason, or with "". */
static struct dm_store *open_store(struct dm_runtime *runtime, char *ret_reason)
{
    const struct dm_host host = {
        .user = runtime,
        .on_ready = store_ready,
        .on_inbox = store_tells,
        .on_message = dm_inbox_take,
        .on_change = nudge,
        .is_in_need = is_in_need,
        .open_local = dm_local_open,
    };

    return dm_store_open(runtime->url, &runtime->ident, &host, ret_reason);
}

/* ---- beginning --------------------------------------------------------------------------- */

/* Frees a runtime that nobody else has seen; no other is ever freed. */
static void undo(struct dm_runtime *runtime)
{
    if (runtime->store) {
        dm_registry_clear(&runtime->registry);
        dm_store_free_unused(runtime->store);
    }
    dm_url_free(runtime->url);
    free(runtime->settings.metrics);
    free(runtime->metrics.path);
    free(runtime);
}

/* False with the reason if the URL is at fault, else with "" and errno. */
static bool start_runtime(struct dm_runtime *runtime, char *ret_reason)
{
    uint64_t random;

    errno = 0;
    ret_reason[0] = '\0';
    if (!dm_lifetime_is_told())
        return false;
    runtime->store = open_store(runtime, ret_reason);
    if (!runtime->store)
        return false;
    dm_ident_random(&random, 1);
    dm_registry_init(&runtime->registry, runtime->store, random >> 1); /* so that attempts' numbers cannot be guessed */
    return dm_loop_serve(runtime);
}

/* A module that the next try needs, and what is known of it outside START. */
struct need {
    struct dm_module *module; /* NULL: none */
    unsigned command_timeout_ms;
    bool fails_when_down;
};

static bool is_missing(const struct dm_runtime *runtime, struct need *ret_need)
{
    struct dm_module *module = dm_store_module(runtime->url);

    *ret_need = (struct need){ NULL, 0, false };
    if (!module || dm_module_is_loaded(module))
        return false;
    *ret_need = (struct need){ module, runtime->url->command_timeout_ms, runtime->settings.fails_when_down };
    return true;
}

/*
 * START held, so that two threads that lock first make only one runtime.  If a module is missing, nothing is made, and
 * the result is 0.
 */
static int make(struct dm_runtime **ret_runtime, struct need *ret_need)
{
    struct dm_runtime *runtime = calloc(1, sizeof *runtime);
    char reason[DM_REASON_ROOM];
    int error;

    dm_assert_held(DM_RANK_START);
    if (!runtime)
        return dm_fail(DM_FAIL_NO_MEMORY, NULL);
    runtime->pid = getpid();
    runtime->must_load = true;
    error = dm_settings_read(switched_url ? switched_url : configured_url, &runtime->settings, &runtime->url);
    if (error) {
        undo(runtime);
        return error;
    }
    if (is_missing(runtime, ret_need)) {
        undo(runtime);
        return 0;
    }
    dm_metrics_init(&runtime->metrics, &runtime->settings);
    dm_ident_draw(&runtime->ident, runtime->settings.host);
    if (!start_runtime(runtime, reason)) {
        if (reason[0])
            error = dm_fail(DM_FAIL_BAD_URL, "%s", reason);
        else
            error = dm_fail(errno == ENOMEM ? DM_FAIL_NO_MEMORY : DM_FAIL_NO_START, NULL);
        undo(runtime);
        return error;
    }
    *ret_runtime = runtime;
    return 0;
}

/*
 * START held.  The handlers of fork() see only the current runtime.  If a signal handler forks while the runtime is
 * made, the child gets a runtime with the parent's uuid and without a loop thread, which it must forget as soon as the
 * runtime is current.
 */
static int make_current(struct dm_runtime **ret_runtime, struct need *ret_need)
{
    unsigned forks_before = dm_process.forks;
    int error;

    dm_assert_held(DM_RANK_START);
    error = make(ret_runtime, ret_need);
    __atomic_store_n(&dm_process.current, *ret_runtime, __ATOMIC_RELEASE);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (dm_process.forks != forks_before)
        dm_runtime_fork_child();
    return error;
}

/*
 * No lock is held, because dlopen() waits for the constructors of other threads, which may wait for a lock of ours.
 * Only a call without a deadline loads in its own thread (base/module.h).
 */
static int load(const struct need *need, const struct dm_deadline *deadline)
{
    bool is_bounded = !deadline || need->fails_when_down;
    bool is_timed = !is_bounded && !deadline->is_endless;
    struct dm_deadline until = dm_deadline_in_ms(is_timed ? LOAD_MS : need->command_timeout_ms);
    char reason[DM_REASON_ROOM];
    bool is_late = false;

    if (is_timed && dm_deadline_left_ns(deadline) > LOAD_MS * DM_NS_PER_MS)
        until = *deadline;
    if (!is_bounded && !is_timed && dm_module_load_here(need->module))
        dm_module_reason(need->module, reason);
    else
        dm_module_load(need->module, &until, &is_late, reason);
    if (dm_module_is_loaded(need->module))
        return 0;
    return dm_fail(!is_late ? DM_FAIL_BAD_URL : is_timed ? DM_FAIL_TIMED_OUT : DM_FAIL_DOWN, "%s", reason);
}

/* Every call of the library passes here; after the first one it costs a load. */
int dm_runtime_get(const struct dm_deadline *deadline, struct dm_runtime **ret_runtime)
{
    struct dm_runtime *runtime = __atomic_load_n(&dm_process.current, __ATOMIC_ACQUIRE);
    struct need need;
    int error = 0;

    while (!runtime && !error) {
        need.module = NULL;
        dm_mutex_lock(&dm_process.start);
        runtime = dm_process.current;
        if (!runtime)
            error = make_current(&runtime, &need);
        dm_mutex_unlock(&dm_process.start);
        if (need.module)
            error = load(&need, deadline);
    }
    *ret_runtime = runtime;
    return error;
}

/* Parsed here only to report errors at once, and again with the settings. */
int dm_runtime_configure(const char *url)
{
    char reason[DM_REASON_ROOM];
    struct dm_url *parsed = dm_url_parse(url, reason);
    int error = 0;

    if (!parsed)
        return errno == ENOMEM ? dm_fail(DM_FAIL_NO_MEMORY, NULL) : dm_fail(DM_FAIL_BAD_URL, "%s", reason);
    dm_url_free(parsed);
    dm_mutex_lock(&dm_process.start);
    if (dm_process.current) {
        error = dm_fail(DM_FAIL_CONFIGURED_LATE, NULL);
    } else {
        free(configured_url);
        configured_url = strdup(url);
        if (!configured_url)
            error = dm_fail(DM_FAIL_NO_MEMORY, NULL);
    }
    dm_mutex_unlock(&dm_process.start);
    return error;
}

/* ---- another server ---------------------------------------------------------------------- */

/* A hold that is no longer certain is not a hold, but a loss that the loop thread must report. */
static void let_time_pass(struct dm_runtime *runtime)
{
    struct dm_claim *claim, *next;

    dm_state_lock();
    for (claim = runtime->registry.claims; claim; claim = next) {
        next = claim->next;
        dm_step_kind(runtime, claim, DM_EV_TIME);
    }
    dm_state_unlock();
}

/*
 * True if no thread holds or waits, and no loss is yet to be reported; then the runtime is retired and takes no more
 * claims.
 */
static bool is_emptied(struct dm_runtime *runtime)
{
    bool is_empty;

    dm_state_lock();
    dm_step_end_all_keeping(runtime); /* again: a hold may have been kept since, and entered without this lock */
    is_empty = !dm_registry_is_in_use(&runtime->registry) && !dm_due_is_any(&runtime->registry, DM_WANTS_TELL);
    if (is_empty) {
        runtime->is_retired = true;
        dm_claim_drop_all(&runtime->registry);
        dm_registry_empty(&runtime->registry);
    }
    dm_state_unlock();
    return is_empty;
}

/* START held.  False if the runtime is in use. */
static bool retire(struct dm_runtime *runtime)
{
    dm_assert_held(DM_RANK_START);
    if (!is_emptied(runtime))
        return false;
    runtime->retired_before = dm_process.retired;
    dm_process.retired = runtime;
    __atomic_store_n(&dm_process.current, NULL, __ATOMIC_RELEASE);
    return true;
}

static bool is_any_untold(struct dm_runtime *runtime)
{
    bool is_any;

    dm_state_lock();
    is_any = dm_due_is_any(&runtime->registry, DM_WANTS_TELL);
    dm_state_unlock();
    return is_any;
}

/*
 * The loop thread reports the losses, which takes long only if the application's callback does: so the wait is short,
 * and bounded.
 */
static void await_tellings(struct dm_runtime *runtime)
{
    struct dm_deadline deadline = dm_runtime_call_deadline(runtime);

    let_time_pass(runtime);
    while (is_any_untold(runtime) && dm_runtime_pause(&deadline))
        continue;
}

static void await_releases(struct dm_runtime *runtime, unsigned patience_ms)
{
    struct dm_deadline deadline = dm_deadline_in_ms(patience_ms);

    dm_returns_await(runtime, NULL, &deadline);
}

/*
 * Swaps *url with switched_url, and ends the store of the runtime that it retires.  All under START, which fork()
 * takes: a child knows only the current runtime, and could not close the sockets of a retired one.  0 or an errno
 * value, noted.
 */
static int change_url(char **url)
{
    struct dm_runtime *runtime;
    char *old;
    int error = 0;

    dm_mutex_lock(&dm_process.start);
    runtime = dm_process.current;
    if (runtime && !retire(runtime)) {
        error = dm_fail(DM_FAIL_SWITCH_BUSY, NULL);
    } else {
        old = switched_url;
        switched_url = *url;
        *url = old;
        if (runtime)
            dm_store_end(runtime->store);
    }
    dm_mutex_unlock(&dm_process.start);
    return error;
}

int dm_runtime_switch(const char *url, unsigned patience_ms)
{
    struct dm_runtime *runtime = dm_runtime_peek();
    char *copy = url ? strdup(url) : NULL;
    int error;

    if (url && !copy)
        return dm_fail(DM_FAIL_NO_MEMORY, NULL);
    if (runtime) {
        await_tellings(runtime);
        dm_state_lock();
        dm_step_end_all_keeping(runtime);
        dm_state_unlock();
        await_releases(runtime, patience_ms);
    }
    error = change_url(&copy);
    free(copy); /* the old URL or, if refused, the new one */
    return error;
}
