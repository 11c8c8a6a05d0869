/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/shield.h"

#include <errno.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define KERNEL_SET_BYTES 8

static const int raised[] = { SIGPIPE, SIGXFSZ };
#define RAISED ((int)(sizeof raised / sizeof raised[0]))

/* A signal that is already pending is the program's and stays pending; another one would make no difference. */
void dm_shield_raise(struct dm_shield *ret_shield)
{
    sigset_t both, pending;

    sigemptyset(&both);
    for (int i = 0; i < RAISED; i++)
        sigaddset(&both, raised[i]);
    pthread_sigmask(SIG_BLOCK, &both, &ret_shield->mask);
    ret_shield->owned = both;
    sigpending(&pending);
    for (int i = 0; i < RAISED; i++)
        if (sigismember(&pending, raised[i]))
            sigdelset(&ret_shield->owned, raised[i]);
}

/* Uses the system call directly, because libc's sigtimedwait() is a cancellation point. */
void dm_shield_lower(const struct dm_shield *shield)
{
    const struct timespec now = { 0 };
    int error = errno;

    while (syscall(SYS_rt_sigtimedwait, &shield->owned, NULL, &now, KERNEL_SET_BYTES) > 0)
        continue;
    pthread_sigmask(SIG_SETMASK, &shield->mask, NULL);
    errno = error;
}
