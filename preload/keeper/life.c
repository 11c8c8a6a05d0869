/* SPDX-License-Identifier: BSD-2-Clause */
#include "life.h"

#include <dmutex/dmutex.h>

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "say.h"
#include "shared/keeper_talk.h"

#define GRACE_MS 500 /* the next lock often comes soon */
#define AGAIN_MS 50
#define REAPED_MS 1000

static GMainLoop *loop;
static const char *own_name;
static struct stat name_at_start; /* the name may be removed by now, and be another keeper's */
static unsigned reasons;
static guint timer; /* 0: none */

/* By device and inode: after a cleaning of /tmp the same name may be the socket of the next keeper, which must stay. */
static bool has_own_name(void)
{
    struct stat now;

    return fstatat(KEEPER_FOLDER_FD, own_name, &now, AT_SYMLINK_NOFOLLOW) == 0 && now.st_dev == name_at_start.st_dev &&
           now.st_ino == name_at_start.st_ino;
}

static bool is_called(void)
{
    struct pollfd ready = { .fd = KEEPER_SOCKET_FD, .events = POLLIN };

    return poll(&ready, 1, 0) > 0;
}

static bool is_zombie_keeper(int pid)
{
    char path[40];
    char state = 0;
    FILE *file;

    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    file = fopen(path, "re");
    if (file && fscanf(file, "%*d (" KEEPER_PROGRAM ") %c", &state) != 1)
        state = 0; /* another program */
    if (file)
        fclose(file);
    return state == 'Z';
}

/*
 * A keeper is an orphan, and the child of whoever gets orphans. In a container that may be the program itself, which
 * awaits the children that it knows and no others: an ended keeper remains as a zombie. So a keeper that finds one
 * lives on until it is gone, or each burst of locks would leave another.
 */
static bool has_unreaped_sibling(void)
{
    char path[64];
    FILE *children;
    int pid;
    bool is_found = false;

    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)getppid(), (int)getppid());
    children = fopen(path, "re");
    while (children && !is_found && fscanf(children, "%d", &pid) == 1)
        is_found = is_zombie_keeper(pid);
    if (children)
        fclose(children);
    return is_found;
}

/* A keeper that is not called any more has no reason to stay. */
static bool must_stay(void)
{
    static bool is_told;

    if (!has_own_name() || !has_unreaped_sibling())
        return false;
    if (!is_told)
        say(DMUTEX_LOG_INFO, "process %d does not reap ended keepers: this one lives on", (int)getppid());
    is_told = true;
    return true;
}

/*
 * Under the guard no process starts another keeper, so a keeper that is called now is still the only keeper. A process
 * that connects after the look is in the queue of a closed socket: gets no answer, and asks anew. The guard is tried
 * and not awaited, because the main loop goes on answering meanwhile.
 */
static bool leave_under_guard(void)
{
    int guard = openat(KEEPER_FOLDER_FD, KEEPER_GUARD, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    bool is_free = guard >= 0 && flock(guard, LOCK_EX | LOCK_NB) == 0 && !is_called();

    if (is_free)
        unlinkat(KEEPER_FOLDER_FD, own_name, 0);
    if (guard >= 0)
        close(guard);
    return is_free;
}

/* A keeper whose name is gone, perhaps with the folder, is not called any more. */
static bool leave(void)
{
    bool is_free = has_own_name() ? leave_under_guard() : !is_called();

    if (is_free)
        close(KEEPER_SOCKET_FD);
    return is_free;
}

static gboolean on_time(gpointer user)
{
    (void)user;
    timer = 0;
    if (must_stay())
        timer = g_timeout_add(REAPED_MS, on_time, NULL);
    else if (leave())
        g_main_loop_quit(loop);
    else
        timer = g_timeout_add(AGAIN_MS, on_time, NULL);
    return G_SOURCE_REMOVE;
}

void life_add(void)
{
    reasons++;
    if (timer)
        g_source_remove(timer);
    timer = 0;
}

void life_remove(void)
{
    if (--reasons == 0)
        timer = g_timeout_add(GRACE_MS, on_time, NULL);
}

/* The reason that is added and removed starts the timer: a keeper that no process calls ends, too. */
void life_run(const char *name)
{
    own_name = name;
    fstatat(KEEPER_FOLDER_FD, name, &name_at_start, AT_SYMLINK_NOFOLLOW);
    loop = g_main_loop_new(NULL, FALSE);
    life_add();
    life_remove();
    g_main_loop_run(loop);
    g_main_loop_unref(loop);
}
