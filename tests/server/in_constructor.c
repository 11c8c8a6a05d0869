/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * in_constructor URL NAME LIBRARY HOW
 *
 * Loads the library, whose constructor calls constructed(), acquires the mutex NAME there, and prints the result and
 * the sentence.  HOW: "lock"; "timed", with a deadline; "wall", with one of the wall clock; "both", while another
 * thread locks another mutex; "fork", which forks meanwhile instead.
 */
#include <dlfcn.h>
#include <dmutex/dmutex.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TIMED_S 2

void constructed(void);

static const char *name, *how;
static pthread_t other;
static pid_t other_tid; /* atomic */

static int lock(dmutex_t *mutex)
{
    struct timespec until;
    clockid_t clock = strcmp(how, "wall") == 0 ? CLOCK_REALTIME : CLOCK_MONOTONIC;

    if (strcmp(how, "timed") != 0 && strcmp(how, "wall") != 0)
        return dmutex_lock(mutex);
    clock_gettime(clock, &until);
    until.tv_sec += TIMED_S;
    return dmutex_clocklock(mutex, clock, &until);
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

static void *use_other(void *user)
{
    __atomic_store_n(&other_tid, gettid(), __ATOMIC_RELEASE);
    return use(user);
}

static char state_of(pid_t tid)
{
    char path[64], state = 'R';
    FILE *file;

    snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)tid);
    file = fopen(path, "re");
    if (file && fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
        state = 'R';
    if (file)
        fclose(file);
    return state;
}

/* The other thread is the first, and sleeps in dlopen(), for this one is in its own. */
static void let_other_lock(void)
{
    pthread_create(&other, NULL, use_other, (void *)"in_constructor/other");
    while (__atomic_load_n(&other_tid, __ATOMIC_ACQUIRE) == 0 || state_of(other_tid) != 'S')
        usleep(1000);
}

static void fork_once(void)
{
    pid_t child = fork();
    int status = -1;

    if (child == 0)
        _exit(0);
    waitpid(child, &status, 0);
    printf("forked %d\n", status);
}

void constructed(void)
{
    bool forks = strcmp(how, "fork") == 0;

    if (forks || strcmp(how, "both") == 0)
        let_other_lock();
    if (forks)
        fork_once();
    else
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
    return other_tid ? pthread_join(other, NULL) : 0;
}
