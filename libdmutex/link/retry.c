/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/retry.h"

#include "base/clock.h"
#include "base/ident.h"
#include "base/minmax.h"

/* The limits of a pause: at first, for most of the time, and in the end. */
#define RETRY_MIN_MS 10
#define RETRY_USUAL_MS 250
#define RETRY_MAX_MS 2000
#define FAILURES_USUAL 64   /* with that limit */
#define FAILURES_STEP 8     /* with each later limit */
#define FAILURES_ANSWERED 1 /* at most, if a command was answered before the connection broke */

/* How long a connection must be in use before it counts as restored. */
#define USE_NS DM_NS_PER_S

/*
 * Doubles from RETRY_MIN_MS on, stays at RETRY_USUAL_MS for a while, since a restart takes seconds, then doubles up to
 * RETRY_MAX_MS: a thousand processes without a server must not burden the network.
 */
static int64_t limit_ms_of(const struct dm_retry *retry)
{
    unsigned failures = retry->failures;
    int64_t limit_ms = dm_min64(RETRY_MIN_MS << dm_min64(failures - 1, 5), RETRY_USUAL_MS);

    if (failures > FAILURES_USUAL)
        limit_ms =
            dm_min64(RETRY_USUAL_MS << dm_min64(1 + (failures - FAILURES_USUAL) / FAILURES_STEP, 3), RETRY_MAX_MS);
    if (retry->most_ms)
        limit_ms = dm_min64(limit_ms, dm_max64(retry->most_ms, RETRY_MIN_MS));
    return limit_ms;
}

/* Schedules the next try after the last failure.  The random part stays the same even if the limit has changed. */
static void plan(struct dm_retry *retry)
{
    retry->due_ns = retry->failed_ns + limit_ms_of(retry) * (DM_NS_PER_MS / 1000) * retry->part;
}

/*
 * The pause is a random part of the limit, so that processes which lost their server together do not all come back
 * together.
 */
void dm_retry_note_failure(struct dm_retry *retry, int64_t now_ns)
{
    uint64_t random;

    dm_ident_random(&random, 1);
    retry->part = (int64_t)(random % 1000);
    retry->failed_ns = now_ns;
    retry->failures++;
    plan(retry);
}

/*
 * A server that answers before it breaks is there, and is tried again soon; one that only answers greetings is not.
 */
void dm_retry_note_answer(struct dm_retry *retry)
{
    if (retry->failures > FAILURES_ANSWERED)
        retry->failures = FAILURES_ANSWERED;
}

bool dm_retry_is_of_use(const struct dm_retry *retry, int64_t now_ns)
{
    return now_ns - retry->ready_ns >= USE_NS;
}

/* Not at the first answer: a server that restarts in a loop may answer some commands each time. */
bool dm_retry_note_use(struct dm_retry *retry, int64_t now_ns)
{
    if (!dm_retry_is_of_use(retry, now_ns))
        return false;
    retry->failures = 0;
    return true;
}

/* Reschedules from the failure and not from now: a limit that is set often must not postpone the try. */
void dm_retry_limit(struct dm_retry *retry, unsigned most_ms)
{
    if (retry->most_ms == most_ms)
        return;
    retry->most_ms = most_ms;
    if (retry->failures)
        plan(retry);
}
