/* SPDX-License-Identifier: BSD-2-Clause */
#include "command.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/relay.h"
#include "say.h"
#include "tool.h"
#include "tree.h"

/* A command may leave processes running for a moment.  After this time we report them. */
#define LEFT_BEHIND_S 1

/*
 * Carries the number of a signal to the warden.  Real-time signals are queued.  Another signal might be lost, if the
 * same one, sent by `pkill dmutex` for example, were pending already.
 */
#define PASSED_ON SIGRTMIN

/* Until the warden is reaped, no other process can have its pid.  The library's thread takes this lock to signal. */
static pthread_mutex_t reaping = PTHREAD_MUTEX_INITIALIZER;
static pid_t warden; /* 0: none, or reaped */

static int report = -1; /* the warden writes 0 or an errno value when the command was started, then its wait status */

/* ---- the warden -------------------------------------------------------------------------- */

/* What the warden knows. */
struct job {
    const struct command *command;
    pid_t parent, pid;
    int status;
    bool has_ended; /* the command has */
    bool is_over;   /* the job is */
    bool is_told;
};

/*
 * Sets the signal of death before checking the parent: a parent that died earlier is noticed here, and one that dies
 * later causes the signal.  The kernel keeps the setting across execve(), except for set-user-ID programs.
 */
static _Noreturn void become(const struct command *command, pid_t parent, const sigset_t *mask)
{
    int reason;

    if (command->signal_of_death) {
        prctl(PR_SET_PDEATHSIG, command->signal_of_death);
        if (getppid() != parent)
            _exit(TOOL_LOST);
    }
    sigprocmask(SIG_SETMASK, mask, NULL);
    execvp(command->words[0], command->words);
    reason = errno;
    dprintf(STDERR_FILENO, "dmutex: %s: %s\n", command->words[0], strerror(reason));
    _exit(reason == ENOENT ? TOOL_NOT_FOUND : TOOL_CANNOT_RUN);
}

/* Reaps whatever has ended.  Servants may outlive the job, because they serve other programs, too. */
static void look_for_ends(struct job *job)
{
    int status;
    pid_t ended;

    while ((ended = waitpid(-1, &status, WNOHANG)) > 0) {
        if (ended != job->pid)
            continue;
        job->status = status;
        job->has_ended = true;
    }
    job->is_over = job->has_ended && (ended < 0 || job->command->is_alone || tree_has_servants_only(getpid()));
}

/* Signals that ask a program to end are for the whole job; others are for the command alone. */
static void deliver(const struct job *job, int number)
{
    bool asks_to_end = number == SIGTERM || number == SIGINT || number == SIGHUP || number == SIGQUIT;
    pid_t forbidden;

    if (asks_to_end && !job->command->is_alone && tree_signal(getpid(), number, &forbidden))
        return;
    if (!job->has_ended)
        kill(job->pid, number);
}

/* The job's signals must not wait for a reader of standard error. */
static void tell_left_behind(struct job *job)
{
    char text[SAY_NAME_ROOM];

    if (job->is_told || !say_has_room())
        return;
    job->is_told = true;
    say("%s: the command has ended, but the lock, unless lost, is kept until all processes that it left behind have "
        "ended; with --close it is released when the command ends",
        say_name(job->command->name, text));
}

static void tell_of_death(const struct job *job)
{
    int number = job->command->signal_of_death;
    pid_t forbidden = 0;
    char text[SAY_NAME_ROOM];

    if (number && tree_signal(getpid(), number, &forbidden) && forbidden)
        say("%s: dmutex run was killed, and process %d of another user goes on without the lock",
            say_name(job->command->name, text), (int)forbidden);
}

/*
 * A SIGCHLD only ends the wait, because one may stand for several ends; the parent's death is a SIGCHLD, too.  Only the
 * parent passes signals on: one from elsewhere has also gone to the parent, or to the whole group.
 */
static void watch(struct job *job)
{
    sigset_t signals = dm_relay_signals();
    struct timespec limit = { .tv_sec = LEFT_BEHIND_S };

    sigaddset(&signals, PASSED_ON);
    look_for_ends(job);
    while (!job->is_over && getppid() == job->parent) {
        siginfo_t info = { 0 };
        int number = sigtimedwait(&signals, &info, job->has_ended && !job->is_told ? &limit : NULL);

        if (number < 0 && errno == EAGAIN)
            tell_left_behind(job);
        else if (number > 0 && number != SIGCHLD && info.si_pid == job->parent)
            deliver(job, number == PASSED_ON ? info.si_value.sival_int : number);
        look_for_ends(job);
    }
}

/*
 * Only SIGKILL may end the warden.  All other signals are blocked: SIGPIPE, from a standard error that nobody reads,
 * and signals to the whole group would end it, too.
 */
static _Noreturn void keep_ward(const struct command *command, pid_t parent, int out, const sigset_t *mask)
{
    struct job job = { .command = command, .parent = parent };
    pid_t self = getpid();
    sigset_t all;
    int error;

    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    prctl(PR_SET_NAME, "dmutex-warden");
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    prctl(PR_SET_PDEATHSIG, SIGCHLD);
    job.pid = getppid() == parent ? fork() : -1;
    error = job.pid < 0 ? errno : 0;
    if (job.pid == 0)
        become(command, self, mask);
    if (write(out, &error, sizeof error) != sizeof error || error)
        _exit(TOOL_LOST);
    watch(&job);
    if (!job.is_over)
        tell_of_death(&job);
    else if (write(out, &job.status, sizeof job.status) != sizeof job.status)
        _exit(TOOL_LOST);
    _exit(0);
}

/* ---- this process ------------------------------------------------------------------------ */

/* False at the end of the pipe. */
static bool read_report(int *ret_number)
{
    ssize_t got;

    do
        got = read(report, ret_number, sizeof *ret_number);
    while (got < 0 && errno == EINTR);
    return got == sizeof *ret_number;
}

/* SIGCHLD is reset: our parent may have ignored it, and then no wait would succeed. */
static bool start_warden(const struct command *command, const int ends[2])
{
    sigset_t signals = dm_relay_signals(), mask;
    pid_t parent = getpid(), pid;

    signal(SIGCHLD, SIG_DFL);
    pthread_sigmask(SIG_BLOCK, &signals, &mask);
    pid = fork();
    if (pid == 0)
        keep_ward(command, parent, ends[1], &mask);
    pthread_mutex_lock(&reaping);
    warden = pid > 0 ? pid : 0;
    pthread_mutex_unlock(&reaping);
    return pid > 0;
}

/* Returns once the command has been forked.  From then on command_signal_all() finds it. */
bool command_start(const struct command *command)
{
    int ends[2], error = 0;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return false;
    report = ends[0];
    if (!start_warden(command, ends))
        error = errno;
    close(ends[1]);
    if (!error && !read_report(&error))
        error = ECHILD;
    errno = error;
    return error == 0;
}

/*
 * SIGCONT is sent as it is, because the warden may be stopped.  So are all signals when the queue, which all processes
 * of a user share, is full; then a signal may be lost.
 */
static void forward(pid_t to, int number)
{
    const union sigval value = { .sival_int = number };

    if (number == SIGCONT || sigqueue(to, PASSED_ON, value) < 0)
        kill(to, number);
}

/*
 * A signal from the terminal (si_code > 0: from the kernel) goes to the whole foreground group, so the job has it
 * already.  But a hangup goes only to the session leader, which we are under `ssh -t`.
 */
static void pass_on(const siginfo_t *info)
{
    bool is_hangup = info->si_signo == SIGHUP && getsid(0) == getpid();

    if (info->si_signo == SIGCONT || info->si_code <= 0 || is_hangup)
        forward(warden, info->si_signo);
}

/* True if the warden has ended. */
static bool reap(int *ret_status)
{
    bool has_ended;

    pthread_mutex_lock(&reaping);
    has_ended = waitpid(warden, ret_status, WNOHANG) != 0;
    if (has_ended)
        warden = 0;
    pthread_mutex_unlock(&reaping);
    return has_ended;
}

/* Does not reap other children of this process, which it had before exec. */
int command_await(void)
{
    sigset_t signals = dm_relay_signals();
    int end = 0, status;

    while (!reap(&end)) {
        siginfo_t info;

        if (sigwaitinfo(&signals, &info) > 0 && info.si_signo != SIGCHLD)
            pass_on(&info);
    }
    return read_report(&status) ? status : end;
}

/* Where descendants cannot be signalled, the warden signals its child, the command. */
pid_t command_signal_all(int number)
{
    pid_t forbidden = 0;

    pthread_mutex_lock(&reaping);
    if (warden > 0 && !tree_signal(warden, number, &forbidden))
        forward(warden, number);
    pthread_mutex_unlock(&reaping);
    return forbidden;
}

bool command_ended_by_signal(int status)
{
    return WIFSIGNALED(status);
}

int command_number_of(int status)
{
    return WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
}
