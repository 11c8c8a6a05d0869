/* SPDX-License-Identifier: BSD-2-Clause */
#include "proc.h"

#include <dirent.h>
#include <stdio.h>

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

int proc_own_threads(void)
{
    DIR *folder = opendir("/proc/self/task");
    int count = -2; /* "." and ".." */

    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}
