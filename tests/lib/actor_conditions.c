/* SPDX-License-Identifier: BSD-2-Clause */
/* The condition commands of an actor. No cmocka here. */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "actor_parts.h"
#include "wait.h"

/* ---- objects ----------------------------------------------------------------------------- */

struct condition {
    struct condition *next;
    char *handle;
    dcond_t cond;
};

static struct condition *conditions;
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;

static struct condition *find(const char *handle)
{
    struct condition *condition = conditions;

    while (condition && strcmp(condition->handle, handle) != 0)
        condition = condition->next;
    return condition;
}

/* The condition that a command names; the handle is its name. */
static dcond_t *cond_of(const char *handle)
{
    struct condition *condition;

    pthread_mutex_lock(&guard);
    condition = find(handle);
    if (!condition) {
        condition = calloc(1, sizeof *condition);
        condition->handle = strdup(handle);
        dcond_init_np(&condition->cond, handle, NULL);
        condition->next = conditions;
        conditions = condition;
    }
    pthread_mutex_unlock(&guard);
    return &condition->cond;
}

/* ---- single calls ------------------------------------------------------------------------ */

void actor_do_wait(struct call *call)
{
    actor_answer_result(call, dcond_wait(cond_of(call->words[1]), actor_mutex(call->words[2])));
}

void actor_do_timedwait(struct call *call)
{
    struct timespec until = wait_time_in_ms(CLOCK_REALTIME, strtoll(call->words[3], NULL, 10));

    actor_answer_result(call, dcond_timedwait(cond_of(call->words[1]), actor_mutex(call->words[2]), &until));
}

void actor_do_signal(struct call *call)
{
    dcond_t *cond = cond_of(call->words[1]);
    bool is_broadcast = strcmp(call->words[0], "broadcast") == 0;

    actor_answer_result(call, is_broadcast ? dcond_broadcast(cond) : dcond_signal(cond));
}

/* ---- many -------------------------------------------------------------------------------- */

struct game {
    int fd; /* of the page */
    dcond_t *cond;
    dmutex_t *mutex;
    int mine; /* it is my turn when the number is even: 0, odd: 1 */
};

static struct game game_of(const struct call *call)
{
    return (struct game){ .fd = actor_open_page(call->words[1]),
                          .cond = cond_of(call->words[3]),
                          .mutex = actor_mutex(call->words[4]) };
}

/* Gives the mutex back after a call that has left it owned. Returns the call's result. */
static int leave(const struct game *game, int result)
{
    int unlocked = dmutex_unlock(game->mutex);

    return result ? result : unlocked;
}

/* Waits once and counts the return. */
static void *come_and_wait(void *user)
{
    const struct game *game = user;
    int result = dmutex_lock(game->mutex);

    if (!result)
        result = dcond_wait(game->cond, game->mutex);
    if (!result)
        result = leave(game, actor_add_one(game->fd));
    return (void *)(intptr_t)result;
}

void actor_do_crowd(struct call *call)
{
    struct game game = game_of(call);

    actor_answer_result(call, actor_in_threads(atoi(call->words[2]), come_and_wait, &game));
    close(game.fd);
}

static int await_turn(const struct game *game)
{
    struct actor_page page = { 0, 0 };

    for (;;) {
        int result = pread(game->fd, &page, sizeof page, 0) < 0 ? errno : 0;

        if (result || page.number % 2 == game->mine)
            return result;
        result = dcond_wait(game->cond, game->mutex);
        if (result)
            return result;
    }
}

/* ENOLCK means that the server gave no answer in time; then the signal must be repeated. */
static int signal_surely(dcond_t *cond)
{
    int result;

    do
        result = dcond_signal(cond);
    while (result == ENOLCK);
    return result;
}

/* Signals while owning the mutex, or after the unlock: both are allowed. */
static int take_turn(const struct game *game, bool signals_inside)
{
    int result = dmutex_lock(game->mutex);

    if (result)
        return result;
    result = await_turn(game);
    if (!result)
        result = actor_add_one(game->fd);
    if (!result && signals_inside)
        result = signal_surely(game->cond);
    result = leave(game, result);
    return result || signals_inside ? result : signal_surely(game->cond);
}

void actor_do_turns(struct call *call)
{
    struct game game = game_of(call);
    long turns = atol(call->words[2]);
    int result = 0;

    game.mine = atoi(call->words[5]);
    for (long i = 0; i < turns && !result; i++)
        result = take_turn(&game, i % 2 == 0);
    close(game.fd);
    actor_answer_result(call, result);
}
