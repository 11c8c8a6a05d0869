/* SPDX-License-Identifier: BSD-2-Clause */
/* The condition variable calls, in the form that the functions of pthread and of C11 need. */
#ifndef DM_PRELOAD_COND_H
#define DM_PRELOAD_COND_H

#include <pthread.h>
#include <stdbool.h>
#include <time.h>

/* The end of a wait; `by` says which clock counts. */
struct cond_deadline {
    enum { WAIT_ENDLESS, WAIT_BY_CONDITION, WAIT_BY_CLOCK } by;
    clockid_t clock;
    const struct timespec *at;
};

/* As pthread_cond_wait(), _timedwait() and _clockwait(), and so on. */
int cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex, struct cond_deadline deadline);
int cond_wake(pthread_cond_t *condition, bool is_broadcast);

#endif
