/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program that is not linked with the library: LIBRARY NAME PAIRS.  Loads the library, then locks and unlocks the
 * mutex that often, half of it in a thread that was started before.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <dmutex/dmutex.h>

#define LONG_LEASE 60000

static dmutex_t mutex;
static int (*lock)(dmutex_t *), (*unlock)(dmutex_t *);
static long pairs;
static int ends[2]; /* a pipe: a byte says that the library is loaded */

static void must(int is_good, const char *what)
{
    if (is_good)
        return;
    fprintf(stderr, "%s\n", what);
    exit(1);
}

static void use(void)
{
    for (long i = 0; i < pairs / 2; i++)
        must(lock(&mutex) == 0 && unlock(&mutex) == 0, "a call has failed");
}

static void *use_once_loaded(void *user)
{
    char byte;

    must(read(ends[0], &byte, 1) == 1, "pipe");
    use();
    return user;
}

static void *find(void *library, const char *name)
{
    void *symbol = dlsym(library, name);

    must(symbol != NULL, name);
    return symbol;
}

static void load(const char *path, const char *name)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    dmutexattr_t attr;

    must(library != NULL, "dlopen");
    *(void **)&lock = find(library, "dmutex_lock");
    *(void **)&unlock = find(library, "dmutex_unlock");
    must(((int (*)(dmutexattr_t *))find(library, "dmutexattr_init"))(&attr) == 0 &&
             ((int (*)(dmutexattr_t *, unsigned))find(library, "dmutexattr_setlease_np"))(&attr, LONG_LEASE) == 0 &&
             ((int (*)(dmutexattr_t *, unsigned))find(library, "dmutexattr_setlinger_np"))(&attr, LONG_LEASE) == 0 &&
             ((int (*)(dmutex_t *, const char *, const dmutexattr_t *))find(library, "dmutex_init_np"))(&mutex, name,
                                                                                                        &attr) == 0,
         "init");
}

int main(int argc, char **argv)
{
    pthread_t thread;

    must(argc == 4, "usage: LIBRARY NAME PAIRS");
    pairs = strtol(argv[3], NULL, 10);
    must(pipe(ends) == 0, "pipe");
    must(pthread_create(&thread, NULL, use_once_loaded, NULL) == 0, "thread");
    load(argv[1], argv[2]);
    must(write(ends[1], "", 1) == 1, "pipe");
    use();
    pthread_join(thread, NULL);
    return 0;
}
