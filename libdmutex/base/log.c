/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/log.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/date.h"
#include "base/descriptor.h"
#include "base/output.h"
#include "base/rank.h"
#include "base/shield.h"
#include "base/stderr.h"
#include "base/text.h"

#define LINE_ROOM 600
#define HEAD_ROOM 160

/* A message that was logged under a lock, and is kept for the application's callback. */
struct line {
    struct line *next;
    int level;
    char text[LINE_ROOM];
};

/*
 * The lock guards the callback, its user pointer and the kept lines.  Its rank is LOG: no other lock is taken under it,
 * and it is not held while the callback runs. env_level is atomic, and is set after env_fd and env_path: from
 * DMUTEX_LOG, in pthread_once(), or else once by dm_log_set_default().
 */
static struct dm_mutex lock = DM_MUTEX_INITIALIZER(DM_RANK_LOG);
static dmutex_log_fn callback;
static void *callback_user;
static struct line *waiting, **waiting_end = &waiting; /* for the callback, once no lock is held */
static void (*on_kept)(void);                          /* atomic */
static int env_level;                                  /* 0: nothing goes to env_fd */
static int env_fd = STDERR_FILENO;                     /* atomic: a closed descriptor is opened again */
static char *env_path;         /* of the file at env_fd; NULL: standard error, which the program may redirect */
static unsigned lines_dropped; /* atomic */

static pthread_once_t env_once = PTHREAD_ONCE_INIT;

static int level_by_name(const char *name, size_t length)
{
    static const struct {
        const char *name;
        int level;
    } names[] = { { "warn", DMUTEX_LOG_WARN }, { "info", DMUTEX_LOG_INFO }, { "debug", DMUTEX_LOG_DEBUG } };

    for (size_t i = 0; i < DM_COUNT(names); i++) {
        if (strlen(names[i].name) == length && memcmp(names[i].name, name, length) == 0)
            return names[i].level;
    }
    return 0;
}

/* Composes the head of a line for env_fd; returns its length. */
static size_t write_head(int level, char head[HEAD_ROOM])
{
    static const char *const words[] = { "", "error", "warning", "info", "debug" };

    char date[DM_DATE_ROOM];
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    dm_date_write(&now, date);
    return (size_t)snprintf(head, HEAD_ROOM, "%s libdmutex[%d]: %s: ", date, (int)getpid(), words[level]);
}

/*
 * A line is dropped if the write would block, as in a full pipe: the caller may hold a connection's lock, or be the
 * loop thread, which must renew.  It is also dropped if the program has opened a file of its own in the place of
 * standard error.  The next line says how many lines were dropped.  Making standard error non-blocking would not do,
 * because other programs share its open file description.
 */
static bool is_writable(int fd)
{
    struct pollfd poller = { .fd = fd, .events = POLLOUT };

    return (fd != STDERR_FILENO || dm_stderr_is_usable()) && poll(&poller, 1, 0) > 0 && (poller.revents & POLLOUT);
}

static void tell_dropped(int fd)
{
    unsigned dropped = __atomic_exchange_n(&lines_dropped, 0, __ATOMIC_RELAXED);
    char head[HEAD_ROOM];

    if (!dropped)
        return;
    write_head(DMUTEX_LOG_WARN, head);
    dprintf(fd, "%s%u lines of the log were dropped\n", head, dropped);
}

/*
 * `line` has room for one more byte.  The line and its end are written by one write(), so that lines of several
 * processes stay whole: in a file by O_APPEND, in a pipe because a line is shorter than PIPE_BUF.
 */
static void write_line(int fd, char *line, size_t length)
{
    struct dm_shield shield;

    if (!is_writable(fd)) {
        __atomic_add_fetch(&lines_dropped, 1, __ATOMIC_RELAXED);
        return;
    }
    line[length] = '\n';
    dm_shield_raise(&shield);
    tell_dropped(fd);
    if (write(fd, line, length + 1) < 0)
        errno = 0; /* there is nowhere to report the loss */
    dm_shield_lower(&shield);
}

/*
 * Logs a message about the log itself.  Not by emit(): this runs inside env_once, where emit() would wait for its own
 * thread.
 */
static void DM_PRINTF(1, 2) say(const char *format, ...)
{
    char line[HEAD_ROOM + LINE_ROOM];
    size_t head = write_head(DMUTEX_LOG_WARN, line);
    va_list args;

    va_start(args, format);
    vsnprintf(line + head, LINE_ROOM, format, args);
    va_end(args);
    dm_text_clean(line + head);
    write_line(__atomic_load_n(&env_fd, __ATOMIC_RELAXED), line, strlen(line));
}

static int open_tagged(const char *path, const char **ret_why)
{
    int fd = dm_descriptor_move_up(dm_output_open(path, ret_why));

    if (fd >= 0)
        dm_descriptor_tag(fd, DM_TAG_LOG);
    return fd;
}

/* The program may have closed the log, and may use its number for a file of its own. */
static int log_file(void)
{
    int old = __atomic_load_n(&env_fd, __ATOMIC_RELAXED), other;
    const char *why;

    if (!env_path || dm_descriptor_is(old, DM_TAG_LOG))
        return old;
    other = open_tagged(env_path, &why);
    if (__atomic_compare_exchange_n(&env_fd, &old, other, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        return other;
    if (other >= 0)
        close(other);
    return old;
}

/*
 * value: warn|info|debug[:path].  If a log that the user asked for cannot be opened, we say so, and log to standard
 * error.  A configuration file for all users, however, may name a log that this user may not write: then there is
 * silently no log.
 */
static void take_setting(const char *value, const char *from, bool is_asked)
{
    const char *colon = strchrnul(value, ':'), *why = "";
    int level = level_by_name(value, (size_t)(colon - value)), fd = -1;

    if (!level) {
        level = DMUTEX_LOG_WARN;
        say("%s: \"%.*s\" is not warn, info or debug: using warn", from, (int)(colon - value), value);
    }
    if (*colon) {
        fd = open_tagged(colon + 1, &why);
        if (fd < 0 && errno == EACCES && !is_asked)
            return;
        if (fd < 0)
            say("%s: %.400s cannot be the log, because it %s: the log goes to standard error", from, colon + 1, why);
    }
    if (fd >= 0) {
        env_path = strdup(colon + 1);
        __atomic_store_n(&env_fd, fd, __ATOMIC_RELAXED);
    }
    __atomic_store_n(&env_level, level, __ATOMIC_RELEASE);
}

static void read_environment(void)
{
    const char *value = secure_getenv("DMUTEX_LOG");

    if (value)
        take_setting(value, "DMUTEX_LOG", true);
}

void dm_log_set_default(const char *value, const char *from)
{
    static bool is_set;

    pthread_once(&env_once, read_environment);
    if (!__atomic_load_n(&env_level, __ATOMIC_RELAXED) && !__atomic_test_and_set(&is_set, __ATOMIC_RELAXED))
        take_setting(value, from, false);
}

/* Without memory the line is lost. */
static void keep_line(int level, const char *message)
{
    void (*kept)(void) = __atomic_load_n(&on_kept, __ATOMIC_RELAXED);
    struct line *line = malloc(sizeof *line);

    if (!line)
        return;
    line->next = NULL;
    line->level = level;
    memcpy(line->text, message, strlen(message) + 1);
    dm_mutex_lock(&lock);
    *waiting_end = line;
    __atomic_store_n(&waiting_end, &line->next, __ATOMIC_RELAXED);
    dm_mutex_unlock(&lock);
    if (kept)
        kept();
}

bool dm_log_has_kept(void)
{
    return __atomic_load_n(&waiting_end, __ATOMIC_RELAXED) != &waiting;
}

void dm_log_on_kept(void (*kept)(void))
{
    __atomic_store_n(&on_kept, kept, __ATOMIC_RELAXED);
}

/*
 * Takes the callback together with the lines.  So a thread may still call it after dmutex_setlog_np() has set another
 * one.
 */
static struct line *take_lines(dmutex_log_fn *ret_log, void **ret_user)
{
    struct line *lines;

    dm_mutex_lock(&lock);
    lines = waiting;
    waiting = NULL;
    __atomic_store_n(&waiting_end, &waiting, __ATOMIC_RELAXED);
    *ret_log = callback;
    *ret_user = callback_user;
    dm_mutex_unlock(&lock);
    return lines;
}

/*
 * The first check, without the lock, is a hint: a line that another thread is just adding is delivered by that thread
 * or by the loop thread.
 *
 * A callback must not call the library; if it does, it may come here again, and is_delivering ends the nested call.
 */
void dm_log_deliver(void)
{
    static __thread bool is_delivering;
    dmutex_log_fn log = NULL;
    void *user;
    struct line *line, *next;

    if (is_delivering || !dm_log_has_kept() || !dm_mutex_holds_none())
        return;
    is_delivering = true;
    for (line = take_lines(&log, &user); line; line = next) {
        next = line->next;
        if (log)
            log(line->level, line->text, user);
        free(line);
    }
    is_delivering = false;
}

bool dm_log_is_heard(int level)
{
    bool is_heard;

    pthread_once(&env_once, read_environment);
    dm_mutex_lock(&lock);
    is_heard = callback || level <= __atomic_load_n(&env_level, __ATOMIC_ACQUIRE);
    dm_mutex_unlock(&lock);
    return is_heard;
}

/* Called by any thread, which may hold any lock but LOG.  The callback runs without locks, because it may take long. */
static void DM_PRINTF(2, 0) emit(int level, const char *format, va_list args)
{
    int kept = errno;
    char line[HEAD_ROOM + LINE_ROOM]; /* one buffer for all: the caller's stack may be small */
    char *message;
    dmutex_log_fn log;
    void *user;
    bool to_env;

    pthread_once(&env_once, read_environment);
    dm_mutex_lock(&lock);
    log = callback;
    user = callback_user;
    to_env = level <= __atomic_load_n(&env_level, __ATOMIC_ACQUIRE);
    dm_mutex_unlock(&lock);
    if (log || to_env) {
        message = line + write_head(level, line);
        vsnprintf(message, LINE_ROOM, format, args);
        dm_text_clean(message); /* the message may quote a server, or a name */
        if (log && dm_mutex_holds_none()) {
            dm_log_deliver(); /* earlier lines first */
            log(level, message, user);
        } else if (log) {
            keep_line(level, message);
        }
        if (to_env)
            write_line(log_file(), line, strlen(line));
    }
    errno = kept;
}

#define DEFINE_LEVEL(name, level)      \
    void name(const char *format, ...) \
    {                                  \
        va_list args;                  \
                                       \
        va_start(args, format);        \
        emit(level, format, args);     \
        va_end(args);                  \
    }

DEFINE_LEVEL(dm_log_error, DMUTEX_LOG_ERROR)
DEFINE_LEVEL(dm_log_warn, DMUTEX_LOG_WARN)
DEFINE_LEVEL(dm_log_info, DMUTEX_LOG_INFO)
DEFINE_LEVEL(dm_log_debug, DMUTEX_LOG_DEBUG)

void dm_log_alarm(const char *format, ...)
{
    char line[HEAD_ROOM + LINE_ROOM];
    size_t head;
    va_list args;

    va_start(args, format);
    if (dm_log_is_heard(DMUTEX_LOG_ERROR)) {
        emit(DMUTEX_LOG_ERROR, format, args);
    } else {
        head = write_head(DMUTEX_LOG_ERROR, line);
        vsnprintf(line + head, LINE_ROOM, format, args);
        dm_text_clean(line + head);
        write_line(STDERR_FILENO, line, strlen(line));
    }
    va_end(args);
}

void dm_log_set(dmutex_log_fn log, void *user)
{
    dm_mutex_lock(&lock);
    callback = log;
    callback_user = user;
    dm_mutex_unlock(&lock);
}

void dm_log_fork_prepare(void)
{
    dm_mutex_lock(&lock);
}

void dm_log_fork_parent(void)
{
    dm_mutex_unlock(&lock);
}

/*
 * Forgets the lines without freeing them: the parent delivers them, and after a bare fork the list may be inconsistent.
 */
void dm_log_fork_child(void)
{
    waiting = NULL;
    waiting_end = &waiting;
    dm_mutex_reset(&lock);
}
