/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/poll.h"

#include <errno.h>
#include <time.h>

#include "base/units.h"

#define NAP_NS (10 * DM_NS_PER_MS)

static int poll_for(struct pollfd *polled, unsigned count, int64_t ns)
{
    struct timespec timeout = { .tv_sec = (time_t)(ns / DM_NS_PER_S), .tv_nsec = (long)(ns % DM_NS_PER_S) };

    return ppoll(polled, count, ns == DM_NEVER ? NULL : &timeout, NULL);
}

void dm_poll(struct pollfd *polled, unsigned count, int64_t timeout_ns)
{
    if (poll_for(polled, count, timeout_ns) >= 0 || errno == EINTR)
        return;
    poll_for(NULL, 0, timeout_ns < NAP_NS ? timeout_ns : NAP_NS);
    for (unsigned i = 0; i < count; i++)
        polled[i].revents = polled[i].events;
}
