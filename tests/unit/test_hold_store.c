/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Several attempts of core/hold on a miniature store: messages are late, lost or out of order, and processes are
 * paused.  Invariant I1 must hold: never two certain attempts.
 */
#include <string.h>

#include "hold_clock.h"
#include "random.h"

#define CLIENTS 3
#define PIPE_ROOM 64
#define BAG_ROOM 256

enum ask_kind { ACQUIRE, POLL, RENEW, RELEASE };

struct ask {
    enum ask_kind kind;
    uint64_t serial;
    struct dm_request request;
    uint32_t lease_ms;
};

struct word {
    int to;
    uint64_t serial;
    enum dm_event_kind kind;
    uint64_t request;
    struct dm_answer answer;
};

struct client {
    struct dm_hold hold;
    uint64_t last_serial;
    struct ask pipe[PIPE_ROOM]; /* to the store, in order */
    int piped;
    int unanswered;
};

struct entry {
    int client;
    struct ask newest;
};

static int64_t now_ns;
static struct client clients[CLIENTS];
static struct word bag[BAG_ROOM]; /* to the clients, in no order */
static int bagged;
static struct {
    int owner; /* -1: free */
    uint64_t serial;
    int64_t lease_ends_ns;
    uint64_t token;
    struct entry queue[CLIENTS];
    int queued;
} store;

/* ---- the store --------------------------------------------------------------------------- */

static void post_word(int to, uint64_t serial, enum dm_event_kind kind, uint64_t request, struct dm_answer answer)
{
    if (bagged < BAG_ROOM)
        bag[bagged++] = (struct word){ to, serial, kind, request, answer };
}

static void give_to(int client, const struct ask *ask)
{
    store.owner = client;
    store.serial = ask->serial;
    store.lease_ends_ns = now_ns + ask->lease_ms * DM_NS_PER_MS;
    store.token++;
}

static void leave_queue(int client)
{
    int kept = 0;

    for (int i = 0; i < store.queued; i++) {
        if (store.queue[i].client != client)
            store.queue[kept++] = store.queue[i];
    }
    store.queued = kept;
}

static struct entry *entry_of(int client, uint64_t serial)
{
    for (int i = 0; i < store.queued; i++) {
        if (store.queue[i].client == client && store.queue[i].newest.serial == serial)
            return &store.queue[i];
    }
    return NULL;
}

/* Gives the free lock to the head of the queue; the grant names the head's newest request. */
static void serve(void)
{
    struct entry head = store.queue[0];
    struct dm_answer answer = { .verdict = DM_SAYS_OWNED };

    if (store.owner >= 0 || store.queued == 0)
        return;
    give_to(head.client, &head.newest);
    leave_queue(head.client);
    answer.token = store.token;
    post_word(head.client, head.newest.serial, DM_EV_GRANTED, head.newest.request.serial, answer);
}

static bool is_owner(int client, const struct ask *ask)
{
    return store.owner == client && store.serial == ask->serial;
}

static struct dm_answer answer_to(int client, const struct ask *ask)
{
    struct dm_answer answer = { .verdict = DM_SAYS_UNKNOWN, .arrival = 1, .position = 1 };
    struct entry *entry = entry_of(client, ask->serial);

    if (entry)
        entry->newest = *ask;
    if (is_owner(client, ask)) {
        store.lease_ends_ns = now_ns + ask->lease_ms * DM_NS_PER_MS;
        answer.verdict = DM_SAYS_OWNED;
        answer.token = store.token;
    } else if (ask->kind != RENEW && (entry || ask->kind == ACQUIRE)) {
        if (!entry)
            store.queue[store.queued++] = (struct entry){ client, *ask };
        answer.verdict = DM_SAYS_QUEUED;
        answer.remaining_ms = (store.lease_ends_ns - now_ns) / DM_NS_PER_MS;
        serve();
    }
    return answer;
}

static void take_ask(int from)
{
    static const enum dm_event_kind answers[] = {
        [ACQUIRE] = DM_EV_ANSWER, [POLL] = DM_EV_POLLED, [RENEW] = DM_EV_RENEWED
    };
    struct client *client = &clients[from];
    struct ask ask = client->pipe[0];

    if (client->piped == 0)
        return;
    memmove(client->pipe, client->pipe + 1, (size_t)--client->piped * sizeof ask);
    if (store.owner >= 0 && now_ns >= store.lease_ends_ns)
        store.owner = -1;
    if (ask.kind == RELEASE) {
        leave_queue(from);
        if (is_owner(from, &ask))
            store.owner = -1;
        serve();
        return;
    }
    if (ask.kind == ACQUIRE && entry_of(from, ask.serial) == NULL)
        leave_queue(from);
    post_word(from, ask.serial, answers[ask.kind], ask.request.serial, answer_to(from, &ask));
}

/* ---- the clients ------------------------------------------------------------------------- */

static enum dm_want want_of(const struct client *client, enum ask_kind kind)
{
    static const enum dm_want wants[] = { [POLL] = DM_WANTS_POLL, [RENEW] = DM_WANTS_RENEW };

    if (kind != ACQUIRE)
        return wants[kind];
    return client->hold.is_asked ? DM_WANTS_NOTHING : DM_WANTS_ACQUIRE;
}

static void put(struct client *client, enum ask_kind kind)
{
    struct ask ask = { .kind = kind, .serial = client->hold.serial, .lease_ms = client->hold.lease_ms };

    if (client->piped == PIPE_ROOM)
        return;
    if (kind != RELEASE) {
        ask.request = dm_hold_send(&client->hold, want_of(client, kind), now_ns);
        client->unanswered++;
    }
    client->pipe[client->piped++] = ask;
}

static void begin_anew(struct client *client)
{
    client->unanswered = 0;
    dm_hold_init(&client->hold, ++client->last_serial, THREAD, 100 + random_below(900),
                 random_below(3) ? 0 : 1 + random_below(1500), false);
}

static void feed(struct client *client, const struct dm_event *event);

static void act(struct client *client, unsigned actions)
{
    static const struct dm_answer nothing = { .verdict = DM_SAYS_NOTHING };
    enum dm_want want;

    if (actions & DM_DO_NEW_SERIAL) {
        dm_hold_rename(&client->hold, ++client->last_serial);
        client->unanswered = 0;
        if (client->hold.is_asked) /* the thread learns it at once, not from an answer to the old serial */
            feed(client, &(struct dm_event){ .kind = DM_EV_ANSWER, .answer = &nothing });
    }
    want = dm_hold_wants(&client->hold, now_ns);
    if (want == DM_WANTS_TELL) {
        feed(client, &(struct dm_event){ .kind = DM_EV_TOLD });
    } else if (want == DM_WANTS_RELEASE) {
        put(client, RELEASE);
        begin_anew(client);
    } else if (want == DM_WANTS_POLL || want == DM_WANTS_RENEW) {
        put(client, want == DM_WANTS_POLL ? POLL : RENEW);
    }
    if (client->hold.phase == DM_HELD && !client->hold.is_entered)
        feed(client, &(struct dm_event){ .kind = DM_EV_ENTERED });
}

static void feed(struct client *client, const struct dm_event *event)
{
    act(client, dm_hold_step(&client->hold, event, now_ns));
}

/* Delivers a message.  A message for an ended attempt is dropped: the attempt's release is under way. */
static void deliver(int index)
{
    struct word word = bag[index];
    struct client *client = &clients[word.to];
    struct dm_event event = { .kind = word.kind, .request = word.request, .answer = &word.answer };

    bag[index] = bag[--bagged];
    if (word.serial != client->hold.serial)
        return;
    if (word.kind != DM_EV_GRANTED)
        client->unanswered--;
    if (random_below(8) == 0) /* lost */
        word.answer.verdict = DM_SAYS_NOTHING;
    if (word.kind != DM_EV_GRANTED || word.answer.verdict == DM_SAYS_OWNED)
        feed(client, &event);
}

static void live(struct client *client)
{
    feed(client, &(struct dm_event){ .kind = DM_EV_TIME });
    if (client->hold.phase == DM_ASKING && client->unanswered <= 0)
        put(client, ACQUIRE);
    if (client->hold.phase == DM_HELD && random_below(20) == 0)
        dm_hold_restart_maxhold(&client->hold, now_ns);
    if (client->hold.phase == DM_HELD && random_below(6) == 0)
        feed(client, &(struct dm_event){ .kind = DM_EV_GIVEN_BACK });
}

/* ---- the walk ---------------------------------------------------------------------------- */

static int count_certain(void)
{
    int certain = 0;

    for (int i = 0; i < CLIENTS; i++)
        certain += dm_hold_is_certain(&clients[i].hold, now_ns);
    return certain;
}

static void begin_walk(void)
{
    memset(&store, 0, sizeof store);
    memset(clients, 0, sizeof clients);
    store.owner = -1;
    bagged = 0;
    now_ns = BEGINNING_NS;
    for (int i = 0; i < CLIENTS; i++)
        begin_anew(&clients[i]);
}

static void walk_on(void)
{
    switch (random_below(8)) {
    case 0:
        now_ns += random_below(120) * DM_NS_PER_MS;
        break;
    case 1:
    case 2:
        live(&clients[random_below(CLIENTS)]);
        break;
    case 3:
    case 4:
        take_ask((int)random_below(CLIENTS));
        break;
    default:
        if (bagged)
            deliver((int)random_below((unsigned)bagged));
    }
}

/* I1: never are two attempts certain; and the lock goes round. */
static void test_holds_are_never_two_that_are_certain_when_messages_are_late_and_lost(void **state)
{
    int walks = rounds(2000);
    uint64_t grants = 0;

    (void)state;
    for (int i = 0; i < walks; i++) {
        begin_walk();
        for (int steps = 0; steps < 1000; steps++) {
            walk_on();
            assert_true(count_certain() <= 1);
        }
        grants += store.token;
    }
    assert_true(grants > (uint64_t)walks * 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_holds_are_never_two_that_are_certain_when_messages_are_late_and_lost),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
