/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Below the usual limit of 1024 descriptors. With a lower RLIMIT_NOFILE the F_DUPFD fails, and the low number stays. */
#define LEAST 256
#define SPAN 256

/*
 * Each descriptor gets a number that was not the library's for long: if a program closes all descriptors, the bells and
 * sockets that are opened anew must not get the old number of another, whose owner would go on using it unawares.
 * Atomic, a hint: two threads may draw from the same number, and the kernel gives each its own.
 */
static int next_number = LEAST;

static int duplicate(int fd)
{
    int from = __atomic_load_n(&next_number, __ATOMIC_RELAXED);
    int higher = fcntl(fd, F_DUPFD_CLOEXEC, from);

    if (higher < 0)
        higher = fcntl(fd, F_DUPFD_CLOEXEC, LEAST);
    __atomic_store_n(&next_number, higher >= LEAST && higher < LEAST + SPAN ? higher + 1 : LEAST, __ATOMIC_RELAXED);
    return higher;
}

int dm_descriptor_move_up(int fd)
{
    int higher = fd < 0 ? -1 : duplicate(fd);

    if (higher < 0)
        return fd;
    close(fd);
    return higher;
}

/* EFD_NONBLOCK, because a bell may be rung with the lock STATE or CONN held: neither ring nor answer may wait. */
int dm_bell_open(void)
{
    return dm_descriptor_move_up(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
}

/*
 * Several threads may find the bell gone at once: the first puts the new bell there, the other threads close theirs.
 * The old number is not closed, because the number may belong to the program by now. Without free descriptors the bell
 * is -1, which poll() passes over; the next ring gets EBADF and tries again.
 */
static void replace(int *bell, int old)
{
    int other = dm_bell_open();

    if (!__atomic_compare_exchange_n(bell, &old, other, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED) && other >= 0)
        close(other);
}

/*
 * Errors other than EBADF mean that the bell rings already, or that the bell has woken another sleeper. Relaxed loads
 * are enough: the lock of the caller guards what the ring announces, the number itself guards nothing.
 */
void dm_bell_ring(int *bell)
{
    int fd = __atomic_load_n(bell, __ATOMIC_RELAXED);
    uint64_t one = 1;

    if (fd == DM_BELL_GONE)
        return;
    if (write(fd, &one, sizeof one) < 0 && errno == EBADF)
        replace(bell, fd);
}

void dm_bell_answer(int *bell)
{
    int fd = __atomic_load_n(bell, __ATOMIC_RELAXED);
    uint64_t rings;

    if (read(fd, &rings, sizeof rings) < 0 && errno == EBADF)
        replace(bell, fd);
}
