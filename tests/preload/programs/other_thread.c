/* SPDX-License-Identifier: BSD-2-Clause */
/* A program whose second thread does nothing but lock the mutex `lock`. */
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *lock_once(void *user)
{
    *(int *)user = pthread_mutex_trylock(&lock);
    return NULL;
}

int main(void)
{
    pthread_t thread;
    int result = -1;

    pthread_create(&thread, NULL, lock_once, &result);
    pthread_join(thread, NULL);
    printf("%d\n", result);
    return 0;
}
