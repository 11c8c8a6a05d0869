/* SPDX-License-Identifier: BSD-2-Clause */
#include "command.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/relay.h"
#include "tool.h"

/*
 * The signal of death is set before the look at the parent: an earlier death is seen here, and a later one sends the
 * signal.  The kernel keeps the setting over execve().
 */
static _Noreturn void become(char *const *command, int signal_of_death, pid_t parent, const sigset_t *mask)
{
    int reason;

    if (signal_of_death) {
        prctl(PR_SET_PDEATHSIG, signal_of_death);
        if (getppid() != parent)
            _exit(TOOL_LOST);
    }
    sigprocmask(SIG_SETMASK, mask, NULL);
    execvp(command[0], command);
    reason = errno;
    dprintf(STDERR_FILENO, "dmutex: %s: %s\n", command[0], strerror(reason));
    _exit(reason == ENOENT ? TOOL_NOT_FOUND : TOOL_CANNOT_RUN);
}

/*
 * This process becomes the parent of orphaned descendants (subreaper), so that command_signal_all() finds a process
 * whose own parent has ended.  A parent may have ignored SIGCHLD: then no wait could succeed.
 */
pid_t command_start(char *const *command, int signal_of_death)
{
    sigset_t signals = dm_relay_signals(), mask;
    pid_t parent = getpid(), pid;

    signal(SIGCHLD, SIG_DFL);
    if (signal_of_death)
        prctl(PR_SET_CHILD_SUBREAPER, 1);
    pthread_sigmask(SIG_BLOCK, &signals, &mask);
    pid = fork();
    if (pid == 0)
        become(command, signal_of_death, parent, &mask);
    return pid;
}

/*
 * A signal from the terminal (si_code above 0, from the kernel) goes to the whole group, to which the command belongs:
 * the command has the signal already.
 */
static void pass_on(pid_t pid, const siginfo_t *info)
{
    if (info->si_signo == SIGCONT || info->si_code <= 0)
        kill(pid, info->si_signo);
}

/* Reaps whatever has ended.  True once the command has. */
static bool has_ended(pid_t pid, int *ret_status)
{
    bool is_over = false;
    int status;
    pid_t ended;

    while ((ended = waitpid(-1, &status, WNOHANG)) > 0) {
        if (ended == pid) {
            *ret_status = status;
            is_over = true;
        }
    }
    return is_over;
}

/* SIGCHLD only ends the wait, because one SIGCHLD may stand for several ends. */
int command_await(pid_t pid)
{
    sigset_t signals = dm_relay_signals();
    int status = 0;

    while (!has_ended(pid, &status)) {
        siginfo_t info;

        if (sigwaitinfo(&signals, &info) > 0 && info.si_signo != SIGCHLD)
            pass_on(pid, &info);
    }
    return status;
}

bool command_ended_by_signal(int status)
{
    return WIFSIGNALED(status);
}

int command_number_of(int status)
{
    return WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
}
