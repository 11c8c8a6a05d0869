/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/relay.h"

#include <stddef.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/attrs.h"

sigset_t dm_relay_signals(void)
{
    static const int numbers[] = { SIGCHLD, SIGHUP,  SIGINT,  SIGQUIT, SIGTERM,
                                   SIGUSR1, SIGUSR2, SIGALRM, SIGCONT, SIGWINCH };
    sigset_t set;

    sigemptyset(&set);
    for (size_t i = 0; i < DM_COUNT(numbers); i++)
        sigaddset(&set, numbers[i]);
    return set;
}

int dm_relay_end(int status)
{
    int number = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    sigset_t only;

    if (!number)
        return WEXITSTATUS(status);
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* the core file, if any, is the command's */
    sigemptyset(&only);
    sigaddset(&only, number);
    signal(number, SIG_DFL);
    pthread_sigmask(SIG_UNBLOCK, &only, NULL);
    raise(number);
    return 128 + number; /* a signal that does not end a process, or cannot be raised */
}
