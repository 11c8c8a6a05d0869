/* SPDX-License-Identifier: BSD-2-Clause */
/* The operations of store/store.h: each question becomes a request, and the last answer is the answer. */
#include <stdio.h>
#include <stdlib.h>

#include "base/self.h"
#include "check.h"
#include "plain_parts.h"
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

/* Both ways are the one connection. */
/* The only server. */
static unsigned lane(struct dm_store *store, const struct dm_place *place)
{
    (void)store;
    (void)place;
    return 0;
}

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

/* The request stays in the memory of the run, so an answer that comes after the deadline finds the request. */
static struct dm_answer call_one(struct dm_store *store, const struct question *item,
                                 const struct dm_deadline *deadline, char *ret_reason)
{
    struct request *request = plain_request(plain_of(store), 1);

    request->items[0] = *item;
    if (!plain_call(request, deadline, ret_reason))
        return (struct dm_answer){ .verdict = DM_SAYS_NOTHING };
    return request->items[0].answer;
}

/*
 * The pending releases go first, in the same request, and their answers are dropped: the runtime does not see whether
 * one of them was executed.
 */
static struct dm_answer acquire(struct dm_store *store, const struct dm_ask *ask, bool may_queue,
                                const struct dm_owed *owed, int owed_count, const struct dm_deadline *deadline,
                                char ret_reason[DM_REASON_ROOM])
{
    struct request *request = plain_request(plain_of(store), owed_count + 1);

    for (int i = 0; i < owed_count; i++) {
        request->items[i] = (struct question){ .act = RELEASE, .ask = *ask, .end = owed[i].end };
        request->items[i].ask.thread = owed[i].thread;
        request->items[i].ask.attempt = owed[i].attempt;
    }
    request->items[owed_count] = (struct question){ .act = may_queue ? ACQUIRE : TRY, .ask = *ask };
    if (!plain_call(request, deadline, ret_reason))
        return (struct dm_answer){ .verdict = DM_SAYS_NOTHING };
    return request->items[owed_count].answer;
}

static struct dm_answer cancel(struct dm_store *store, const struct dm_ask *ask, const struct dm_deadline *deadline,
                               char ret_reason[DM_REASON_ROOM])
{
    return call_one(store, &(struct question){ .act = CANCEL, .ask = *ask }, deadline, ret_reason);
}

static struct dm_answer release(struct dm_store *store, const struct dm_ask *ask, enum dm_end end,
                                const struct dm_deadline *deadline, char ret_reason[DM_REASON_ROOM])
{
    return call_one(store, &(struct question){ .act = RELEASE, .ask = *ask, .end = end }, deadline, ret_reason);
}

/* A renewal brings the token, by which a server without data knows an older hold from a newer one. */
static struct question item_of(const struct dm_renewal *renewal)
{
    return (struct question){ .act = RENEW,
                              .ask = { .place = renewal->place,
                                       .thread = renewal->thread,
                                       .attempt = renewal->attempt,
                                       .lease_ms = renewal->lease_ms },
                              .token = renewal->token,
                              .mark = renewal->mark };
}

static struct dm_answer renew(struct dm_store *store, const struct dm_renewal *renewal,
                              const struct dm_deadline *deadline, char ret_reason[DM_REASON_ROOM])
{
    const struct question item = item_of(renewal);

    return call_one(store, &item, deadline, ret_reason);
}

static enum dm_verdict consistent(struct dm_store *store, const struct dm_ask *ask, const struct dm_deadline *deadline,
                                  char ret_reason[DM_REASON_ROOM])
{
    return call_one(store, &(struct question){ .act = CONSISTENT, .ask = *ask }, deadline, ret_reason).verdict;
}

static enum dm_verdict force(struct dm_store *store, const struct dm_place *place, const struct dm_deadline *deadline,
                             bool *ret_must_serve, char ret_reason[DM_REASON_ROOM])
{
    *ret_must_serve = false; /* this server serves by itself */
    return call_one(store, &(struct question){ .act = FORCE, .ask = { .place = place } }, deadline, ret_reason).verdict;
}

/* The fields of an anonymous name are not deleted: there is one array of names, for a whole run. */
static enum dm_verdict drop(struct dm_store *store, const struct dm_place *place, bool is_anonymous,
                            const struct dm_deadline *deadline, char ret_reason[DM_REASON_ROOM])
{
    (void)is_anonymous;
    return call_one(store, &(struct question){ .act = DROP, .ask = { .place = place } }, deadline, ret_reason).verdict;
}

/* Place, age of the hold and grace stay 0: this server does not tell them. */
static enum dm_verdict info(struct dm_store *store, const struct dm_ask *ask, const struct dm_deadline *deadline,
                            struct dm_info *ret_info, char ret_reason[DM_REASON_ROOM])
{
    struct request *request = plain_request(plain_of(store), 1);

    request->items[0] = (struct question){ .act = INFO, .ask = *ask };
    if (!plain_call(request, deadline, ret_reason))
        return DM_SAYS_NOTHING;
    *ret_info = (struct dm_info){ .shown = request->items[0].info };
    return DM_SAYS_DONE;
}

/* Nobody waits on a condition of this store. */
static struct dm_signalled cond_signal(struct dm_store *store, const struct dm_signal *signal,
                                       const struct dm_deadline *deadline, char ret_reason[DM_REASON_ROOM])
{
    (void)store;
    (void)signal;
    (void)deadline;
    (void)ret_reason;
    return (struct dm_signalled){ .verdict = DM_SAYS_DONE };
}

/*
 * Another thread may run before the sending. Without a connection the release stays the caller's, and the way is
 * opened.
 */
static bool post_release(struct dm_store *store, const struct dm_ask *ask, enum dm_end end, dm_answers_fn handler,
                         void *user)
{
    struct request *request = plain_request(plain_of(store), 1);

    check_no_lock("post_release");
    thread_preempt();
    request->items[0] = (struct question){ .act = RELEASE, .ask = *ask, .end = end };
    if (plain_post(request, handler, user))
        return true;
    plain_want(plain_of(store));
    return false;
}

/* Quiet, as store.h demands: no other thread runs in here, because the caller may hold the state lock. */
static bool post_poll(struct dm_store *store, const struct dm_ask *asks, int count, dm_answers_fn handler, void *user)
{
    struct request *request = plain_request(plain_of(store), count);

    for (int i = 0; i < count; i++)
        request->items[i] = (struct question){ .act = POLL, .ask = asks[i] };
    counters.polls += (uint64_t)count;
    return plain_post(request, handler, user);
}

/* Quiet, too. */
static bool post_renew(struct dm_store *store, const struct dm_renewal *renewals, int count, dm_answers_fn handler,
                       void *user)
{
    struct request *request = plain_request(plain_of(store), count);

    for (int i = 0; i < count; i++)
        request->items[i] = item_of(&renewals[i]);
    counters.renewals += (uint64_t)count;
    return plain_post(request, handler, user);
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

/* Looks at each millisecond: nothing wakes a thread at the last answer. */
static void drain(struct dm_store *store, const struct dm_deadline *deadline)
{
    check_no_lock("drain");
    while (plain_of(store)->unanswered && dm_deadline_left_ns(deadline) > 0)
        thread_pass(MS);
}

/* A message is handed over at the store's own time, by no thread of the process. */
static bool sleep_only(struct dm_store *store, const struct dm_place *place, const struct dm_deadline *deadline,
                       int cancel_state)
{
    (void)place;
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
    .is_able = is_able,
    .want = want,
    .await_able = await_able,
    .sleep = sleep_only,
    .reason = reason,
    .origin = origin,
    .count = count,
    .acquire = acquire,
    .cancel = cancel,
    .release = release,
    .renew = renew,
    .consistent = consistent,
    .force = force,
    .drop = drop,
    .info = info,
    .cond_signal = cond_signal,
    .post_release = post_release,
    .post_poll = post_poll,
    .post_renew = post_renew,
    .work = work,
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
