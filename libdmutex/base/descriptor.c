/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Below the usual limit of 1024 descriptors. With a lower RLIMIT_NOFILE, F_DUPFD fails and the low number stays. */
#define LEAST 256
#define SPAN 256

/*
 * Each descriptor gets a number that the library has not used for a long time. Otherwise, after a program has closed
 * all descriptors, a bell or socket that is opened again could get the old number of another one, whose owner would go
 * on using it. Atomic, and only a hint: two threads may start at the same number, and the kernel gives each its own.
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

/*
 * The tag is the signal that O_ASYNC would send: it belongs to the open file, and is never sent, since O_ASYNC is off.
 * The program's files have 0, unless the program uses F_SETSIG itself, and then hardly with these signals.
 */
static int signal_of(enum dm_tag tag)
{
    return SIGRTMAX - 3 - (int)tag;
}

bool dm_descriptor_tag(int fd, enum dm_tag tag)
{
    return fcntl(fd, F_SETSIG, signal_of(tag)) == 0;
}

bool dm_descriptor_is(int fd, enum dm_tag tag)
{
    return fd >= 0 && fcntl(fd, F_GETSIG) == signal_of(tag);
}

/* EFD_NONBLOCK, because a bell may be rung with the lock STATE or CONN held: neither ring nor answer may block. */
int dm_bell_open(void)
{
    int fd = dm_descriptor_move_up(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));

    if (fd >= 0 && !dm_descriptor_tag(fd, DM_TAG_BELL)) {
        int error = errno;

        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

void dm_bell_close(int bell)
{
    if (dm_descriptor_is(bell, DM_TAG_BELL))
        close(bell);
}

/*
 * Several threads may find the bell gone at once: the first installs its new bell, the others close theirs. The old
 * number is not closed, because it may now belong to the program. Without free descriptors the bell is -1, which poll()
 * ignores; the next ring tries again.
 */
static void replace(int *bell, int old)
{
    int other = dm_bell_open();

    if (!__atomic_compare_exchange_n(bell, &old, other, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED) && other >= 0)
        close(other);
}

/*
 * An error of a bell only means that it rings already, or that it has woken another sleeper. Relaxed loads are enough:
 * what the ring announces is guarded by the caller's lock.
 */
void dm_bell_ring(int *bell)
{
    int fd = __atomic_load_n(bell, __ATOMIC_RELAXED);
    uint64_t one = 1;

    if (fd == DM_BELL_GONE)
        return;
    if (!dm_descriptor_is(fd, DM_TAG_BELL))
        replace(bell, fd);
    else if (write(fd, &one, sizeof one) < 0)
        return; /* rings already */
}

void dm_bell_answer(int *bell)
{
    int fd = __atomic_load_n(bell, __ATOMIC_RELAXED);
    uint64_t rings;

    if (!dm_descriptor_is(fd, DM_TAG_BELL))
        replace(bell, fd);
    else if (read(fd, &rings, sizeof rings) < 0)
        return; /* has woken another */
}
