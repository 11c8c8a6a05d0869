/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How late this machine is. Beside other programs a woken thread runs when the thread's turn comes; a lease that ends
 * earlier is lost through no fault of the library. The keeper sleeps for 5 ms again and again, and notes how late the
 * wakeup was.
 */
#ifndef TEST_LATE_H
#define TEST_LATE_H

#include <stdbool.h>
#include <stdint.h>

/* Shared with the process that watches. */
struct late {
    int64_t worst_us[2]; /* of the last second or two, and of the time before */
    int looks;
};

/* Watches until the other end of the pipe is closed. */
void late_watch(struct late *late, int fd);

/*
 * `ms`, and ten times the worst lateness of the last seconds: a holder's renewal wakes four threads and processes, one
 * after the other, in less than half of the lease. Nearly `ms` on a quiet machine. For leases, and for times that some
 * step must not miss; waits for the first looks.
 */
int late_stretched_ms(int ms);

#endif
