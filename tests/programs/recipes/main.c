/* SPDX-License-Identifier: BSD-2-Clause */
/* A program with a build system: prints the build system's findings, and whether the program's mutex is distributed. */
#include "config.h"

#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

int main(void)
{
#ifdef HAVE_PTHREAD_MUTEX_TIMEDLOCK
    printf("timedlock ");
#endif
#ifdef HAVE_PTHREAD_RWLOCK_RDLOCK
    printf("rwlock ");
#endif
    printf("%s\n", sizeof lock == 256 ? "distributed" : "local");
    return pthread_mutex_destroy(&lock);
}
