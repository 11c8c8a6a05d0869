/* SPDX-License-Identifier: BSD-2-Clause */
#include "holders.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/place.h"
#include "refuse.h"
#include "shared/keeper_talk.h"

#define PATIENCE_MS 5000

/*
 * The keeper's lines; NULL if it has ended, or does not answer. The time limit is for a keeper that is stopped. The
 * keeper has replaced the bytes that a terminal would obey.
 */
static char *ask(int connection)
{
    g_autofree char *answer = g_malloc(KEEPER_LIST_ROOM + 1);
    struct pollfd ready = { .fd = connection, .events = POLLIN };
    ssize_t got = -1;

    if (send(connection, KEEPER_LIST, sizeof KEEPER_LIST, MSG_NOSIGNAL) > 0 && poll(&ready, 1, PATIENCE_MS) > 0)
        got = recv(connection, answer, KEEPER_LIST_ROOM, 0);
    if (got < 0)
        return NULL;
    answer[got] = '\0';
    return g_steal_pointer(&answer);
}

/* dm_place_connect() checks that this user is listening, because whatever the listener sends is printed. */
static void print_keeper(int folder, const char *name)
{
    struct dm_fault fault;
    int connection = dm_place_connect(folder, name, SOCK_SEQPACKET, &fault);
    g_autofree char *lines = NULL;

    if (connection < 0)
        return; /* left by a killed keeper */
    lines = ask(connection);
    close(connection);
    if (lines)
        fputs(lines, stdout);
    else
        say_warning("the keeper at %s does not answer", name);
}

/* Uses a second descriptor, because the folder itself is open with O_PATH, which cannot be listed. */
static void print_all(int folder)
{
    int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = fd >= 0 ? fdopendir(fd) : NULL;
    struct dirent *entry;

    while (list && (entry = readdir(list)))
        if (g_str_has_prefix(entry->d_name, KEEPER_SOCKET_PREFIX))
            print_keeper(folder, entry->d_name);
    if (list)
        closedir(list);
}

/*
 * If there is no folder, there is no keeper, which is no failure. Trailing slashes are removed, because the last part
 * of the path is the folder to check.
 */
bool holders_print(GError **error)
{
    const char *given = g_getenv("DMUTEX_LOCAL_DIR");
    g_autofree char *path = given && *given ? g_strdup(given) : g_strdup_printf("/tmp/dmutex-%u", (unsigned)geteuid());
    struct dm_fault fault;
    int folder;

    while (path[1] && g_str_has_suffix(path, "/"))
        path[strlen(path) - 1] = '\0';
    folder = dm_place_open_own(path, false, &fault);
    if (folder < 0 && fault.kind == DM_FAULT_OWNER)
        return refuse(error, REFUSE_CANNOT_RUN, "%s %s %u: no keeper there is asked", fault.place, fault.words,
                      (unsigned)fault.owner);
    if (folder < 0)
        return fault.kind == DM_FAULT_ABSENT ||
               refuse(error, REFUSE_CANNOT_RUN, "%s: %s", fault.place, g_strerror(fault.error));
    print_all(folder);
    close(folder);
    return true;
}
