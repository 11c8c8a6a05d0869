/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A library with a handler of fork() that locks the mutex `inner`, and a program: a thread forks while another thread
 * holds `inner` and then locks `outer`, too. LIBRARY chooses the library.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef LIBRARY

pthread_mutex_t inner = PTHREAD_MUTEX_INITIALIZER;
sem_t is_forking;

static void before(void)
{
    sem_post(&is_forking);
    pthread_mutex_lock(&inner);
}

static void after(void)
{
    pthread_mutex_unlock(&inner);
}

__attribute__((constructor)) static void begin(void)
{
    sem_init(&is_forking, 0, 0);
    pthread_atfork(before, after, after);
}

#else

extern pthread_mutex_t inner;
extern sem_t is_forking;

static pthread_mutex_t outer = PTHREAD_MUTEX_INITIALIZER;

static void *fork_once(void *user)
{
    pid_t pid = fork();

    if (pid == 0)
        _exit(pthread_mutex_lock(&outer));
    waitpid(pid, user, 0);
    return NULL;
}

int main(void)
{
    pthread_t thread;
    int status = -1;

    pthread_mutex_lock(&inner);
    pthread_create(&thread, NULL, fork_once, &status);
    sem_wait(&is_forking);
    pthread_mutex_lock(&outer);
    pthread_mutex_unlock(&outer);
    pthread_mutex_unlock(&inner);
    pthread_join(thread, NULL);
    printf("%d\n", WEXITSTATUS(status));
    return 0;
}

#endif
