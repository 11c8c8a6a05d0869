/* SPDX-License-Identifier: BSD-2-Clause */
#include "redis/conn.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/ident.h"
#include "base/log.h"
#include "base/rank.h"
#include "base/self.h"
#include "redis/reply.h"
#include "redis/socket.h"

#define READ_ROOM (16 * 1024)

/*
 * A post behind more unanswered bytes than this is not sure to be executed when the process ends
 * at once: the server stops reading a client whose replies it cannot write.
 */
#define UNANSWERED_MAX (16 * 1024)

#define RETRY_MIN_MS 10
#define RETRY_MAX_MS 1000

/* Where a reply goes: to a thread that waits, to a handler, or, with neither, nowhere. */
struct slot {
    struct slot *next;
    struct call *call;
    dm_reply_fn handler;
    void *user;
    redisReply *reply; /* once it is on the finished list */
    size_t bytes;
    int64_t sent_ns;
    bool is_greeting;
};

/* A thread in dm_conn_call(); on its stack, in conn->calls while it is there. */
struct call {
    struct call *next;
    struct dm_self *self;
    struct slot *slot; /* once sent */
    redisReply *reply;
    enum dm_conn_result result;
    bool is_done;
    bool is_asleep; /* as a follower */
};

enum state {
    CLOSED,     /* opened again from retry_ns on, if wanted */
    PREPARING,  /* a thread of its own finds the address */
    CONNECTING,
    GREETING,
    READY
};

/*
 * lock guards all below.  Rank CONN: nothing but LOG nests in it.
 * Invariant: slots are in the order of the bytes sent; a slot is there for every command sent and
 * not answered.  state is READY or GREETING if there are slots.
 */
struct dm_conn {
    struct dm_mutex lock;
    struct dm_url *url;
    struct dm_conn_hooks hooks;
    struct dm_greeting greeting;
    char channel[128];

    enum state state;
    bool is_wanted;
    int64_t retry_ns;    /* CLOSED */
    int64_t deadline_ns; /* CONNECTING, GREETING */
    unsigned failures;   /* since it was last READY */
    char reason[DM_REASON_ROOM];
    struct dm_addresses *addresses;

    int fd;
    redisReader *reader;
    char *out; /* bytes that the kernel did not take yet */
    size_t out_length;
    struct slot *first, *last;
    size_t unanswered;
    struct slot *spare;
    uint64_t activity;

    struct call *leader;
    int leader_bell; /* an eventfd beside the socket in the leader's ppoll() */
    struct call *calls;

    struct slot *finished, **finished_end; /* handlers to be called without the lock */
    bool is_ready_news, is_change_news;
};

static void *allocate(size_t size)
{
    return calloc(1, size);
}

/* ---- slots ------------------------------------------------------------------------------- */

static struct slot *take_slot(struct dm_conn *conn)
{
    struct slot *slot = conn->spare;

    if (!slot)
        return allocate(sizeof *slot);
    conn->spare = slot->next;
    memset(slot, 0, sizeof *slot);
    return slot;
}

static void spare_slot(struct dm_conn *conn, struct slot *slot)
{
    slot->next = conn->spare;
    conn->spare = slot;
}

static void push_slot(struct dm_conn *conn, struct slot *slot)
{
    slot->next = NULL;
    if (conn->last)
        conn->last->next = slot;
    else
        conn->first = slot;
    conn->last = slot;
    conn->unanswered += slot->bytes;
}

static struct slot *pop_slot(struct dm_conn *conn)
{
    struct slot *slot = conn->first;

    if (!slot)
        return NULL;
    conn->first = slot->next;
    if (!conn->first)
        conn->last = NULL;
    conn->unanswered -= slot->bytes;
    return slot;
}

static void finish_later(struct dm_conn *conn, struct slot *slot, redisReply *reply)
{
    slot->reply = reply;
    slot->next = NULL;
    *conn->finished_end = slot;
    conn->finished_end = &slot->next;
}

static void ring(struct dm_conn *conn)
{
    uint64_t one = 1;

    if (write(conn->leader_bell, &one, sizeof one) < 0)
        return; /* it rings already */
}

/* A follower sleeps on its semaphore; the leader in ppoll(), if somebody else has read for it. */
static void wake(struct dm_conn *conn, struct call *call)
{
    if (call == conn->leader)
        ring(conn);
    if (call->is_asleep) {
        call->is_asleep = false;
        dm_self_wake(call->self);
    }
}

static void wake_all(struct dm_conn *conn)
{
    for (struct call *call = conn->calls; call; call = call->next)
        wake(conn, call);
}

/* Hands a reply, or NULL, to where it belongs. */
static void finish(struct dm_conn *conn, struct slot *slot, redisReply *reply)
{
    struct call *call = slot->call;

    if (slot->handler) {
        finish_later(conn, slot, reply);
        return;
    }
    if (call) {
        call->reply = reply;
        call->result = reply ? DM_CONN_OK : DM_CONN_BROKEN;
        call->is_done = true;
        wake(conn, call);
    } else if (reply) {
        freeReplyObject(reply);
    }
    spare_slot(conn, slot);
}

/* ---- lock -------------------------------------------------------------------------------- */

static void enter(struct dm_conn *conn)
{
    dm_mutex_lock(&conn->lock);
}

static bool has_news(const struct dm_conn *conn)
{
    return conn->finished || conn->is_ready_news || conn->is_change_news;
}

/* Unlocks, then calls the handlers of what has finished meanwhile. */
static void leave(struct dm_conn *conn)
{
    struct slot *finished = conn->finished;
    bool is_ready_news = conn->is_ready_news, is_change_news = conn->is_change_news;

    conn->finished = NULL;
    conn->finished_end = &conn->finished;
    conn->is_ready_news = conn->is_change_news = false;
    dm_mutex_unlock(&conn->lock);
    while (finished) {
        struct slot *slot = finished;

        finished = slot->next;
        slot->handler(slot->user, slot->reply);
        if (slot->reply)
            freeReplyObject(slot->reply);
        free(slot);
    }
    if (is_ready_news && conn->hooks.on_ready)
        conn->hooks.on_ready(conn->hooks.user);
    if (is_change_news && conn->hooks.on_change)
        conn->hooks.on_change(conn->hooks.user);
}

/* ---- breaking ---------------------------------------------------------------------------- */

static void drop_socket(struct dm_conn *conn)
{
    if (conn->fd >= 0) {
        shutdown(conn->fd, SHUT_RDWR); /* wakes a leader that sleeps on it; close() alone does not */
        close(conn->fd);
    }
    conn->fd = -1;
    if (conn->reader)
        redisReaderFree(conn->reader);
    conn->reader = NULL;
    free(conn->out);
    conn->out = NULL;
    conn->out_length = 0;
}

/* Full jitter keeps processes that lost one server from coming back in step. */
static int64_t retry_after(unsigned failures)
{
    int64_t limit_ms = RETRY_MIN_MS << (failures < 7 ? failures : 7);
    uint64_t random;

    if (limit_ms > RETRY_MAX_MS)
        limit_ms = RETRY_MAX_MS;
    dm_ident_random(&random, 1);
    return limit_ms * DM_NS_PER_MS / 2 + (int64_t)(random % (uint64_t)(limit_ms * DM_NS_PER_MS / 2));
}

static void DM_PRINTF(2, 3) fail(struct dm_conn *conn, const char *format, ...)
{
    char where[108], why[DM_REASON_ROOM];
    struct slot *slot;
    va_list args;

    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    dm_url_describe(conn->url, where, sizeof where);
    snprintf(conn->reason, sizeof conn->reason, "%.90s: %.100s", where, why);
    if (conn->failures == 0)
        dm_log_warn("the connection to %s", conn->reason);
    drop_socket(conn);
    conn->state = CLOSED;
    conn->is_wanted = false;
    conn->retry_ns = dm_clock_boot_ns() + retry_after(conn->failures++);
    while ((slot = pop_slot(conn)) != NULL)
        finish(conn, slot, NULL);
    wake_all(conn);
    conn->is_change_news = true;
}

/* ---- sending ----------------------------------------------------------------------------- */

static bool keep_for_later(struct dm_conn *conn, const char *bytes, size_t length)
{
    char *out = realloc(conn->out, conn->out_length + length);

    if (!out)
        return false;
    memcpy(out + conn->out_length, bytes, length);
    conn->out = out;
    conn->out_length += length;
    conn->is_change_news = true;
    return true;
}

static ssize_t send_some(struct dm_conn *conn, const char *bytes, size_t length)
{
    ssize_t sent = send(conn->fd, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT);

    if (sent >= 0)
        return sent;
    return errno == EAGAIN || errno == EINTR ? 0 : -1;
}

/* What the kernel does not take belongs to the connection; nothing overtakes it. */
static bool write_bytes(struct dm_conn *conn, const char *bytes, size_t length)
{
    ssize_t sent = conn->out_length ? 0 : send_some(conn, bytes, length);

    if (sent < 0)
        return false;
    if ((size_t)sent == length)
        return true;
    return keep_for_later(conn, bytes + sent, length - (size_t)sent);
}

static void flush(struct dm_conn *conn)
{
    ssize_t sent;

    if (conn->out_length == 0)
        return;
    sent = send_some(conn, conn->out, conn->out_length);
    if (sent < 0) {
        fail(conn, "broke while sending (%s)", strerror(errno));
        return;
    }
    conn->out_length -= (size_t)sent;
    memmove(conn->out, conn->out + sent, conn->out_length);
}

/* Sends on an open connection and takes a slot for the reply; NULL if the connection broke. */
static struct slot *send_command(struct dm_conn *conn, const char *bytes, size_t length)
{
    struct slot *slot = take_slot(conn);

    if (!slot)
        return NULL;
    if (!write_bytes(conn, bytes, length)) {
        spare_slot(conn, slot);
        fail(conn, "broke while sending (%s)", strerror(errno));
        return NULL;
    }
    slot->bytes = length;
    slot->sent_ns = dm_clock_boot_ns();
    push_slot(conn, slot);
    return slot;
}

/* ---- opening ----------------------------------------------------------------------------- */

static void begin_greeting(struct dm_conn *conn)
{
    conn->reader = dm_reply_reader_new();
    if (!conn->reader) {
        fail(conn, "cannot be opened (out of memory)");
        return;
    }
    dm_greeting_begin(&conn->greeting);
    conn->state = CONNECTING;
    conn->deadline_ns = dm_clock_boot_ns() + conn->url->connect_timeout_ms * DM_NS_PER_MS;
    conn->is_change_news = true;
    wake_all(conn);
}

static void connect_next(struct dm_conn *conn)
{
    conn->fd = dm_socket_connect(conn->addresses, conn->url->command_timeout_ms);
    if (conn->fd >= 0)
        begin_greeting(conn);
    else
        fail(conn, "cannot be opened (%s)", strerror(errno));
}

/* The helper thread: looks a name up, or starts the local server; both can block for long. */
static void *prepare(void *user)
{
    struct dm_conn *conn = user;
    char reason[DM_REASON_ROOM] = "";
    struct dm_addresses *addresses = NULL;

    if (conn->url->kind != DM_URL_LOCAL || conn->hooks.prepare(conn->url, reason))
        addresses = dm_addresses_find(conn->url, true, reason);
    enter(conn);
    dm_addresses_free(conn->addresses);
    conn->addresses = addresses;
    if (addresses)
        connect_next(conn);
    else
        fail(conn, "%s", reason);
    leave(conn);
    return NULL;
}

static void start_preparing(struct dm_conn *conn)
{
    pthread_t thread;
    pthread_attr_t attributes;
    sigset_t all, mask;

    conn->state = PREPARING;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &mask); /* the thread takes no signal of the application */
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    if (pthread_create(&thread, &attributes, prepare, conn) != 0)
        fail(conn, "cannot be opened (no thread for the look-up)");
    pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
}

/* A local server that runs already needs no preparing. */
static void open_local(struct dm_conn *conn)
{
    conn->fd = dm_socket_connect(conn->addresses, conn->url->command_timeout_ms);
    if (conn->fd >= 0)
        begin_greeting(conn);
    else
        start_preparing(conn);
}

/* Addresses are found anew each time: the server may have moved. */
static void open_conn(struct dm_conn *conn)
{
    char reason[DM_REASON_ROOM];

    dm_addresses_free(conn->addresses);
    conn->addresses = dm_addresses_find(conn->url, false, reason);
    if (!conn->addresses && reason[0])
        fail(conn, "%s", reason);
    else if (!conn->addresses)
        start_preparing(conn);
    else if (conn->url->kind == DM_URL_LOCAL)
        open_local(conn);
    else
        connect_next(conn);
}

static void open_if_due(struct dm_conn *conn)
{
    if (conn->state == CLOSED && conn->is_wanted && dm_clock_boot_ns() >= conn->retry_ns)
        open_conn(conn);
}

static void become_ready(struct dm_conn *conn)
{
    if (conn->failures)
        dm_log_info("the connection is back");
    conn->state = READY;
    conn->failures = 0;
    conn->is_ready_news = true;
    conn->is_change_news = true;
    wake_all(conn);
}

static void greet(struct dm_conn *conn)
{
    struct dm_command round = dm_greeting_round(&conn->greeting);
    bool is_written;

    conn->state = GREETING;
    if (conn->greeting.step_count == 0) {
        become_ready(conn);
        return;
    }
    is_written = round.bytes && write_bytes(conn, round.bytes, round.length);
    free(round.bytes);
    if (!is_written) {
        fail(conn, "broke in the greeting");
        return;
    }
    for (int i = 0; i < conn->greeting.step_count; i++) {
        struct slot *slot = take_slot(conn);

        if (!slot) {
            fail(conn, "cannot be opened (out of memory)");
            return;
        }
        slot->is_greeting = true;
        slot->sent_ns = dm_clock_boot_ns();
        push_slot(conn, slot);
    }
}

/* ---- reading ----------------------------------------------------------------------------- */

static void run_message(void *user, const redisReply *reply)
{
    struct dm_conn *conn = user;

    if (reply && reply->elements == 3 && dm_reply_is(reply, "message") && reply->element[2]->type == REDIS_REPLY_STRING)
        conn->hooks.on_message(conn->hooks.user, reply->element[2]->str);
}

/* What comes unasked on an inbox. */
static void take_message(struct dm_conn *conn, redisReply *reply)
{
    struct slot *slot = take_slot(conn);

    if (!slot) {
        freeReplyObject(reply);
        fail(conn, "lost a message (out of memory)");
        return;
    }
    slot->handler = run_message;
    slot->user = conn;
    finish_later(conn, slot, reply);
}

static void take_greeting(struct dm_conn *conn, struct slot *slot, redisReply *reply)
{
    char reason[DM_REASON_ROOM];
    bool is_good = dm_greeting_take(&conn->greeting, reply, reason);

    freeReplyObject(reply);
    spare_slot(conn, slot);
    if (!is_good)
        fail(conn, "%s", reason);
    else if (dm_greeting_is_round_over(&conn->greeting))
        greet(conn);
}

static void take_reply(struct dm_conn *conn, redisReply *reply)
{
    struct slot *slot;

    conn->activity++;
    if (conn->greeting.inbox && conn->state == READY) {
        take_message(conn, reply);
        return;
    }
    slot = pop_slot(conn);
    if (!slot) {
        freeReplyObject(reply);
        fail(conn, "sent a reply to nothing: is this a Redis server?");
    } else if (slot->is_greeting) {
        take_greeting(conn, slot, reply);
    } else {
        finish(conn, slot, reply);
    }
}

static void parse(struct dm_conn *conn)
{
    void *reply = NULL;

    while (conn->reader) {
        if (redisReaderGetReply(conn->reader, &reply) != REDIS_OK || !dm_reply_reader_is_sane(conn->reader)) {
            fail(conn, "sent nonsense: is this a Redis server?");
            return;
        }
        if (!reply)
            return;
        take_reply(conn, reply);
    }
}

static void read_bytes(struct dm_conn *conn)
{
    char buf[READ_ROOM];
    ssize_t got;

    do {
        got = recv(conn->fd, buf, sizeof buf, MSG_DONTWAIT);
        if (got == 0) {
            fail(conn, "was closed by the server");
        } else if (got > 0) {
            redisReaderFeed(conn->reader, buf, (size_t)got);
            parse(conn);
        } else if (errno != EAGAIN && errno != EINTR) {
            fail(conn, "broke (%s)", strerror(errno));
        }
    } while (got == (ssize_t)sizeof buf && conn->fd >= 0);
}

/* ---- time -------------------------------------------------------------------------------- */

static int64_t due_ns(const struct dm_conn *conn)
{
    switch (conn->state) {
    case CLOSED:
        return conn->is_wanted ? conn->retry_ns : DM_NEVER;
    case CONNECTING:
    case GREETING:
        return conn->deadline_ns;
    case READY:
        return conn->first ? conn->first->sent_ns + conn->url->command_timeout_ms * DM_NS_PER_MS : DM_NEVER;
    case PREPARING:
        break;
    }
    return DM_NEVER;
}

static void check_time(struct dm_conn *conn)
{
    if (conn->state == CLOSED || dm_clock_boot_ns() < due_ns(conn))
        return;
    if (conn->state == READY)
        fail(conn, "gave no answer within command_timeout");
    else
        fail(conn, "could not be opened within connect_timeout");
}

static void check_connect(struct dm_conn *conn)
{
    struct pollfd poller = { .fd = conn->fd, .events = POLLOUT };
    int error;

    if (poll(&poller, 1, 0) <= 0)
        return;
    error = dm_socket_error(conn->fd);
    if (error)
        fail(conn, "cannot be opened (%s)", strerror(error));
    else
        greet(conn);
}

static void work(struct dm_conn *conn)
{
    open_if_due(conn);
    if (conn->state == CONNECTING)
        check_connect(conn);
    if (conn->state == GREETING || conn->state == READY) {
        flush(conn);
        if (conn->fd >= 0)
            read_bytes(conn);
    }
    check_time(conn);
}

/* ---- waiting ----------------------------------------------------------------------------- */

static short wanted_events(const struct dm_conn *conn)
{
    if (conn->state == CONNECTING)
        return POLLOUT;
    return (short)(POLLIN | (conn->out_length ? POLLOUT : 0));
}

static struct timespec to_timespec(int64_t ns)
{
    return (struct timespec){ .tv_sec = (time_t)(ns / DM_NS_PER_S), .tv_nsec = (long)(ns % DM_NS_PER_S) };
}

/* How long to sleep: until the caller's deadline, or until the connection has something to do. */
static int64_t sleep_ns(const struct dm_conn *conn, const struct dm_deadline *deadline)
{
    int64_t left = dm_deadline_left_ns(deadline), due = due_ns(conn);

    if (due != DM_NEVER) {
        int64_t until_due = due - dm_clock_boot_ns();

        if (until_due < left)
            left = until_due > 0 ? until_due : 0;
    }
    return left;
}

static void lead(struct dm_conn *conn, struct call *me, const struct dm_deadline *deadline, const sigset_t *mask)
{
    struct pollfd pollers[] = { { .fd = conn->fd, .events = wanted_events(conn) },
                                { .fd = conn->leader_bell, .events = POLLIN } };
    int64_t left = sleep_ns(conn, deadline);
    struct timespec timeout = to_timespec(left);
    uint64_t rings;

    conn->leader = me;
    dm_mutex_unlock(&conn->lock);
    ppoll(pollers, 2, left == DM_NEVER ? NULL : &timeout, mask);
    dm_mutex_lock(&conn->lock);
    conn->leader = NULL;
    if (pollers[1].revents && read(conn->leader_bell, &rings, sizeof rings) < 0)
        return; /* somebody else was woken by it */
}

static void follow(struct dm_conn *conn, struct call *me, const struct dm_deadline *deadline, const sigset_t *mask)
{
    int64_t left = sleep_ns(conn, deadline);
    struct dm_deadline until = left == DM_NEVER ? *deadline : dm_deadline_sooner(deadline, left);
    sigset_t masked;

    me->is_asleep = true;
    leave(conn);
    pthread_sigmask(SIG_SETMASK, mask, &masked);
    dm_self_sleep(me->self, &until);
    pthread_sigmask(SIG_SETMASK, &masked, NULL);
    enter(conn);
    me->is_asleep = false;
}

static void wait_turn(struct dm_conn *conn, struct call *me, const struct dm_deadline *deadline, const sigset_t *mask)
{
    if (conn->fd >= 0 && !conn->leader)
        lead(conn, me, deadline, mask);
    else
        follow(conn, me, deadline, mask);
    work(conn);
}

/* Somebody must sleep in ppoll() while threads wait. */
static void promote(struct dm_conn *conn)
{
    struct call *call = conn->calls;

    while (call && (call->is_done || !call->is_asleep))
        call = call->next;
    if (call && !conn->leader)
        wake(conn, call);
}

static void add_call(struct dm_conn *conn, struct call *call)
{
    call->self = dm_self_get();
    call->next = conn->calls;
    conn->calls = call;
}

static void remove_call(struct dm_conn *conn, struct call *call)
{
    struct call **at = &conn->calls;

    while (*at != call)
        at = &(*at)->next;
    *at = call->next;
    if (call->slot && !call->is_done)
        call->slot->call = NULL; /* the slot stays: its reply will come */
    promote(conn);
}

/*
 * Runs a call until is_over says so or the deadline passes.  Signals are masked but for the
 * sleeps, so that no handler finds this thread with the lock held.
 */
static bool run_call(struct dm_conn *conn, struct call *call, const struct dm_deadline *deadline,
                     bool (*is_over)(struct dm_conn *, struct call *, void *), void *user)
{
    sigset_t all, mask;
    bool is_over_now;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &mask);
    enter(conn);
    add_call(conn, call);
    for (;;) {
        is_over_now = is_over(conn, call, user);
        if (is_over_now || dm_deadline_left_ns(deadline) == 0)
            break;
        conn->is_wanted = true;
        open_if_due(conn);
        if (has_news(conn)) { /* what is to be called must not wait for our sleep */
            leave(conn);
            enter(conn);
            continue;
        }
        wait_turn(conn, call, deadline, &mask);
    }
    remove_call(conn, call);
    leave(conn);
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    return is_over_now;
}

static bool is_answered(struct dm_conn *conn, struct call *call, void *user)
{
    const struct dm_command *command = user;

    if (!call->slot && !call->is_done && conn->state == READY) {
        call->slot = send_command(conn, command->bytes, command->length);
        if (call->slot)
            call->slot->call = call;
    }
    return call->is_done;
}

enum dm_conn_result dm_conn_call(struct dm_conn *conn, const struct dm_command *command,
                                 const struct dm_deadline *deadline, redisReply **ret_reply)
{
    struct call call = { .result = DM_CONN_LATE };

    if (!command->bytes)
        return DM_CONN_DOWN;
    run_call(conn, &call, deadline, is_answered, (void *)command);
    if (call.result == DM_CONN_OK)
        *ret_reply = call.reply;
    return call.result;
}

static bool is_ready(struct dm_conn *conn, struct call *call, void *user)
{
    (void)call;
    (void)user;
    return conn->state == READY;
}

bool dm_conn_await_ready(struct dm_conn *conn, const struct dm_deadline *deadline)
{
    struct call call = { .result = DM_CONN_LATE };

    return run_call(conn, &call, deadline, is_ready, NULL);
}

static bool is_drained(struct dm_conn *conn, struct call *call, void *user)
{
    (void)call;
    (void)user;
    return conn->first == NULL;
}

bool dm_conn_drain(struct dm_conn *conn, const struct dm_deadline *deadline)
{
    struct call call = { .result = DM_CONN_LATE };

    return run_call(conn, &call, deadline, is_drained, NULL) && dm_conn_is_ready(conn);
}

enum dm_conn_result dm_conn_post(struct dm_conn *conn, const struct dm_command *command, dm_reply_fn handler,
                                 void *user)
{
    enum dm_conn_result result = DM_CONN_DOWN;
    struct slot *slot = NULL;
    sigset_t all, mask;
    size_t before;

    if (!command->bytes)
        return DM_CONN_DOWN;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &mask);
    enter(conn);
    before = conn->unanswered;
    if (conn->state == READY)
        slot = send_command(conn, command->bytes, command->length);
    if (slot) {
        slot->handler = handler;
        slot->user = user;
        result = conn->out_length == 0 && before <= UNANSWERED_MAX ? DM_CONN_OK : DM_CONN_LATE;
    }
    leave(conn);
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    return result;
}

/* ---- the rest of the interface ----------------------------------------------------------- */

struct dm_conn *dm_conn_new(struct dm_url *url, const char *inbox, const struct dm_conn_hooks *hooks)
{
    struct dm_conn *conn = allocate(sizeof *conn);

    if (!conn)
        return NULL;
    conn->lock = (struct dm_mutex)DM_MUTEX_INITIALIZER(DM_RANK_CONN);
    conn->url = url;
    conn->hooks = *hooks;
    conn->fd = -1;
    conn->leader_bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    conn->finished_end = &conn->finished;
    conn->greeting.url = url;
    if (inbox) {
        snprintf(conn->channel, sizeof conn->channel, "%s", inbox);
        conn->greeting.inbox = conn->channel;
    }
    return conn;
}

void dm_conn_want(struct dm_conn *conn)
{
    enter(conn);
    conn->is_wanted = true;
    open_if_due(conn);
    conn->is_change_news = true;
    leave(conn);
}

void dm_conn_distrust(struct dm_conn *conn, const char *reason)
{
    enter(conn);
    if (conn->state == READY)
        fail(conn, "%s", reason);
    leave(conn);
}

bool dm_conn_is_ready(struct dm_conn *conn)
{
    bool is_ready_now;

    enter(conn);
    is_ready_now = conn->state == READY;
    leave(conn);
    return is_ready_now;
}

void dm_conn_reason(struct dm_conn *conn, char ret_reason[DM_REASON_ROOM])
{
    enter(conn);
    memcpy(ret_reason, conn->reason, DM_REASON_ROOM);
    leave(conn);
}

void dm_conn_watch(struct dm_conn *conn, struct dm_conn_watch *ret_watch)
{
    enter(conn);
    ret_watch->fd = conn->fd;
    ret_watch->events = conn->fd >= 0 ? wanted_events(conn) : 0;
    ret_watch->due_ns = due_ns(conn);
    ret_watch->is_attended = conn->leader != NULL;
    ret_watch->activity = conn->activity;
    ret_watch->is_unanswered = conn->first != NULL;
    leave(conn);
}

void dm_conn_work(struct dm_conn *conn)
{
    enter(conn);
    work(conn);
    leave(conn);
}

void dm_conn_fork_prepare(struct dm_conn *conn)
{
    dm_mutex_lock(&conn->lock);
}

void dm_conn_fork_parent(struct dm_conn *conn)
{
    dm_mutex_unlock(&conn->lock);
}

void dm_conn_fork_child(struct dm_conn *conn)
{
    if (conn->fd >= 0)
        close(conn->fd);
    close(conn->leader_bell);
    conn->fd = conn->leader_bell = -1;
    dm_mutex_reset(&conn->lock);
}
