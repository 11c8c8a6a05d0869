/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The way of one process to the plain server and back.  Each end knows a connection by its number: a request or message
 * of another number is lost, so bytes of a connection that broke never arrive behind the bytes of the next one.
 */
#include <stdio.h>
#include <stdlib.h>

#include "check.h"
#include "hooks.h"
#include "net.h"
#include "plain_parts.h"
#include "world.h"

#define RETRY_NS (100 * MS)

/* A message on the way. */
struct letter {
    struct plain *plain;
    uint64_t connection;
    struct dm_message message;
};

/*
 * `connections` is never set back, so no number of a connection is used twice; `origins`, the number of the server,
 * changes with each restart.
 */
static bool is_there;
static struct plain *first;
static uint64_t connections, origins;
static int64_t down_until_ns, stalled_until_ns;

/* Bytes of one direction arrive in their order. */
static int64_t arrival_ns(int64_t *last_ns)
{
    int64_t when_ns = world_now() + net_delay();

    *last_ns = when_ns > *last_ns ? when_ns : *last_ns;
    return *last_ns;
}

/* ---- the client's end -------------------------------------------------------------------- */

/* Wakes all threads that wait for the connection; each looks again by itself. */
static void wake_waiting(struct plain *plain)
{
    while (plain->waiting_count > 0)
        thread_wake(plain->waiting[--plain->waiting_count]);
}

/* A request that is answered, or broken, is not answered again. */
static void take_out(struct request *request)
{
    struct request **at = &request->plain->unanswered;

    while (*at && *at != request)
        at = &(*at)->next;
    if (*at)
        *at = request->next;
}

/* Hands over the answers to the questions. Pending releases go first in the request; nobody asks for their answers. */
static void finish(struct request *request, bool is_broken)
{
    struct asked *asked = &request->items[request->count - request->questions];
    struct dm_answer answers[DM_BATCH];

    take_out(request);
    for (int i = 0; i < request->questions; i++)
        answers[i] = asked[i].answer;
    if (!is_broken && request->ret_more)
        *request->ret_more = asked->more;
    request->done(request->user, is_broken ? NULL : answers, request->questions, NULL);
}

/* True if the client's end has seen the end of the connection, or is gone itself. */
static bool is_over(const struct plain *plain, uint64_t connection)
{
    return !plain->process->is_alive || plain->at_client != connection;
}

/* An answer behind the break is dropped: the break has finished the request already. */
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

/* Runs in no thread of the process, at any time; the process is made current for the call. */
static void take_letter(void *object, uint64_t number)
{
    const struct letter *letter = object;
    const struct dm_host *host = &letter->plain->host;
    struct process *before;

    (void)number;
    if (is_over(letter->plain, letter->connection))
        return;
    letter->plain->traffic.messages++;
    before = process_enter(letter->plain->process);
    host->on_message(host->user, &letter->message);
    process_leave(before);
}

/*
 * The client learns of a break: all that is not answered has no answer. Equal numbers mean that both ends know of the
 * break already.
 */
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

/* Both ends know the new connection at one moment: no request can be on the way before. */
static void take_opening(void *object, uint64_t number)
{
    struct plain *plain = object;
    struct process *before;

    (void)number;
    plain->is_opening = false;
    if (!plain->process->is_alive || plain->at_client)
        return;
    plain->traffic.reconnects += plain->origin != 0;
    plain->at_client = plain->at_server = ++connections;
    plain->origin = origins;
    before = process_enter(plain->process);
    world_note("p%d plain ready", plain->process->number);
    wake_waiting(plain);
    plain->host.on_ready(plain->host.user);
    plain->host.on_inbox(plain->host.user);
    process_leave(before);
}

/*
 * While the server is down the tries go on, a little after the expected return, so that not all processes come at once.
 */
static void try_open(void *object, uint64_t number)
{
    struct plain *plain = object;

    (void)number;
    if (world_now() < down_until_ns)
        world_at(down_until_ns + chance_below(CHANCE_NETWORK, 100) * MS, try_open, plain, 0);
    else
        process_deliver(plain->process, take_opening, plain);
}

/* Calls one try at a time; the pause before a try is the network's, and sometimes long. */
void plain_want(struct plain *plain)
{
    plain->was_wanted = true;
    if (plain->at_client || plain->is_opening)
        return;
    plain->is_opening = true;
    world_at(world_now() + chance_delay(CHANCE_NETWORK, MS, RETRY_NS), try_open, plain, 0);
}

/* ---- the network, and the server's end --------------------------------------------------- */

/* The answer is lost if the connection broke while the answer was on its way. */
static void reply_comes(void *object, uint64_t number)
{
    struct request *request = object;

    (void)number;
    if (request->plain->at_server == request->connection)
        process_deliver(request->plain->process, take_reply, request);
}

/* A request that the server executes may still lose its answer; a request lost before is not executed. */
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

/* A message is lost likewise; the poll of the waiter finds the grant. */
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

    plain_judge_told(to, message);
    *letter = (struct letter){ .plain = to, .connection = to->at_server, .message = *message };
    counters.messages++;
    if (letter->connection)
        world_at(arrival_ns(&to->to_client_ns), letter_comes, letter, 0);
}

/* Not freed by anyone: the network and the handler may have a request longer than each other. */
struct request *plain_request(struct plain *plain, int count)
{
    struct request *request = world_new(sizeof *request + (size_t)count * sizeof request->items[0]);

    request->plain = plain;
    request->count = count;
    return request;
}

/* The request belongs to the connection that is open now; requests arrive in the order of sending (rule 4). */
static void send_request(struct request *request)
{
    struct plain *plain = request->plain;

    request->connection = plain->at_client;
    request->next = plain->unanswered;
    plain->unanswered = request;
    plain->traffic.commands++;
    world_at(arrival_ns(&plain->to_server_ns), execute, request, 0);
}

/* ---- waiting threads --------------------------------------------------------------------- */

/* The deadline on the process's own clock, by which thread_wait() counts. */
static int64_t deadline_ns(const struct dm_deadline *deadline)
{
    int64_t left_ns = dm_deadline_left_ns(deadline);

    return left_ns == DM_NEVER ? DM_NEVER : dm_clock_boot_ns() + left_ns;
}

/* A thread that its deadline has woken still stands in the list, and takes itself out. */
void plain_await(struct plain *plain, const struct dm_deadline *deadline)
{
    plain_want(plain);
    if (plain->waiting_count == WAITING_MAX)
        abort();
    plain->waiting[plain->waiting_count++] = thread_current();
    thread_wait(deadline_ns(deadline));
    for (int i = 0; i < plain->waiting_count; i++) {
        if (plain->waiting[i] == thread_current())
            plain->waiting[i--] = plain->waiting[--plain->waiting_count];
    }
}

bool plain_send(struct request *request, dm_answers_fn done, void *user)
{
    request->done = done;
    request->user = user;
    if (request->plain->at_client)
        send_request(request);
    return request->plain->at_client != 0;
}

struct plain *plain_new(struct process *process, const struct dm_host *host)
{
    struct plain *plain = world_new(sizeof *plain);

    plain->process = process;
    plain->host = *host;
    plain->next = first;
    first = plain;
    return plain;
}

/* ---- faults ------------------------------------------------------------------------------ */

/* The server's end closes at once, the client's end when the client runs. */
static void break_one(struct plain *plain)
{
    if (!plain->at_server)
        return;
    plain->at_server = 0;
    process_deliver(plain->process, take_break, plain);
}

/* Counts the open connections first, so that each number hits one. */
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

/*
 * A stall ends with the server. The grace lasts for the longest lease after the return, by which all holders have come
 * back or lost their holds.
 */
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
