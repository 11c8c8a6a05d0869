/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A hold can be lost: the owner was stopped for too long, the server could not be reached, an operator broke the lock,
 * or, as here, the job ran longer than the maximum hold.  The program learns of it in two ways: by a callback, at once,
 * and by the result of every later call.
 */
#include <errno.h>
#include <inttypes.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <dmutex/dmutex.h>

static dmutex_t report_mutex;

static atomic_bool must_stop;
static sem_t told;
static uint64_t lost_token;

/* Runs in the library's thread, before anybody else can own the mutex.  Keep it short, and do no I/O. */
static void stop_work(const char *name, uint64_t token, void *user)
{
    (void)user;
    printf("lost: \"%s\", token %" PRIu64 "\n", name, token);
    lost_token = token;
    must_stop = true;
    sem_post(&told);
}

/* A job may hold the mutex for 300 ms, however long it really takes. */
static void set_up_mutex(void)
{
    dmutexattr_t attr;

    dmutexattr_init(&attr);
    dmutexattr_setmaxhold_np(&attr, 300);
    dmutex_init_np(&report_mutex, "night/report", &attr);
    dmutexattr_destroy(&attr);
    dmutex_setlost_np(stop_work, NULL);
}

/* A job in small steps.  Between two steps it checks whether it may go on. */
static void work(void)
{
    const struct timespec step = { .tv_nsec = 20 * 1000 * 1000 };
    int64_t left_ms = 0;

    dmutex_remaining_np(&report_mutex, &left_ms);
    printf("working, the next %" PRId64 " ms are certain\n", left_ms);
    while (!must_stop)
        nanosleep(&step, NULL);
}

static int failures;

static void expect(int is_true, const char *sentence)
{
    printf("%s %s\n", is_true ? "yes:" : "NO: ", sentence);
    failures += !is_true;
}

int main(void)
{
    uint64_t token = 0, next_token = 0;
    int64_t left_ms = -1;

    sem_init(&told, 0, 0);
    set_up_mutex();
    if (dmutex_lock(&report_mutex) != 0 || dmutex_token_np(&report_mutex, &token) != 0) {
        fprintf(stderr, "lostlease: %s\n", dmutex_strerror_np());
        return 1;
    }
    work();
    sem_wait(&told);

    expect(lost_token == token, "the callback names the token of the hold");
    expect(dmutex_remaining_np(&report_mutex, &left_ms) == 0 && left_ms == 0,
           "remaining says 0: nothing is certain any more");
    expect(dmutex_unlock(&report_mutex) == EPERM, "unlock returns EPERM: the caller was no longer the owner");
    expect(dmutex_lock(&report_mutex) == 0, "a new lock succeeds");
    dmutex_token_np(&report_mutex, &next_token);
    expect(next_token > token, "its token is higher");
    expect(dmutex_unlock(&report_mutex) == 0, "and its unlock succeeds");
    return failures ? 1 : 0;
}
