/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/thread.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/log.h"

#define STACK_MIN ((size_t)256 * 1024)

/*
 * A new thread inherits policy, priority, nice value and cores from its creator, which may be the least important
 * thread of the process, bound to one core.  All holds depend on the library's own thread, so it gets the values that
 * the process had when the library was loaded. (If that was by dlopen(), they are those of the thread that called it.)
 */
static struct {
    bool is_known;
    cpu_set_t cores;
    int policy, nice;
    struct sched_param priority;
} usual;

__attribute__((constructor)) static void note_usual(void)
{
    usual.policy = sched_getscheduler(0);
    usual.nice = getpriority(PRIO_PROCESS, 0);
    usual.is_known = usual.policy >= 0 && sched_getparam(0, &usual.priority) == 0 &&
                     sched_getaffinity(0, sizeof usual.cores, &usual.cores) == 0;
}

/* On Linux each thread has its own of all these values.  Raising a priority requires CAP_SYS_NICE or RLIMIT_NICE. */
static void become_usual(void)
{
    bool is_lower;

    if (!usual.is_known)
        return;
    sched_setaffinity(0, sizeof usual.cores, &usual.cores);
    is_lower = sched_getscheduler(0) != usual.policy && sched_setscheduler(0, usual.policy, &usual.priority) != 0;
    is_lower |= getpriority(PRIO_PROCESS, 0) != usual.nice && setpriority(PRIO_PROCESS, 0, usual.nice) != 0;
    if (is_lower)
        dm_log_warn(
            "the library's thread has the priority of the thread that locked first, and may not raise it: renewals "
            "may be late on a busy machine");
}

struct task {
    void *(*run)(void *);
    void *user;
};

/* The thread may call dlopen(), for the module of TLS or in a look-up. */
void dm_thread_allocate_first(void)
{
    void *volatile block = malloc(1); /* volatile: or the compiler leaves both calls out */

    free(block);
}

static void *begin(void *user)
{
    struct task task = *(struct task *)user;

    free(user);
    dm_thread_allocate_first();
    become_usual();
    return task.run(task.user);
}

static void describe(pthread_attr_t *attributes)
{
    size_t size = 0;

    pthread_attr_setdetachstate(attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_getstacksize(attributes, &size);
    if (size < STACK_MIN)
        pthread_attr_setstacksize(attributes, STACK_MIN);
}

/*
 * Signals are blocked before the thread begins: if the new thread set the mask itself, a signal could arrive before
 * that. begin() frees the task, or this function does if there is no thread.  Detached, because nobody joins it:
 * nothing is torn down at exit.
 */
int dm_thread_start(void *(*run)(void *), void *user)
{
    pthread_t thread;
    pthread_attr_t attributes;
    sigset_t all, mask;
    struct task *task = malloc(sizeof *task);
    int error = task ? pthread_attr_init(&attributes) : ENOMEM;

    if (error) {
        free(task);
        return error;
    }
    *task = (struct task){ run, user };
    describe(&attributes);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &mask);
    error = pthread_create(&thread, &attributes, begin, task);
    if (error)
        free(task);
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    pthread_attr_destroy(&attributes);
    return error;
}

/* The lowest address and the end of the stack; both 0 where they are not known. */
struct bounds {
    bool is_read;
    uintptr_t lowest, end;
};

/* The first thread's stack grows by itself, and its bounds would have to be read from /proc. */
static void read_bounds(struct bounds *bounds)
{
    pthread_attr_t attributes;
    void *lowest;
    size_t size;

    bounds->is_read = true;
    if (getpid() == gettid() || pthread_getattr_np(pthread_self(), &attributes) != 0)
        return;
    if (pthread_attr_getstack(&attributes, &lowest, &size) == 0) {
        bounds->lowest = (uintptr_t)lowest;
        bounds->end = bounds->lowest + size;
    }
    pthread_attr_destroy(&attributes);
}

bool dm_thread_has_stack(size_t bytes)
{
    static __thread struct bounds bounds;
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);

    if (!bounds.is_read)
        read_bounds(&bounds);
    return here < bounds.lowest || here >= bounds.end || here - bounds.lowest >= bytes;
}
