/* SPDX-License-Identifier: BSD-2-Clause */
#include "proc.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool look(pid_t id, char *ret_state, int *ret_parent)
{
    char path[64];
    FILE *stat;
    int found;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)id);
    stat = fopen(path, "r");
    if (!stat)
        return false;
    found = fscanf(stat, "%*d (%*[^)]) %c %d", ret_state, ret_parent);
    fclose(stat);
    return found == 2;
}

char proc_state(pid_t id)
{
    char state;
    int parent;

    return look(id, &state, &parent) ? state : 'X';
}

bool proc_is_alive(pid_t id)
{
    char state = proc_state(id);

    return state != 'X' && state != 'Z';
}

pid_t proc_parent(pid_t id)
{
    char state;
    int parent;

    return look(id, &state, &parent) ? (pid_t)parent : 0;
}

bool proc_has_pending(pid_t id, int number)
{
    char path[64], line[200];
    unsigned long long one, all = 0;
    FILE *status;

    snprintf(path, sizeof path, "/proc/%d/status", (int)id);
    status = fopen(path, "r");
    while (status && fgets(line, sizeof line, status))
        if (sscanf(line, "SigPnd: %llx", &one) == 1 || sscanf(line, "ShdPnd: %llx", &one) == 1)
            all |= one;
    if (status)
        fclose(status);
    return all >> (number - 1) & 1;
}

long proc_kib(pid_t id, const char *kind)
{
    char path[64], line[200];
    size_t length = strlen(kind);
    long kib = 0;
    FILE *status;

    snprintf(path, sizeof path, "/proc/%d/status", (int)id);
    status = fopen(path, "r");
    while (status && fgets(line, sizeof line, status))
        if (strncmp(line, kind, length) == 0 && line[length] == ':')
            kib = strtol(line + length + 1, NULL, 10);
    if (status)
        fclose(status);
    return kib;
}

int proc_own_threads(void)
{
    DIR *folder = opendir("/proc/self/task");
    int count = -2; /* "." and ".." */

    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}
