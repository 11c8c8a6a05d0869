/* SPDX-License-Identifier: BSD-2-Clause */
/* A separate thread draws the line, because the waiting thread sleeps inside the library, where it keeps its place. */
#include "waiting.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "api/view.h"
#include "base/clock.h"
#include "base/text.h"
#include "say.h"

/* A shorter wait draws nothing. */
#define FIRST_MS 200
#define AGAIN_MS 500

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool is_over, is_drawing;
static const char *waited_for;
static int64_t began_ns;
static pthread_t drawer;

static unsigned columns(void)
{
    struct winsize size;

    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20 ? size.ws_col : 80;
}

/* Cuts by bytes, never inside a character: a line that wraps could not be overwritten. */
static void cut(char *line, size_t most)
{
    if (strlen(line) <= most)
        return;
    while (most > 0 && ((unsigned char)line[most] & 0xC0) == 0x80)
        most--;
    line[most] = '\0';
}

static void describe_holder(const struct dm_info *info, char *text, size_t room)
{
    char time[SAY_TIME_ROOM];

    if (!info->shown.locked && info->grace_ms > 0)
        snprintf(text, room, "the server has just started, and grants nothing new for %s",
                 say_time(info->grace_ms, time));
    else if (!info->shown.locked)
        snprintf(text, room, "free");
    else
        snprintf(text, room, "held for %s by %s (process %" PRIu32 ") on %s", say_time(info->held_ms, time),
                 info->shown.program, info->shown.pid, info->shown.host);
}

/* The place in the queue and the holder. */
static void describe_wait(char *text, size_t room)
{
    char holder[300] = "the server does not answer", place[60] = "";
    struct dm_info info = { 0 };
    bool is_known = dm_view_wait(waited_for, &info) == 0;

    if (is_known)
        describe_holder(&info, holder, sizeof holder);
    if (is_known && info.position)
        snprintf(place, sizeof place, ", place %" PRIu64 " of %" PRIu32, info.position, info.shown.waiters);
    snprintf(text, room, "%s: %s", place, holder);
}

/*
 * A narrow terminal gets only the news from the server, without the name, which the user has typed, and the time so
 * far.
 */
static void draw(void)
{
    char line[2048], news[400], name[SAY_NAME_ROOM], time[SAY_TIME_ROOM];

    describe_wait(news, sizeof news);
    snprintf(line, sizeof line, "waiting for %s for %s%s", say_name(waited_for, name),
             say_time((dm_clock_boot_ns() - began_ns) / DM_NS_PER_MS, time), news);
    if (strlen(line) >= columns())
        snprintf(line, sizeof line, "waiting%s", news);
    dm_text_clean(line);
    cut(line, columns() - 1);
    fprintf(stderr, "\r%s\033[K", line);
    fflush(stderr);
}

/* True once the wait is over. */
static bool pause_for(int ms)
{
    struct timespec until;
    int error = 0;
    bool result;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (until.tv_nsec + ms * 1000000L) / 1000000000L;
    until.tv_nsec = (until.tv_nsec + ms * 1000000L) % 1000000000L;
    pthread_mutex_lock(&guard);
    while (!is_over && error == 0)
        error = pthread_cond_clockwait(&changed, &guard, CLOCK_MONOTONIC, &until);
    result = is_over;
    pthread_mutex_unlock(&guard);
    return result;
}

static void *draw_until_over(void *unused)
{
    bool is_drawn = false;

    for (int ms = FIRST_MS; !pause_for(ms); ms = AGAIN_MS) {
        draw();
        is_drawn = true;
    }
    if (is_drawn)
        fputs("\r\033[K", stderr);
    return unused;
}

/* The thread blocks all signals, so that each one reaches the thread that waits for the lock. */
void waiting_begin(const char *name)
{
    sigset_t all, mask;

    if (!say_is_screen(stderr))
        return;
    waited_for = name;
    began_ns = dm_clock_boot_ns();
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &mask);
    is_drawing = pthread_create(&drawer, NULL, draw_until_over, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
}

void waiting_end(void)
{
    if (!is_drawing)
        return;
    pthread_mutex_lock(&guard);
    is_over = true;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&guard);
    pthread_join(drawer, NULL);
    is_drawing = false;
}
