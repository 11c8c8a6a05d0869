/* SPDX-License-Identifier: BSD-2-Clause */
#include "process/keep/loop.h"

#include <errno.h>
#include <glib.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/log.h"
#include "base/poll.h"
#include "base/rank.h"
#include "base/thread.h"
#include "process/claims/alarm.h"
#include "process/claims/process.h"
#include "process/keep/gate.h"
#include "process/keep/pump.h"

struct dm_loop {
    struct dm_alarm alarm;
    struct dm_runtime *runtime; /* dm_loop_serve() may change it at any time: read it with served() */
    GMainContext *context;
    GSource *source;
    struct dm_watch watch; /* the bell, and the store's */
    int64_t planned_ns;    /* when the next turn is due, whatever happens */
};

static struct dm_loop *the_loop; /* of this process; rank START guards the making */

static __thread struct dm_loop *own_loop; /* set in the loop thread */

/*
 * Polls the loop's descriptors itself instead of adding them to GLib, which writes to its own eventfd at every change.
 * Nobody else writes to that eventfd, so it is not polled, and nothing is ever ready for GLib.
 */
static gint poll_outside_gate(GPollFD *fds, guint count, gint timeout_ms)
{
    struct dm_loop *loop = own_loop;
    struct dm_watch *watch = &loop->watch;

    dm_mutex_unlock(&dm_gate);
    dm_poll(watch->polled, (unsigned)watch->count, timeout_ms < 0 ? DM_NEVER : timeout_ms * DM_NS_PER_MS);
    dm_mutex_pause();
    dm_mutex_lock(&dm_gate);
    if (watch->count && watch->polled[0].revents)
        dm_bell_answer(&loop->alarm.bell);
    for (guint i = 0; i < count; i++)
        fds[i].revents = 0;
    return 0;
}

/*
 * Each step calls this once, and uses that runtime throughout: if it is retired in between, it still exists, and has
 * nothing left to do.
 */
static struct dm_runtime *served(const struct dm_loop *loop)
{
    return __atomic_load_n(&loop->runtime, __ATOMIC_ACQUIRE);
}

/* ---- events to wait for ------------------------------------------------------------------ */

/* The loop thread calls this before each sleep.  A later change rings the bell, which ends the sleep at once. */
static void plan(struct dm_loop *loop)
{
    struct dm_runtime *runtime = served(loop);

    dm_watch_clear(&loop->watch);
    dm_watch_poll(&loop->watch, __atomic_load_n(&loop->alarm.bell, __ATOMIC_RELAXED), POLLIN);
    dm_store_watch(runtime->store, &loop->watch);
    dm_state_lock();
    loop->planned_ns = MIN(loop->watch.due_ns, loop->alarm.due_ns);
    dm_state_unlock();
    dm_store_note_look(runtime->store, loop->planned_ns);
}

/* GLib makes a source of any size; the loop's address follows GLib's part. */
static struct dm_loop *loop_of(GSource *source)
{
    return *(struct dm_loop **)(source + 1);
}

/*
 * GLib sleeps by CLOCK_MONOTONIC and in milliseconds; every turn compares CLOCK_BOOTTIME again.  We do not use
 * g_source_set_ready_time(), because it wakes the loop that is about to sleep.
 */
static gboolean prepare(GSource *source, gint *ret_timeout_ms)
{
    struct dm_loop *loop = loop_of(source);
    int64_t left_ns;

    if (loop->planned_ns == DM_NEVER) {
        *ret_timeout_ms = -1;
        return FALSE;
    }
    left_ns = MAX(loop->planned_ns - dm_clock_boot_ns(), 0);
    *ret_timeout_ms = (gint)MIN((left_ns + DM_NS_PER_MS - 1) / DM_NS_PER_MS, G_MAXINT);
    return left_ns == 0;
}

/* GLib calls this after its poll, with the gate held. */
static gboolean check(GSource *source)
{
    struct dm_loop *loop = loop_of(source);

    dm_assert_held(DM_RANK_GATE);
    for (int i = 1; i < loop->watch.count; i++) {
        if (loop->watch.polled[i].revents)
            return TRUE;
    }
    return loop->planned_ns <= dm_clock_boot_ns();
}

/* ---- a turn ------------------------------------------------------------------------------ */

/* Checks the time, not what woke the loop: a bell may ring early, and a sleep may end late. */
static bool is_pump_due(struct dm_loop *loop)
{
    bool is_due;

    dm_state_lock();
    is_due = loop->alarm.due_ns <= dm_clock_boot_ns();
    dm_state_unlock();
    return is_due;
}

/* The store first: answers that have come change what the pump has to do. */
static gboolean turn(GSource *source, GSourceFunc callback, gpointer user)
{
    struct dm_loop *loop = loop_of(source);
    struct dm_runtime *runtime = served(loop);

    (void)callback;
    (void)user;
    dm_store_turn(runtime->store);
    if (is_pump_due(loop))
        dm_pump_run(runtime);
    return G_SOURCE_CONTINUE;
}

static void deliver_log(void)
{
    if (!dm_log_has_kept())
        return;
    dm_gate_leave();
    dm_log_deliver();
    dm_gate_enter();
}

/* Never ends: a destructor of the program may still unlock a mutex while other threads end. */
static void *run(void *user)
{
    struct dm_loop *loop = user;

    own_loop = loop;
    dm_alarm_is_own = true;
    pthread_setname_np(pthread_self(), "dmutex");
    dm_mutex_lock(&dm_gate);
    for (;;) {
        plan(loop);
        g_main_context_iteration(loop->context, TRUE);
        deliver_log();
    }
    return NULL;
}

/* ---- beginning --------------------------------------------------------------------------- */

/* A thread that has logged with a lock held may sleep before it can deliver the line, so the loop thread does. */
static void log_kept(void)
{
    struct dm_loop *loop = __atomic_load_n(&the_loop, __ATOMIC_ACQUIRE);

    if (loop)
        dm_alarm_ring(&loop->alarm);
}

/* All signals are blocked in the thread, so that the program's handlers run in the program's threads. */
static bool start_thread(struct dm_loop *loop)
{
    errno = dm_thread_start(run, loop);
    return errno == 0;
}

/* GLib aborts the program if it cannot open the descriptor that a context needs. */
static bool can_have_context(void)
{
    int fd = eventfd(0, EFD_CLOEXEC);

    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/*
 * Everything that may fail comes before the thread.  Without memory GLib aborts the process; this is the only place,
 * once in the life of a process.
 */
static struct dm_loop *make(struct dm_runtime *runtime)
{
    static GSourceFuncs functions = { .prepare = prepare, .check = check, .dispatch = turn };
    struct dm_loop *loop = calloc(1, sizeof *loop);

    if (!loop)
        return NULL;
    loop->runtime = runtime;
    loop->alarm.due_ns = DM_NEVER;
    loop->alarm.bell = dm_bell_open();
    if (loop->alarm.bell < 0 || !can_have_context() || !dm_watch_init(&loop->watch)) {
        dm_bell_close(loop->alarm.bell);
        free(loop);
        return NULL;
    }
    loop->context = g_main_context_new();
    g_main_context_set_poll_func(loop->context, poll_outside_gate);
    loop->source = g_source_new(&functions, sizeof(GSource) + sizeof loop);
    *(struct dm_loop **)(loop->source + 1) = loop;
    g_source_attach(loop->source, loop->context);
    runtime->alarm = &loop->alarm;
    if (start_thread(loop))
        return loop;
    runtime->alarm = NULL;
    g_source_destroy(loop->source);
    g_source_unref(loop->source);
    g_main_context_unref(loop->context);
    dm_bell_close(loop->alarm.bell);
    dm_watch_free(&loop->watch);
    free(loop);
    return NULL;
}

/*
 * A second runtime takes over the loop: the retired one has no work left, and its connections have ended or are about
 * to.
 */
bool dm_loop_serve(struct dm_runtime *runtime)
{
    dm_assert_held(DM_RANK_START);
    if (!the_loop) {
        __atomic_store_n(&the_loop, make(runtime), __ATOMIC_RELEASE);
        dm_log_on_kept(log_kept);
        return the_loop != NULL;
    }
    runtime->alarm = &the_loop->alarm;
    __atomic_store_n(&the_loop->runtime, runtime, __ATOMIC_RELEASE);
    dm_alarm_ring(&the_loop->alarm);
    return true;
}

/* ---- fork -------------------------------------------------------------------------------- */

/* If a callback of the application forks, this same thread has released the gate. */
void dm_loop_fork_prepare(void)
{
    dm_mutex_lock(&dm_gate);
}

/* The loop thread goes on from its poll, or from its wait for the gate. */
void dm_loop_fork_parent(void)
{
    dm_mutex_unlock(&dm_gate);
}

/*
 * The child does not have the thread, and leaves its context unfreed, because locks of GLib may be held in it.  The
 * next use of a mutex makes another loop.
 */
void dm_loop_fork_child(void)
{
    dm_mutex_reset(&dm_gate);
    if (the_loop) {
        dm_bell_close(the_loop->alarm.bell);
        the_loop->alarm.bell = DM_BELL_GONE; /* a call that the fork interrupted may still ring */
    }
    the_loop = own_loop = NULL;
    dm_alarm_is_own = false;
}
