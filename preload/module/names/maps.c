/* SPDX-License-Identifier: BSD-2-Clause */
#include "maps.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "module/base/scratch.h"
#include "module/base/settings.h"
#include "shared/text.h"

/* ---- /proc/self/maps --------------------------------------------------------------------- */

/* Lines of a file, without stdio. */
struct lines {
    int fd;
    size_t length, at;
    char bytes[2 * MAPS_PATH_ROOM];
};

/* The next line, without the newline; NULL at the end of the file. */
static char *next_line(struct lines *lines)
{
    for (;;) {
        char *line = lines->bytes + lines->at;
        char *end = memchr(line, '\n', lines->length - lines->at);
        ssize_t more;

        if (end) {
            *end = '\0';
            lines->at = (size_t)(end - lines->bytes) + 1;
            return line;
        }
        lines->length -= lines->at;
        memmove(lines->bytes, line, lines->length);
        lines->at = 0;
        more = read(lines->fd, lines->bytes + lines->length, sizeof lines->bytes - lines->length);
        if (more <= 0)
            return NULL;
        lines->length += (size_t)more;
    }
}

/* NULL: there is no such file, or no memory. */
static struct lines *begin_lines(void)
{
    struct lines *lines = scratch_take(sizeof *lines);

    if (!lines)
        return NULL;
    lines->length = lines->at = 0;
    lines->fd = open("/proc/thread-self/maps", O_RDONLY | O_CLOEXEC);
    if (lines->fd >= 0)
        return lines;
    scratch_give(lines, sizeof *lines);
    return NULL;
}

static void end_lines(struct lines *lines)
{
    if (lines)
        close(lines->fd);
    scratch_give(lines, sizeof *lines);
}

/* Reads one line: from-to rights offset device inode path. True if the address is in the range. */
static bool is_at(const char *line, uintptr_t address, char ret_path[MAPS_PATH_ROOM], uint64_t *ret_offset)
{
    char *after;
    uintptr_t from = strtoull(line, &after, 16), to = *after == '-' ? strtoull(after + 1, &after, 16) : 0;
    uint64_t offset = strlen(after) > 6 ? strtoull(after + 6, &after, 16) : 0;
    const char *path = strchr(after, '/');

    if (address < from || address >= to)
        return false;
    ret_path[0] = '\0';
    if (path && strlen(path) < MAPS_PATH_ROOM)
        strcpy(ret_path, path);
    *ret_offset = offset + (address - from);
    return true;
}

static bool is_deleted(const char *path)
{
    size_t length = strlen(path), mark = strlen(" (deleted)");

    return length > mark && strcmp(path + length - mark, " (deleted)") == 0;
}

bool maps_find(const void *address, char ret_path[MAPS_PATH_ROOM], uint64_t *ret_offset)
{
    int error = errno, cancel_state;
    struct lines *lines;
    bool is_found = false;
    char *line;

    ret_path[0] = '\0';
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    lines = begin_lines();
    while (lines && !is_found && (line = next_line(lines)))
        is_found = is_at(line, (uintptr_t)address, ret_path, ret_offset);
    end_lines(lines);
    pthread_setcancelstate(cancel_state, NULL);
    errno = error;
    return is_found && ret_path[0] && !is_deleted(ret_path);
}

/* ---- rules ------------------------------------------------------------------------------- */

static bool is_same_file(const struct rule *rule, const char *path)
{
    struct paths {
        char typed[MAPS_PATH_ROOM], resolved[PATH_MAX];
    } *paths = scratch_take(sizeof *paths);
    struct text text;
    bool is_same;

    if (!paths)
        return false;
    text = text_in(paths->typed, sizeof paths->typed);
    if (rule->kind == RULE_SHM)
        text_add(&text, "/dev/shm");
    text_add(&text, rule->module);
    is_same = strcmp(paths->typed, path) == 0 ||
              (realpath(paths->typed, paths->resolved) && strcmp(paths->resolved, path) == 0);
    scratch_give(paths, sizeof *paths);
    return is_same;
}

const struct rule *maps_rule(const char *path, uint64_t offset, bool is_condition)
{
    const struct settings *settings = settings_get();
    int error = errno;

    for (int i = 0; i < settings->count; i++) {
        const struct rule *rule = &settings->rules[i];

        if ((rule->kind == RULE_SHM || rule->kind == RULE_MAP) && rule->is_condition == is_condition &&
            rule->offset == offset && is_same_file(rule, path)) {
            errno = error;
            return rule;
        }
    }
    errno = error;
    return NULL;
}
