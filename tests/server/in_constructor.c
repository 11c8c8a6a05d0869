/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * in_constructor URL NAME LIBRARY HOW
 *
 * Loads the library, whose constructor calls constructed(), acquires the mutex NAME there, and prints the result and
 * the sentence.  HOW: "lock"; "timed", with a deadline; "both", while another thread locks another mutex.
 */
#include <dlfcn.h>
#include <dmutex/dmutex.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define TIMED_S 2

void constructed(void);

static const char *name, *how;
static pthread_t other;

static int lock(dmutex_t *mutex)
{
    struct timespec until;

    if (strcmp(how, "timed") != 0)
        return dmutex_lock(mutex);
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += TIMED_S;
    return dmutex_clocklock(mutex, CLOCK_MONOTONIC, &until);
}

static void *use(void *user)
{
    dmutex_t mutex;
    int result = dmutex_init_np(&mutex, user, NULL);

    if (result == 0)
        result = lock(&mutex);
    printf("%d %s\n", result, result ? dmutex_strerror_np() : "");
    if (result == 0)
        dmutex_unlock(&mutex);
    return NULL;
}

/* The other thread may be the first, and wait for this one's dlopen(). */
void constructed(void)
{
    if (strcmp(how, "both") == 0)
        pthread_create(&other, NULL, use, (void *)"in_constructor/other");
    use((void *)name);
}

int main(int argc, char **argv)
{
    if (argc != 5 || dmutex_configure_np(argv[1]) != 0)
        return 2;
    name = argv[2];
    how = argv[4];
    if (!dlopen(argv[3], RTLD_NOW))
        return 3;
    return strcmp(how, "both") == 0 ? pthread_join(other, NULL) : 0;
}
