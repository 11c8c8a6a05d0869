/* SPDX-License-Identifier: BSD-2-Clause */
#include "say.h"

#include <dmutex/dmutex.h>

#include <errno.h>
#include <glib.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "base/output.h"
#include "shared/keeper_talk.h"
#include "shared/text.h"

/* Set up before the first thread. */
static int level_wanted = DMUTEX_LOG_WARN;
static int file = -1; /* -1: syslog */

static int level_of(const char *word, size_t length)
{
    static const char *const words[] = { "error", "warn", "info", "debug" };

    for (int i = 0; i < (int)G_N_ELEMENTS(words); i++)
        if (strlen(words[i]) == length && strncmp(words[i], word, length) == 0)
            return i + 1;
    return DMUTEX_LOG_WARN;
}

/* ---- syslog ------------------------------------------------------------------------------ */

#define LINE_ROOM 1400
#define PATIENCE_MS 100

static int connect_syslog(int type)
{
    const struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = _PATH_LOG };
    int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    close(fd);
    return -1;
}

/* If the daemon's queue is full, waits a little. */
static void send_line(int fd, const char *line, size_t length)
{
    struct pollfd room = { .fd = fd, .events = POLLOUT };

    if (send(fd, line, length, MSG_NOSIGNAL) < 0 && errno == EAGAIN && poll(&room, 1, PATIENCE_MS) > 0)
        send(fd, line, length, MSG_NOSIGNAL);
}

/*
 * Does not use syslog(3), which waits as long as the daemon does not read: neither the thread that reports a loss nor
 * the main loop may wait. A daemon that reads streams takes the NUL as the end of a line; the others remove it.
 */
static void write_to_syslog(int priority, const char *message)
{
    char line[LINE_ROOM], date[32];
    time_t now = time(NULL);
    struct tm local;
    int fd = connect_syslog(SOCK_DGRAM), length;

    if (fd < 0 && errno == EPROTOTYPE)
        fd = connect_syslog(SOCK_STREAM);
    if (fd < 0)
        return; /* there is no syslog, as in most containers */
    strftime(date, sizeof date, "%b %e %T", localtime_r(&now, &local));
    length = snprintf(line, sizeof line, "<%d>%s " KEEPER_PROGRAM "[%d]: %s", LOG_DAEMON | priority, date,
                      (int)getpid(), message);
    send_line(fd, line, MIN((size_t)length + 1, sizeof line));
    close(fd);
}

static int priority_of(int level)
{
    static const int priorities[] = { LOG_ERR, LOG_ERR, LOG_WARNING, LOG_INFO, LOG_DEBUG };

    return priorities[level];
}

/* ---- the log ----------------------------------------------------------------------------- */

/* One write() per line, so that lines of several threads and keepers in one file stay whole (O_APPEND). */
static void write_to_file(int level, const char *message)
{
    static const char *const words[] = { "", "error", "warning", "info", "debug" };
    char *line = g_strdup_printf(KEEPER_PROGRAM "[%d]: %s: %s\n", (int)getpid(), words[level], message);

    if (write(file, line, strlen(line)) < 0)
        write_to_syslog(LOG_ERR, message);
    g_free(line);
}

/* The library itself writes to DMUTEX_LOG's file. Called in any thread of the library or of a hold. */
static void on_library_log(int level, const char *message, void *user)
{
    (void)user;
    if (level <= level_wanted && file < 0)
        write_to_syslog(priority_of(level), message);
}

void say_begin(void)
{
    const char *wanted = secure_getenv("DMUTEX_LOG");
    const char *colon = wanted ? strchrnul(wanted, ':') : NULL, *why;

    if (wanted)
        level_wanted = level_of(wanted, (size_t)(colon - wanted));
    if (wanted && *colon)
        file = dm_output_open(colon + 1, &why);
    if (wanted && *colon && file < 0)
        say(DMUTEX_LOG_ERROR, "%s cannot be the log, because it %s: the log goes to syslog", colon + 1, why);
    dmutex_setlog_np(on_library_log, NULL);
}

/* A path or a name may contain bytes that a terminal would obey. */
static char *format_clean(const char *format, va_list arguments)
{
    g_autofree char *message = g_strdup_vprintf(format, arguments);
    size_t room = strlen(message) + 1;
    char *clean = g_malloc(room);
    struct text text = text_in(clean, room);

    text_add_clean(&text, message);
    return clean;
}

void say(int level, const char *format, ...)
{
    char *message;
    va_list arguments;

    if (level > level_wanted)
        return;
    va_start(arguments, format);
    message = format_clean(format, arguments);
    va_end(arguments);
    if (file >= 0)
        write_to_file(level, message);
    else
        write_to_syslog(priority_of(level), message);
    g_free(message);
}

void say_alert(const char *format, ...)
{
    char *message;
    va_list arguments;

    va_start(arguments, format);
    message = format_clean(format, arguments);
    va_end(arguments);
    write_to_syslog(LOG_ALERT, message);
    g_free(message);
}
