/* SPDX-License-Identifier: BSD-2-Clause */
#include "clocks.h"

#include <dlfcn.h>
#include <semaphore.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static struct clocks shown = { .rate = 1 };
static int64_t since_ns;
static int (*libc_gettime)(clockid_t, struct timespec *);
static int (*libc_wait)(sem_t *, clockid_t, const struct timespec *);

/* Runs before the first thread. */
__attribute__((__constructor__)) static void find_functions(void)
{
    *(void **)&libc_gettime = dlsym(RTLD_NEXT, "clock_gettime");
    *(void **)&libc_wait = dlsym(RTLD_NEXT, "sem_clockwait");
}

static int64_t to_ns(const struct timespec *time)
{
    return (int64_t)time->tv_sec * 1000000000 + time->tv_nsec;
}

/* Asks the kernel itself, because the program replaces libc's function. */
static struct timespec true_time(clockid_t clock)
{
    struct timespec now = { .tv_sec = 0 };

    syscall(SYS_clock_gettime, clock, &now);
    return now;
}

void clocks_set(const struct clocks *clocks)
{
    struct timespec now = true_time(CLOCK_BOOTTIME);

    since_ns = to_ns(&now);
    shown = *clocks;
}

int64_t clocks_true_ns(int64_t from_ns, int64_t passed_ns)
{
    return from_ns + (int64_t)((double)passed_ns / shown.rate);
}

static void bend(struct timespec *time)
{
    int64_t ns = since_ns + (int64_t)((double)(to_ns(time) - since_ns) * shown.rate);

    *time = (struct timespec){ .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 };
}

int clock_gettime(clockid_t clock, struct timespec *ret_now)
{
    int result;

    if (!libc_gettime)
        find_functions();
    result = libc_gettime(clock, ret_now);
    if (result == 0 && clock == CLOCK_REALTIME)
        ret_now->tv_sec += shown.wall_ahead_s;
    if (result == 0 && clock == CLOCK_BOOTTIME)
        bend(ret_now);
    return result;
}

int sem_clockwait(sem_t *semaphore, clockid_t clock, const struct timespec *until)
{
    struct timespec truly = *until;

    if (clock == CLOCK_REALTIME)
        truly.tv_sec -= shown.wall_ahead_s;
    return libc_wait(semaphore, clock, &truly);
}
