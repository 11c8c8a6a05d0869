/* SPDX-License-Identifier: BSD-2-Clause */
#include "servant.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "spawn/server.h"

#define PATH_ROOM 256

/* Reads as much of a text file as fits, terminated; "" if there is none. */
static void read_text(const char *path, char *room, size_t size)
{
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t length = file >= 0 ? read(file, room, size - 1) : 0;

    if (file >= 0)
        close(file);
    room[length > 0 ? length : 0] = '\0';
}

static void read_fact(pid_t pid, const char *fact, char room[PATH_ROOM])
{
    char path[64];

    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, fact);
    read_text(path, room, PATH_ROOM);
}

/* The server shows its socket instead of its arguments, and has its pid in a file next to the socket. */
static bool is_local_server(pid_t pid)
{
    static const char title[] = " unixsocket:";
    char line[PATH_ROOM], path[PATH_ROOM + 8], number[32];
    const char *socket, *slash;

    read_fact(pid, "cmdline", line);
    socket = strstr(line, title);
    slash = socket ? strrchr(socket, '/') : NULL;
    if (!slash || strcmp(slash, "/" DM_SERVER_SOCKET) != 0)
        return false;
    socket += strlen(title);
    snprintf(path, sizeof path, "%.*s/pid", (int)(slash - socket), socket);
    read_text(path, number, sizeof number);
    return atoi(number) == pid;
}

bool servant_is(pid_t pid)
{
    char name[PATH_ROOM];

    read_fact(pid, "comm", name);
    if (strcmp(name, "redis-server\n") == 0 || strcmp(name, "valkey-server\n") == 0)
        return is_local_server(pid);
    return strcmp(name, "dmutex-keeper\n") == 0;
}
