/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A library to be preloaded: an allocator with a thread of its own, as jemalloc has. The first malloc() of any other
 * thread waits until the allocator's has made one more thread.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stddef.h>

extern void *__libc_malloc(size_t size);

static sem_t is_asked, is_made;
static bool has_begun;
static __thread bool has_allocated __attribute__((tls_model("initial-exec")));

static void *do_nothing(void *user)
{
    return user;
}

static void *make_threads(void *user)
{
    pthread_t thread;

    has_allocated = true;
    for (;;) {
        sem_wait(&is_asked);
        if (pthread_create(&thread, NULL, do_nothing, NULL) == 0)
            pthread_join(thread, NULL);
        sem_post(&is_made);
    }
    return user;
}

__attribute__((constructor)) static void begin(void)
{
    pthread_t thread;

    sem_init(&is_asked, 0, 0);
    sem_init(&is_made, 0, 0);
    has_begun = pthread_create(&thread, NULL, make_threads, NULL) == 0;
}

void *malloc(size_t size)
{
    if (has_begun && !has_allocated) {
        has_allocated = true;
        sem_post(&is_asked);
        sem_wait(&is_made);
    }
    return __libc_malloc(size);
}
