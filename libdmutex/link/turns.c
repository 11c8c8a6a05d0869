/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/turns.h"

#include <sched.h>

#include "base/descriptor.h"
#include "base/poll.h"
#include "link/link_parts.h"

/*
 * How long a leader spins before it sleeps.  A server on this machine has to wake up, and with TLS, or as one of
 * several, answers after 100 us and more: about as long as the leader itself would need to wake up.
 */
#define GLANCE_NS (50 * DM_NS_PER_US)
#define GLANCE_NEAR_NS (200 * DM_NS_PER_US)
#define YIELD_NS (3 * DM_NS_PER_US) /* a yield that takes longer has let another thread run */

/* A yield on a busy core may take some ms: if a spin ends late, no thread spins for this many times the delay. */
#define PAY_BACK 30
#define LATE_MOST_NS (50 * DM_NS_PER_MS) /* after a longer delay, the process was stopped or the machine suspended */

/* After this many calls in a row that met no other, only one thread at a time seems to use the link. */
#define CALLS_ALONE 16

/* How often a listener checks again, in case the program has closed the descriptors of the socket and the bell. */
#define LISTEN_MOST_NS (5 * DM_NS_PER_S)

/* After this many misses something is skipped, and tried again every so many times. */
#define MISSES_MOST 4
#define TRY_AGAIN 64

static bool is_worthwhile(struct dm_habit *habit)
{
    return habit->misses < MISSES_MOST || ++habit->left_out % TRY_AGAIN == 0;
}

/* One success makes the habit worthwhile again, since machines change between busy and idle. */
static void note_use(struct dm_habit *habit, bool is_of_use)
{
    habit->misses = is_of_use ? 0 : habit->misses + 1;
}

/* Hands out replies under the lock, so that a caller whose reply has come does not sleep again. */
static void do_work(struct dm_link *link)
{
    dm_assert_held(DM_RANK_CONN);
    dm_session_work(&link->session);
    dm_link_hand_out(link);
}

/* How long to sleep: until the caller's deadline, or until the session has something to do. */
static int64_t sleep_ns(const struct dm_link *link, const struct dm_deadline *deadline)
{
    int64_t left = dm_deadline_left_ns(deadline), due = dm_session_due_ns(&link->session);

    if (due != DM_NEVER) {
        int64_t until_due = due - dm_clock_boot_ns();

        if (until_due < left)
            left = until_due > 0 ? until_due : 0;
    }
    return left;
}

/* Reads bytes that are already there.  True if there were any, or handlers are due. */
static bool has_read(struct dm_link *link)
{
    uint64_t before = link->session.activity;

    do_work(link);
    return link->session.activity != before || dm_link_has_news(link);
}

/* Called right after sending: a server that shares our core has answered in that time. */
static bool has_read_at_once(struct dm_link *link)
{
    bool is_seen;

    if (!is_worthwhile(&link->reads_at_once))
        return false;
    is_seen = has_read(link);
    note_use(&link->reads_at_once, is_seen);
    return is_seen;
}

/* Gives lock and core to others: on a machine with one core the server can answer only while this thread waits. */
static bool is_core_wanted(struct dm_link *link, int64_t *ret_now_ns)
{
    int64_t before_ns;

    dm_mutex_unlock(&link->lock);
    before_ns = dm_clock_boot_ns();
    sched_yield();
    *ret_now_ns = dm_clock_boot_ns();
    dm_mutex_lock(&link->lock);
    return *ret_now_ns - before_ns > YIELD_NS;
}

/* True if another thread has read the reply, changed the link's state, or posted. */
static bool is_called(struct dm_caller *me)
{
    me->is_posted = me->is_listening && dm_self_take_post(me->self);
    return me->is_posted || me->is_called;
}

static void pay_back(struct dm_link *link, int64_t now_ns, int64_t end_ns)
{
    int64_t late_ns = now_ns - end_ns < LATE_MOST_NS ? now_ns - end_ns : LATE_MOST_NS;

    if (late_ns > 0)
        link->next_glance_ns = now_ns + late_ns * PAY_BACK;
}

/*
 * True if the caller must check: bytes came, or another thread calls.  A yield costs the rest of the thread's time
 * slice, which threads that pass a name among themselves would miss: if several threads of the process use the link,
 * the spin ends when another thread wants the core.
 */
static bool spin(struct dm_link *link, struct dm_caller *me)
{
    int64_t now_ns, end_ns = dm_clock_boot_ns() + (link->session.is_near ? GLANCE_NEAR_NS : GLANCE_NS);
    bool is_in_the_way, is_seen;

    link->leader = me;
    link->is_glancing = true;
    me->is_called = false;
    do {
        is_in_the_way = is_core_wanted(link, &now_ns) && link->calls_alone < CALLS_ALONE;
        is_seen = (!is_in_the_way && has_read(link)) || is_called(me);
    } while (!is_seen && !is_in_the_way && now_ns < end_ns);
    pay_back(link, now_ns, end_ns);
    link->is_glancing = false;
    link->leader = NULL;
    return is_seen;
}

/*
 * An answer from the same machine comes sooner than a sleeping core wakes up, so the leader first spins for a while,
 * reading again and again. poll() would take longer, and be one call more when the answer is there.  Where answers take
 * longer, or other threads of the process need this core, spinning is not worthwhile.
 */
static bool has_glanced(struct dm_link *link, struct dm_caller *me)
{
    bool is_seen;

    if (dm_clock_boot_ns() < link->next_glance_ns || !is_worthwhile(&link->spins))
        return false;
    is_seen = spin(link, me);
    note_use(&link->spins, is_seen);
    return is_seen;
}

/*
 * Sleeps without the lock.  A deadline, a cancellation or a signal may end the sleep at any time, so the leader
 * promises nothing: whoever has the lock next reads.  If a handler forks, nothing would wake the sleeper in the child.
 * So is_ended is read after the descriptors: a later fork() leaves closed ones, with which ppoll() returns at once.
 */
static void lead(struct dm_link *link, struct dm_caller *me, const struct dm_deadline *deadline)
{
    struct pollfd pollers[] = { { .fd = dm_session_fd(&link->session), .events = dm_session_events(&link->session) },
                                { .fd = link->leader_bell, .events = POLLIN } };
    int64_t left = sleep_ns(link, deadline);
    int64_t most = me->is_listening && left > LISTEN_MOST_NS ? LISTEN_MOST_NS : left;
    bool is_ended, is_posted;

    dm_assert_held(DM_RANK_CONN);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    is_ended = link->session.is_ended;
    link->leader = me;
    dm_mutex_unlock(&link->lock);
    is_posted = me->is_listening && dm_self_listen(me->self, &link->leader_bell);
    pthread_setcancelstate(me->cancel_state, NULL);
    if (!is_posted && !is_ended)
        dm_poll(pollers, 2, most);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    dm_mutex_pause();
    dm_mutex_lock(&link->lock);
    link->leader = NULL;
    if (pollers[1].revents)
        dm_bell_answer(&link->leader_bell);
}

/*
 * A post may be the link's, which means "check again", or another thread's, for which a listener waits. is_asleep
 * distinguishes them, because the link clears it when it wakes a follower.
 */
static void follow(struct dm_link *link, struct dm_caller *me, const struct dm_deadline *deadline)
{
    int64_t left = sleep_ns(link, deadline);
    struct dm_deadline until = left == DM_NEVER ? *deadline : dm_deadline_sooner(deadline, left);
    bool is_posted;

    dm_link_note_sleep(link, me, true);
    dm_link_leave(link);
    is_posted = dm_self_sleep_cancellably(me->self, &until, me->cancel_state);
    dm_mutex_lock(&link->lock);
    me->is_posted = is_posted && (me->is_asleep || link->session.is_ended); /* otherwise it was the link's */
    dm_link_note_sleep(link, me, false);
}

/* A follower that was woken works, too: the leader may have left, with nobody else to read. */
static void wait_turn(struct dm_link *link, struct dm_caller *me, const struct dm_deadline *deadline)
{
    bool is_leader = !link->leader && dm_session_is_for_thread(&link->session);

    if (is_leader && (has_read_at_once(link) || has_glanced(link, me)))
        return;
    if (is_leader)
        lead(link, me, deadline);
    else
        follow(link, me, deadline);
    dm_self_stop_listening(me->self);
    if (!me->is_done)
        do_work(link);
}

/*
 * While threads wait, one of them must sleep in ppoll().  If none is left, and the loop thread relies on the leader, it
 * must poll the socket again.
 */
static void promote(struct dm_link *link)
{
    struct dm_caller *call = link->leader || link->asleep == 0 ? NULL : link->calls;

    dm_assert_held(DM_RANK_CONN);
    while (call && (call->is_done || !call->is_asleep))
        call = call->next;
    if (call)
        dm_link_wake(link, call);
    else if (!link->leader && link->is_left_to_leader)
        dm_link_take_back(link);
}

/* The newest comes first: the order does not matter, because replies go by slots. */
static void add_call(struct dm_link *link, struct dm_caller *call)
{
    dm_assert_held(DM_RANK_CONN);
    call->self = dm_self_get();
    call->permanent_failures = link->session.permanent_failures;
    link->calls_alone = link->calls ? 0 : link->calls_alone + 1;
    call->next = link->calls;
    call->link = &link->calls;
    if (call->next)
        call->next->link = &call->next;
    link->calls = call;
}

/* The reply of a slot without a call is dropped; the slot cannot be removed, because the server has the command. */
static void remove_call(struct dm_link *link, struct dm_caller *call)
{
    *call->link = call->next;
    if (call->next)
        call->next->link = call->link;
    link->draining -= call->drains != 0;
    if (call->slot && !call->is_done)
        call->slot->call = NULL; /* the slot stays: the reply will come */
    promote(link);
    dm_link_free_bell(link);
}

/*
 * Runs a call until is_over() returns true or the deadline passes.  Signals are not masked: that costs two system
 * calls, and no handler may call the library.  If a handler forks, the child's link has ended, whatever was
 * interrupted.
 */
static bool run_call(struct dm_link *link, struct dm_caller *call, const struct dm_deadline *deadline,
                     bool (*is_over)(struct dm_link *, struct dm_caller *, void *), void *user)
{
    bool is_over_now;

    dm_mutex_lock(&link->lock);
    add_call(link, call);
    for (;;) {
        is_over_now = is_over(link, call, user);
        if (is_over_now || dm_deadline_left_ns(deadline) == 0)
            break;
        if (link->session.permanent_failures != call->permanent_failures || link->session.is_ended) {
            call->result = DM_LINK_DOWN;
            break;
        }
        link->session.is_wanted = link->session.was_wanted = true;
        dm_session_open_if_due(&link->session);
        if (dm_link_has_news(link)) { /* due handlers must not wait for our sleep */
            dm_link_leave(link);
            dm_mutex_lock(&link->lock);
            continue;
        }
        wait_turn(link, call, deadline);
    }
    remove_call(link, call);
    dm_link_leave(link);
    return is_over_now;
}

/*
 * Sends as soon as the link is ready, and only once: the link never repeats a command, because it may have been
 * executed.  A question that has been given up is not sent: the thread that gave it up next sends a release under this
 * lock, and the question would come after it.
 */
static bool is_answered(struct dm_link *link, struct dm_caller *call, void *user)
{
    const struct dm_command *command = user;

    dm_assert_held(DM_RANK_CONN);
    if (!call->slot && !call->is_done && dm_link_may_send(link, command)) {
        if (dm_self_is_given_up() && !command->is_for_ending)
            return true;
        if (!dm_link_is_for_peer(link, command)) {
            call->result = DM_LINK_OTHER;
            return true;
        }
        call->slot = dm_session_send(&link->session, command);
        if (call->slot)
            call->slot->call = call;
    }
    return call->is_done;
}

/* The caller frees the reply, even if it is an error of the server. */
enum dm_link_result dm_link_call(struct dm_link *link, const struct dm_command *command,
                                 const struct dm_deadline *deadline, redisReply **ret_reply)
{
    struct dm_caller call = { .result = DM_LINK_LATE, .cancel_state = PTHREAD_CANCEL_DISABLE };

    if (!command->bytes)
        return DM_LINK_NO_MEMORY;
    run_call(link, &call, deadline, is_answered, (void *)command);
    if (call.result == DM_LINK_OK)
        *ret_reply = call.reply;
    return call.result;
}

static bool is_ready(struct dm_link *link, struct dm_caller *call, void *user)
{
    (void)call;
    (void)user;
    return dm_session_is_usable(&link->session);
}

/* The connection may break again before the caller's next step: the result is a hint. */
bool dm_link_await_ready(struct dm_link *link, const struct dm_deadline *deadline)
{
    struct dm_caller call = { .result = DM_LINK_LATE, .cancel_state = PTHREAD_CANCEL_DISABLE };

    return run_call(link, &call, deadline, is_ready, NULL);
}

/* A wait for the link and for something else, which another thread may bring about. */
struct expectation {
    bool (*is_met)(void *user);
    void *user;
};

static bool is_ready_and_met(struct dm_link *link, struct dm_caller *call, void *user)
{
    const struct expectation *expectation = user;

    (void)call;
    return dm_session_is_ready(&link->session) && expectation->is_met(expectation->user);
}

bool dm_link_await(struct dm_link *link, bool (*is_met)(void *user), void *user, const struct dm_deadline *deadline)
{
    struct dm_caller call = { .result = DM_LINK_LATE, .cancel_state = PTHREAD_CANCEL_DISABLE };
    struct expectation expectation = { is_met, user };

    return run_call(link, &call, deadline, is_ready_and_met, &expectation);
}

/* True once all requests sent before the call are answered; later requests of others do not count. */
static bool is_drained(struct dm_link *link, struct dm_caller *call, void *user)
{
    (void)user;
    if (call->drains == 0) {
        call->drains = link->session.pipe.pushed;
        link->draining += call->drains != 0;
    }
    return link->session.pipe.popped >= call->drains;
}

/* If the connection breaks, the requests get no answers, and the caller's releases stay pending. */
void dm_link_drain(struct dm_link *link, const struct dm_deadline *deadline)
{
    struct dm_caller call = { .result = DM_LINK_LATE, .cancel_state = PTHREAD_CANCEL_DISABLE };

    run_call(link, &call, deadline, is_drained, NULL);
}

/* A post that came before the sleep began counts: it stays in the semaphore until taken. */
static bool has_post(struct dm_link *link, struct dm_caller *call, void *user)
{
    (void)link;
    (void)user;
    return call->is_posted || dm_self_take_post(call->self);
}

/* A thread in dm_link_listen(). */
struct listener {
    struct dm_link *link;
    struct dm_caller call;
};

/* Runs if the thread is cancelled, which can happen only in a sleep, without the lock. */
static void stop_listener(void *user)
{
    struct listener *self = user;

    dm_self_stop_listening(self->call.self);
    dm_mutex_lock(&self->link->lock);
    if (self->link->leader == &self->call)
        self->link->leader = NULL;
    dm_link_note_sleep(self->link, &self->call, false);
    remove_call(self->link, &self->call);
    dm_link_leave(self->link);
}

/* Without a connection the thread sleeps only on its semaphore; when the inbox is open again, the waiter polls. */
bool dm_link_listen(struct dm_link *link, const struct dm_deadline *deadline, int cancel_state)
{
    struct listener self = { .link = link, .call = { .is_listening = true, .cancel_state = cancel_state } };
    bool is_posted_now;

    pthread_cleanup_push(stop_listener, &self);
    is_posted_now = run_call(link, &self.call, deadline, has_post, NULL);
    pthread_cleanup_pop(0);
    if (is_posted_now || self.call.result != DM_LINK_DOWN)
        return is_posted_now;
    /* There is no connection to the server; the loop thread tries again. */
    return dm_self_sleep_cancellably(self.call.self, deadline, cancel_state);
}
