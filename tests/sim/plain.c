/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions of store/store.h: each submission becomes a request. */
#include <stdio.h>
#include <stdlib.h>

#include "base/self.h"
#include "check.h"
#include "plain_parts.h"
#include "store/ask.h"
#include "world.h"

/* A place of this store; the caller of dm_store_place() frees it. */
struct dm_place {
    int index;
};

static struct plain *plain_of(struct dm_store *store)
{
    return (struct plain *)(void *)store;
}

int plain_index(const struct dm_place *place)
{
    return place->index;
}

/* ---- operations -------------------------------------------------------------------------- */

/* Names are "ng/x0", "ng/x1" ... */
static struct dm_place *place(struct dm_store *store, const char *key)
{
    struct dm_place *place = calloc(1, sizeof *place);

    (void)store;
    if (place)
        place->index = key[4] - '0';
    return place;
}

/* The only server. */
static unsigned lane(struct dm_store *store, const struct dm_place *place)
{
    (void)store;
    (void)place;
    return 0;
}

static uint32_t spread(struct dm_store *store, const struct dm_place *place)
{
    (void)store;
    return (uint32_t)place->index;
}

/* Both ways are the one connection. */
static bool is_able(struct dm_store *store, const struct dm_place *place, enum dm_way way)
{
    (void)place;
    (void)way;
    return plain_of(store)->at_client != 0;
}

/* The plain server's ways open by themselves. */
static void want(struct dm_store *store, const struct dm_place *place, enum dm_way way)
{
    (void)store;
    (void)place;
    (void)way;
}

/*
 * Checks that the caller holds no lock (rule 1 of store/store.h). A thread that plain_await() has woken looks again,
 * because the connection may have broken meanwhile.
 */
static bool await_able(struct dm_store *store, const struct dm_place *place, enum dm_way way,
                       const struct dm_deadline *deadline)
{
    check_no_lock("await_able");
    while (!is_able(store, place, way) && dm_deadline_left_ns(deadline) > 0)
        plain_await(plain_of(store), deadline);
    return is_able(store, place, way);
}

static void reason(struct dm_store *store, const struct dm_place *place, enum dm_way way,
                   char ret_reason[DM_REASON_ROOM])
{
    snprintf(ret_reason, DM_REASON_ROOM, "the plain server %s",
             is_able(store, place, way) ? "gave no answer" : "is down");
}

/* One number serves for both: each restart has another number, with the data or without. */
static struct dm_origin origin(struct dm_store *store, const struct dm_place *place)
{
    (void)place;
    return (struct dm_origin){ .number = plain_of(store)->origin, .run = plain_of(store)->origin };
}

static void count(struct dm_store *store, struct dm_traffic *ret_traffic)
{
    *ret_traffic = plain_of(store)->traffic;
}

/* Another thread may run before a release or a question is sent, but not under the state lock. */
static void preempt(enum dm_op op)
{
    if (op == DM_OP_RENEW || op == DM_OP_POLL)
        return;
    check_no_lock("a question");
    thread_preempt();
}

/*
 * Quiet, as store.h demands. The pending releases of an acquire go first, in the same request. The request stays in the
 * memory of the run, so the caller need not wait for the answer.
 */
static bool submit(struct dm_store *store, const struct dm_question *questions, int count, dm_answers_fn done,
                   void *user)
{
    enum dm_op op = questions->op;
    const struct dm_owed *owed = questions->acquire.owed;
    int owed_count = op == DM_OP_ACQUIRE ? questions->acquire.owed_count : 0;
    struct request *request = plain_request(plain_of(store), owed_count + count);

    preempt(op);
    for (int i = 0; i < owed_count; i++)
        request->items[i].question = (struct dm_question){ .op = DM_OP_RELEASE,
                                                           .place = questions->place,
                                                           .thread = owed[i].thread,
                                                           .attempt = owed[i].attempt,
                                                           .release = { .end = owed[i].end } };
    for (int i = 0; i < count; i++)
        request->items[owed_count + i].question = questions[i];
    request->questions = count;
    request->ret_more = questions->ret_more;
    counters.polls += op == DM_OP_POLL ? (uint64_t)count : 0;
    counters.renewals += op == DM_OP_RENEW ? (uint64_t)count : 0;
    return plain_send(request, done, user);
}

/* Handlers are called as answers come. */
static void work(struct dm_store *store)
{
    (void)store;
}

/* A server here never changes while a connection stays open. */
static int64_t look(struct dm_store *store)
{
    (void)store;
    return DM_NEVER;
}

/*
 * The world calls at each event of the connection, so there is no descriptor to poll. A broken way is opened again
 * while the process has claims.
 */
static void watch(struct dm_store *store, struct dm_watch *watch)
{
    struct plain *plain = plain_of(store);
    unsigned lease_ms;

    (void)watch;
    if (!plain->at_client && plain->was_wanted && plain->host.is_in_need(plain->host.user, &lease_ms))
        plain_want(plain);
}

static void note_look(struct dm_store *store, int64_t look_ns)
{
    (void)store;
    (void)look_ns;
}

/* Looks at each millisecond: nothing wakes a thread at the last answer. */
static void drain(struct dm_store *store, const struct dm_deadline *deadline)
{
    check_no_lock("drain");
    while (plain_of(store)->unanswered && dm_deadline_left_ns(deadline) > 0)
        thread_pass(MS);
}

/* A message is handed over at the store's own time, by no thread of the process. */
static bool sleep_only(struct dm_store *store, const struct dm_place *place, enum dm_way way,
                       const struct dm_deadline *deadline, int cancel_state)
{
    (void)place;
    (void)way;
    (void)store;
    return dm_self_sleep_cancellably(dm_self_get(), deadline, cancel_state);
}

/* Frees what the pump's posted requests have; the store itself belongs to the run. */
static void free_unused(struct dm_store *store)
{
    for (struct request *request = plain_of(store)->unanswered; request; request = request->next)
        free(request->user);
    plain_of(store)->at_client = plain_of(store)->at_server = 0;
}

/* No waits on conditions, no descriptors, no other server, no fork: the simulator calls none of these. */
static const struct dm_store_ops ops = {
    .place = place,
    .lane = lane,
    .spread = spread,
    .ask = dm_ask_by_submit,
    .submit = submit,
    .is_able = is_able,
    .want = want,
    .await_able = await_able,
    .sleep = sleep_only,
    .reason = reason,
    .origin = origin,
    .count = count,
    .work = work,
    .turn = work,
    .note_look = note_look,
    .look = look,
    .watch = watch,
    .drain = drain,
    .free_unused = free_unused,
};

/* The store's memory is the run's: a process that is killed leaves it to the requests that are under way. */
struct dm_store *plain_open(struct process *process, const struct dm_host *host)
{
    struct plain *plain = plain_new(process, host);

    plain->store.ops = &ops;
    return &plain->store;
}
