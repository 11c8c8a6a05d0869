/* SPDX-License-Identifier: BSD-2-Clause */
#include "keeper.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/place.h"
#include "process/settings.h"
#include "shared/keeper_talk.h"

/* After this time a stopped keeper is passed over. */
#define PATIENCE_MS 1000

/* NAME PATH PID PROGRAM.  Name and path may contain blanks, so the fields are found from both ends. */
static bool read_line(char *line, const char *name, struct keeper_job *ret_job)
{
    size_t length = strlen(name);
    char *program, *pid;

    if (strncmp(line, name, length) != 0 || line[length] != ' ')
        return false;
    program = strrchr(line + length + 1, ' ');
    if (!program)
        return false;
    *program++ = '\0';
    pid = strrchr(line + length + 1, ' ');
    if (!pid || sscanf(pid + 1, "%" SCNu32, &ret_job->pid) != 1)
        return false;
    *pid = '\0';
    snprintf(ret_job->program, sizeof ret_job->program, "%s", program);
    snprintf(ret_job->path, sizeof ret_job->path, "%s", line + length + 1);
    return true;
}

static bool ask(int connection, const char *name, struct keeper_job *ret_job)
{
    static char answer[KEEPER_LIST_ROOM + 1];
    struct pollfd ready = { .fd = connection, .events = POLLIN };
    char *rest = NULL, *line;
    ssize_t got = -1;

    if (send(connection, KEEPER_LIST, sizeof KEEPER_LIST, MSG_NOSIGNAL) > 0 && poll(&ready, 1, PATIENCE_MS) > 0)
        got = recv(connection, answer, KEEPER_LIST_ROOM, 0);
    answer[got > 0 ? got : 0] = '\0';
    for (line = strtok_r(answer, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        if (read_line(line, name, ret_job))
            return true;
    return false;
}

static bool ask_keeper(int folder, const char *socket, const char *name, struct keeper_job *ret_job)
{
    struct dm_fault fault;
    int connection = dm_place_connect(folder, socket, SOCK_SEQPACKET, &fault);
    bool is_found;

    if (connection < 0)
        return false;
    is_found = ask(connection, name, ret_job);
    close(connection);
    return is_found;
}

/* The folder is open with O_PATH, which cannot be listed; a second descriptor can. */
static bool ask_all(int folder, const char *name, struct keeper_job *ret_job)
{
    int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = fd >= 0 ? fdopendir(fd) : NULL;
    struct dirent *entry;
    bool is_found = false;

    while (!is_found && list && (entry = readdir(list)))
        is_found = strncmp(entry->d_name, KEEPER_SOCKET_PREFIX, sizeof KEEPER_SOCKET_PREFIX - 1) == 0 &&
                   ask_keeper(folder, entry->d_name, name, ret_job);
    if (list)
        closedir(list);
    return is_found;
}

static bool is_keeper_of_this_host(const dmutex_info_t *holder)
{
    char host[DM_HOST_ROOM];

    dm_settings_host(host);
    return strcmp(holder->program, KEEPER_PROGRAM) == 0 && strcmp(holder->host, host) == 0;
}

bool keeper_find_job(const dmutex_info_t *holder, const char *name, struct keeper_job *ret_job)
{
    const char *given = getenv("DMUTEX_LOCAL_DIR");
    struct keeper_job job = { 0 };
    struct dm_fault fault;
    bool is_found = false;
    char path[256];
    int folder;

    if (!is_keeper_of_this_host(holder))
        return false;
    if (given && *given)
        snprintf(path, sizeof path, "%s", given);
    else
        snprintf(path, sizeof path, "/tmp/dmutex-%u", (unsigned)geteuid());
    folder = dm_place_open_own(path, false, &fault);
    if (folder >= 0)
        is_found = ask_all(folder, name, &job);
    if (folder >= 0)
        close(folder);
    if (is_found)
        *ret_job = job;
    return is_found;
}
