/* SPDX-License-Identifier: BSD-2-Clause */
/* A static variable with the name of a static variable of symbols.c. */
#include <pthread.h>

static pthread_mutex_t twice_lock = PTHREAD_MUTEX_INITIALIZER;

void again(void);

void again(void)
{
    pthread_mutex_trylock(&twice_lock);
}
