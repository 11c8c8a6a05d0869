/* SPDX-License-Identifier: BSD-2-Clause */
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include "base/descriptor.h"
#include "redis/conn_parts.h"

/*
 * How long a leader looks before sleeping; after how many looks in vain the leader stops; how often the leader tries
 * again.
 */
#define GLANCE_NS (50 * DM_NS_PER_US)
#define YIELD_NS (3 * DM_NS_PER_US) /* a yield that takes longer has let another thread run */
#define GLANCES_IN_VAIN 4
#define GLANCE_AGAIN 64

static struct timespec to_timespec(int64_t ns)
{
    return (struct timespec){ .tv_sec = (time_t)(ns / DM_NS_PER_S), .tv_nsec = (long)(ns % DM_NS_PER_S) };
}

/* How long to sleep: until the caller's deadline, or until the connection has something to do. */
static int64_t sleep_ns(const struct dm_conn *conn, const struct dm_deadline *deadline)
{
    int64_t left = dm_deadline_left_ns(deadline), due = dm_conn_due_ns(conn);

    if (due != DM_NEVER) {
        int64_t until_due = due - dm_clock_boot_ns();

        if (until_due < left)
            left = until_due > 0 ? until_due : 0;
    }
    return left;
}

/*
 * An answer from the same machine comes sooner than a core that went to sleep wakes up, so the leader first looks for a
 * while.  Where answers take longer, or others need this core (on a machine with one core: the server), the leader
 * stops looking, except for a try now and then.
 */
static bool is_glance_worthwhile(struct dm_conn *conn)
{
    return conn->glances_missed < GLANCES_IN_VAIN || ++conn->glances_left_out % GLANCE_AGAIN == 0;
}

static bool is_core_wanted(int64_t *now_ns)
{
    int64_t before_ns = *now_ns;

    sched_yield();
    *now_ns = dm_clock_boot_ns();
    return *now_ns - before_ns > YIELD_NS;
}

/* Returns whether looking was of use. */
static bool glance(struct pollfd *pollers, nfds_t count)
{
    int64_t now_ns = dm_clock_boot_ns(), end_ns = now_ns + GLANCE_NS;

    while (now_ns < end_ns) {
        if (is_core_wanted(&now_ns))
            return false;
        if (poll(pollers, count, 0) > 0)
            return true;
    }
    return false;
}

static void lead(struct dm_conn *conn, struct dm_call *me, const struct dm_deadline *deadline, const sigset_t *mask)
{
    struct pollfd pollers[] = { { .fd = conn->fd, .events = dm_conn_wanted_events(conn) },
                                { .fd = conn->leader_bell, .events = POLLIN } };
    int64_t left = sleep_ns(conn, deadline);
    struct timespec timeout = to_timespec(left);
    bool is_worthwhile = is_glance_worthwhile(conn), is_seen;

    conn->leader = me;
    dm_mutex_unlock(&conn->lock);
    is_seen = is_worthwhile && glance(pollers, 2);
    if (!is_seen)
        ppoll(pollers, 2, left == DM_NEVER ? NULL : &timeout, mask);
    dm_mutex_lock(&conn->lock);
    conn->leader = NULL;
    if (is_worthwhile)
        conn->glances_missed = is_seen ? 0 : conn->glances_missed + 1;
    if (pollers[1].revents)
        dm_bell_answer(&conn->leader_bell);
}

static void follow(struct dm_conn *conn, struct dm_call *me, const struct dm_deadline *deadline, const sigset_t *mask)
{
    int64_t left = sleep_ns(conn, deadline);
    struct dm_deadline until = left == DM_NEVER ? *deadline : dm_deadline_sooner(deadline, left);
    sigset_t masked;

    dm_conn_note_sleep(conn, me, true);
    dm_conn_leave(conn);
    pthread_sigmask(SIG_SETMASK, mask, &masked);
    dm_self_sleep(me->self, &until);
    pthread_sigmask(SIG_SETMASK, &masked, NULL);
    dm_conn_enter(conn);
    dm_conn_note_sleep(conn, me, false);
}

/* Reads bytes that are there already: a server that shares our core has answered within our send. */
static bool has_read_at_once(struct dm_conn *conn)
{
    uint64_t before = conn->activity;

    dm_conn_do_work(conn);
    return conn->activity != before || dm_conn_has_news(conn);
}

static void wait_turn(struct dm_conn *conn, struct dm_call *me, const struct dm_deadline *deadline,
                      const sigset_t *mask)
{
    bool is_leader = conn->fd >= 0 && !conn->leader;

    if (is_leader && has_read_at_once(conn))
        return;
    if (is_leader)
        lead(conn, me, deadline, mask);
    else
        follow(conn, me, deadline, mask);
    if (!me->is_done)
        dm_conn_do_work(conn);
}

/* Somebody must sleep in ppoll() while threads wait. */
static void promote(struct dm_conn *conn)
{
    struct dm_call *call = conn->leader || conn->asleep == 0 ? NULL : conn->calls;

    while (call && (call->is_done || !call->is_asleep))
        call = call->next;
    if (call)
        dm_conn_wake(conn, call);
}

static void add_call(struct dm_conn *conn, struct dm_call *call)
{
    call->self = dm_self_get();
    call->hopeless = conn->hopeless;
    call->next = conn->calls;
    call->link = &conn->calls;
    if (call->next)
        call->next->link = &call->next;
    conn->calls = call;
}

static void remove_call(struct dm_conn *conn, struct dm_call *call)
{
    *call->link = call->next;
    if (call->next)
        call->next->link = call->link;
    conn->draining -= call->drains != 0;
    if (call->slot && !call->is_done)
        call->slot->call = NULL; /* the slot stays: the reply will come */
    promote(conn);
    dm_conn_free_bell(conn);
}

/*
 * Runs a call until is_over says so or the deadline passes.  Signals are masked except during the sleeps, so that no
 * handler finds this thread with the lock held.
 */
static bool run_call(struct dm_conn *conn, struct dm_call *call, const struct dm_deadline *deadline,
                     bool (*is_over)(struct dm_conn *, struct dm_call *, void *), void *user)
{
    sigset_t all, mask;
    bool is_over_now;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &mask);
    dm_conn_enter(conn);
    add_call(conn, call);
    for (;;) {
        is_over_now = is_over(conn, call, user);
        if (is_over_now || dm_deadline_left_ns(deadline) == 0)
            break;
        if (conn->hopeless != call->hopeless || conn->state == DM_CONN_ENDED) {
            call->result = DM_CONN_DOWN;
            break;
        }
        conn->is_wanted = conn->was_wanted = true;
        dm_conn_open_if_due(conn);
        if (dm_conn_has_news(conn)) { /* due handlers must not wait for our sleep */
            dm_conn_leave(conn);
            dm_conn_enter(conn);
            continue;
        }
        wait_turn(conn, call, deadline, &mask);
    }
    remove_call(conn, call);
    dm_conn_leave(conn);
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    return is_over_now;
}

static bool is_answered(struct dm_conn *conn, struct dm_call *call, void *user)
{
    const struct dm_command *command = user;

    if (!call->slot && !call->is_done && conn->state == DM_CONN_READY) {
        if (!dm_conn_is_for_server(conn, command)) {
            call->result = DM_CONN_OTHER;
            return true;
        }
        call->slot = dm_conn_send(conn, command->bytes, command->length);
        if (call->slot)
            call->slot->call = call;
    }
    return call->is_done;
}

enum dm_conn_result dm_conn_call(struct dm_conn *conn, const struct dm_command *command,
                                 const struct dm_deadline *deadline, redisReply **ret_reply)
{
    struct dm_call call = { .result = DM_CONN_LATE };

    if (!command->bytes)
        return DM_CONN_NO_MEMORY;
    run_call(conn, &call, deadline, is_answered, (void *)command);
    if (call.result == DM_CONN_OK)
        *ret_reply = call.reply;
    return call.result;
}

static bool is_ready(struct dm_conn *conn, struct dm_call *call, void *user)
{
    (void)call;
    (void)user;
    return conn->state == DM_CONN_READY;
}

bool dm_conn_await_ready(struct dm_conn *conn, const struct dm_deadline *deadline)
{
    struct dm_call call = { .result = DM_CONN_LATE };

    return run_call(conn, &call, deadline, is_ready, NULL);
}

/* True once all requests sent before the call are answered; later requests of others do not count. */
static bool is_drained(struct dm_conn *conn, struct dm_call *call, void *user)
{
    (void)user;
    if (call->drains == 0) {
        call->drains = conn->pushed;
        conn->draining += call->drains != 0;
    }
    return conn->popped >= call->drains;
}

bool dm_conn_drain(struct dm_conn *conn, const struct dm_deadline *deadline)
{
    struct dm_call call = { .result = DM_CONN_LATE };

    return run_call(conn, &call, deadline, is_drained, NULL) && dm_conn_is_ready(conn);
}
