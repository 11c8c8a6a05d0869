/* SPDX-License-Identifier: BSD-2-Clause */
#include "tracer.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "testlib.h"

#define CALL_STOP (SIGTRAP | 0x80) /* by PTRACE_O_TRACESYSGOOD */

static void must(long result, const char *what)
{
    if (result < 0)
        fail_msg("ptrace: %s: %s", what, strerror(errno));
}

static void add(struct tracer *tracer, pid_t thread)
{
    assert_true(tracer->count < TRACER_THREADS);
    tracer->threads[tracer->count++] = thread;
}

/* Interrupts a running thread, and waits until it stops, so that its calls are seen from here on. */
static void seize(struct tracer *tracer, pid_t thread)
{
    int status;

    must(ptrace(PTRACE_SEIZE, thread, NULL, PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE), "seize");
    must(ptrace(PTRACE_INTERRUPT, thread, NULL, NULL), "interrupt");
    assert_int_equal(waitpid(thread, &status, __WALL), thread);
    assert_true(WIFSTOPPED(status));
    add(tracer, thread);
}

void tracer_start(struct tracer *tracer, pid_t pid)
{
    char path[64];
    struct dirent *entry;
    DIR *tasks;

    memset(tracer, 0, sizeof *tracer);
    tracer->pid = pid;
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    tasks = opendir(path);
    assert_non_null(tasks);
    while ((entry = readdir(tasks)) != NULL) {
        if (entry->d_name[0] != '.')
            seize(tracer, (pid_t)atoi(entry->d_name));
    }
    closedir(tasks);
    for (int i = 0; i < tracer->count; i++)
        must(ptrace(PTRACE_SYSCALL, tracer->threads[i], NULL, NULL), "go on");
}

static void note_call(struct tracer *tracer, pid_t thread)
{
    struct __ptrace_syscall_info info = { 0 };

    must(ptrace(PTRACE_GET_SYSCALL_INFO, thread, sizeof info, &info), "ask for the call");
    if (info.op == PTRACE_SYSCALL_INFO_ENTRY)
        tracer->calls[info.entry.nr % TRACER_CALLS]++;
}

static int index_of(const struct tracer *tracer, pid_t thread)
{
    for (int i = 0; i < tracer->count; i++) {
        if (tracer->threads[i] == thread)
            return i;
    }
    return -1;
}

static void note_clone(struct tracer *tracer, pid_t thread)
{
    unsigned long made;

    must(ptrace(PTRACE_GETEVENTMSG, thread, NULL, &made), "ask for the thread");
    if (index_of(tracer, (pid_t)made) < 0)
        add(tracer, (pid_t)made);
}

/* Lets a stopped thread continue, with the signal that it was to get. */
static void take_stop(struct tracer *tracer, int index, int status)
{
    pid_t thread = tracer->threads[index];
    int event = status >> 16;

    if (!WIFSTOPPED(status)) { /* the thread has ended */
        tracer->threads[index] = tracer->threads[--tracer->count];
        return;
    }
    if (WSTOPSIG(status) == CALL_STOP)
        note_call(tracer, thread);
    if (event == PTRACE_EVENT_CLONE)
        note_clone(tracer, thread);
    must(ptrace(PTRACE_SYSCALL, thread, NULL,
                (void *)(intptr_t)(event || WSTOPSIG(status) == CALL_STOP ? 0 : WSTOPSIG(status))),
         "go on");
}

/* Sleeps until a thread stops: if the tracer polled, it would take the core away from the process. */
void tracer_run(struct tracer *tracer, bool (*is_over)(void *user), void *user)
{
    while (!is_over(user)) {
        int status, index;
        pid_t thread = waitpid(-1, &status, __WALL);

        if (thread < 0)
            fail_msg("waitpid: %s", strerror(errno));
        index = index_of(tracer, thread);
        if (index < 0 && WIFSTOPPED(status)) { /* a new thread, seen before its maker's stop */
            add(tracer, thread);
            index = tracer->count - 1;
        }
        if (index >= 0)
            take_stop(tracer, index, status);
    }
}

void tracer_stop(struct tracer *tracer)
{
    for (int i = 0; i < tracer->count; i++) {
        pid_t thread = tracer->threads[i];
        int status;

        ptrace(PTRACE_INTERRUPT, thread, NULL, NULL); /* fails for a thread that is just ending */
        assert_int_equal(waitpid(thread, &status, __WALL), thread);
        if (WIFSTOPPED(status) && ptrace(PTRACE_DETACH, thread, NULL, NULL) < 0 && errno != ESRCH)
            fail_msg("ptrace: detach: %s", strerror(errno));
    }
}
