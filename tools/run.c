/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dmutex run: acquires a lock, runs a command, releases the lock, and ends as the command did.
 *
 * 1. The command starts after the grant and is given the fencing token.
 * 2. The lock is released after the command and all processes that it leaves behind have ended, as with flock(1); with
 *    --close, after the command has ended.
 * 3. If the hold is lost while the command runs, the library's thread sends a signal to the command and its
 *    descendants before another holder can have the lock, and the exit status is TOOL_LOST, whatever the command's
 *    status.
 * 4. If this process is killed, they get that signal, too (command.h).
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include <dmutex/dmutex.h>

#include "api/view.h"
#include "base/error.h"
#include "base/relay.h"
#include "command.h"
#include "leaving.h"
#include "say.h"
#include "seen.h"
#include "tool.h"
#include "waiting.h"

struct job {
    const char *name;
    char **command;
    bool never_waits;
    bool is_quiet;     /* does not report that the lock is held */
    double patience_s; /* negative: unlimited */
    int status_if_held;
    unsigned lease_ms; /* 0: the library's default */
    int on_lost;       /* the signal; 0: none */
    bool is_alone;     /* the lock is not kept for processes that the command leaves behind */
};

/* ---- options ----------------------------------------------------------------------------- */

static bool read_number(const char *text, long least, long most, long *ret_number)
{
    char *end;
    long number;

    errno = 0;
    number = strtol(text, &end, 10);
    if (end == text || *end || errno || number < least || number > most)
        return false;
    *ret_number = number;
    return true;
}

/* "TERM", "SIGTERM", "15"; "none" is 0. */
static bool read_signal(const char *text, int *ret_signal)
{
    const char *plain = strncasecmp(text, "SIG", 3) == 0 ? text + 3 : text;
    long number;

    if (strcasecmp(text, "none") == 0) {
        *ret_signal = 0;
        return true;
    }
    if (read_number(text, 1, SIGRTMAX, &number)) {
        *ret_signal = (int)number;
        return true;
    }
    for (int i = 1; i < SIGRTMIN; i++) {
        const char *name = sigabbrev_np(i);

        if (name && strcasecmp(name, plain) == 0) {
            *ret_signal = i;
            return true;
        }
    }
    return false;
}

/* The objection to an option of flock(1) that we cannot follow, or NULL. */
static const char *objection_to(int option)
{
    switch (option) {
    case 's':
        return "there are no shared locks as with flock -s: use one lock for each reader, or leave out -s";
    case 'F':
        return "-F, --no-fork: not possible, because this process renews the lock while the command runs";
    case 'u':
        return "-u, --unlock: the lock is released when the command ends; \"dmutex break NAME\" takes one away";
    case 'f':
        return "--fcntl: leave it out, because this lock has a name and no file";
    case 'v':
        return "--verbose: set DMUTEX_LOG=info to see waits in the log";
    default:
        return NULL;
    }
}

/* Returns 0, or reports the error and returns TOOL_USAGE. */
static int take(struct job *job, int option, char **argv)
{
    long number;

    if (objection_to(option)) {
        return tool_misused(argv, "%s", objection_to(option));
    } else if (option == 'n') {
        job->never_waits = true;
    } else if (option == 'q') {
        job->is_quiet = true;
    } else if (option == 'w') {
        if (!tool_read_seconds(optarg, &job->patience_s))
            return tool_misused(argv, "-w %s: not a number of seconds", optarg);
    } else if (option == 'E') {
        if (!read_number(optarg, 0, 255, &number))
            return tool_misused(argv, "-E %s: not a status from 0 to 255", optarg);
        job->status_if_held = (int)number;
    } else if (option == 'l') {
        if (!read_number(optarg, 100, 3600000, &number))
            return tool_misused(argv, "--lease %s: not a number of milliseconds from 100 to 3600000", optarg);
        job->lease_ms = (unsigned)number;
    } else if (option == 'L') {
        if (!read_signal(optarg, &job->on_lost))
            return tool_misused(argv, "--on-lost %s: neither a signal nor \"none\"", optarg);
    } else if (option == 'o') {
        job->is_alone = true;
    } else if (option != 'x' && option != 'e') {
        return TOOL_USAGE;
    }
    return 0;
}

/* As in flock(1), NAME -c LINE has the user's shell run the line. */
static bool take_shell(struct job *job)
{
    static char *command[4] = { NULL, (char *)(uintptr_t) "-c" };
    const char *shell = getenv("SHELL");

    if (!job->command[0] || (strcmp(job->command[0], "-c") != 0 && strcmp(job->command[0], "--command") != 0))
        return true;
    if (!job->command[1] || job->command[2])
        return false;
    command[0] = (char *)(uintptr_t)(shell && *shell ? shell : "/bin/sh");
    command[2] = job->command[1];
    job->command = command;
    return true;
}

static int read_options(int argc, char **argv, struct job *ret_job)
{
    static const struct option options[] = {
        { "nonblock", no_argument, NULL, 'n' },      { "nb", no_argument, NULL, 'n' },
        { "exclusive", no_argument, NULL, 'x' },     { "shared", no_argument, NULL, 's' },
        { "quiet", no_argument, NULL, 'q' },         { "wait", required_argument, NULL, 'w' },
        { "timeout", required_argument, NULL, 'w' }, { "conflict-exit-code", required_argument, NULL, 'E' },
        { "lease", required_argument, NULL, 'l' },   { "on-lost", required_argument, NULL, 'L' },
        { "close", no_argument, NULL, 'o' },         { "no-fork", no_argument, NULL, 'F' },
        { "unlock", no_argument, NULL, 'u' },        { "fcntl", no_argument, NULL, 'f' },
        { "verbose", no_argument, NULL, 'v' },       { NULL, 0, NULL, 0 },
    };
    struct job job = { .patience_s = -1, .status_if_held = TOOL_HELD, .on_lost = SIGTERM };
    int option, error = 0;

    while (!error && (option = tool_option(argc, argv, "+nqxesoFuw:E:", options)) != -1)
        error = take(&job, option, argv);
    if (error)
        return error;
    job.name = argv[optind];
    job.command = argv + optind + (job.name != NULL);
    if (!job.name || !job.command[0])
        return tool_misused(argv, "give a lock and a command");
    if (!take_shell(&job))
        return tool_misused(argv, "-c takes one argument, a line for the shell: quote it");
    if (strcmp(job.command[0], "--") == 0 && !*++job.command)
        return tool_misused(argv, "give a command after the lock");
    *ret_job = job;
    return 0;
}

/* ---- the lock ---------------------------------------------------------------------------- */

/* How long a try may take without an answer: the usual connect_timeout. */
#define TRY_S 2

static int set_up(const struct job *job, dmutex_t *mutex)
{
    dmutexattr_t attr;
    int error = dmutexattr_init(&attr);

    if (!error && job->lease_ms)
        error = dmutexattr_setlease_np(&attr, job->lease_ms);
    return error ? error : dmutex_init_np(mutex, job->name, &attr);
}

static struct timespec after_s(double seconds)
{
    struct timespec at;

    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_sec += (time_t)seconds;
    at.tv_nsec += (long)((seconds - (double)(time_t)seconds) * 1e9);
    if (at.tv_nsec >= 1000000000) {
        at.tv_sec++;
        at.tv_nsec -= 1000000000;
    }
    return at;
}

/* A server that cannot be reached may come back; one that refuses will refuse again. */
static bool may_come(int error)
{
    return error == ENOLCK && !dm_view_is_reachable() && tool_status() == TOOL_UNREACHABLE;
}

/*
 * Tries first: an unusable server is reported at once, even with DMUTEX_ONDOWN=wait, where a lock would wait.  A caller
 * with patience waits for the server as well as for the lock.  A try takes its own time, possibly longer than a short
 * patience, which is then used up.
 */
static int acquire(const struct job *job, dmutex_t *mutex)
{
    struct timespec until = after_s(job->patience_s > 0 ? job->patience_s : 0);
    bool is_patient = job->patience_s > 0 && !job->never_waits;
    int error = EBUSY;

    if (!is_patient || job->patience_s >= TRY_S)
        error = dmutex_trylock(mutex);
    if ((error != EBUSY && !(is_patient && may_come(error))) || job->never_waits || job->patience_s == 0)
        return error;
    leaving_begin();
    waiting_begin(job->name);
    error = job->patience_s < 0 ? dmutex_lock(mutex) : dmutex_clocklock(mutex, CLOCK_MONOTONIC, &until);
    waiting_end();
    leaving_end();
    return error;
}

/*
 * True if the lock was not acquired because others have it.  A deadline that passes while the server is away says
 * nothing about the lock.  EAGAIN means a full queue, or a server without memory, which serves nobody.
 */
static bool is_held(int error)
{
    return error == EBUSY || (error == ETIMEDOUT && dm_view_is_reachable()) ||
           (error == EAGAIN && !dm_error_is(DM_FAIL_SERVER_FULL));
}

static void keep(void *user, const struct dm_seen *seen)
{
    *(struct seen *)user = seen_copy(seen);
}

/* If nobody holds the lock by now, the library's sentence tells how it was at the deadline. */
static void tell_holder(const struct job *job)
{
    char name[SAY_NAME_ROOM], party[SEEN_PARTY_ROOM], time[SAY_TIME_ROOM], key[DM_MUTEX_KEY_ROOM], sentence[512];
    struct seen seen = { 0 };

    snprintf(sentence, sizeof sentence, "%s", dmutex_strerror_np());
    snprintf(key, sizeof key, "n%s", job->name);
    if (dm_view_one(key, 0, keep, &seen) != 0) {
        tool_failed(job->name);
        return;
    }
    if (!seen.fault && seen.data.info.shown.locked)
        say("%s: not acquired within %g s: held for %s by %s", say_name(job->name, name), job->patience_s,
            say_time(seen.data.info.held_ms, time), seen_holder(&seen, party));
    else
        say("%s: %s", say_name(job->name, name), sentence);
    seen_clear(&seen);
}

/* As in flock(1), a try does not report that the lock is held: cron would mail it. */
static void tell_held(const struct job *job, int error)
{
    if (error == ETIMEDOUT)
        tell_holder(job);
    else if (!dm_error_is(DM_FAIL_BUSY))
        tool_failed(job->name); /* a grace, a full queue: there may be no holder */
}

static int refused(const struct job *job, int error)
{
    if (is_held(error)) {
        if (!job->is_quiet)
            tell_held(job, error);
        return job->status_if_held;
    }
    return tool_failed(job->name);
}

/* ---- the command ------------------------------------------------------------------------- */

/*
 * Guards the facts of the loss, and the sending of signals.  The command may end before its descendants, and this
 * process must not end before the last of them has got the signal.
 */
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static bool is_lost, is_told;
static int signal_of_loss;
static pid_t forbidden; /* a process that goes on after the loss, because this user may not signal it */

static void tell_forbidden(const char *name)
{
    if (forbidden)
        say("%s: process %d of another user got no signal: run dmutex as that user, or as root", name, (int)forbidden);
}

/*
 * Reports at the moment of the loss; or at the end, if that would mean waiting for a reader: the library has other
 * work.
 */
static void tell_loss(const char *name)
{
    char text[SAY_NAME_ROOM], sent[40] = "the command goes on";
    const char *known = sigabbrev_np(signal_of_loss);

    if (!say_has_room())
        return;
    is_told = true;
    if (signal_of_loss && known)
        snprintf(sent, sizeof sent, "the command gets SIG%s", known);
    else if (signal_of_loss)
        snprintf(sent, sizeof sent, "the command gets signal %d", signal_of_loss);
    say("%s: the lock was lost while the command is running: another holder may be inside; %s", say_name(name, text),
        sent);
    tell_forbidden(text);
}

/* Called in the library's thread. */
static void lose(const char *name, uint64_t token, void *user)
{
    (void)token, (void)user;
    pthread_mutex_lock(&guard);
    is_lost = true;
    if (signal_of_loss)
        forbidden = command_signal_all(signal_of_loss);
    tell_loss(name);
    pthread_mutex_unlock(&guard);
}

/* True if the hold was lost. may_send: the command may have been started since the loss, and gets the signal, too. */
static bool look_for_loss(bool may_send)
{
    bool was_lost;

    pthread_mutex_lock(&guard);
    was_lost = is_lost;
    if (is_lost && may_send && signal_of_loss)
        forbidden = command_signal_all(signal_of_loss);
    pthread_mutex_unlock(&guard);
    return was_lost;
}

static void describe(const struct job *job, dmutex_t *mutex)
{
    uint64_t token = 0;
    char text[24];

    dmutex_token_np(mutex, &token);
    snprintf(text, sizeof text, "%" PRIu64, token);
    setenv("DMUTEX_TOKEN", text, 1);
    setenv("DMUTEX_NAME", job->name, 1);
}

/* Reports the loss unless the library's thread has: it may have found no room, or the unlock has found the loss. */
static int tell_end(const struct job *job, int status)
{
    const char *kind = command_ended_by_signal(status) ? "signal" : "status";
    char text[SAY_NAME_ROOM];
    int number = command_number_of(status);

    say_name(job->name, text);
    if (is_told) {
        say("%s: the command, which had lost the lock, ended with %s %d", text, kind, number);
    } else {
        say("%s: the lock was lost while the command ran: another holder may have been inside; the command ended with "
            "%s %d",
            text, kind, number);
        tell_forbidden(text);
    }
    return TOOL_LOST;
}

/* The first check is for a loss that came before there was a command to signal. */
static int run_holding(const struct job *job, dmutex_t *mutex)
{
    const struct command command = { job->command, job->name, job->on_lost, job->is_alone };
    int status, error;

    describe(job, mutex);
    if (!command_start(&command)) {
        say("%s: %s", job->command[0], strerror(errno));
        dmutex_unlock(mutex);
        return TOOL_CANNOT_RUN;
    }
    look_for_loss(true);
    status = command_await();
    error = dmutex_unlock(mutex);
    if (!look_for_loss(false) && !error) {
        dm_view_leave(); /* writes the counters: a signal runs no destructor */
        return dm_relay_end(status);
    }
    return tell_end(job, status);
}

/* Shows the command's name, not "dmutex", as the holder.  Must precede the first use of the library. */
static void show_as(const char *command)
{
    const char *slash = strrchr(command, '/');

    if (*command && !(slash && !slash[1]))
        program_invocation_short_name = (char *)(uintptr_t)(slash ? slash + 1 : command);
}

/*
 * At a loss this program does what its options say, and not what DMUTEX_ONLOST or OnLost of dmutex.conf say, which
 * might end it.  Setting the variable overrides the key.  Once the library has read it, the command gets its own value
 * back.
 */
static int acquire_undisturbed(const struct job *job, dmutex_t *mutex)
{
    const char *given = getenv("DMUTEX_ONLOST");
    char *kept = given ? strdup(given) : NULL;
    int error;

    setenv("DMUTEX_ONLOST", "log", 1);
    error = acquire(job, mutex);
    if (kept)
        setenv("DMUTEX_ONLOST", kept, 1);
    else
        unsetenv("DMUTEX_ONLOST");
    free(kept);
    return error;
}

static int run(int argc, char **argv)
{
    dmutex_t mutex;
    struct job job = { 0 };
    int error = read_options(argc, argv, &job);

    if (!error)
        error = tool_configure();
    if (error)
        return error;
    if (set_up(&job, &mutex) != 0) {
        tool_failed(job.name);
        return TOOL_USAGE;
    }
    signal_of_loss = job.on_lost;
    show_as(job.command[0]);
    dmutex_setlost_np(lose, NULL);
    error = acquire_undisturbed(&job, &mutex);
    return error ? refused(&job, error) : run_holding(&job, &mutex);
}

const struct subcommand subcommand_run = {
    .name = "run",
    .arguments =
        "[-n | -w SECONDS] [-q] [-E STATUS] [-o] [--lease MS] [--on-lost SIGNAL] NAME [--] COMMAND [ARGUMENT...]",
    .purpose = "run a command while holding a lock",
    .options = "  -n, --nonblock         if the lock is held, fail at once, without a message\n"
               "  -w, --wait SECONDS     if the lock is not acquired in this time, fail, and say who holds it\n"
               "  -q, --quiet            do not say who holds it\n"
               "  -E, --conflict-exit-code STATUS  exit with this status instead of 75\n"
               "  -o, --close            release the lock when the command ends, even if it leaves processes behind\n"
               "      --lease MS         how long the server keeps the lock without hearing from us, 100 to 3600000\n"
               "      --on-lost SIGNAL   signal for the command when the lock is lost, or none; the default is TERM\n"
               "\n"
               "NAME -c LINE runs a line of shell.  DMUTEX_NAME and DMUTEX_TOKEN are set for the command.\n"
               "Exit status: the command's; 64 wrong usage, 69 server not usable, 75 lock not acquired,\n"
               "76 lock lost while the command ran, 77 login or rights refused, 78 wrong configuration,\n"
               "126 and 127 as in a shell.\n",
    .run = run,
};
