/* SPDX-License-Identifier: BSD-2-Clause */
/* A library: a mutex that it exports, two that it does not, and one that has the name of another's. */
#include <pthread.h>

pthread_mutex_t shelf_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t hidden_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t static_lock = PTHREAD_MUTEX_INITIALIZER; /* legacy.c has one too */

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
