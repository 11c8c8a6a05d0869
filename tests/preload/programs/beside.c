/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A library to be preloaded together with the module: an allocator that locks a mutex, and a pthread_mutex_lock() that
 * calls the next library's.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>

extern void *__libc_malloc(size_t size);
extern void __libc_free(void *memory);

static pthread_mutex_t heap = PTHREAD_MUTEX_INITIALIZER;

static void before_fork(void)
{
    pthread_mutex_lock(&heap);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&heap);
}

/*
 * Registers handlers of fork() at the first use, as allocators do, because another thread may hold the heap's mutex
 * when the process forks. A handler that is registered later runs earlier before the fork, and may still allocate
 * there.
 */
static void begin(void)
{
    static int has_begun;

    if (has_begun)
        return;
    has_begun = 1;
    pthread_atfork(before_fork, after_fork, after_fork);
}

void *malloc(size_t size)
{
    void *memory;

    begin();
    pthread_mutex_lock(&heap);
    memory = __libc_malloc(size);
    pthread_mutex_unlock(&heap);
    return memory;
}

void free(void *memory)
{
    pthread_mutex_lock(&heap);
    __libc_free(memory);
    pthread_mutex_unlock(&heap);
}

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    static int (*volatile next)(pthread_mutex_t *);
    static volatile int is_looking;

    if (!next) {
        if (is_looking)
            return 0; /* dlsym() allocates; there is one thread */
        is_looking = 1;
        *(void **)&next = dlsym(RTLD_NEXT, "pthread_mutex_lock");
    }
    return next(mutex);
}
