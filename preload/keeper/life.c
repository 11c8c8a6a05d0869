/* SPDX-License-Identifier: BSD-2-Clause */
#include "life.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shared/keeper_talk.h"

#define GRACE_MS 500 /* the next lock often comes soon */
#define AGAIN_MS 50

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
    if (leave())
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
