/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A thread takes the signal, lets the library give up the place as at process exit, and then raises the signal, so that
 * the parent sees which one it was.
 */
#include "leaving.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <unistd.h>

#include "api/view.h"
#include "base/relay.h"

/*
 * Ends the taker. pthread_cancel() would need libgcc_s, which an image that contains only what ldd(1) shows does not
 * have.
 */
#define ENOUGH SIGRTMIN

static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };

static sigset_t taken, before;
static pthread_t taker;
static bool has_taker;

/* The thread that waits for the lock never returns from the wait after this. */
static void *take(void *unused)
{
    int number;

    if (sigwait(&taken, &number) == 0 && number != ENOUGH) {
        dm_view_leave();
        _exit(dm_relay_end(number)); /* returns if we are process 1 of a container, which no signal ends */
    }
    return unused;
}

/* Leaves out ignored signals: when blocked, they would be queued, and taken. */
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

/* If the thread cannot be made, the signals end the process at once. */
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
