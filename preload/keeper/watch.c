/* SPDX-License-Identifier: BSD-2-Clause */
#include "watch.h"

#include <glib-unix.h>
#include <sys/inotify.h>
#include <unistd.h>

/*
 * The prompt comes a little before the change: the kernel first reports that a file is closed, and then drops the
 * locks. So a prompt is followed by many checks, at growing intervals.
 */
#define FIRST_MS 2
#define USUAL_MS 200

static bool (*look_fn)(void);
static void (*closed_fn)(int number);
static guint timer; /* 0: none */
static unsigned interval_ms;
static int inotify = -1; /* -1: the kernel gives none, and the timer has to do */

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

/* A check that is already due stays due; otherwise a stream of prompts would postpone it forever. */
void watch_soon(void)
{
    if (timer && interval_ms == FIRST_MS)
        return;
    if (timer)
        g_source_remove(timer);
    interval_ms = FIRST_MS;
    timer = g_timeout_add(interval_ms, on_time, NULL);
}

/* Each check covers all holds, so many closed files are one prompt. */
static gboolean on_event(gint fd, GIOCondition condition, gpointer user)
{
    union {
        struct inotify_event first; /* for the alignment */
        char bytes[4096];
    } events;
    ssize_t got;

    (void)condition;
    (void)user;
    while ((got = read(fd, &events, sizeof events)) > 0) {
        for (ssize_t at = 0; at < got;) {
            const struct inotify_event *event = (const void *)(events.bytes + at);

            closed_fn(event->wd); /* -1: the kernel has lost some */
            at += (ssize_t)(sizeof *event + event->len);
        }
    }
    watch_soon();
    return G_SOURCE_CONTINUE;
}

void watch_begin(bool (*look)(void), void (*closed)(int number))
{
    look_fn = look;
    closed_fn = closed;
    inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (inotify >= 0)
        g_unix_fd_add(inotify, G_IO_IN, on_event, NULL);
}

/*
 * Without inotify this returns -1 as well, and only the timer prompts checks: ended locks are found later, but never
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
