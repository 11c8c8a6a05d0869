/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A thread takes the signal, lets the library give the place back as at the end of a process, and then raises the
 * signal, so that the parent sees which signal it was.
 */
#include "leaving.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <unistd.h>

#include "api/view.h"
#include "base/relay.h"

/* Ends the taker.  By pthread_cancel() it would need libgcc_s, which images with only what ldd(1) shows do not have. */
#define ENOUGH SIGRTMIN

static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };

static sigset_t taken, before;
static pthread_t taker;
static bool has_taker;

/* The thread that waits for the lock does not return from there any more. */
static void *take(void *unused)
{
    int number;

    if (sigwait(&taken, &number) == 0 && number != ENOUGH) {
        dm_view_leave();
        _exit(dm_relay_end(number)); /* comes back in process 1 of a container, which no signal ends */
    }
    return unused;
}

/* An ignored signal that is blocked would be kept, and taken. */
static void choose(sigset_t *set)
{
    struct sigaction action;

    sigemptyset(set);
    sigaddset(set, ENOUGH);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if (sigaction(numbers[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
            sigaddset(set, numbers[i]);
    }
}

/* Without a thread the signals end the process at once. */
void leaving_begin(void)
{
    choose(&taken);
    pthread_sigmask(SIG_BLOCK, &taken, &before);
    has_taker = pthread_create(&taker, NULL, take, NULL) == 0;
    if (!has_taker)
        pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void leaving_end(void)
{
    if (!has_taker)
        return;
    pthread_kill(taker, ENOUGH); /* is in sigwait(), or ends the process */
    pthread_join(taker, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}
