/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The descendants of a process, from /proc: a signal to one process of a shell's pipeline would miss the others.
 *
 * Between the scan and the signal a process may end, and another may get its pid.  So the signal goes to a process
 * descriptor (Linux 5.3), which is checked against the scan: pid and start time together identify a process.
 */
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
#include <sys/syscall.h>
#include <unistd.h>

#include "servant.h"

struct process {
    pid_t pid, parent;
    unsigned long long start; /* in clock ticks since boot */
    bool is_below;
};

struct list {
    struct process *processes;
    size_t count;
};

/*
 * Reads fields 4 and 22 of the line.  They follow the program's name, which may contain any byte.  False if the process
 * has ended or is hidden.
 */
static bool look(pid_t pid, struct process *ret_process)
{
    struct process process = { .pid = pid };
    char path[64], text[512];
    const char *end;
    ssize_t length;
    int fd;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    length = read(fd, text, sizeof text - 1);
    close(fd);
    text[length > 0 ? length : 0] = '\0';
    end = strrchr(text, ')');
    if (!end || sscanf(end, ") %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
                       &process.parent, &process.start) != 2)
        return false;
    *ret_process = process;
    return true;
}

static void add(struct list *list, pid_t pid)
{
    struct process *processes = reallocarray(list->processes, list->count + 1, sizeof *processes);

    if (!processes)
        return;
    list->processes = processes;
    list->count += look(pid, &processes[list->count]);
}

/* A /proc of another pid namespace has other numbers for all processes, including this one, or lacks this one. */
static bool is_proc_ours(void)
{
    char pid[16];
    ssize_t length = readlink("/proc/self", pid, sizeof pid - 1);

    pid[length > 0 ? length : 0] = '\0';
    return atoi(pid) == getpid();
}

static struct list read_all(void)
{
    struct list list = { NULL, 0 };
    DIR *folder = is_proc_ours() ? opendir("/proc") : NULL;
    struct dirent *entry;

    while (folder && (entry = readdir(folder)))
        if (isdigit((unsigned char)entry->d_name[0]))
            add(&list, atoi(entry->d_name));
    if (folder)
        closedir(folder);
    return list;
}

/* A parent is older than its child.  A younger one got the parent's pid after the child was read. */
static bool is_below(const struct list *list, const struct process *process, pid_t root)
{
    if (process->parent == root)
        return true;
    for (size_t i = 0; i < list->count; i++)
        if (list->processes[i].pid == process->parent)
            return list->processes[i].is_below && list->processes[i].start <= process->start;
    return false;
}

/* True if it found and marked another descendant. */
static bool mark_more(struct list *list, pid_t root)
{
    bool is_new = false;

    for (size_t i = 0; i < list->count; i++) {
        struct process *process = &list->processes[i];

        if (!process->is_below && is_below(list, process, root))
            process->is_below = is_new = true;
    }
    return is_new;
}

/* Lists all processes, with the descendants of `root` marked. */
static struct list find_below(pid_t root)
{
    struct list list = read_all();

    while (mark_more(&list, root))
        continue;
    return list;
}

/* Returns 0 or an errno value.  A process that has ended needs no signal. */
static int send_signal(const struct process *process, int number)
{
    int fd = (int)syscall(SYS_pidfd_open, process->pid, 0), error = 0;
    struct process now;

    if (fd < 0)
        return errno == ESRCH ? 0 : ENOSYS; /* a container's filter may return EPERM instead */
    if (look(process->pid, &now) && now.start == process->start &&
        syscall(SYS_pidfd_send_signal, fd, number, NULL, 0) < 0 && errno != ESRCH)
        error = errno;
    close(fd);
    return error;
}

/*
 * A process that a descendant makes during the scan is missed, unless its parent dies of the signal only after that.
 * Then the new process is an orphan that got no signal.
 */
bool tree_signal(pid_t root, int number, pid_t *ret_forbidden)
{
    struct list list = find_below(root);
    bool is_sent = list.count > 0;

    *ret_forbidden = 0;
    for (size_t i = 0; is_sent && i < list.count; i++) {
        const struct process *process = &list.processes[i];
        int error = process->is_below && !servant_is(process->pid) ? send_signal(process, number) : 0;

        if (error == EPERM)
            *ret_forbidden = process->pid;
        else if (error)
            is_sent = false;
    }
    free(list.processes);
    return is_sent;
}

static bool sees_servants_only(pid_t root)
{
    struct list list = find_below(root);
    bool result = list.count > 0;

    for (size_t i = 0; result && i < list.count; i++)
        result = !list.processes[i].is_below || servant_is(list.processes[i].pid);
    free(list.processes);
    return result;
}

/* Scans twice: one scan may miss a process just made by a process that ended before the scan reached it. */
bool tree_has_servants_only(pid_t root)
{
    return sees_servants_only(root) && sees_servants_only(root);
}
