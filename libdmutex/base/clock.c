/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/clock.h"

/* Ten years: long enough for any wait, short enough to be added to any clock. */
#define LONGEST_NS (INT64_C(3650) * 86400 * DM_NS_PER_S)

const struct dm_deadline dm_deadline_endless = { .is_endless = true };

static int64_t to_ns(struct timespec time)
{
    return (int64_t)time.tv_sec * DM_NS_PER_S + time.tv_nsec;
}

/* Cannot fail: the library reads three clocks, which Linux always has, and the public functions refuse all others. */
static struct timespec read_clock(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return now;
}

int64_t dm_clock_boot_ns(void)
{
    return to_ns(read_clock(CLOCK_BOOTTIME));
}

/* `ns` is not negative; so tv_nsec stays in 0..999999999, and sem_clockwait() takes the result. */
static struct timespec add_ns(struct timespec time, int64_t ns)
{
    int64_t nsec = time.tv_nsec + ns % DM_NS_PER_S;

    time.tv_sec += (time_t)(ns / DM_NS_PER_S + nsec / DM_NS_PER_S);
    time.tv_nsec = (long)(nsec % DM_NS_PER_S);
    return time;
}

/*
 * CLOCK_MONOTONIC and not CLOCK_BOOTTIME, because sem_clockwait() takes only CLOCK_MONOTONIC and CLOCK_REALTIME. The
 * wait is longer if the machine is suspended, but no hold depends on it: certainty is compared with CLOCK_BOOTTIME.
 */
struct dm_deadline dm_deadline_in_ms(int64_t ms)
{
    return (struct dm_deadline){
        .clock = CLOCK_MONOTONIC,
        .at = add_ns(read_clock(CLOCK_MONOTONIC), ms * DM_NS_PER_MS),
    };
}

/* Seconds are compared first, because a caller's tv_sec may have any value of its type. */
int64_t dm_deadline_left_ns(const struct dm_deadline *deadline)
{
    struct timespec now;
    __int128 left;

    if (deadline->is_endless)
        return DM_NEVER;
    now = read_clock(deadline->clock);
    left = ((__int128)deadline->at.tv_sec - now.tv_sec) * DM_NS_PER_S;
    left += deadline->at.tv_nsec - now.tv_nsec;
    if (left <= 0)
        return 0;
    return left > LONGEST_NS ? LONGEST_NS : (int64_t)left;
}

/*
 * Returns the caller's own deadline unchanged if it is sooner: a timed call must never end early, not even by rounding
 * (POSIX, pthread_mutex_timedlock()).
 */
struct dm_deadline dm_deadline_sooner(const struct dm_deadline *deadline, int64_t limit_ns)
{
    clockid_t clock = deadline->is_endless ? CLOCK_MONOTONIC : deadline->clock;

    if (limit_ns > LONGEST_NS)
        limit_ns = LONGEST_NS;
    if (dm_deadline_left_ns(deadline) <= limit_ns)
        return *deadline;
    return (struct dm_deadline){ .clock = clock, .at = add_ns(read_clock(clock), limit_ns) };
}
