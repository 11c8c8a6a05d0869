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

#define GRACE_MS 500 /* the next lock often follows soon */
#define AGAIN_MS 50
#define REAPED_MS 1000

static GMainLoop *loop;
static const char *own_name;
static struct stat name_at_start; /* the name may have been removed, and belong to another keeper now */
static unsigned reasons;
static guint timer; /* 0: none */

/*
 * Compares device and inode: after /tmp was cleaned, the name may be that of the next keeper's socket, which must stay.
 */
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
        state = 0; /* a different program */
    if (file)
        fclose(file);
    return state == 'Z';
}

/*
 * A keeper is an orphan, and becomes the child of whoever adopts orphans. In a container that may be the program
 * itself, which only reaps the children that it knows, so an ended keeper remains a zombie. Therefore a keeper that
 * finds a zombie keeper lives on until it is reaped; otherwise each burst of locks would leave another one.
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

/* A keeper that nobody can call any more has no reason to stay. */
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
 * While we hold the guard, no process starts another keeper, so a keeper that is called now is still the only one. A
 * process that connects after the check is in the queue of a closed socket: it gets no answer, and asks again. We only
 * try the guard, because the main loop must go on answering.
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

/* A keeper whose name is gone, perhaps with its folder, is not called any more. */
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

/* Adding and removing a reason starts the timer, so that a keeper that is never called also ends. */
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
