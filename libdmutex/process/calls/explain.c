/* SPDX-License-Identifier: BSD-2-Clause */
#include "process/calls/explain.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/minmax.h"
#include "process/claims/steps.h"

/* When a wait is explained for the first time, and how long after that it is explained again. */
#define FIRST_NS DM_NS_PER_S
#define AGAIN_NS (60 * DM_NS_PER_S)

/* How long an explanation may keep a caller after the deadline. */
#define TIMEOUT_MS 50

/* Counts from the beginning of the call, not from the queueing, because the caller has waited since then. */
void dm_explain_begin(struct dm_wait *wait)
{
    wait->began_ns = dm_clock_boot_ns();
    wait->explain_ns = wait->began_ns + FIRST_NS;
}

/* A waiter wakes up for this only if somebody reads the log at that level. */
int64_t dm_explain_left_ns(const struct dm_wait *wait)
{
    if (!dm_log_is_heard(DMUTEX_LOG_INFO))
        return DM_NEVER;
    return dm_max64(wait->explain_ns - dm_clock_boot_ns(), 0);
}

/* A thread that locks its normal mutex again waits for ever, and only this explanation shows it. */
static bool is_own(const struct dm_wait *wait, const dmutex_info_t *holder)
{
    bool is_inside;

    if (strcmp(holder->owner, wait->runtime->ident.uuid) != 0)
        return false;
    dm_state_lock();
    is_inside = dm_name_hold(wait->name, dm_self_get()->serial) != NULL;
    dm_state_unlock();
    return is_inside;
}

static double seconds(int64_t ms)
{
    return (double)ms / 1000;
}

/*
 * The most helpful first: a grace explains a free lock that nobody gets, and a thread that waits for itself explains
 * everything.
 */
static int describe_holder(const struct dm_wait *wait, const struct dm_info *info, char *text, size_t room)
{
    const dmutex_info_t *holder = &info->shown;

    if (!holder->locked && info->grace_ms > 0)
        return snprintf(text, room,
                        "the server has just started and grants nothing new for %.1f s, while earlier "
                        "holders may reconnect",
                        seconds(info->grace_ms));
    if (!holder->locked)
        return snprintf(text, room, "free, and about to be granted to the first waiter that is alive");
    if (is_own(wait, holder))
        return snprintf(text, room, "held by the calling thread itself, for %.1f s", seconds(info->held_ms));
    if (strcmp(holder->owner, "?") == 0)
        return snprintf(text, room, "held, and the server has lost the record of the holder");
    return snprintf(text, room, "held by process %" PRIu32 " (%s) on %s, for %.1f s", holder->pid, holder->program,
                    holder->host, seconds(info->held_ms));
}

static void describe(const struct dm_wait *wait, const struct dm_info *info, char *text, size_t room)
{
    int used = describe_holder(wait, info, text, room);

    if (info->position && used < (int)room)
        snprintf(text + used, room - (size_t)used, "; place %" PRIu64 " of %" PRIu32 " in the queue", info->position,
                 info->shown.waiters);
}

/* Leaves the explanation, or the reason why there is none, in wait->reason. */
static void explain(struct dm_wait *wait, const struct dm_deadline *deadline)
{
    struct dm_runtime *runtime = wait->runtime;
    struct dm_question question = { .op = DM_OP_INFO, .place = wait->name->place, .lease_ms = DM_LEASE_DEFAULT_MS };
    union dm_more more;

    dm_state_lock();
    if (wait->claim)
        question = dm_step_question(wait->claim, DM_OP_INFO, (struct dm_request){ 0 });
    dm_state_unlock();
    question.ret_more = &more;
    wait->reason[0] = '\0';
    if (dm_store_ask(runtime->store, &question, deadline, wait->reason).verdict == DM_SAYS_DONE)
        describe(wait, &more.info, wait->reason, sizeof wait->reason);
}

static void log_wait(const struct dm_wait *wait)
{
    const char *key = wait->name->key;

    dm_log_info("waiting for %s%s%s for %.1f s: %s", key[0] == 'n' ? "\"" : "a mutex without a name",
                key[0] == 'n' ? key + 1 : "", key[0] == 'n' ? "\"" : "",
                seconds((dm_clock_boot_ns() - wait->began_ns) / DM_NS_PER_MS), wait->reason);
}

/*
 * If due, sets the next time, which happens before the server is asked, so that a slow server is not asked without a
 * pause.
 */
static bool is_due(struct dm_wait *wait)
{
    if (dm_explain_left_ns(wait) != 0)
        return false;
    wait->explain_ns = dm_clock_boot_ns() + AGAIN_NS;
    return true;
}

void dm_explain_if_due(struct dm_wait *wait)
{
    struct dm_deadline deadline = dm_runtime_call_deadline(wait->runtime);

    if (!is_due(wait) || (wait->claim && dm_wait_phase(wait) != DM_QUEUED))
        return;
    explain(wait, &deadline);
    log_wait(wait);
}

/* If waiting is useless, dm_store_await_able() returns early, and the caller's request finds out why. */
void dm_explain_until_able(struct dm_wait *wait)
{
    struct dm_store *store = wait->runtime->store;
    bool is_over = false;

    while (!is_over && !dm_store_is_able(store, wait->name->place, DM_ASKS)) {
        struct dm_deadline wake = dm_deadline_sooner(&wait->patience, dm_explain_left_ns(wait));
        bool is_able = dm_store_await_able(store, wait->name->place, DM_ASKS, &wake);

        is_over = is_able || dm_deadline_left_ns(&wake) > 0 || dm_deadline_left_ns(&wait->patience) == 0;
        if (is_able || !is_due(wait))
            continue;
        dm_store_reason(store, wait->name->place, DM_ASKS, wait->reason);
        log_wait(wait);
    }
}

/* Short waits are not explained: the question would cost more than the wait. */
void dm_explain_timeout(struct dm_wait *wait)
{
    struct dm_deadline soon = dm_deadline_in_ms(TIMEOUT_MS);

    if (dm_clock_boot_ns() - wait->began_ns >= FIRST_NS &&
        dm_store_is_able(wait->runtime->store, wait->name->place, DM_ASKS))
        explain(wait, &soon);
}
