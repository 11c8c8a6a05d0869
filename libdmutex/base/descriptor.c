/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define LEAST 256

int dm_descriptor_move_up(int fd)
{
    int higher = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, LEAST);

    if (higher < 0)
        return fd;
    close(fd);
    return higher;
}

int dm_bell_open(void)
{
    return dm_descriptor_move_up(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
}

void dm_bell_ring(int *bell)
{
    uint64_t one = 1;
    int old = __atomic_load_n(bell, __ATOMIC_RELAXED), other;

    if (write(old, &one, sizeof one) >= 0 || errno != EBADF)
        return; /* or it rings already */
    other = dm_bell_open();
    if (!__atomic_compare_exchange_n(bell, &old, other, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        close(other);
}

void dm_bell_answer(int bell)
{
    uint64_t rings;

    if (read(bell, &rings, sizeof rings) < 0)
        return; /* somebody else was woken by it */
}
