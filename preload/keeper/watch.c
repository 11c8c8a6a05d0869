/* SPDX-License-Identifier: BSD-2-Clause */
#include "watch.h"

#include <glib-unix.h>
#include <sys/inotify.h>
#include <unistd.h>

/*
 * A prompt comes a little before the change: the kernel says that a file is closed, and drops the locks then. So a
 * prompt is followed by many looks, at growing intervals.
 */
#define FIRST_MS 2
#define USUAL_MS 200

static bool (*look_fn)(void);
static guint timer; /* 0: none */
static unsigned interval_ms;
static int inotify = -1; /* -1: the kernel gives none; the timer will do */

static gboolean on_time(gpointer user)
{
    (void)user;
    timer = 0;
    if (!look_fn())
        return G_SOURCE_REMOVE;
    interval_ms = MIN(interval_ms * 2, USUAL_MS);
    timer = g_timeout_add(interval_ms, on_time, NULL);
    return G_SOURCE_REMOVE;
}

/* A look that is due at once stays due, because else a stream of prompts would put the look off for ever. */
void watch_soon(void)
{
    if (timer && interval_ms == FIRST_MS)
        return;
    if (timer)
        g_source_remove(timer);
    interval_ms = FIRST_MS;
    timer = g_timeout_add(interval_ms, on_time, NULL);
}

/* Drops the names of the files, because each look is at all holds; many closed files are one prompt. */
static gboolean on_event(gint fd, GIOCondition condition, gpointer user)
{
    char events[4096];

    (void)condition;
    (void)user;
    while (read(fd, events, sizeof events) > 0)
        continue;
    watch_soon();
    return G_SOURCE_CONTINUE;
}

void watch_begin(bool (*look)(void))
{
    look_fn = look;
    inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (inotify >= 0)
        g_unix_fd_add(inotify, G_IO_IN, on_event, NULL);
}

/*
 * Without inotify the number is -1 as well, and the timer's looks are all there is: ended locks are found later, never
 * missed.
 */
int watch_file(const char *path)
{
    return inotify_add_watch(inotify, path, IN_CLOSE_WRITE | IN_CLOSE_NOWRITE);
}

void watch_leave(int number)
{
    inotify_rm_watch(inotify, number);
}
