/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A module for LD_PRELOAD: the wall clock of a server is ahead by the seconds in the file that $DMUTEX_TEST_SKEW
 * names.  The test changes the number while the server runs.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const int64_t right;
static const volatile int64_t *ahead_s = &right;

/* Without the file the clock is right. */
__attribute__((__constructor__)) static void find_file(void)
{
    const char *path = getenv("DMUTEX_TEST_SKEW");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *memory = fd >= 0 ? mmap(NULL, sizeof *ahead_s, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;

    if (fd >= 0)
        close(fd);
    if (memory != MAP_FAILED)
        ahead_s = memory;
}

int clock_gettime(clockid_t clock, struct timespec *ret_time)
{
    long result = syscall(SYS_clock_gettime, clock, ret_time);

    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        ret_time->tv_sec += *ahead_s;
    return (int)result;
}

int gettimeofday(struct timeval *restrict ret_time, void *restrict zone)
{
    struct timespec now;

    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &now))
        return -1;
    *ret_time = (struct timeval){ .tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000 };
    return 0;
}

time_t time(time_t *ret_time)
{
    struct timespec now;

    if (clock_gettime(CLOCK_REALTIME, &now))
        return -1;
    if (ret_time)
        *ret_time = now.tv_sec;
    return now.tv_sec;
}
