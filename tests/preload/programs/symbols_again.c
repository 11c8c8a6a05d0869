/* SPDX-License-Identifier: BSD-2-Clause */
/* A static variable whose name another source has too. */
#include <pthread.h>

static pthread_mutex_t twice_lock = PTHREAD_MUTEX_INITIALIZER;

void again(void);

void again(void)
{
    pthread_mutex_trylock(&twice_lock);
}
