/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All uses of mutexes and condition variables in a source, as ordinary C and C++ of any age. test_compiles.sh puts
 * other beginnings in front; the program never runs.
 *
 * BARE: read with <pthread.h> as strict C sees the header, without types of mutexes.
 */
#include <pthread.h>
#include <stddef.h>
#include <time.h>

static pthread_mutex_t plain = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t several[2] = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER };
static pthread_mutex_t inner = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_mutex_t checked = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static pthread_mutex_t adaptive = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;

struct account {
    int balance;
    pthread_mutex_t guard;
    pthread_cond_t changed;
};
static struct account account = { 0, PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER };

extern pthread_mutex_t elsewhere; /* as a header of the program declares the mutex */
int use(struct account *user, const struct timespec *until);
int use_attributes(pthread_mutexattr_t *attr, pthread_condattr_t *other);
int use_kinds(pthread_mutexattr_t *attr);
int set_up(struct account *user, const pthread_mutexattr_t *attr);

static void give_back(void *mutex)
{
    pthread_mutex_unlock((pthread_mutex_t *)mutex);
}

int use(struct account *user, const struct timespec *until)
{
    pthread_mutex_t local = PTHREAD_MUTEX_INITIALIZER;
    int (*locks)(pthread_mutex_t *) = pthread_mutex_lock;
    int errors = locks(&local);

    errors += pthread_mutex_lock(&plain);
    errors += pthread_mutex_trylock(&several[0]) + pthread_mutex_trylock(&several[1]);
    errors += pthread_mutex_timedlock(&inner, until);
    errors += pthread_mutex_lock(&checked) + pthread_mutex_lock(&adaptive);
    errors += pthread_mutex_lock(&user->guard);
    pthread_cleanup_push(give_back, &user->guard);
    while (user->balance == 0 && errors == 0)
        errors += pthread_cond_wait(&user->changed, &user->guard);
    errors += pthread_cond_timedwait(&filled, &user->guard, until);
    pthread_cleanup_pop(1);
    errors += pthread_cond_signal(&filled) + pthread_cond_broadcast(&account.changed);
    return errors + pthread_mutex_unlock(&local) + pthread_mutex_consistent(&elsewhere);
}

int use_attributes(pthread_mutexattr_t *attr, pthread_condattr_t *other)
{
    int value = 0;
    clockid_t watch = 0;

    return pthread_mutexattr_init(attr) + pthread_mutexattr_gettype(attr, &value) +
           pthread_mutexattr_getrobust(attr, &value) + pthread_mutexattr_getpshared(attr, &value) +
           pthread_mutexattr_setpshared(attr, PTHREAD_PROCESS_SHARED) + pthread_mutexattr_getprotocol(attr, &value) +
           pthread_mutexattr_setprotocol(attr, value) + pthread_mutexattr_getprioceiling(attr, &value) +
           pthread_mutexattr_setprioceiling(attr, value) + pthread_mutexattr_destroy(attr) +
           pthread_condattr_init(other) + pthread_condattr_getclock(other, &watch) +
           pthread_condattr_setclock(other, watch) + pthread_condattr_getpshared(other, &value) +
           pthread_condattr_setpshared(other, PTHREAD_PROCESS_PRIVATE) + pthread_condattr_destroy(other);
}

int set_up(struct account *user, const pthread_mutexattr_t *attr)
{
    return pthread_mutex_init(&user->guard, NULL) + pthread_mutex_init(&user->guard, attr) +
           pthread_cond_init(&user->changed, NULL) + pthread_cond_destroy(&user->changed) +
           pthread_mutex_destroy(&user->guard);
}

#ifndef BARE
int use_kinds(pthread_mutexattr_t *attr)
{
    return pthread_mutexattr_settype(attr, PTHREAD_MUTEX_RECURSIVE) +
           pthread_mutexattr_settype(attr, PTHREAD_MUTEX_ERRORCHECK) +
           pthread_mutexattr_setrobust(attr, PTHREAD_MUTEX_ROBUST) +
           pthread_mutexattr_setprotocol(attr, PTHREAD_PRIO_NONE);
}
#endif
