/* SPDX-License-Identifier: BSD-2-Clause */
#include "say.h"

#include <dmutex/dmutex.h>

#include <fcntl.h>
#include <glib.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

#include "shared/keeper_talk.h"

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

/* One write() for a line, so that lines of several threads and keepers in one file stay whole (O_APPEND). */
static void write_to_file(int level, const char *message)
{
    static const char *const words[] = { "", "error", "warning", "info", "debug" };
    char *line = g_strdup_printf(KEEPER_PROGRAM "[%d]: %s: %s\n", (int)getpid(), words[level], message);

    if (write(file, line, strlen(line)) < 0)
        syslog(LOG_ERR, "%s", message);
    g_free(line);
}

static void write_to_syslog(int level, const char *message)
{
    static const int levels[] = { LOG_ERR, LOG_ERR, LOG_WARNING, LOG_INFO, LOG_DEBUG };

    syslog(levels[level], "%s", message);
}

/* The library writes into DMUTEX_LOG's file without help. In any thread of the library or of a hold. */
static void on_library_log(int level, const char *message, void *user)
{
    (void)user;
    if (level <= level_wanted && file < 0)
        write_to_syslog(level, message);
}

/*
 * No link of a stranger's, and no FIFO, which would block. A log that cannot be opened leaves syslog: the keeper goes
 * on.
 */
static int open_log(const char *path)
{
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0600);
    struct stat status;

    if (fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode))
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

void say_begin(void)
{
    const char *wanted = secure_getenv("DMUTEX_LOG");
    const char *colon = wanted ? strchrnul(wanted, ':') : NULL;

    openlog(KEEPER_PROGRAM, LOG_PID, LOG_DAEMON);
    if (wanted)
        level_wanted = level_of(wanted, (size_t)(colon - wanted));
    if (wanted && *colon)
        file = open_log(colon + 1);
    dmutex_setlog_np(on_library_log, NULL);
}

void say(int level, const char *format, ...)
{
    char *message;
    va_list arguments;

    if (level > level_wanted)
        return;
    va_start(arguments, format);
    message = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    if (file >= 0)
        write_to_file(level, message);
    else
        write_to_syslog(level, message);
    g_free(message);
}
