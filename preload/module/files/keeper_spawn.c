/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The keeper is not a child of the program that happens to start it: wait() must not see it, there must be no SIGCHLD,
 * and the program's pthread_atfork() handlers must not run. So the keeper is the child of a child. Both are made by a
 * bare clone() without a signal at their end; the first child exits at once and is reaped by its pid.
 *
 * Only process 1 of the namespace, or a process that has asked for orphans (PR_SET_CHILD_SUBREAPER), finally gets the
 * keeper as a child, like all other orphans.
 *
 * The children have a copy of the memory of a process that may have threads, or may be in the middle of malloc(). So
 * they make system calls only.
 */
#include "keeper_spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "module/base/real.h"
#include "module/base/settings.h"
#include "shared/keeper_talk.h"

extern char **environ;

const char *keeper_program(void)
{
    const char *given = secure_getenv("DMUTEX_KEEPER");

    return given && *given ? given : PKGLIBEXECDIR "/" KEEPER_PROGRAM;
}

/* ---- in the children --------------------------------------------------------------------- */

static pid_t fork_unseen(void)
{
    return (pid_t)syscall(SYS_clone, 0, 0, 0, 0, 0);
}

/*
 * The program's settings are not for the keeper: it must not be preloaded, and must not end or give up according to
 * what libdmutex shall do in a program.
 */
static bool is_for_keeper(const char *string)
{
    static const char *const others[] = { "LD_PRELOAD=",    "DMUTEX_MAP=",    "DMUTEX_RULES=",  "DMUTEX_LIST=",
                                          "DMUTEX_REPORT=", "DMUTEX_ONLOST=", "DMUTEX_ONDOWN=", "DMUTEX_USED=" };

    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (strncmp(string, others[i], strlen(others[i])) == 0)
            return false;
    return true;
}

/* Changes the array in place, because it is this process's own copy. */
static void clean_environment(void)
{
    char **to = environ;

    if (!environ)
        return;
    for (char **from = environ; *from; from++)
        if (is_for_keeper(*from))
            *to++ = *from;
    *to = NULL;
}

/* exec() resets handlers; ignored signals stay ignored, and the mask stays. */
static void reset_signals(void)
{
    struct sigaction action = { .sa_handler = SIG_DFL };
    sigset_t none;

    for (int i = 1; i < NSIG; i++)
        sigaction(i, &action, NULL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* The program's descriptors that the keeper is given. */
struct gifts {
    int listening, folder;
    int url; /* -1: none */
};

/* Moves a descriptor above the numbers that the keeper uses. */
static int lift(int fd)
{
    return fd < 0 ? -1 : real_get()->fcntl(fd, F_DUPFD, KEEPER_FREE_FD);
}

/*
 * Keeps nothing of the program's open: somebody may wait for the end of a pipe, or for a lock's last descriptor to be
 * closed.
 */
static void arrange_descriptors(const struct gifts *gifts)
{
    int listening = lift(gifts->listening), folder = lift(gifts->folder), url = lift(gifts->url), null;

    dup2(listening, KEEPER_SOCKET_FD);
    dup2(folder, KEEPER_FOLDER_FD);
    if (url >= 0)
        dup2(url, KEEPER_URL_FD);
    null = open("/dev/null", O_RDWR);
    if (null < 0)
        null = open("/", O_PATH); /* there is no /dev: this cannot be written to, either */
    for (int i = 0; i < KEEPER_SOCKET_FD; i++)
        dup2(null, i);
    closefrom(url >= 0 ? KEEPER_FREE_FD : KEEPER_URL_FD);
}

/*
 * The keeper has the program's current identity and no other, and no capabilities that the program's children inherit,
 * because all programs of the user give it orders. Does not use libc's functions, which would tell the other threads.
 */
static void settle_identity(void)
{
    gid_t group = getegid();
    uid_t user = geteuid();

    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    syscall(SYS_setresgid, group, group, group);
    syscall(SYS_setresuid, user, user, user);
}

/*
 * Raises limits to the hard limit, or beyond if the user may: one program's limits are not for a keeper that serves
 * many.
 */
static void lift_limits(void)
{
    static const int endless[] = { RLIMIT_CPU, RLIMIT_FSIZE, RLIMIT_DATA, RLIMIT_AS, RLIMIT_NPROC, RLIMIT_RTTIME };
    const struct rlimit none = { RLIM_INFINITY, RLIM_INFINITY };
    struct rlimit limit;

    for (size_t i = 0; i < sizeof endless / sizeof endless[0]; i++) {
        if (setrlimit((__rlimit_resource_t)endless[i], &none) == 0)
            continue;
        if (getrlimit((__rlimit_resource_t)endless[i], &limit) == 0) {
            limit.rlim_cur = limit.rlim_max;
            setrlimit((__rlimit_resource_t)endless[i], &limit);
        }
    }
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max; /* the kernel's table is not unlimited */
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/* A program that should be killed first when memory runs out has a number above 0. */
static void reset_oom_score(void)
{
    int file = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
    char first;

    if (file >= 0 && read(file, &first, 1) == 1 && first != '-' && pwrite(file, "0", 1, 0) < 0)
        errno = 0; /* perhaps the container's number, which only its root may lower */
    if (file >= 0)
        close(file);
}

/* A keeper with low priority would lose the locks of others. What the kernel refuses to change stays as it is. */
static void reset_priority(void)
{
    const struct sched_param usual = { 0 };
    unsigned char all_processors[128];

    memset(all_processors, 0xff, sizeof all_processors);
    syscall(SYS_sched_setscheduler, 0, SCHED_OTHER, &usual);
    syscall(SYS_setpriority, PRIO_PROCESS, 0, 0);
    syscall(SYS_ioprio_set, 1, 0, 0); /* of this process: by its nice value */
    syscall(SYS_sched_setaffinity, 0, sizeof all_processors, all_processors);
}

static void __attribute__((__noreturn__))
become_keeper(const struct gifts *gifts, const char *program, const char *socket_path)
{
    char *arguments[] = { (char *)KEEPER_PROGRAM, (char *)socket_path, NULL };

    arrange_descriptors(gifts);
    settle_identity();
    lift_limits();
    reset_oom_score();
    reset_priority();
    umask(077);
    clean_environment();
    reset_signals();
    execve(program, arguments, environ);
    _exit(127);
}

/* ---- in the program ---------------------------------------------------------------------- */

static void reap(pid_t pid)
{
    while (syscall(SYS_wait4, pid, NULL, __WALL, NULL) < 0 && errno == EINTR)
        continue;
}

/* A pipe that contains the URL. -1: there is no URL to pass, or no pipe can be made, and the keeper will miss it. */
static int make_url(void)
{
    const struct settings *settings = settings_get();
    size_t length = settings->is_url_secret ? strlen(settings->url) : 0;
    int ends[2];

    if (length == 0 || pipe2(ends, O_CLOEXEC) < 0)
        return -1;
    if (write(ends[1], settings->url, length) != (ssize_t)length) { /* the URL is shorter than PIPE_BUF */
        close(ends[0]);
        ends[0] = -1;
    }
    close(ends[1]);
    return ends[0];
}

static int spawn(const struct gifts *gifts, const char *program, const char *socket_path)
{
    pid_t pid = fork_unseen();

    if (pid < 0)
        return errno;
    if (pid == 0) {
        setsid();
        pid = fork_unseen();
        if (pid == 0)
            become_keeper(gifts, program, socket_path);
        _exit(0);
    }
    reap(pid);
    return 0;
}

int keeper_spawn(int listening, int folder, const char *socket_path)
{
    struct gifts gifts = { .listening = listening, .folder = folder };
    const char *program = keeper_program();
    int error;

    if (faccessat(AT_FDCWD, program, X_OK, AT_EACCESS) < 0)
        return errno;
    gifts.url = make_url();
    if (settings_get()->is_url_secret && gifts.url < 0)
        return errno;
    error = spawn(&gifts, program, socket_path);
    if (gifts.url >= 0)
        close(gifts.url);
    return error;
}
