/* SPDX-License-Identifier: BSD-2-Clause */
#include "runtime/local.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/attrs.h"
#include "base/clock.h"
#include "base/log.h"
#include "runtime/server.h"

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
        length = snprintf(path, sizeof path, "%s/" DM_SERVER_SOCKET, given);
    else
        length = snprintf(path, sizeof path, "/tmp/dmutex-%u/" DM_SERVER_SOCKET, (unsigned)geteuid());
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

/* The started program goes into the background itself; what we wait for is its parent's end. */
static void reap(pid_t pid)
{
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
}

static bool await_answer(const char *path, unsigned timeout_ms)
{
    struct dm_deadline deadline = dm_deadline_in_ms(timeout_ms);

    while (!dm_server_answers(path)) {
        if (dm_deadline_left_ns(&deadline) == 0)
            return false;
        dm_server_nap();
    }
    return true;
}

static bool start_server(const struct dm_url *url, const char *directory, char *ret_reason)
{
    struct dm_server_plan plan;
    const char *program;
    pid_t pid;
    int error;

    error = dm_server_plan_init(&plan, directory, true);
    if (!error) {
        error = dm_server_spawn(&plan, &pid, &program);
        dm_server_plan_clear(&plan);
    }
    if (error == ENOENT)
        return complain(ret_reason, "neither redis-server nor valkey-server is installed: install the package "
                                    "redis-server, or set DMUTEX_URL");
    if (error)
        return complain(ret_reason, "the local server cannot be started: %s", strerror(error));
    dm_log_info("starting %s in %s", program, directory);
    reap(pid);
    return await_answer(url->path, url->connect_timeout_ms) ||
           complain(ret_reason, "the local server does not answer: see %.90s/" DM_SERVER_LOG, directory);
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
    is_up = dm_server_answers(url->path) || start_server(url, directory, ret_reason);
    close(lock);
    return is_up;
}

bool dm_local_start(struct dm_url *url, char ret_reason[DM_REASON_ROOM])
{
    char directory[256];
    int fd;
    bool is_up;

    if (dm_server_is_unsafe())
        return complain(ret_reason, "a program with more rights than its caller starts no local server: configure one");
    snprintf(directory, sizeof directory, "%.*s", (int)(strlen(url->path) - strlen("/" DM_SERVER_SOCKET)), url->path);
    fd = open_directory(directory, ret_reason);
    if (fd < 0)
        return false;
    is_up = start_locked(url, directory, fd, ret_reason);
    close(fd);
    return is_up;
}
