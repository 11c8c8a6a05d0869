/* SPDX-License-Identifier: BSD-2-Clause */
/* The descendants of a process, by /proc: a signal to one process of a shell's pipeline would leave the others. */
#include "tree.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct process {
    pid_t pid, parent;
    bool is_below;
};

struct list {
    struct process *processes;
    size_t count;
};

/* The parent stands behind the program's name, which may have any byte, and the state. */
static pid_t parent_of(const char *pid)
{
    char path[64], text[512];
    const char *end;
    ssize_t length;
    int fd, parent = 0;

    snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    length = read(fd, text, sizeof text - 1);
    close(fd);
    text[length > 0 ? length : 0] = '\0';
    end = strrchr(text, ')');
    return end && sscanf(end, ") %*c %d", &parent) == 1 ? parent : 0;
}

static void add(struct list *list, const char *pid)
{
    struct process *processes = reallocarray(list->processes, list->count + 1, sizeof *processes);

    if (!processes)
        return;
    list->processes = processes;
    processes[list->count++] = (struct process){ .pid = atoi(pid), .parent = parent_of(pid) };
}

static struct list read_all(void)
{
    struct list list = { NULL, 0 };
    DIR *folder = opendir("/proc");
    struct dirent *entry;

    while (folder && (entry = readdir(folder)))
        if (isdigit((unsigned char)entry->d_name[0]))
            add(&list, entry->d_name);
    if (folder)
        closedir(folder);
    return list;
}

static bool is_below(const struct list *list, pid_t parent, pid_t root)
{
    if (parent == root)
        return true;
    for (size_t i = 0; i < list->count; i++)
        if (list->processes[i].pid == parent)
            return list->processes[i].is_below;
    return false;
}

/* True if a descendant was found that was not marked before. */
static bool mark(struct list *list, pid_t root)
{
    bool is_new = false;

    for (size_t i = 0; i < list->count; i++) {
        struct process *process = &list->processes[i];

        if (!process->is_below && is_below(list, process->parent, root))
            process->is_below = is_new = true;
    }
    return is_new;
}

/*
 * A process that a descendant makes meanwhile is missed, unless the maker ends by the signal only after the look.  Then
 * the new process is an orphan that no signal has reached.
 */
bool tree_signal(pid_t root, int number, pid_t *ret_forbidden)
{
    struct list list = read_all();
    bool can_look = list.count > 0;

    *ret_forbidden = 0;
    while (mark(&list, root))
        continue;
    for (size_t i = 0; i < list.count; i++)
        if (list.processes[i].is_below && kill(list.processes[i].pid, number) < 0 && errno == EPERM)
            *ret_forbidden = list.processes[i].pid;
    free(list.processes);
    return can_look;
}
