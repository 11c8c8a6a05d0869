/* SPDX-License-Identifier: BSD-2-Clause */
#include "probe.h"

#include <dmutex/dmutex.h>

#include <errno.h>
#include <glib.h>
#include <pthread.h>
#include <stdbool.h>

#include "caller.h"
#include "errand.h"

/*
 * Belongs to the thread and, once the thread has sent its errand, to the main loop, which frees it. The lock of
 * errand.c orders the two.
 */
struct probe {
    struct caller *caller; /* the main loop's; NULL: gone */
    char *name;
    int error, is_held; /* the thread's, until it has sent its errand */
    char *sentence;
};

/* The thread ends within command_timeout and cannot be interrupted. It is no reason for the keeper to live. */
static void on_caller_gone(void *user)
{
    struct probe *probe = user;

    probe->caller = NULL;
}

static void answer(struct probe *probe)
{
    if (probe->error)
        caller_fail(probe->caller, ENOLCK, probe->sentence);
    else
        caller_answer(probe->caller, probe->is_held ? "held" : "free");
}

static void on_over(void *user)
{
    struct probe *probe = user;

    if (probe->caller)
        answer(probe);
    g_free(probe->name);
    g_free(probe->sentence);
    g_free(probe);
}

/*
 * Needs a thread, because the question may take command_timeout, while the main loop serves others. Looks without
 * locking: others would see a trial lock as a hold.
 */
static void *ask(void *user)
{
    struct probe *probe = user;
    dmutex_t mutex;

    probe->error = dmutex_init_np(&mutex, probe->name, NULL);
    if (!probe->error)
        probe->error = dmutex_islocked_np(&mutex, &probe->is_held);
    if (probe->error)
        probe->sentence = g_strdup_printf("%s: %s", probe->name, dmutex_strerror_np());
    dmutex_destroy(&mutex);
    errand_send(on_over, probe);
    return NULL;
}

void probe_start(struct caller *caller, const char *name)
{
    struct probe *probe = g_new0(struct probe, 1);
    pthread_attr_t attributes;
    pthread_t thread;
    int error;

    probe->caller = caller;
    probe->name = g_strdup(name);
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    error = pthread_create(&thread, &attributes, ask, probe);
    pthread_attr_destroy(&attributes);
    if (!error) {
        caller_on_gone(caller, on_caller_gone, probe);
        return;
    }
    probe->error = error;
    probe->sentence = g_strdup("the keeper of lock files cannot start a thread: look at ulimit and pids.max");
    on_over(probe);
}
