/* SPDX-License-Identifier: BSD-2-Clause */
#include "spawn/server.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/attrs.h"
#include "base/units.h"

extern char **environ;

static char *search_path(void)
{
    static char usual[] = "PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin";

    for (char **at = environ; *at; at++) {
        if (strncmp(*at, "PATH=", 5) == 0)
            return *at;
    }
    return usual;
}

/* If one of these fails no server is started: it would inherit files of the program. */
static int plan_files(posix_spawn_file_actions_t *actions, const char *directory, int folder)
{
    int rest = folder < 0 ? 3 : 4;
    int error = posix_spawn_file_actions_addopen(actions, 0, "/dev/null", O_RDWR, 0);

    if (!error)
        error = posix_spawn_file_actions_adddup2(actions, 0, 1);
    if (!error)
        error = posix_spawn_file_actions_adddup2(actions, 0, 2);
    if (!error && folder >= 0)
        error = posix_spawn_file_actions_adddup2(actions, folder, 3);
    if (!error)
        error = posix_spawn_file_actions_addclosefrom_np(actions, rest);
    if (!error)
        error = posix_spawn_file_actions_addchdir_np(actions, directory);
    return error;
}

int dm_server_plan_init(struct dm_server_plan *plan, const char *directory, int folder, bool is_daemon)
{
    sigset_t signals;
    int error;

    plan->directory = directory;
    plan->socket = DM_SERVER_SOCKET;
    plan->is_daemon = is_daemon;
    plan->environment[0] = search_path();
    plan->environment[1] = NULL;
    posix_spawnattr_init(&plan->attributes);
    posix_spawnattr_setflags(&plan->attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    sigemptyset(&signals);
    posix_spawnattr_setsigmask(&plan->attributes, &signals);
    sigfillset(&signals);
    posix_spawnattr_setsigdefault(&plan->attributes, &signals);
    posix_spawn_file_actions_init(&plan->actions);
    error = plan_files(&plan->actions, directory, folder);
    if (error)
        dm_server_plan_clear(plan);
    return error;
}

void dm_server_plan_clear(struct dm_server_plan *plan)
{
    posix_spawnattr_destroy(&plan->attributes);
    posix_spawn_file_actions_destroy(&plan->actions);
}

static int spawn_program(const struct dm_server_plan *plan, const char *program, pid_t *ret_pid)
{
    const char *arguments[] = { program,
                                "--port",
                                "0",
                                "--unixsocket",
                                plan->socket,
                                "--unixsocketperm",
                                "700",
                                "--save",
                                "",
                                "--appendonly",
                                "no",
                                "--maxmemory-policy",
                                "noeviction",
                                "--dir",
                                plan->directory,
                                "--logfile",
                                DM_SERVER_LOG,
                                "--pidfile",
                                "pid",
                                "--daemonize",
                                plan->is_daemon ? "yes" : "no",
                                NULL };

    return posix_spawnp(ret_pid, program, &plan->actions, &plan->attributes, (char **)arguments, plan->environment);
}

int dm_server_spawn(const struct dm_server_plan *plan, pid_t *ret_pid, const char **ret_program)
{
    static const char *const programs[] = { "redis-server", "valkey-server" };
    int result = ENOENT;

    for (size_t i = 0; i < DM_COUNT(programs); i++) {
        int error = spawn_program(plan, programs[i], ret_pid);

        *ret_program = programs[i];
        if (error != ENOENT && error != EACCES)
            return error;
        if (error == EACCES)
            result = EACCES;
    }
    return result;
}

bool dm_server_answers(const char *path)
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

void dm_server_nap(void)
{
    const struct timespec pause = { .tv_nsec = 2 * DM_NS_PER_MS };

    clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
}

bool dm_server_is_unsafe(void)
{
    return getauxval(AT_SECURE) != 0;
}
