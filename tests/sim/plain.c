/* SPDX-License-Identifier: BSD-2-Clause */
#include "plain.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "hooks.h"
#include "net.h"
#include "world.h"

#define RETRY_NS (100 * MS)
#define WAITING_MAX 64

/* A place of this store; the caller of dm_store_place() frees it. */
struct dm_place {
    int index;
};

/* A request from the sending to the answer. */
struct request {
    struct request *next; /* of those without an answer */
    struct plain *plain;
    uint64_t connection; /* on which the request was sent */
    struct thread *caller;
    dm_answers_fn handler;
    void *user;
    bool is_done, is_broken;
    int count;
    struct question items[];
};

struct letter {
    struct plain *plain;
    uint64_t connection;
    struct dm_message message;
};

/* One process's way to the server. */
struct plain {
    struct dm_store store; /* first */
    struct plain *next;    /* of all of this run */
    struct process *process;
    struct dm_host host;
    uint64_t at_server, at_client; /* the number of the open connection as each end knows it; 0: none */
    bool is_opening, was_wanted;
    uint64_t origin;                    /* of the server that the connection was opened to */
    int64_t to_server_ns, to_client_ns; /* the last arrivals */
    struct request *unanswered;
    struct thread *waiting[WAITING_MAX];
    int waiting_count;
};

static bool is_there;
static struct plain *first;
static uint64_t connections, origins;
static int64_t down_until_ns, stalled_until_ns;

static struct plain *plain_of(struct dm_store *store)
{
    return (struct plain *)(void *)store;
}

int plain_index(const struct dm_place *place)
{
    return place->index;
}

struct process *plain_process(const struct plain *plain)
{
    return plain->process;
}

/* Bytes of one direction arrive in their order. */
static int64_t arrival_ns(int64_t *last_ns)
{
    int64_t when_ns = world_now() + net_delay();

    *last_ns = when_ns > *last_ns ? when_ns : *last_ns;
    return *last_ns;
}

/* ---- the client's end -------------------------------------------------------------------- */

static void wake_waiting(struct plain *plain)
{
    while (plain->waiting_count > 0)
        thread_wake(plain->waiting[--plain->waiting_count]);
}

static void take_out(struct request *request)
{
    struct request **at = &request->plain->unanswered;

    while (*at && *at != request)
        at = &(*at)->next;
    if (*at)
        *at = request->next;
}

static void finish(struct request *request, bool is_broken)
{
    struct dm_answer answers[DM_BATCH];

    take_out(request);
    request->is_done = true;
    request->is_broken = is_broken;
    for (int i = 0; i < request->count && i < DM_BATCH; i++)
        answers[i] = request->items[i].answer;
    if (request->handler)
        request->handler(request->user, is_broken ? NULL : answers, request->count, NULL);
    else if (request->caller)
        thread_wake(request->caller);
}

static bool is_over(const struct plain *plain, uint64_t connection)
{
    return !plain->process->is_alive || plain->at_client != connection;
}

static void take_reply(void *object, uint64_t number)
{
    struct request *request = object;
    struct process *before;

    (void)number;
    if (is_over(request->plain, request->connection))
        return;
    before = process_enter(request->plain->process);
    finish(request, false);
    process_leave(before);
}

static void take_letter(void *object, uint64_t number)
{
    const struct letter *letter = object;
    const struct dm_host *host = &letter->plain->host;
    struct process *before;

    (void)number;
    if (is_over(letter->plain, letter->connection))
        return;
    before = process_enter(letter->plain->process);
    host->on_message(host->user, &letter->message);
    process_leave(before);
}

static void take_break(void *object, uint64_t number)
{
    struct plain *plain = object;
    struct process *before;

    (void)number;
    if (!plain->process->is_alive || plain->at_client == plain->at_server)
        return;
    before = process_enter(plain->process);
    world_note("p%d plain fails", plain->process->number);
    plain->at_client = 0;
    while (plain->unanswered)
        finish(plain->unanswered, true);
    wake_waiting(plain);
    plain->host.on_change(plain->host.user);
    process_leave(before);
}

/* ---- opening ----------------------------------------------------------------------------- */

static void try_open(void *object, uint64_t number);

static void take_opening(void *object, uint64_t number)
{
    struct plain *plain = object;
    struct process *before;

    (void)number;
    plain->is_opening = false;
    if (!plain->process->is_alive || plain->at_client)
        return;
    plain->at_client = plain->at_server = ++connections;
    plain->origin = origins;
    before = process_enter(plain->process);
    world_note("p%d plain ready", plain->process->number);
    wake_waiting(plain);
    plain->host.on_ready(plain->host.user);
    plain->host.on_inbox(plain->host.user);
    process_leave(before);
}

static void try_open(void *object, uint64_t number)
{
    struct plain *plain = object;

    (void)number;
    if (world_now() < down_until_ns)
        world_at(down_until_ns + chance_below(CHANCE_NETWORK, 100) * MS, try_open, plain, 0);
    else
        process_deliver(plain->process, take_opening, plain);
}

static void want(struct plain *plain)
{
    plain->was_wanted = true;
    if (plain->at_client || plain->is_opening)
        return;
    plain->is_opening = true;
    world_at(world_now() + chance_delay(CHANCE_NETWORK, MS, RETRY_NS), try_open, plain, 0);
}

/* ---- the network, and the server's end --------------------------------------------------- */

static void reply_comes(void *object, uint64_t number)
{
    struct request *request = object;

    (void)number;
    if (request->plain->at_server == request->connection)
        process_deliver(request->plain->process, take_reply, request);
}

static void execute(void *object, uint64_t number)
{
    struct request *request = object;
    struct plain *plain = request->plain;

    (void)number;
    if (plain->at_server != request->connection)
        return; /* lost with the connection */
    if (world_now() < stalled_until_ns) {
        world_at(stalled_until_ns, execute, request, 0);
        return;
    }
    for (int i = 0; i < request->count; i++)
        locks_answer(plain, &request->items[i]);
    counters.scripts++;
    world_at(arrival_ns(&plain->to_client_ns), reply_comes, request, 0);
}

static void letter_comes(void *object, uint64_t number)
{
    struct letter *letter = object;

    (void)number;
    if (letter->plain->at_server == letter->connection)
        process_deliver(letter->plain->process, take_letter, letter);
}

void plain_tell(struct plain *to, const struct dm_message *message)
{
    struct letter *letter = world_new(sizeof *letter);

    *letter = (struct letter){ .plain = to, .connection = to->at_server, .message = *message };
    counters.messages++;
    if (letter->connection)
        world_at(arrival_ns(&to->to_client_ns), letter_comes, letter, 0);
}

static struct request *make_request(struct plain *plain, int count)
{
    struct request *request = world_new(sizeof *request + (size_t)count * sizeof request->items[0]);

    request->plain = plain;
    request->count = count;
    return request;
}

static void send_request(struct request *request)
{
    struct plain *plain = request->plain;

    request->connection = plain->at_client;
    request->next = plain->unanswered;
    plain->unanswered = request;
    world_at(arrival_ns(&plain->to_server_ns), execute, request, 0);
}

/* ---- waiting threads --------------------------------------------------------------------- */

static int64_t deadline_ns(const struct dm_deadline *deadline)
{
    int64_t left_ns = dm_deadline_left_ns(deadline);

    return left_ns == DM_NEVER ? DM_NEVER : dm_clock_boot_ns() + left_ns;
}

static void wait_for_opening(struct plain *plain, const struct dm_deadline *deadline)
{
    want(plain);
    if (plain->waiting_count == WAITING_MAX)
        abort();
    plain->waiting[plain->waiting_count++] = thread_current();
    thread_wait(deadline_ns(deadline));
    for (int i = 0; i < plain->waiting_count; i++) {
        if (plain->waiting[i] == thread_current())
            plain->waiting[i--] = plain->waiting[--plain->waiting_count];
    }
}

/* True if the last item has an answer. */
static bool call(struct request *request, const struct dm_deadline *deadline, char *ret_reason)
{
    struct plain *plain = request->plain;
    bool is_sent = false;

    check_no_lock("a call of the store");
    thread_preempt();
    request->caller = thread_current();
    while (!request->is_done && dm_deadline_left_ns(deadline) > 0) {
        if (!is_sent && plain->at_client) {
            send_request(request);
            is_sent = true;
        }
        if (is_sent)
            thread_wait(deadline_ns(deadline));
        else
            wait_for_opening(plain, deadline);
    }
    request->caller = NULL;
    if (!request->is_done || request->is_broken)
        snprintf(ret_reason, DM_REASON_ROOM, "the plain server gave no answer");
    return request->is_done && !request->is_broken;
}

static struct dm_answer call_one(struct dm_store *store, const struct question *item,
                                 const struct dm_deadline *deadline, char *ret_reason)
{
    struct request *request = make_request(plain_of(store), 1);

    request->items[0] = *item;
    if (!call(request, deadline, ret_reason))
        return (struct dm_answer){ .verdict = DM_SAYS_NOTHING };
    return request->items[0].answer;
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

static bool is_able(struct dm_store *store, enum dm_way way)
{
    (void)way;
    return plain_of(store)->at_client != 0;
}

static bool await_able(struct dm_store *store, enum dm_way way, const struct dm_deadline *deadline)
{
    check_no_lock("await_able");
    while (!is_able(store, way) && dm_deadline_left_ns(deadline) > 0)
        wait_for_opening(plain_of(store), deadline);
    return is_able(store, way);
}

static void reason(struct dm_store *store, enum dm_way way, char ret_reason[DM_REASON_ROOM])
{
    snprintf(ret_reason, DM_REASON_ROOM, "the plain server %s", is_able(store, way) ? "gave no answer" : "is down");
}

static struct dm_origin origin(struct dm_store *store)
{
    return (struct dm_origin){ .number = plain_of(store)->origin, .run = plain_of(store)->origin };
}

static struct dm_answer acquire(struct dm_store *store, const struct dm_ask *ask, bool may_queue,
                                const struct dm_owed *owed, int owed_count, const struct dm_deadline *deadline,
                                char ret_reason[DM_REASON_ROOM])
{
    struct request *request = make_request(plain_of(store), owed_count + 1);

    for (int i = 0; i < owed_count; i++) {
        request->items[i] = (struct question){ .act = RELEASE, .ask = *ask, .end = owed[i].end };
        request->items[i].ask.thread = owed[i].thread;
        request->items[i].ask.attempt = owed[i].attempt;
    }
    request->items[owed_count] = (struct question){ .act = may_queue ? ACQUIRE : TRY, .ask = *ask };
    if (!call(request, deadline, ret_reason))
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

static struct question item_of(const struct dm_renewal *renewal)
{
    return (struct question){ .act = RENEW,
                              .ask = { .place = renewal->place,
                                       .thread = renewal->thread,
                                       .attempt = renewal->attempt,
                                       .lease_ms = renewal->lease_ms },
                              .token = renewal->token };
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

static enum dm_verdict drop(struct dm_store *store, const struct dm_place *place, bool is_anonymous,
                            const struct dm_deadline *deadline, char ret_reason[DM_REASON_ROOM])
{
    (void)is_anonymous;
    return call_one(store, &(struct question){ .act = DROP, .ask = { .place = place } }, deadline, ret_reason).verdict;
}

static enum dm_verdict info(struct dm_store *store, const struct dm_ask *ask, const struct dm_deadline *deadline,
                            struct dm_info *ret_info, char ret_reason[DM_REASON_ROOM])
{
    struct request *request = make_request(plain_of(store), 1);

    request->items[0] = (struct question){ .act = INFO, .ask = *ask };
    if (!call(request, deadline, ret_reason))
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

static bool post(struct plain *plain, struct request *request, dm_answers_fn handler, void *user)
{
    request->handler = handler;
    request->user = user;
    if (plain->at_client)
        send_request(request);
    return plain->at_client != 0;
}

static bool post_release(struct dm_store *store, const struct dm_ask *ask, enum dm_end end, dm_answers_fn handler,
                         void *user)
{
    struct request *request = make_request(plain_of(store), 1);

    check_no_lock("post_release");
    thread_preempt();
    request->items[0] = (struct question){ .act = RELEASE, .ask = *ask, .end = end };
    if (post(plain_of(store), request, handler, user))
        return true;
    want(plain_of(store));
    return false;
}

static bool post_poll(struct dm_store *store, const struct dm_ask *asks, int count, dm_answers_fn handler, void *user)
{
    struct request *request = make_request(plain_of(store), count);

    for (int i = 0; i < count; i++)
        request->items[i] = (struct question){ .act = POLL, .ask = asks[i] };
    counters.polls += (uint64_t)count;
    return post(plain_of(store), request, handler, user);
}

static bool post_renew(struct dm_store *store, const struct dm_renewal *renewals, int count, dm_answers_fn handler,
                       void *user)
{
    struct request *request = make_request(plain_of(store), count);

    for (int i = 0; i < count; i++)
        request->items[i] = item_of(&renewals[i]);
    counters.renewals += (uint64_t)count;
    return post(plain_of(store), request, handler, user);
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

static void watch(struct dm_store *store, struct dm_watch *ret_watch)
{
    struct plain *plain = plain_of(store);
    unsigned lease_ms;

    *ret_watch = (struct dm_watch){ .due_ns = DM_NEVER };
    if (!plain->at_client && plain->was_wanted && plain->host.is_in_need(plain->host.user, &lease_ms))
        want(plain);
}

static bool drain(struct dm_store *store, const struct dm_deadline *deadline)
{
    check_no_lock("drain");
    while (plain_of(store)->unanswered && dm_deadline_left_ns(deadline) > 0)
        thread_pass(MS);
    return !plain_of(store)->unanswered && is_able(store, DM_ASKS);
}

/* Frees what the schedule's posted requests have; the store itself belongs to the run. */
static void free_unused(struct dm_store *store)
{
    for (struct request *request = plain_of(store)->unanswered; request; request = request->next)
        free(request->user);
    plain_of(store)->at_client = plain_of(store)->at_server = 0;
}

/* No waits on conditions, no descriptors, no other server, no fork: the simulator calls none of these. */
static const struct dm_store_ops ops = {
    .place = place,
    .is_able = is_able,
    .await_able = await_able,
    .reason = reason,
    .origin = origin,
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

struct dm_store *plain_open(struct process *process, const struct dm_host *host)
{
    struct plain *plain = world_new(sizeof *plain);

    plain->store.ops = &ops;
    plain->process = process;
    plain->host = *host;
    plain->next = first;
    first = plain;
    return &plain->store;
}

/* ---- faults ------------------------------------------------------------------------------ */

static void break_one(struct plain *plain)
{
    if (!plain->at_server)
        return;
    plain->at_server = 0;
    process_deliver(plain->process, take_break, plain);
}

void plain_break(uint32_t number)
{
    struct plain *plain;
    uint32_t count = 0;

    for (plain = first; plain; plain = plain->next)
        count += plain->at_server != 0;
    number %= count ? count : 1;
    for (plain = first; plain; plain = plain->next) {
        if (plain->at_server && number-- == 0) {
            break_one(plain);
            return;
        }
    }
}

void plain_stall(int64_t for_ns)
{
    stalled_until_ns = world_now() + for_ns;
}

void plain_restart(bool keeps_data, int64_t down_ns)
{
    down_until_ns = world_now() + down_ns;
    stalled_until_ns = 0;
    origins++;
    for (struct plain *plain = first; plain; plain = plain->next)
        break_one(plain);
    if (!keeps_data)
        locks_forget(hooks_has(SERVER_HAS_NO_GRACE) ? 0 : down_ns + LEASE_MAX_MS * MS);
}

void plain_begin(void)
{
    is_there = true;
    first = NULL;
    origins = 1;
    down_until_ns = stalled_until_ns = 0;
    locks_begin();
}

void plain_end(void)
{
    is_there = false;
}

bool plain_is_there(void)
{
    return is_there;
}
