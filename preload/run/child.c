/* SPDX-License-Identifier: BSD-2-Clause */
#include "child.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/relay.h"
#include "refuse.h"

/*
 * Starts the program with the signal mask that this process had. Uses posix_spawn(), not fork(), because by now the
 * library has a thread here, and fork handlers.
 */
static int start(const char *path, char *const *command, char *const *environment, const sigset_t *mask, pid_t *ret_pid)
{
    posix_spawnattr_t attr;
    int error = posix_spawnattr_init(&attr);

    if (error)
        return error;
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setsigmask(&attr, mask);
    error = posix_spawn(ret_pid, path, NULL, &attr, command, environment);
    posix_spawnattr_destroy(&attr);
    return error;
}

/*
 * False while the child runs. Stops when the child stops, as a shell with job control expects of a program that it has
 * started.
 */
static bool has_ended(pid_t pid, int *ret_status)
{
    while (waitpid(pid, ret_status, WNOHANG | WUNTRACED) == pid) {
        if (!WIFSTOPPED(*ret_status))
            return true;
        raise(SIGSTOP);
    }
    return false;
}

/*
 * A signal from the terminal (si_code > 0: from the kernel) goes to the whole group, so the child has it already.
 * SIGCONT is always passed on, because a second one has no effect.
 */
static void pass_on(pid_t pid, const siginfo_t *info)
{
    if (info->si_signo == SIGCONT || info->si_code <= 0)
        kill(pid, info->si_signo);
}

/* SIGCHLD only ends the wait: has_ended() asks the kernel, because one SIGCHLD may stand for several changes. */
static void await(pid_t pid, const sigset_t *signals, int *ret_status)
{
    while (!has_ended(pid, ret_status)) {
        siginfo_t info;

        if (sigwaitinfo(signals, &info) > 0 && info.si_signo != SIGCHLD)
            pass_on(pid, &info);
    }
}

bool child_run(const char *path, char *const *command, char *const *environment, int *ret_status, GError **error)
{
    sigset_t signals = dm_relay_signals(), mask;
    int reason;
    pid_t pid;

    signal(SIGCHLD, SIG_DFL); /* if our parent ignored SIGCHLD, no wait would succeed */
    pthread_sigmask(SIG_BLOCK, &signals, &mask);
    reason = start(path, command, environment, &mask, &pid);
    if (reason == 0)
        await(pid, &signals, ret_status);
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    if (reason)
        return refuse(error, REFUSE_CANNOT_RUN, "%s: %s", path, g_strerror(reason));
    return true;
}
