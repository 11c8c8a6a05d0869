/* SPDX-License-Identifier: BSD-2-Clause */
#include "runtime/local.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/attrs.h"
#include "base/clock.h"
#include "base/log.h"

#define SOCKET_NAME "s"

extern char **environ;

static bool DM_PRINTF(2, 3) complain(char *ret_reason, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(ret_reason, DM_REASON_ROOM, format, args);
    va_end(args);
    return false;
}

bool dm_local_place(struct dm_url *url, char ret_reason[DM_REASON_ROOM])
{
    const char *given = secure_getenv("DMUTEX_LOCAL_DIR");
    char path[256];
    int length;

    if (given && *given)
        length = snprintf(path, sizeof path, "%s/" SOCKET_NAME, given);
    else
        length = snprintf(path, sizeof path, "/tmp/dmutex-%u/" SOCKET_NAME, (unsigned)geteuid());
    if (length >= (int)sizeof((struct sockaddr_un *)0)->sun_path)
        return complain(ret_reason, "DMUTEX_LOCAL_DIR is too long for a socket's path of 107 bytes");
    url->path = strdup(path);
    return url->path || complain(ret_reason, "out of memory");
}

/* Ours, a directory, and closed to others; somebody else may have made it before us. */
static bool check_directory(int fd, const char *directory, char *ret_reason)
{
    struct stat status;

    if (fstat(fd, &status) < 0)
        return complain(ret_reason, "%.90s cannot be examined: %s", directory, strerror(errno));
    if (status.st_uid != geteuid())
        return complain(ret_reason, "%.90s belongs to another user: set DMUTEX_LOCAL_DIR or DMUTEX_URL", directory);
    if ((status.st_mode & 077) != 0)
        return complain(ret_reason, "%.90s is open to other users: chmod it to 0700", directory);
    return true;
}

/* Returns the directory, opened, or -1 with the reason. */
static int open_directory(const char *directory, char *ret_reason)
{
    int fd;

    if (mkdir(directory, 0700) < 0 && errno != EEXIST) {
        complain(ret_reason, "%.90s cannot be made: %s", directory, strerror(errno));
        return -1;
    }
    fd = open(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        complain(ret_reason, "%.90s cannot be opened: %s", directory, strerror(errno));
        return -1;
    }
    if (!check_directory(fd, directory, ret_reason)) {
        close(fd);
        return -1;
    }
    return fd;
}

static bool answers(const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool is_there;

    if (fd < 0)
        return false;
    strncpy(address.sun_path, path, sizeof address.sun_path - 1);
    is_there = connect(fd, (struct sockaddr *)&address, sizeof address) == 0;
    close(fd);
    return is_there;
}

static char *search_path(void)
{
    static char usual[] = "PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin";

    for (char **at = environ; *at; at++) {
        if (strncmp(*at, "PATH=", 5) == 0)
            return *at;
    }
    return usual;
}

/*
 * The server must not keep anything of the host program: no descriptor, no blocked or ignored
 * signal, no variable such as LD_PRELOAD.
 */
static int spawn_server(const char *program, const char *directory, pid_t *ret_pid)
{
    const char *arguments[] = { program, "--port", "0", "--unixsocket", SOCKET_NAME, "--unixsocketperm", "700",
                          "--save", "", "--appendonly", "no", "--maxmemory-policy", "noeviction", "--dir",
                          directory, "--logfile", "log", "--pidfile", "pid", "--daemonize", "yes", NULL };
    char *environment[] = { search_path(), NULL };
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t signals;
    int error;

    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDWR, 0);
    posix_spawn_file_actions_adddup2(&actions, 0, 1);
    posix_spawn_file_actions_adddup2(&actions, 0, 2);
    posix_spawn_file_actions_addclosefrom_np(&actions, 3);
    posix_spawn_file_actions_addchdir_np(&actions, directory);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    sigemptyset(&signals);
    posix_spawnattr_setsigmask(&attributes, &signals);
    sigfillset(&signals);
    posix_spawnattr_setsigdefault(&attributes, &signals);
    error = posix_spawnp(ret_pid, program, &actions, &attributes, (char **)arguments, environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

/* The started program goes into the background itself; what we wait for is its parent's end. */
static void reap(pid_t pid)
{
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
}

static bool await_answer(const char *path, unsigned timeout_ms)
{
    struct dm_deadline deadline = dm_deadline_in_ms(timeout_ms);
    const struct timespec pause = { .tv_nsec = 2 * DM_NS_PER_MS };

    while (!answers(path)) {
        if (dm_deadline_left_ns(&deadline) == 0)
            return false;
        clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
    }
    return true;
}

static bool start_server(const struct dm_url *url, const char *directory, char *ret_reason)
{
    static const char *const programs[] = { "redis-server", "valkey-server" };
    pid_t pid;
    int error = ENOENT;

    for (size_t i = 0; i < DM_COUNT(programs) && error == ENOENT; i++) {
        error = spawn_server(programs[i], directory, &pid);
        if (error == 0)
            dm_log_info("starting %s in %s", programs[i], directory);
    }
    if (error == ENOENT)
        return complain(ret_reason, "neither redis-server nor valkey-server is installed: install the package "
                                    "redis-server, or set DMUTEX_URL");
    if (error)
        return complain(ret_reason, "the local server cannot be started: %s", strerror(error));
    reap(pid);
    return await_answer(url->path, url->connect_timeout_ms) ||
           complain(ret_reason, "the local server does not answer: see %.90s/log", directory);
}

/* One starter at a time: the lock goes with the descriptor, also when its process dies. */
static bool start_locked(const struct dm_url *url, const char *directory, int directory_fd, char *ret_reason)
{
    int lock = openat(directory_fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    bool is_up;

    if (lock < 0)
        return complain(ret_reason, "%.90s/lock cannot be made: %s", directory, strerror(errno));
    while (flock(lock, LOCK_EX) < 0 && errno == EINTR)
        continue;
    is_up = answers(url->path) || start_server(url, directory, ret_reason);
    close(lock);
    return is_up;
}

bool dm_local_start(struct dm_url *url, char ret_reason[DM_REASON_ROOM])
{
    char directory[256];
    int fd;
    bool is_up;

    if (getauxval(AT_SECURE)) /* the program would run what its caller's PATH names, with its own rights */
        return complain(ret_reason, "a program with more rights than its caller starts no local server: configure one");
    snprintf(directory, sizeof directory, "%.*s", (int)(strlen(url->path) - strlen("/" SOCKET_NAME)), url->path);
    fd = open_directory(directory, ret_reason);
    if (fd < 0)
        return false;
    is_up = start_locked(url, directory, fd, ret_reason);
    close(fd);
    return is_up;
}
