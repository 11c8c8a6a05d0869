/* SPDX-License-Identifier: BSD-2-Clause */
/* A sleep on descriptors that also works where the kernel refuses ppoll(). */
#ifndef DM_BASE_POLL_H
#define DM_BASE_POLL_H

#include <poll.h>
#include <stdint.h>

/*
 * Sleeps until a descriptor is ready or a signal comes, for at most timeout_ns; DM_NEVER: without a limit.  A
 * cancellation point.  Linux refuses to poll more descriptors than RLIMIT_NOFILE allows, even if all are open already
 * (a program that drops its rights may set it to 0).  Then the sleep is short, and all descriptors count as ready, so
 * that the caller reads whatever has come.
 */
void dm_poll(struct pollfd *polled, unsigned count, int64_t timeout_ns);

#endif
