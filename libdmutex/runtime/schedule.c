/* SPDX-License-Identifier: BSD-2-Clause */
#include "runtime/schedule.h"

#include <stdlib.h>

#include "base/log.h"
#include "runtime/loop.h"
#include "runtime/loss.h"
#include "runtime/steps.h"

/* Renewals and polls due this much later go along in the same batch. */
#define ALONG_PART 6

enum batch_kind { RENEWALS, POLLS };

/* One script call about many attempts; its names are pinned until it is answered. */
struct batch {
    struct batch *next;
    struct dm_runtime *runtime;
    enum batch_kind kind;
    bool by_text;
    int count;
    struct dm_name *names[DM_BATCH];
    union {
        struct dm_ask asks[DM_BATCH];
        struct dm_renewal renewals[DM_BATCH];
    } of;
};

/* What a run has collected under the lock, to be sent without it. */
struct work {
    struct batch *batches;
    struct batch *open[2]; /* of each kind, with room */
};

static void pin(struct dm_name *name)
{
    name->pins++;
}

static void unpin(struct dm_name *name)
{
    name->pins--;
}

/* A batch with room for one more; NULL without memory: then the next run tries again. */
static struct batch *room_for(struct dm_runtime *runtime, struct work *work, enum batch_kind kind)
{
    struct batch *batch = work->open[kind];

    if (batch && batch->count < DM_BATCH)
        return batch;
    batch = calloc(1, sizeof *batch);
    if (!batch)
        return NULL;
    batch->runtime = runtime;
    batch->kind = kind;
    batch->next = work->batches;
    work->batches = work->open[kind] = batch;
    return batch;
}

static void add_poll(struct dm_runtime *runtime, struct work *work, struct dm_claim *claim)
{
    struct batch *batch = room_for(runtime, work, POLLS);

    if (!batch)
        return;
    batch->of.asks[batch->count] = dm_step_ask(claim, dm_attempt_send_due(&claim->attempt, dm_clock_boot_ns()));
    batch->names[batch->count++] = claim->name;
    pin(claim->name);
}

static void add_renewal(struct dm_runtime *runtime, struct work *work, struct dm_claim *claim)
{
    struct batch *batch = room_for(runtime, work, RENEWALS);

    if (!batch)
        return;
    batch->of.renewals[batch->count] = dm_step_renewal(claim);
    batch->names[batch->count++] = claim->name;
    pin(claim->name);
}

/* Nobody of ours waits there: a poll of attempt 0 serves the waiters of others. */
static void add_serving(struct dm_runtime *runtime, struct work *work, struct dm_name *name)
{
    struct batch *batch = room_for(runtime, work, POLLS);

    if (!batch)
        return;
    name->must_serve = false;
    batch->of.asks[batch->count] = (struct dm_ask){ .keys = name->keys, .lease_ms = DM_LEASE_DEFAULT_MS };
    batch->names[batch->count++] = name;
    pin(name);
}

/* ---- answers ----------------------------------------------------------------------------- */

static struct dm_request request_of(const struct batch *batch, int index, uint64_t *ret_attempt)
{
    if (batch->kind == POLLS) {
        *ret_attempt = batch->of.asks[index].attempt;
        return batch->of.asks[index].request;
    }
    *ret_attempt = batch->of.renewals[index].attempt;
    return batch->of.renewals[index].request;
}

static void take_answer(struct dm_runtime *runtime, const struct batch *batch, int index, const struct redisReply *reply)
{
    uint64_t attempt;
    struct dm_request request = request_of(batch, index, &attempt);
    struct dm_claim *claim = dm_registry_attempt(&runtime->registry, attempt);
    struct dm_answer answer = batch->kind == POLLS ? dm_store_read_poll(reply, index) : dm_store_read_renew(reply, index);
    struct dm_event event = { .kind = batch->kind == POLLS ? DM_EV_ANSWER : DM_EV_RENEWED,
                              .request = request.serial,
                              .answer = &answer };

    if (claim) {
        dm_step_clock(runtime, answer.store_us, request.sent_ns, dm_clock_boot_ns());
        dm_step(runtime, claim, &event);
    } else if (answer.verdict == DM_SAYS_UNKNOWN && answer.is_wanted) {
        dm_step_must_serve(runtime, batch->names[index]);
    }
}

static void send_batch(struct batch *batch);

static void batch_answered(void *user, const struct redisReply *reply)
{
    struct batch *batch = user;
    struct dm_runtime *runtime = batch->runtime;

    if (!batch->by_text && dm_store_wants_text(reply)) {
        batch->by_text = true;
        send_batch(batch);
        return;
    }
    dm_state_lock();
    for (int i = 0; i < batch->count; i++) {
        take_answer(runtime, batch, i, reply);
        unpin(batch->names[i]);
    }
    dm_state_unlock();
    free(batch);
}

static void send_batch(struct batch *batch)
{
    struct dm_store *store = &batch->runtime->store;
    enum dm_conn_result result;

    if (batch->kind == POLLS)
        result = dm_store_post_poll(store, batch->of.asks, batch->count, batch->by_text, batch_answered, batch);
    else
        result = dm_store_post_renew(store, batch->of.renewals, batch->count, batch->by_text, batch_answered, batch);
    if (result == DM_CONN_DOWN) {
        dm_conn_want(store->conn);
        batch_answered(batch, NULL);
    }
}

/* ---- releases ---------------------------------------------------------------------------- */

struct posted {
    struct dm_runtime *runtime;
    uint64_t attempt;
};

static void release_answered(void *user, const struct redisReply *reply)
{
    struct posted *posted = user;
    struct dm_claim *claim;

    dm_state_lock();
    claim = dm_registry_attempt(&posted->runtime->registry, posted->attempt);
    if (claim && claim->is_owed)
        dm_step_released(posted->runtime, claim, dm_store_read_release(reply));
    dm_state_unlock();
    free(posted);
}

enum dm_conn_result dm_schedule_post_release(struct dm_runtime *runtime, const struct dm_ask *ask, enum dm_end end,
                                             bool by_text)
{
    struct posted *posted = malloc(sizeof *posted);
    enum dm_conn_result result = DM_CONN_DOWN;

    if (posted) {
        *posted = (struct posted){ runtime, ask->attempt };
        result = dm_store_post_release(&runtime->store, ask, end, by_text, release_answered, posted);
    }
    if (result != DM_CONN_DOWN)
        return result;
    free(posted);
    dm_conn_want(runtime->commands);
    dm_state_lock();
    struct dm_claim *claim = dm_registry_attempt(&runtime->registry, ask->attempt);
    if (claim && claim->is_owed)
        dm_step_released(runtime, claim, DM_RELEASED_UNKNOWN);
    dm_state_unlock();
    return result;
}

/* Takes one owed claim whose release is to be sent now, or ends one that the lease has ended. */
static struct dm_claim *next_owed(struct dm_runtime *runtime, int64_t now_ns)
{
    struct dm_claim *claim = runtime->registry.claims, *next;

    for (; claim; claim = next) {
        next = claim->next;
        if (!claim->is_owed || claim->is_loss_untold || now_ns < claim->owed_due_ns)
            continue;
        if (now_ns < claim->owed_until_ns)
            return claim;
        dm_step_released(runtime, claim, DM_RELEASED);
    }
    return NULL;
}

void dm_schedule_send_owed(struct dm_runtime *runtime)
{
    struct dm_claim *claim;

    dm_state_lock();
    while ((claim = next_owed(runtime, dm_clock_boot_ns())) != NULL) {
        struct dm_ask ask = dm_step_ask(claim, (struct dm_request){ 0 });
        struct dm_name *name = claim->name;
        enum dm_end end = claim->end;
        bool by_text = claim->by_text;

        claim->owed_due_ns = DM_NEVER;
        claim->sends++;
        pin(name);
        dm_state_unlock();
        dm_schedule_post_release(runtime, &ask, end, by_text);
        dm_state_lock();
        unpin(name);
    }
    dm_state_unlock();
}

/* ---- a run ------------------------------------------------------------------------------- */

/* Lets time pass for a claim, a little ahead so that near ones share a batch. */
static void look_at(struct dm_runtime *runtime, struct work *work, struct dm_claim *claim, int64_t now_ns)
{
    int64_t along_ns = claim->attempt.lease_ms * DM_NS_PER_MS / (3 * ALONG_PART);
    unsigned actions = dm_step_time(runtime, claim);

    if (actions & DM_DO_POLL)
        add_poll(runtime, work, claim);
    if (actions & DM_DO_RENEW ||
        (claim->attempt.phase == DM_HELD && work->open[RENEWALS] && claim->attempt.renew_ns <= now_ns + along_ns))
        add_renewal(runtime, work, claim);
}

static int64_t next_look(const struct dm_claim *claim)
{
    int64_t owed_ns = claim->is_owed ? MIN(claim->owed_due_ns, claim->owed_until_ns) : DM_NEVER;

    return MIN(owed_ns, dm_attempt_next_ns(&claim->attempt));
}

static void look_at_all(struct dm_runtime *runtime, struct work *work, int64_t now_ns)
{
    GHashTableIter names;
    gpointer name;

    for (struct dm_claim *claim = runtime->registry.claims; claim; claim = claim->next)
        look_at(runtime, work, claim, now_ns);
    if (!runtime->registry.names_to_serve)
        return;
    runtime->registry.names_to_serve = 0;
    g_hash_table_iter_init(&names, runtime->registry.names);
    while (g_hash_table_iter_next(&names, NULL, &name)) {
        if (((struct dm_name *)name)->must_serve)
            add_serving(runtime, work, name);
    }
}

static void plan_next(struct dm_runtime *runtime)
{
    int64_t next_ns = DM_NEVER;

    dm_state_lock();
    for (const struct dm_claim *claim = runtime->registry.claims; claim; claim = claim->next)
        next_ns = MIN(next_ns, next_look(claim));
    dm_loop_wake_at(runtime->loop, next_ns);
    dm_state_unlock();
}

void dm_schedule_run(struct dm_runtime *runtime)
{
    struct work work = { NULL, { NULL, NULL } };
    int64_t now_ns = dm_clock_boot_ns();

    dm_state_lock();
    dm_loop_rearm(runtime->loop, DM_NEVER); /* what comes up from here on asks for a new run */
    look_at_all(runtime, &work, now_ns);
    dm_state_unlock();
    while (work.batches) {
        struct batch *batch = work.batches;

        work.batches = batch->next;
        send_batch(batch);
    }
    dm_loss_tell_all(runtime); /* may take long; a lost hold is released only after it */
    dm_schedule_send_owed(runtime);
    plan_next(runtime);
}

static void poll_all(struct dm_runtime *runtime)
{
    for (struct dm_claim *claim = runtime->registry.claims; claim; claim = claim->next)
        dm_step(runtime, claim, &(struct dm_event){ .kind = DM_EV_TOLD_ASK });
}

void dm_schedule_resubscribed(struct dm_runtime *runtime)
{
    dm_state_lock();
    poll_all(runtime);
    dm_state_unlock();
}

void dm_schedule_reconnected(struct dm_runtime *runtime)
{
    int64_t now_ns = dm_clock_boot_ns();

    dm_state_lock();
    for (struct dm_claim *claim = runtime->registry.claims; claim; claim = claim->next) {
        if (claim->is_owed && claim->owed_due_ns != DM_NEVER)
            claim->owed_due_ns = now_ns;
        if (claim->attempt.phase == DM_HELD && claim->attempt.renew_ns != DM_NEVER)
            claim->attempt.renew_ns = now_ns; /* a server that has lost its data gets the lock back */
    }
    poll_all(runtime);
    dm_loop_wake_at(runtime->loop, now_ns);
    dm_state_unlock();
}
