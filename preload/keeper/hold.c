/* SPDX-License-Identifier: BSD-2-Clause */
#include "hold.h"

#include <errno.h>
#include <glib.h>
#include <stdio.h>

#include "say.h"

/* Enough for the library's calls, also with a sanitizer; the usual 8 MiB may be more than a limit allows. */
#define STACK_BYTES (1 << 20)

/* Of phase, error, sentence and wish.lock of all holds.  Not held while the library is called. */
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;

/* What a thread has to tell the main loop. */
struct report {
    struct hold *hold;
    void (*tell)(struct hold *hold);
};

struct life {
    struct hold *hold;
    void (*on_granted)(struct hold *hold);
    void (*on_over)(struct hold *hold);
};

/* ---- in the thread ----------------------------------------------------------------------- */

static gboolean on_report(gpointer user)
{
    struct report *report = user;

    report->tell(report->hold);
    return G_SOURCE_REMOVE;
}

static void tell_main_loop(struct hold *hold, void (*tell)(struct hold *hold))
{
    struct report *report = g_new(struct report, 1);

    *report = (struct report){ .hold = hold, .tell = tell };
    g_idle_add_full(G_PRIORITY_DEFAULT, on_report, report, g_free);
}

static void set_phase(struct hold *hold, enum hold_phase phase)
{
    pthread_mutex_lock(&guard);
    hold->phase = phase;
    pthread_mutex_unlock(&guard);
}

static int make_mutex(struct hold *hold)
{
    const struct wish *wish = &hold->wish;
    dmutexattr_t attributes;

    dmutexattr_init(&attributes);
    if (wish->lease_ms)
        dmutexattr_setlease_np(&attributes, wish->lease_ms);
    dmutexattr_setlinger_np(&attributes, wish->linger_ms);
    return dmutex_init_np(&hold->mutex, wish->name, &attributes);
}

/* The first try tells whether there is a server; waiting for one would not end. */
static int take(struct hold *hold)
{
    int error = EBUSY;

    if (hold->wish.is_try || hold->wish.on_down != DOWN_BLOCK)
        error = dmutex_trylock(&hold->mutex);
    if (error == EBUSY && !hold->wish.is_try)
        error = dmutex_lock(&hold->mutex);
    if (error == ENOLCK && hold->wish.on_down == DOWN_LOCAL) {
        say(DMUTEX_LOG_WARN, "%s is locked on this host only: %s", hold->wish.path, dmutex_strerror_np());
        hold->is_local = true;
        error = 0;
    }
    return error;
}

static void note_failure(struct hold *hold, int error)
{
    pthread_mutex_lock(&guard);
    hold->error = error == EBUSY ? EBUSY : ENOLCK;
    snprintf(hold->sentence, sizeof hold->sentence, "%.150s (%.60s): %s", hold->wish.path, hold->wish.name,
             dmutex_strerror_np());
    pthread_mutex_unlock(&guard);
}

static bool get(struct hold *hold)
{
    int error = make_mutex(hold);

    if (!error)
        error = take(hold);
    if (error)
        note_failure(hold, error);
    else
        set_phase(hold, HOLD_HELD);
    return !error;
}

/* EPERM: it was lost, which has been told. */
static void give_back(struct hold *hold)
{
    if (!hold->is_local)
        dmutex_unlock(&hold->mutex);
}

static void await_end(struct hold *hold)
{
    while (sem_wait(&hold->end) < 0 && errno == EINTR)
        continue;
}

static void *live(void *user)
{
    struct life life = *(struct life *)user;
    struct hold *hold = life.hold;

    g_free(user);
    if (hold->has_former)
        pthread_join(hold->former, NULL);
    if (get(hold)) {
        tell_main_loop(hold, life.on_granted);
        await_end(hold);
        give_back(hold);
    }
    dmutex_destroy(&hold->mutex);
    set_phase(hold, HOLD_OVER);
    tell_main_loop(hold, life.on_over);
    return NULL;
}

/* ---- for the main loop ------------------------------------------------------------------- */

struct hold *hold_new(const struct wish *wish)
{
    struct hold *hold = g_new0(struct hold, 1);

    hold->wish = *wish;
    hold->wish.name = g_strdup(wish->name);
    hold->wish.path = g_strdup(wish->path);
    hold->file_watch = -1;
    sem_init(&hold->end, 0, 0);
    return hold;
}

int hold_start(struct hold *hold, void (*on_granted)(struct hold *hold), void (*on_over)(struct hold *hold))
{
    struct life *life = g_new(struct life, 1);
    pthread_attr_t attributes;
    int error;

    *life = (struct life){ .hold = hold, .on_granted = on_granted, .on_over = on_over };
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    error = pthread_create(&hold->thread, &attributes, live, life);
    pthread_attr_destroy(&attributes);
    if (error)
        g_free(life);
    return error;
}

void hold_end(struct hold *hold)
{
    if (!hold->is_ending)
        sem_post(&hold->end);
    hold->is_ending = true;
}

bool hold_revive(struct hold *hold)
{
    if (!hold->is_ending || sem_trywait(&hold->end) < 0)
        return false;
    hold->is_ending = false;
    return true;
}

void hold_free(struct hold *hold)
{
    holder_forget(&hold->known);
    sem_destroy(&hold->end);
    g_free((char *)hold->wish.name);
    g_free((char *)hold->wish.path);
    g_free(hold);
}

enum hold_phase hold_phase(struct hold *hold)
{
    enum hold_phase phase;

    pthread_mutex_lock(&guard);
    phase = hold->phase;
    pthread_mutex_unlock(&guard);
    return phase;
}

bool hold_lose(struct hold *hold, struct kernel_lock *ret_lock)
{
    bool is_held;

    pthread_mutex_lock(&guard);
    is_held = hold->phase == HOLD_HELD;
    if (is_held)
        hold->phase = HOLD_LOST;
    *ret_lock = hold->wish.lock;
    pthread_mutex_unlock(&guard);
    return is_held;
}

void hold_hand_on(struct hold *hold, const struct kernel_lock *lock)
{
    pthread_mutex_lock(&guard);
    hold->wish.lock = *lock;
    pthread_mutex_unlock(&guard);
}
