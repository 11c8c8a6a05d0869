/* SPDX-License-Identifier: BSD-2-Clause */
#include "wait.h"

#include <poll.h>

#include "testlib.h"

void wait_nap(void)
{
    nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
}

void wait_pause(int64_t began_ms)
{
    int64_t lasted_ms = wait_now_ms() - began_ms, ms = lasted_ms < 400 ? 1 + lasted_ms / 20 : 20;

    nanosleep(&(struct timespec){ .tv_nsec = ms * 1000000 }, NULL);
}

int64_t wait_now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int64_t wait_now_ms(void)
{
    return wait_now_us() / 1000;
}

struct timespec wait_time_in_ms(clockid_t clock, int64_t ms)
{
    struct timespec time;
    int64_t nsec;

    clock_gettime(clock, &time);
    nsec = time.tv_nsec + ms % 1000 * 1000000;
    time.tv_sec += ms / 1000 + (nsec < 0 ? -1 : nsec / 1000000000);
    time.tv_nsec = nsec < 0 ? nsec + 1000000000 : nsec % 1000000000;
    return time;
}

bool wait_is_reached(clockid_t clock, const struct timespec *time)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return now.tv_sec > time->tv_sec || (now.tv_sec == time->tv_sec && now.tv_nsec >= time->tv_nsec);
}

bool wait_readable(int fd, int limit_ms)
{
    struct pollfd ready = { .fd = fd, .events = POLLIN };
    int result;

    do
        result = poll(&ready, 1, limit_ms);
    while (result < 0 && errno == EINTR);
    return result > 0;
}

void wait_fail(const char *expression, const char *file, int line)
{
    print_error("never became true: %s\n", expression);
    _fail(file, line);
}
