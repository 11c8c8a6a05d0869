/* SPDX-License-Identifier: BSD-2-Clause */
#include "process/keep/pump.h"

#include <limits.h>
#include <stdlib.h>

#include "base/attrs.h"
#include "base/log.h"
#include "base/minmax.h"
#include "base/rank.h"
#include "process/calls/call.h"
#include "process/claims/alarm.h"
#include "process/claims/steps.h"
#include "process/keep/loss.h"
#include "process/keep/metrics.h"
#include "process/keep/returns.h"

/* Renewals that are due within 1 / ALONG_PART of the renewal interval go along in the same batch. */
#define ALONG_PART 3

enum batch_kind { RENEWALS, POLLS };

/*
 * The most batches of a kind under way to one server.  Thousands posted at once would all wait for the same slow server
 * while the command_timeout of each runs, and again after the reconnect.
 */
#define UNDER_WAY_MOST 16

/* At this number, after UNDER_WAY_MOST, the next batches go out together, with few turns of the loop. */
#define UNDER_WAY_REFILL (UNDER_WAY_MOST / 2)

/* One script call about many attempts.  The names are pinned until the answer. */
struct batch {
    struct dm_runtime *runtime;
    enum batch_kind kind;
    struct dm_lane *lane; /* on which the batch is under way; NULL: it was not sent */
    int count;
    struct dm_name *names[DM_BATCH];
    struct dm_question questions[DM_BATCH];
    struct dm_crowd crowds[DM_BATCH]; /* of the questions that have one */
};

/* ---- contents of a batch ----------------------------------------------------------------- */

/* Pins the name, because the batch uses its keys without the lock. */
static void add(struct batch *batch, struct dm_claim *claim, int64_t now_ns)
{
    batch->questions[batch->count] = (batch->kind == POLLS ? dm_step_poll : dm_step_renewal)(
        batch->runtime, claim, now_ns, &batch->crowds[batch->count]);
    batch->names[batch->count++] = claim->name;
    dm_registry_pin(claim->name);
}

/* None of our threads waits for the name: a poll of attempt 0 serves other processes' waiters. */
static void add_serving(struct batch *batch, struct dm_name *name)
{
    name->must_serve = false;
    batch->questions[batch->count] =
        (struct dm_question){ .op = DM_OP_POLL, .place = name->place, .lease_ms = DM_LEASE_DEFAULT_MS };
    batch->names[batch->count++] = name;
    dm_registry_pin(name);
}

/* Renewals due within this time go along with a due renewal of this claim's lease. */
static int64_t along_ns(const struct dm_claim *claim)
{
    return claim->hold.lease_ms * DM_NS_PER_MS / (3 * ALONG_PART);
}

/*
 * Once a renewal must go out, those that are due a little later go along, the earliest first, so that each hold has its
 * turn even if there is time for only some.  A renewal carries a time at which the hold was certain, even if the
 * process is stopped after this check, because a new server believes the renewal.
 */
static void collect_renewals(struct batch *batch, int64_t now_ns)
{
    struct dm_registry *registry = &batch->runtime->registry;
    struct dm_claim *claim = dm_due_first(registry, DM_WANTS_RENEW, now_ns);
    int64_t until_ns = claim ? now_ns + along_ns(claim) : 0;

    for (; claim && batch->count < DM_BATCH; claim = dm_due_first(registry, DM_WANTS_RENEW, until_ns)) {
        until_ns = dm_min64(until_ns, now_ns + along_ns(claim));
        if (dm_hold_is_certain(&claim->hold, now_ns))
            add(batch, claim, now_ns);
        else
            dm_step_kind(batch->runtime, claim, DM_EV_TIME); /* lost, so no longer renewed */
    }
}

/* No poll goes along early: each is due when a holder's lease can end. */
static void collect_polls(struct batch *batch, int64_t now_ns)
{
    struct dm_claim *claim;

    while (batch->count < DM_BATCH && (claim = dm_due_first(&batch->runtime->registry, DM_WANTS_POLL, now_ns)) != NULL)
        add(batch, claim, now_ns);
}

/* Marks as lost the holds that are no longer certain, and gives idle holds back. */
static void let_time_pass(struct dm_runtime *runtime)
{
    int64_t now_ns = dm_clock_boot_ns();
    struct dm_claim *claim;

    dm_state_lock();
    while ((claim = dm_due_first(&runtime->registry, DM_WANTS_TIME, now_ns)) != NULL)
        dm_step_kind(runtime, claim, DM_EV_TIME);
    while ((claim = dm_due_first(&runtime->registry, DM_WANTS_LOOK, now_ns)) != NULL)
        dm_step_check(runtime, claim);
    dm_state_unlock();
}

/* Adds the name if it must be served.  True if the batch is full then. */
static bool has_filled(struct dm_name *name, void *user)
{
    struct batch *batch = user;

    if (name->must_serve)
        add_serving(batch, name);
    return batch->count == DM_BATCH;
}

/* Walks over all names, but only after an answer has said that waiters were left, which is rare. */
static void collect_names_to_serve(struct batch *batch)
{
    struct dm_registry *registry = &batch->runtime->registry;

    if (registry->names_to_serve && batch->count < DM_BATCH && !dm_registry_search(registry, has_filled, batch))
        registry->names_to_serve = 0;
}

/* ---- lanes ------------------------------------------------------------------------------- */

static unsigned lane_of(const struct batch *batch, int index)
{
    return dm_store_lane(batch->runtime->store, batch->questions[index].place);
}

static void move_entry(struct batch *to, struct batch *from, int index)
{
    to->crowds[to->count] = from->crowds[index];
    to->questions[to->count] = from->questions[index];
    to->questions[to->count].crowd = &to->crowds[to->count];
    to->names[to->count++] = from->names[index];
}

/* Without memory the batch stays whole: the store sends all requests, and answers when it has the last reply. */
static struct batch *split_off_other_lanes(struct batch *batch)
{
    unsigned lane = lane_of(batch, 0);
    struct batch *others = NULL;
    int count = batch->count;

    for (int i = 1; i < count && !others; i++) {
        if (lane_of(batch, i) != lane)
            others = calloc(1, sizeof *others);
    }
    if (!others)
        return NULL;
    others->runtime = batch->runtime;
    others->kind = batch->kind;
    batch->count = 0;
    for (int i = 0; i < count; i++)
        move_entry(lane_of(batch, i) == lane ? batch : others, batch, i);
    return others;
}

/* ---- pacing ------------------------------------------------------------------------------ */

static unsigned most_under_way(const struct dm_runtime *runtime, enum batch_kind kind)
{
    return kind == RENEWALS && runtime->store->has_free_renewals ? UINT_MAX / DM_LANES : UNDER_WAY_MOST;
}

/* Counts the batch, which has one lane, as under way; false if the lane has enough. */
static bool begin_way(struct batch *batch)
{
    struct dm_runtime *runtime = batch->runtime;
    unsigned number = lane_of(batch, 0);
    struct dm_lane *lane = &runtime->lanes[number];

    if (runtime->lane_count <= number)
        runtime->lane_count = number + 1;
    if (lane->under_way[batch->kind] >= most_under_way(runtime, batch->kind))
        return false;
    lane->under_way[batch->kind]++;
    runtime->under_way[batch->kind]++;
    batch->lane = lane;
    return true;
}

static void end_way(struct batch *batch)
{
    if (!batch->lane)
        return;
    batch->runtime->under_way[batch->kind]--;
    if (--batch->lane->under_way[batch->kind] == UNDER_WAY_REFILL)
        dm_alarm_set(batch->runtime->alarm, dm_clock_boot_ns());
}

/* All lanes have enough.  State lock held. */
static bool is_way_full(const struct dm_runtime *runtime, enum batch_kind kind)
{
    dm_assert_held(DM_RANK_STATE);
    return runtime->under_way[kind] >= most_under_way(runtime, kind) * (runtime->lane_count ? runtime->lane_count : 1);
}

/* When the way is full, due claims must wait for an answer, which wakes the loop. */
static int64_t next_batch_ns(const struct dm_runtime *runtime, enum batch_kind kind)
{
    if (is_way_full(runtime, kind))
        return DM_NEVER;
    return dm_due_next_ns(&runtime->registry, kind == RENEWALS ? DM_WANTS_RENEW : DM_WANTS_POLL);
}

/* Checked before a batch is allocated, because most runs have nothing to send. */
static bool has_batch(struct dm_runtime *runtime, enum batch_kind kind)
{
    bool is_due, must_serve;

    dm_state_lock();
    is_due = next_batch_ns(runtime, kind) <= dm_clock_boot_ns();
    must_serve = kind == POLLS && runtime->registry.names_to_serve && !is_way_full(runtime, kind);
    dm_state_unlock();
    return is_due || must_serve;
}

/* ---- answers ----------------------------------------------------------------------------- */

/*
 * The answer is for this request: a later one of the same attempt may be under way.
 *
 * Attempt 0 is not a claim but a name to be served.  After a batch that did not arrive, the name must still be served;
 * a claim plans its own repetition.
 */
static void take_answer(const struct batch *batch, int index, const struct dm_answer *answer)
{
    struct dm_runtime *runtime = batch->runtime;
    const struct dm_question *question = &batch->questions[index];
    struct dm_claim *claim = dm_registry_attempt(&runtime->registry, question->attempt);
    struct dm_event event = { .kind = batch->kind == POLLS ? DM_EV_POLLED : DM_EV_RENEWED,
                              .request = question->request.serial,
                              .answer = answer };
    bool is_unserved = answer->verdict == DM_SAYS_NOTHING || answer->verdict == DM_SAYS_AGAIN;

    if (claim) {
        dm_step_clock(runtime, question->place, answer->store_us, question->request.sent_ns, dm_clock_boot_ns());
        dm_step(runtime, claim, &event);
    } else if (question->attempt == 0 && (is_unserved || answer->is_wanted)) {
        dm_step_must_serve(runtime, batch->names[index], answer->verdict != DM_SAYS_NOTHING);
    }
}

/* answers NULL: not sent, or the connection broke before the reply. */
static void take_answers(struct batch *batch, const struct dm_answer *answers)
{
    static const struct dm_answer nothing = { .verdict = DM_SAYS_NOTHING };

    end_way(batch);
    for (int i = 0; i < batch->count; i++) {
        take_answer(batch, i, answers ? &answers[i] : &nothing);
        dm_registry_unpin(&batch->runtime->registry, batch->names[i]);
    }
    free(batch);
}

/* a dm_answers_fn */
static void batch_answered(void *user, const struct dm_answer *answers, int count, const char *refusal)
{
    struct batch *batch = user;

    (void)count; /* the batch's */
    dm_state_lock();
    dm_step_log_refusal(batch->runtime, refusal);
    take_answers(batch, answers);
    dm_state_unlock();
}

/* ---- sending ----------------------------------------------------------------------------- */

/*
 * A lane that has enough does not delay the others: its part is not sent, and its claims plan their own repetition.
 * Handlers are called by dm_store_work() in the same run.  True if every part was sent.  State lock held.
 */
static bool post_lanes(struct batch *batch)
{
    bool is_posted = true;

    dm_assert_held(DM_RANK_STATE);
    while (batch) {
        struct batch *others = split_off_other_lanes(batch);

        if (!begin_way(batch) ||
            !dm_store_submit(batch->runtime->store, batch->questions, batch->count, batch_answered, batch)) {
            is_posted = false;
            take_answers(batch, NULL);
        }
        batch = others;
    }
    return is_posted;
}

/*
 * Chooses and posts without giving up the state lock in between: a later release follows the batch on the connection,
 * so no hold is renewed after its release.  True if there may be more.
 */
static bool run_batch(struct dm_runtime *runtime, enum batch_kind kind)
{
    struct batch *batch = has_batch(runtime, kind) ? calloc(1, sizeof *batch) : NULL;
    bool is_full;

    if (!batch)
        return false; /* due claims stay due */
    batch->runtime = runtime;
    batch->kind = kind;
    dm_state_lock();
    if (kind == RENEWALS) {
        collect_renewals(batch, dm_clock_boot_ns());
    } else {
        collect_polls(batch, dm_clock_boot_ns());
        collect_names_to_serve(batch);
    }
    is_full = batch->count == DM_BATCH;
    if (batch->count == 0)
        free(batch);
    else
        is_full = post_lanes(batch) && is_full; /* names that were not posted are due again: the next turn */
    is_full = is_full && !is_way_full(runtime, kind);
    dm_state_unlock();
    return is_full;
}

/* ---- inboxes ----------------------------------------------------------------------------- */

static bool wants_inbox(struct dm_name *name, void *user)
{
    (void)user;
    return name->wants_inbox;
}

/* A name whose inbox is wanted, pinned; NULL: there is none left. */
static struct dm_name *next_inbox(struct dm_registry *registry)
{
    struct dm_name *name = registry->inboxes_wanted ? dm_registry_search(registry, wants_inbox, NULL) : NULL;

    if (!name) {
        registry->inboxes_wanted = 0; /* some names may have been forgotten */
        return NULL;
    }
    name->wants_inbox = false;
    registry->inboxes_wanted--;
    dm_registry_pin(name);
    return name;
}

/* Without the state lock, because handlers may be called. */
static void open_inboxes(struct dm_runtime *runtime)
{
    struct dm_name *name;

    dm_state_lock();
    while ((name = next_inbox(&runtime->registry)) != NULL) {
        dm_state_unlock();
        dm_store_want(runtime->store, name->place, DM_TELLS);
        dm_state_lock();
        dm_registry_unpin(&runtime->registry, name);
    }
    dm_state_unlock();
}

/* ---- a run ------------------------------------------------------------------------------- */

/*
 * Threads that wait on the inbox send nothing for a long time, so the loop checks for them that the server is still the
 * same.
 */
static int64_t look_at_server(struct dm_runtime *runtime)
{
    return dm_due_is_any(&runtime->registry, DM_WANTS_POLL) ? dm_store_look(runtime->store) : DM_NEVER;
}

/* Plans the next run for the earliest time of all orders; what is under way comes back with its answer. */
static void plan_next(struct dm_runtime *runtime)
{
    static const enum dm_want wants[] = { DM_WANTS_TIME, DM_WANTS_RELEASE, DM_WANTS_TELL, DM_WANTS_LOOK };
    int64_t next_ns;

    dm_state_lock();
    next_ns = dm_min64(next_batch_ns(runtime, RENEWALS), next_batch_ns(runtime, POLLS));
    next_ns = dm_min64(next_ns, look_at_server(runtime));
    for (size_t i = 0; i < DM_COUNT(wants); i++)
        next_ns = dm_min64(next_ns, dm_due_next_ns(&runtime->registry, wants[i]));
    next_ns = dm_min64(next_ns, dm_metrics_due_ns(&runtime->metrics));
    dm_alarm_set(runtime->alarm, next_ns);
    dm_state_unlock();
}

/*
 * The order is part of the promises: losses are noticed before renewals, so that a hold that is over is not renewed,
 * and reported before releases (P1).
 */
void dm_pump_run(struct dm_runtime *runtime)
{
    dm_state_lock();
    dm_alarm_reset(runtime->alarm, DM_NEVER); /* a due time set after this asks for a new run */
    dm_state_unlock();
    open_inboxes(runtime);
    let_time_pass(runtime);
    while (run_batch(runtime, RENEWALS))
        continue;
    while (run_batch(runtime, POLLS))
        continue;
    dm_store_work(runtime->store);
    dm_loss_tell_all(runtime); /* may take long; a lost hold is released only after it is reported */
    dm_returns_send(runtime);
    dm_metrics_run(runtime);
    plan_next(runtime);
}

/* No claim is freed by such a step, because connections change neither its phase nor its thread. */
static void step_all(struct dm_runtime *runtime, enum dm_event_kind kind)
{
    dm_state_lock();
    for (struct dm_claim *claim = runtime->registry.claims; claim; claim = claim->next)
        dm_step_kind(runtime, claim, kind);
    dm_state_unlock();
}

/* Called without a lock, by the thread that has read the subscription. */
void dm_pump_resubscribed(struct dm_runtime *runtime)
{
    step_all(runtime, DM_EV_SUBSCRIBED);
}

/* A server that has lost its data is told of the locks again by their holders. */
void dm_pump_reconnected(struct dm_runtime *runtime)
{
    step_all(runtime, DM_EV_CONNECTED);
    dm_state_lock();
    dm_alarm_set(runtime->alarm, dm_clock_boot_ns());
    dm_state_unlock();
}
