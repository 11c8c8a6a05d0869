/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/thread.h"

#include <pthread.h>
#include <signal.h>
#include <stddef.h>

#define STACK_MIN ((size_t)256 * 1024)

static void describe(pthread_attr_t *attributes)
{
    size_t size = 0;

    pthread_attr_setdetachstate(attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_getstacksize(attributes, &size);
    if (size < STACK_MIN)
        pthread_attr_setstacksize(attributes, STACK_MIN);
}

int dm_thread_start(void *(*run)(void *), void *user)
{
    pthread_t thread;
    pthread_attr_t attributes;
    sigset_t all, mask;
    int error = pthread_attr_init(&attributes);

    if (error)
        return error;
    describe(&attributes);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &mask);
    error = pthread_create(&thread, &attributes, run, user);
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    pthread_attr_destroy(&attributes);
    return error;
}
