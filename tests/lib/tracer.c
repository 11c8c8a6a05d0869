/* SPDX-License-Identifier: BSD-2-Clause */
#include "tracer.h"

#include <dirent.h>
#include <errno.h>
#include <sched.h>
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

/* A thread that runs is interrupted; the stop is waited for, so that the thread's calls are seen from here on. */
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

static void note_clone(struct tracer *tracer, pid_t thread)
{
    unsigned long made;

    must(ptrace(PTRACE_GETEVENTMSG, thread, NULL, &made), "ask for the thread");
    add(tracer, (pid_t)made);
}

/* Lets a stopped thread go on, with the signal that the thread was to get. */
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

/* False: no thread has stopped. */
static bool take_any_stop(struct tracer *tracer)
{
    for (int i = 0; i < tracer->count; i++) {
        int status;

        if (waitpid(tracer->threads[i], &status, __WALL | WNOHANG) != tracer->threads[i])
            continue;
        take_stop(tracer, i, status);
        return true;
    }
    return false;
}

void tracer_run(struct tracer *tracer, bool (*is_over)(void *user), void *user)
{
    int64_t until_ms = wait_now_ms() + WAIT_LIMIT_MS;

    while (!is_over(user)) {
        if (take_any_stop(tracer)) {
            until_ms = wait_now_ms() + WAIT_LIMIT_MS;
            continue;
        }
        if (wait_now_ms() > until_ms)
            fail_msg("the traced process makes no system call any more");
        sched_yield(); /* a pause would slow the process down so much that its loop thread meets other times */
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
