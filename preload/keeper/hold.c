/* SPDX-License-Identifier: BSD-2-Clause */
#include "hold.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <stdio.h>
#include <string.h>

#include "errand.h"
#include "say.h"

/* Enough for the library's calls, even with a sanitizer. The usual 8 MiB may exceed a limit. */
#define STACK_BYTES (1 << 20)

/*
 * Guards phase, error, sentence and backings of all holds. Not held while the library is called. May be taken while the
 * guard of holds.c is held.
 */
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;

/* What the thread starts with. It frees this, or hold_start() does if no thread was made. */
struct life {
    struct hold *hold;
    void (*on_granted)(void *hold);
    void (*on_over)(void *hold);
};

/* ---- in the thread ----------------------------------------------------------------------- */

static void set_phase(struct hold *hold, enum hold_phase phase)
{
    pthread_mutex_lock(&guard);
    hold->phase = phase;
    pthread_mutex_unlock(&guard);
}

/*
 * A normal mutex, not a robust one: the kernel's list shows when a holder on this host has ended, and a lock file has
 * no state to repair.
 */
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

/*
 * The first try tells us whether there is a server; waiting for one might never end. If there is, we wait for the lock,
 * and continue to wait if the server goes away.
 */
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

/*
 * A program that locks a file knows EBUSY and ENOLCK, so every other error of the library becomes ENOLCK, and the
 * sentence keeps the reason. Called by the thread whose call failed, because the sentence belongs to the thread.
 */
static void note_failure(struct hold *hold, int error)
{
    pthread_mutex_lock(&guard);
    hold->error = error == EBUSY ? EBUSY : ENOLCK;
    snprintf(hold->sentence, sizeof hold->sentence, "%.150s (%.60s): %s", hold->wish.path, hold->wish.name,
             dmutex_strerror_np());
    pthread_mutex_unlock(&guard);
}

/*
 * EPERM means that the hold was lost, which has been reported. Other results can be ignored, too: the library repeats a
 * release that was not answered.
 */
static void give_back(struct hold *hold)
{
    if (!hold->is_local)
        dmutex_unlock(&hold->mutex);
}

/*
 * Turns ASKING into HELD. False if the hold was lost before: hold_lose() has recorded a loss of this token or of a
 * later one, which is granted only after the end of this hold. The record is used once, so that each new try needs a
 * new loss.
 */
static bool enter(struct hold *hold)
{
    uint64_t token = 0;
    bool is_held;

    if (!hold->is_local)
        dmutex_token_np(&hold->mutex, &token);
    pthread_mutex_lock(&guard);
    is_held = hold->is_local || token > hold->lost_token;
    if (is_held)
        hold->phase = HOLD_HELD;
    hold->token = token;
    hold->lost_token = 0;
    pthread_mutex_unlock(&guard);
    return is_held;
}

/*
 * If a hold was lost before HELD, gives it back and asks again: no process knows yet that the file is locked, so none
 * needs to learn of the loss.
 */
static bool get(struct hold *hold)
{
    int error = make_mutex(hold);

    if (!error)
        error = take(hold);
    while (!error && !enter(hold)) {
        give_back(hold);
        error = take(hold);
    }
    if (error)
        note_failure(hold, error);
    return !error;
}

static void await_end(struct hold *hold)
{
    while (sem_wait(&hold->end) < 0 && errno == EINTR)
        continue;
}

/*
 * The former hold is joined here and not in the main loop, because its unlock may take up to command_timeout. The join
 * comes before the first request, so that the new request queues after the waiters of other hosts (rule 5 of "Lock
 * files" in doc/design/preload.md).
 *
 * Errands run in the order in which they were sent, so on_granted always comes before on_over. After the last errand
 * the hold belongs to the main loop alone, which frees it.
 */
static void *live(void *user)
{
    struct life life = *(struct life *)user;
    struct hold *hold = life.hold;

    g_free(user);
    if (hold->has_former)
        pthread_join(hold->former, NULL);
    if (get(hold)) {
        errand_send(life.on_granted, hold);
        await_end(hold);
        give_back(hold);
    }
    dmutex_destroy(&hold->mutex);
    set_phase(hold, HOLD_OVER);
    errand_send(life.on_over, hold);
    return NULL;
}

/* ---- for the main loop ------------------------------------------------------------------- */

/*
 * Copies the texts, because those of the wish are in the question's buffer. Without memory GLib ends the keeper; then
 * the leases end the holds.
 */
struct hold *hold_new(const struct wish *wish, const struct backing *backing)
{
    struct hold *hold = g_new0(struct hold, 1);

    hold->wish = *wish;
    hold->wish.name = g_strdup(wish->name);
    hold->wish.path = g_strdup(wish->path);
    hold->backings[backing_of(&wish->lock)] = *backing;
    hold->file_watch = -1;
    sem_init(&hold->end, 0, 0);
    return hold;
}

int hold_start(struct hold *hold, void (*on_granted)(void *hold), void (*on_over)(void *hold))
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

/* Posts once even if there are several reasons: hold_revive() takes exactly one post back. */
void hold_end(struct hold *hold)
{
    if (!hold->is_ending)
        sem_post(&hold->end);
    hold->is_ending = true;
}

/* The semaphore decides between the main loop and the thread: only one of them gets the post. */
bool hold_revive(struct hold *hold)
{
    if (!hold->is_ending || sem_trywait(&hold->end) < 0)
        return false;
    hold->is_ending = false;
    return true;
}

static void dismiss(struct backing *backing)
{
    holder_forget(&backing->known);
    witness_dismiss(&backing->witness);
    voice_dismiss(&backing->voice);
}

void hold_free(struct hold *hold)
{
    for (int i = 0; i < BACKINGS; i++)
        dismiss(&hold->backings[i]);
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

/* Takes the guard, because the main loop may change the backings while the library's thread looks for the holders. */
static void copy_backings(const struct hold *hold, struct loss *loss)
{
    for (int i = 0; i < BACKINGS; i++) {
        const struct backing *backing = &hold->backings[i];
        int fd = backing->is_there && backing->voice.fd ? fcntl(backing->voice.fd, F_DUPFD_CLOEXEC, 0) : -1;

        if (backing->is_there)
            loss->locks[loss->count++] = backing->lock;
        if (fd >= 0)
            loss->fds[loss->voices++] = fd;
    }
}

/*
 * The loss may come before the hold's thread has returned from dmutex_lock() and set HELD. So a hold that is asking
 * keeps the token for enter(): the token of any lost hold with this name, because its own is not known here.
 */
bool hold_lose(struct hold *hold, uint64_t token, struct loss *ret_loss)
{
    bool is_lost;

    *ret_loss = (struct loss){ .count = 0 };
    pthread_mutex_lock(&guard);
    is_lost = hold->phase == HOLD_HELD && hold->token == token;
    if (is_lost) {
        hold->phase = HOLD_LOST;
        copy_backings(hold, ret_loss);
    }
    if (hold->phase == HOLD_ASKING && token > hold->lost_token)
        hold->lost_token = token;
    pthread_mutex_unlock(&guard);
    return is_lost;
}

static bool is_same_file(const struct kernel_lock *one, const struct kernel_lock *other)
{
    return strcmp(one->inode, other->inode) == 0 && one->device == other->device && one->number == other->number;
}

/* Reads the backings without the guard, which the main loop may do: no other thread writes them. */
bool hold_is_of(const struct hold *hold, const struct kernel_lock *lock)
{
    for (int i = 0; i < BACKINGS; i++)
        if (hold->backings[i].is_there && is_same_file(&hold->backings[i].lock, lock))
            return true;
    return false;
}

/* Closes the former descriptors without the guard: only the main loop has them, and a loss has copies. */
static void set_backing(struct hold *hold, int place, const struct backing *backing)
{
    struct backing former = hold->backings[place];

    pthread_mutex_lock(&guard);
    hold->backings[place] = *backing;
    pthread_mutex_unlock(&guard);
    dismiss(&former);
}

void hold_add_backing(struct hold *hold, const struct backing *backing)
{
    set_backing(hold, backing_of(&backing->lock), backing);
}

void hold_remove_backing(struct hold *hold, int place)
{
    struct backing none = { .is_there = false };

    set_backing(hold, place, &none);
}

void hold_look_at_voice(struct hold *hold, int place)
{
    pthread_mutex_lock(&guard);
    voice_look(&hold->backings[place].voice);
    pthread_mutex_unlock(&guard);
}
