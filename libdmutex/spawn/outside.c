/* SPDX-License-Identifier: BSD-2-Clause */
#include "spawn/outside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bit 16 of the flags: the socket listens. */
#define LISTENS 0x10000ul

/* "Num: RefCount Protocol Flags Type St Inode Path"; the path may have blanks. */
static bool is_listener(const char *line, const char *path)
{
    unsigned long flags;
    int at = 0;

    if (sscanf(line, "%*s %*s %*s %lx %*s %*s %*s%n", &flags, &at) != 1 || at == 0)
        return false;
    return (flags & LISTENS) && line[at] == ' ' && strcmp(line + at + 1, path) == 0;
}

/* thread-self: the first thread's network is gone once that thread has ended. */
bool dm_outside_has_listener(const char *path)
{
    FILE *list = fopen("/proc/thread-self/net/unix", "re");
    char *line = NULL;
    size_t room = 0;
    bool is_found = false;
    ssize_t length;

    while (list && !is_found && (length = getline(&line, &room, list)) > 0) {
        line[length - 1] = '\0';
        is_found = is_listener(line, path);
    }
    free(line);
    if (list)
        fclose(list);
    return is_found;
}

/* systemd keeps a service in a group of its name, in its own hierarchy or in the only one. */
static bool read_line(const char *line, size_t length, char *ret_unit)
{
    static const char suffix[] = ".service";
    const char *colon = memchr(line, ':', length), *slash = memrchr(line, '/', length), *name;
    size_t size;

    if (!colon || !slash || (strncmp(colon, "::", 2) != 0 && strncmp(colon, ":name=systemd:", 14) != 0))
        return false;
    name = slash + 1;
    size = length - (size_t)(name - line);
    if (size <= strlen(suffix) || size >= DM_OUTSIDE_UNIT_ROOM ||
        memcmp(name + size - strlen(suffix), suffix, strlen(suffix)) != 0)
        return false;
    memcpy(ret_unit, name, size);
    ret_unit[size] = '\0';
    return true;
}

bool dm_outside_read_unit(const char *cgroups, char ret_unit[DM_OUTSIDE_UNIT_ROOM])
{
    for (const char *line = cgroups; *line;) {
        size_t length = strcspn(line, "\n");

        if (read_line(line, length, ret_unit))
            return true;
        line += length + (line[length] == '\n');
    }
    return false;
}

bool dm_outside_unit(char ret_unit[DM_OUTSIDE_UNIT_ROOM])
{
    FILE *file = fopen("/proc/self/cgroup", "re");
    char text[1024];
    size_t length = file ? fread(text, 1, sizeof text - 1, file) : 0;

    text[length] = '\0';
    if (file)
        fclose(file);
    return dm_outside_read_unit(text, ret_unit);
}
