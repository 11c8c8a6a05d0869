/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A plain pthread program, built several times with <dmutex/pthread.h>, and started several times as processes that
 * have nothing in common but a file.
 *
 *     visits FILE come N         N visits: enters, checks if another is there, writes, leaves
 *     visits FILE overlap        visits until another was there already, here or over there
 *     visits FILE stay           enters, and stays until told to leave
 *     visits FILE look           the result of trylock: the exit status
 *     visits FILE turns N WHO    N turns, each after a turn of the other; WHO is 0 or 1
 *     visits FILE made-stay, made-look    the same with a mutex that pthread_mutex_init() made
 *     visits FILE mixed          waits on the static condition with the made mutex, and the other way round
 *
 * NAME: with the one line that names that mutex.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "visits.h"

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;              /* the 0th of this unit */
static pthread_cond_t turned = PTHREAD_COND_INITIALIZER;               /* the 1st */
static pthread_mutex_t third = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP; /* the 2nd */
static pthread_mutex_t made;
static pthread_cond_t made_too;
static struct book *book;

static void check(int error, const char *what)
{
    if (error == 0)
        return;
    fprintf(stderr, "%s: %s\n", what, strerror(error));
    exit(error);
}

static void open_book(const char *path)
{
    int file = open(path, O_RDWR);

    book = mmap(NULL, sizeof *book, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (book == MAP_FAILED) {
        perror(path);
        exit(1);
    }
    close(file);
}

static void make(void)
{
    pthread_mutexattr_t attr;

    int protocol = PTHREAD_PRIO_NONE;

    check(pthread_mutexattr_init(&attr), "attr");
    check(pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT), "setprotocol");
    check(pthread_mutexattr_getprotocol(&attr, &protocol), "getprotocol");
    check(protocol != PTHREAD_PRIO_INHERIT, "protocol");
#ifdef NAME
    check(dmutexattr_setname_np(&attr, NAME), "setname");
#endif
    check(pthread_mutex_init(&made, &attr), "init");
    check(pthread_cond_init(&made_too, NULL), "init");
    pthread_mutexattr_destroy(&attr);
}

/* A number that was read is old at the time of the write, unless the others are kept out. */
static void visit(void)
{
    int visits;

    check(pthread_mutex_lock(&guard), "lock");
    if (atomic_fetch_add(&book->inside, 1) > 0)
        book->overlaps++;
    visits = book->visits;
    sched_yield();
    book->visits = visits + 1;
    book->inside--;
    check(pthread_mutex_unlock(&guard), "unlock");
}

static void come(int times)
{
    for (int i = 0; i < times; i++)
        visit();
}

static void overlap(void)
{
    while (book->overlaps == 0)
        visit();
}

static void stay(pthread_mutex_t *mutex)
{
    check(pthread_mutex_lock(mutex), "lock");
    check(pthread_mutex_lock(&third), "lock");
    book->inside++;
    while (!book->leave)
        usleep(1000);
    book->inside--;
    check(pthread_mutex_unlock(&third), "unlock");
    check(pthread_mutex_unlock(mutex), "unlock");
}

static int look(pthread_mutex_t *mutex)
{
    int result = pthread_mutex_trylock(mutex);

    if (result == 0)
        check(pthread_mutex_unlock(mutex), "unlock");
    return result;
}

static void take_turns(int times, int who)
{
    check(pthread_mutex_lock(&guard), "lock");
    for (int i = 0; i < times; i++) {
        while (book->turn != who)
            check(pthread_cond_wait(&turned, &guard), "wait");
        book->visits++;
        book->turn = !who;
        check(pthread_cond_signal(&turned), "signal");
    }
    check(pthread_mutex_unlock(&guard), "unlock");
}

struct pair {
    pthread_mutex_t *mutex;
    pthread_cond_t *cond;
    int is_called;
};

static void *call(void *user)
{
    struct pair *pair = user;

    check(pthread_mutex_lock(pair->mutex), "lock");
    pair->is_called = 1;
    check(pthread_cond_signal(pair->cond), "signal");
    check(pthread_mutex_unlock(pair->mutex), "unlock");
    return NULL;
}

/* Waits for another thread's signal. */
static void await_call(pthread_mutex_t *mutex, pthread_cond_t *cond)
{
    struct pair pair = { mutex, cond, 0 };
    pthread_t thread;

    check(pthread_mutex_lock(mutex), "lock");
    check(pthread_create(&thread, NULL, call, &pair), "create");
    while (!pair.is_called)
        check(pthread_cond_wait(cond, mutex), "wait");
    check(pthread_mutex_unlock(mutex), "unlock");
    check(pthread_join(thread, NULL), "join");
}

static int do_what_is_said(char **words)
{
    if (strcmp(words[0], "come") == 0)
        come(atoi(words[1]));
    else if (strcmp(words[0], "overlap") == 0)
        overlap();
    else if (strcmp(words[0], "stay") == 0)
        stay(&guard);
    else if (strcmp(words[0], "made-stay") == 0)
        stay(&made);
    else if (strcmp(words[0], "look") == 0)
        return look(&guard);
    else if (strcmp(words[0], "made-look") == 0)
        return look(&made);
    else if (strcmp(words[0], "turns") == 0)
        take_turns(atoi(words[1]), atoi(words[2]));
    else if (strcmp(words[0], "mixed") == 0) {
        await_call(&guard, &made_too);
        await_call(&made, &turned);
    } else
        return 1;
    return 0;
}

int main(int argc, char **argv)
{
    int result;

    if (argc < 3)
        return 1;
    open_book(argv[1]);
    make();
    result = do_what_is_said(argv + 2);
    pthread_cond_destroy(&made_too);
    pthread_mutex_destroy(&made);
    pthread_mutex_destroy(&third);
    pthread_cond_destroy(&turned);
    pthread_mutex_destroy(&guard);
    return result;
}
