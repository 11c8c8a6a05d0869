/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A module only for `dmutex-run --list`: records lock files that programs make with O_EXCL, link() or mkdir(), without
 * a kernel lock. Such lock files cannot be distributed. The usual module does not intercept open().
 *
 * Each process adds lines to the file `made` in the folder that DMUTEX_LIST names: WAY RESULT PATH, where WAY is one of
 * seen.h and RESULT is 1 if the file was there already, else 0. No malloc, no stdio.
 */
#undef _FORTIFY_SOURCE /* with _FORTIFY_SOURCE open() cannot be defined */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/shield.h"
#include "shared/export.h"
#include "shared/seen.h"
#include "shared/text.h"

/* ---- libc's own -------------------------------------------------------------------------- */

static struct {
    int (*open)(const char *, int, ...);
    int (*open64)(const char *, int, ...);
    int (*openat)(int, const char *, int, ...);
    int (*openat64)(int, const char *, int, ...);
    int (*link)(const char *, const char *);
    int (*linkat)(int, const char *, int, const char *, int);
    int (*mkdir)(const char *, mode_t);
} real;

static const char *list_folder; /* NULL: nothing is recorded */

static void *find(const char *name)
{
    void *volatile found = dlsym(RTLD_NEXT, name); /* not a tail call: the caller defines what is next */

    return found;
}

__attribute__((constructor)) static void begin(void)
{
    real.open = (int (*)(const char *, int, ...))find("open");
    real.open64 = (int (*)(const char *, int, ...))find("open64");
    real.openat = (int (*)(int, const char *, int, ...))find("openat");
    real.openat64 = (int (*)(int, const char *, int, ...))find("openat64");
    real.link = (int (*)(const char *, const char *))find("link");
    real.linkat = (int (*)(int, const char *, int, const char *, int))find("linkat");
    real.mkdir = (int (*)(const char *, mode_t))find("mkdir");
    list_folder = secure_getenv("DMUTEX_LIST");
}

/* Another library's constructor may run earlier. */
static void get_ready(void)
{
    if (!real.mkdir)
        begin();
}

/* ---- a note ------------------------------------------------------------------------------ */

/* Adds the folder from which a relative path starts. */
static void add_folder(struct text *text, int folder)
{
    char link[40], path[1024];
    struct text name = text_in(link, sizeof link);
    ssize_t length;

    text_add(&name, folder == AT_FDCWD ? "/proc/thread-self/cwd" : "/proc/thread-self/fd/");
    if (folder != AT_FDCWD)
        text_add_number(&name, (unsigned)folder);
    length = readlink(link, path, sizeof path);
    if (length > 0)
        text_add_bytes(text, path, (size_t)length);
    text_add(text, "/");
}

/* seen_open() calls this module's own open(), which only records exclusive calls. */
static void append(const char *line, size_t length)
{
    int fd = seen_open(list_folder, MADE_FILE, O_WRONLY | O_APPEND);
    struct dm_shield shield;

    if (fd < 0)
        return;
    dm_shield_raise(&shield);
    if (write(fd, line, length) < 0)
        errno = 0; /* the line is missing from the list */
    dm_shield_lower(&shield);
    close(fd);
}

static int note(int result, char way, int folder, const char *path)
{
    char line[1500];
    struct text text = text_in(line, sizeof line);
    int error = errno;

    if (!list_folder || (result < 0 && error != EEXIST) || strchr(path, '\n'))
        return result;
    text_add_bytes(&text, &way, 1);
    text_add(&text, result < 0 ? " 1 " : " 0 ");
    if (path[0] != '/')
        add_folder(&text, folder);
    text_add(&text, path);
    text_add(&text, "\n");
    if (!text.is_cut)
        append(line, text.length);
    errno = error;
    return result;
}

/* ---- calls ------------------------------------------------------------------------------- */

static bool is_exclusive(int flags)
{
    return (flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL);
}

/* Callers pass a mode only with some flags; without them libc does not read the argument. */
#define DEFINE_OPEN(name, parameters, arguments, folder)                  \
    EXPORT int name parameters                                            \
    {                                                                     \
        mode_t mode;                                                      \
        va_list more;                                                     \
                                                                          \
        va_start(more, flags);                                            \
        mode = va_arg(more, mode_t);                                      \
        va_end(more);                                                     \
        get_ready();                                                      \
        if (is_exclusive(flags))                                          \
            return note(real.name arguments, MADE_BY_OPEN, folder, path); \
        return real.name arguments;                                       \
    }

DEFINE_OPEN(open, (const char *path, int flags, ...), (path, flags, mode), AT_FDCWD)
DEFINE_OPEN(open64, (const char *path, int flags, ...), (path, flags, mode), AT_FDCWD)
DEFINE_OPEN(openat, (int folder, const char *path, int flags, ...), (folder, path, flags, mode), folder)
DEFINE_OPEN(openat64, (int folder, const char *path, int flags, ...), (folder, path, flags, mode), folder)

EXPORT int link(const char *from, const char *path)
{
    get_ready();
    return note(real.link(from, path), MADE_BY_LINK, AT_FDCWD, path);
}

EXPORT int linkat(int from_folder, const char *from, int folder, const char *path, int flags)
{
    get_ready();
    return note(real.linkat(from_folder, from, folder, path, flags), MADE_BY_LINK, folder, path);
}

EXPORT int mkdir(const char *path, mode_t mode)
{
    get_ready();
    return note(real.mkdir(path, mode), MADE_BY_MKDIR, AT_FDCWD, path);
}
