/* SPDX-License-Identifier: BSD-2-Clause */
/* A library with an exported mutex and two static mutexes; static_lock has the name of a mutex of legacy.c. */
#include <pthread.h>

pthread_mutex_t shelf_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t hidden_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t static_lock = PTHREAD_MUTEX_INITIALIZER; /* legacy.c has a static_lock too */

pthread_mutex_t *shelf_lock_address(void);
pthread_mutex_t *hidden_lock_address(void);
pthread_mutex_t *shelf_static_address(void);

pthread_mutex_t *shelf_lock_address(void)
{
    return &shelf_lock;
}

pthread_mutex_t *hidden_lock_address(void)
{
    return &hidden_lock;
}

pthread_mutex_t *shelf_static_address(void)
{
    return &static_lock;
}
