/* SPDX-License-Identifier: BSD-2-Clause */
/* Waiting, threads, processes and signals, of which the clauses are made. */
#include "shalls.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- Waiting --------------------------------------------------------------------------------- */

void nap(void)
{
    struct timespec pause = { 0, 1000000 };

    nanosleep(&pause, NULL);
}

struct timespec in_ms(clockid_t clock, int64_t ms)
{
    struct timespec time;
    int64_t ns;

    clock_gettime(clock, &time);
    ns = time.tv_nsec + (ms % 1000) * 1000000;
    time.tv_sec += ms / 1000 + ns / 1000000000 - (ns < 0);
    time.tv_nsec = (ns + 1000000000) % 1000000000;
    return time;
}

bool is_reached(clockid_t clock, const struct timespec *time)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return now.tv_sec > time->tv_sec || (now.tv_sec == time->tv_sec && now.tv_nsec >= time->tv_nsec);
}

/* ---- Threads --------------------------------------------------------------------------------- */

static void *run(void *argument)
{
    struct task *task = argument;
    intptr_t result;

    task->tid = gettid();
    result = task->work(task->with);
    task->is_over = true;
    return (void *)result;
}

void task_begin(struct task *task, work_fn work, void *with)
{
    *task = (struct task){ .work = work, .with = with };
    if (pthread_create(&task->thread, NULL, run, task) != 0)
        abort();
}

bool task_is_over(struct task *task)
{
    return task->is_over;
}

static bool is_asleep(pid_t tid)
{
    char path[64], state = '?';
    FILE *stat;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)tid);
    stat = fopen(path, "r");
    if (!stat || fscanf(stat, "%*d (%*[^)]) %c", &state) != 1)
        state = '?';
    if (stat)
        fclose(stat);
    return state == 'S';
}

bool task_await_sleep(struct task *task)
{
    int looks = 0;

    await(task->tid != 0);
    await(task->is_over || (looks = is_asleep(task->tid) ? looks + 1 : 0) == 20);
    return !task->is_over;
}

bool task_ends_soon(struct task *task)
{
    static struct timespec limit;

    if (limit.tv_sec == 0)
        limit = in_ms(CLOCK_MONOTONIC, 5000);
    await(task->is_over || is_reached(CLOCK_MONOTONIC, &limit));
    return task->is_over;
}

int task_join(struct task *task)
{
    void *result;

    pthread_join(task->thread, &result);
    return result == PTHREAD_CANCELED ? CANCELLED : (int)(intptr_t)result;
}

int elsewhere(work_fn work, void *with)
{
    struct task task;

    task_begin(&task, work, with);
    return task_join(&task);
}

/* ---- Processes ------------------------------------------------------------------------------- */

void process_await_sleep(pid_t pid)
{
    int looks = 0;

    await((looks = is_asleep(pid) ? looks + 1 : 0) == 20);
}

pid_t process_begin(work_fn work, void *with)
{
    pid_t pid = fork();

    if (pid < 0)
        abort();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        _exit(work(with));
    }
    return pid;
}

int process_end(pid_t pid)
{
    int status;

    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : KILLED;
}

int in_process(work_fn work, void *with)
{
    return process_end(process_begin(work, with));
}

void *shared_memory(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED)
        abort();
    return memory;
}

/* ---- Signals --------------------------------------------------------------------------------- */

static _Atomic int handled;

static void note_signal(int number)
{
    (void)number;
    handled++;
}

void signals_begin(void)
{
    struct sigaction action = { .sa_handler = note_signal };

    sigaction(SIGUSR1, &action, NULL);
}

void signals_send(struct task *task, int count)
{
    for (int i = 0; i < count; i++) {
        int before = handled;

        pthread_kill(task->thread, SIGUSR1);
        await(handled > before);
    }
}
