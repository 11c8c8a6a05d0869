/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How late this machine is. If other programs run, a thread that is woken has to wait for its turn, and a lease that
 * ends earlier is lost through no fault of the library. The keeper repeatedly sleeps for 5 ms, and notes how late it
 * woke up.
 */
#ifndef TEST_LATE_H
#define TEST_LATE_H

#include <stdbool.h>
#include <stdint.h>

/* Shared with the process that watches. */
struct late {
    int64_t worst_us[2]; /* in the last second or two, and in the time before that */
    int looks;
};

/* Watches until the other end of the pipe is closed. */
void late_watch(struct late *late, int fd);

/*
 * `ms`, plus ten times the worst lateness of the last seconds: a holder's renewal wakes four threads and processes, one
 * after the other, in less than half of the lease. On a quiet machine it is nearly `ms`. For leases, and for times that
 * some step must not miss; waits for the first measurements.
 */
int late_stretched_ms(int ms);

#endif
