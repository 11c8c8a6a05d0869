/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls of mutexes and condition variables, as commands of legacy.c. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>
#include <unistd.h>

#include "legacy.h"

/* ---- mutexes ----------------------------------------------------------------------------- */

static void do_lock(struct call *call)
{
    answer(call, pthread_mutex_lock(object_of(call, 1)));
}
static void do_trylock(struct call *call)
{
    answer(call, pthread_mutex_trylock(object_of(call, 1)));
}
static void do_unlock(struct call *call)
{
    answer(call, pthread_mutex_unlock(object_of(call, 1)));
}
static void do_consistent(struct call *call)
{
    answer(call, pthread_mutex_consistent(object_of(call, 1)));
}
static void do_destroy(struct call *call)
{
    answer(call, pthread_mutex_destroy(object_of(call, 1)));
}

static void do_timedlock(struct call *call)
{
    struct timespec until = in_ms(CLOCK_REALTIME, call->words[2]);

    answer(call, pthread_mutex_timedlock(object_of(call, 1), &until));
}

static void do_clocklock(struct call *call)
{
    struct timespec until = in_ms(CLOCK_MONOTONIC, call->words[2]);

    answer(call, pthread_mutex_clocklock(object_of(call, 1), CLOCK_MONOTONIC, &until));
}

static void do_init(struct call *call)
{
    pthread_mutexattr_t attr;

    pthread_mutexattr_init(&attr);
    if (has_word(call, "recursive"))
        pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
    if (has_word(call, "errorcheck"))
        pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK);
    if (has_word(call, "robust"))
        pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
    if (has_word(call, "shared"))
        pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    if (has_word(call, "inherit"))
        pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
    if (has_word(call, "protect"))
        pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_PROTECT);
    answer(call, pthread_mutex_init(object_of(call, 1), &attr));
}

/* ---- conditions -------------------------------------------------------------------------- */

static void do_cinit(struct call *call)
{
    pthread_condattr_t attr;

    pthread_condattr_init(&attr);
    if (has_word(call, "monotonic"))
        pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    if (has_word(call, "shared"))
        pthread_condattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    answer(call, pthread_cond_init(object_of(call, 1), &attr));
}

static void do_cdestroy(struct call *call)
{
    answer(call, pthread_cond_destroy(object_of(call, 1)));
}
static void do_signal(struct call *call)
{
    answer(call, pthread_cond_signal(object_of(call, 1)));
}
static void do_broadcast(struct call *call)
{
    answer(call, pthread_cond_broadcast(object_of(call, 1)));
}
static void do_wait(struct call *call)
{
    answer(call, pthread_cond_wait(object_of(call, 1), object_of(call, 2)));
}

/* Waits until the time; ETIME: the wait returned ETIMEDOUT too early. */
static int wait_until_time(struct call *call, struct timespec *until, clockid_t clock)
{
    int result = pthread_cond_timedwait(object_of(call, 1), object_of(call, 2), until);
    struct timespec now;

    clock_gettime(clock, &now);
    if (now.tv_sec < until->tv_sec || (now.tv_sec == until->tv_sec && now.tv_nsec < until->tv_nsec))
        return result == ETIMEDOUT ? ETIME : result;
    return result;
}

/* A condition made `monotonic` is timed by CLOCK_MONOTONIC. */
static clockid_t clock_of(const struct call *call)
{
    return has_word(call, "monotonic") ? CLOCK_MONOTONIC : CLOCK_REALTIME;
}

static void do_timedwait(struct call *call)
{
    struct timespec until = in_ms(clock_of(call), call->words[3]);

    answer(call, wait_until_time(call, &until, clock_of(call)));
}

static void do_timeout(struct call *call)
{
    struct timespec until = in_ms(clock_of(call), call->words[3]);
    int result = pthread_mutex_lock(object_of(call, 2));

    while (!result)
        result = wait_until_time(call, &until, clock_of(call));
    answer(call, pthread_mutex_unlock(object_of(call, 2)) ? ENOTRECOVERABLE : result);
}

static void do_clockwait(struct call *call)
{
    struct timespec until = in_ms(CLOCK_MONOTONIC, call->words[3]);

    answer(call, pthread_cond_clockwait(object_of(call, 1), object_of(call, 2), CLOCK_MONOTONIC, &until));
}

static long number_in(const char *path)
{
    char text[32] = "";
    int fd = open(path, O_RDONLY);

    if (fd < 0 || read(fd, text, sizeof text - 1) < 0)
        abort();
    close(fd);
    return strtol(text, NULL, 10);
}

static void do_until(struct call *call)
{
    long wanted = strtol(call->words[4], NULL, 10);
    int result = pthread_mutex_lock(object_of(call, 2));

    while (!result && number_in(call->words[3]) != wanted)
        result = pthread_cond_wait(object_of(call, 1), object_of(call, 2));
    answer(call, result ? result : pthread_mutex_unlock(object_of(call, 2)));
}

static void do_put(struct call *call)
{
    int result = pthread_mutex_lock(object_of(call, 2));
    int fd = open(call->words[3], O_WRONLY | O_TRUNC);

    if (write(fd, call->words[4], strlen(call->words[4])) < 0)
        abort();
    close(fd);
    result = result ? result : pthread_cond_broadcast(object_of(call, 1));
    answer(call, result ? result : pthread_mutex_unlock(object_of(call, 2)));
}

static void unlock_in_handler(void *user)
{
    struct call *call = user;

    answer(call, pthread_mutex_unlock(object_of(call, 2)));
}

static void do_guarded(struct call *call)
{
    int result = pthread_mutex_lock(object_of(call, 2));

    pthread_cleanup_push(unlock_in_handler, call);
    while (!result)
        result = pthread_cond_wait(object_of(call, 1), object_of(call, 2));
    pthread_cleanup_pop(1);
    answer(call, result);
}

/* ---- other names of the functions -------------------------------------------------------- */

static void do_old(struct call *call)
{
    char name[64];
    int (*function)(pthread_mutex_t *);

    snprintf(name, sizeof name, "__pthread_mutex_%s", call->words[1]);
    *(void **)&function = dlsym(RTLD_DEFAULT, name);
    answer(call, function ? function(object_of(call, 2)) : ENOSYS);
}

static void answer_c11(struct call *call, int result)
{
    static const char *const names[] = {
        [thrd_success] = "0",    [thrd_busy] = "EBUSY",         [thrd_error] = "error",
        [thrd_nomem] = "ENOMEM", [thrd_timedout] = "ETIMEDOUT",
    };

    snprintf(call->answer, ROOM, "%s", names[result]);
}

static void do_mtx(struct call *call)
{
    const char *what = call->words[1];
    mtx_t *mutex = object_of(call, 2);
    int result = thrd_success;

    if (strcmp(what, "init") == 0)
        result = mtx_init(mutex, has_word(call, "recursive") ? mtx_plain | mtx_recursive : mtx_timed);
    else if (strcmp(what, "lock") == 0)
        result = mtx_lock(mutex);
    else if (strcmp(what, "trylock") == 0)
        result = mtx_trylock(mutex);
    else if (strcmp(what, "unlock") == 0)
        result = mtx_unlock(mutex);
    else if (strcmp(what, "destroy") == 0)
        mtx_destroy(mutex);
    else if (strcmp(what, "timedlock") == 0) {
        struct timespec until = in_ms(CLOCK_REALTIME, call->words[3]);

        result = mtx_timedlock(mutex, &until);
    }
    answer_c11(call, result);
}

static void do_cnd(struct call *call)
{
    const char *what = call->words[1];
    cnd_t *condition = object_of(call, 2);
    int result = thrd_success;

    if (strcmp(what, "init") == 0)
        result = cnd_init(condition);
    else if (strcmp(what, "wait") == 0)
        result = cnd_wait(condition, object_of(call, 3));
    else if (strcmp(what, "signal") == 0)
        result = cnd_signal(condition);
    else if (strcmp(what, "broadcast") == 0)
        result = cnd_broadcast(condition);
    else if (strcmp(what, "destroy") == 0)
        cnd_destroy(condition);
    else if (strcmp(what, "timedwait") == 0) {
        struct timespec until = in_ms(CLOCK_REALTIME, call->words[4]);

        result = cnd_timedwait(condition, object_of(call, 3), &until);
    }
    answer_c11(call, result);
}

const struct command calls[] = {
    { "lock", do_lock },
    { "trylock", do_trylock },
    { "unlock", do_unlock },
    { "consistent", do_consistent },
    { "destroy", do_destroy },
    { "timedlock", do_timedlock },
    { "clocklock", do_clocklock },
    { "init", do_init },
    { "cinit", do_cinit },
    { "cdestroy", do_cdestroy },
    { "signal", do_signal },
    { "broadcast", do_broadcast },
    { "wait", do_wait },
    { "timedwait", do_timedwait },
    { "clockwait", do_clockwait },
    { "timeout", do_timeout },
    { "until", do_until },
    { "put", do_put },
    { "guarded", do_guarded },
    { "old", do_old },
    { "mtx", do_mtx },
    { "cnd", do_cnd },
    { NULL, NULL },
};
