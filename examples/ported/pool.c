/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An ordinary pthread program, which knows nothing of dmutex: a few threads, a bounded queue of jobs, and a number in a
 * file.
 *
 *     pool FILE <numbers        adds each of the numbers, one per line, to the number in FILE
 *
 * One instance of the program is correct. Two instances with the same file are not, because a pthread_mutex_t only
 * excludes threads of the same process. show.sh runs both, and the same source compiled with <dmutex/pthread.h>.
 *
 * With that header, static objects get a name, and each is one object for all processes. Objects made by
 * pthread_mutex_init() and pthread_cond_init() stay private to the process, like the queue that they guard: a signal
 * about the queue must not wake a thread of another process instead.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 3, ROOM = 4 };

/* Shared by the threads of this process. */
struct pool {
    pthread_mutex_t mutex;
    pthread_cond_t filled, emptied;
    long jobs[ROOM];
    int first, count;
    int is_closed; /* no more jobs will come */
    const char *path;
};

/* Guards the file. */
static pthread_mutex_t file_mutex = PTHREAD_MUTEX_INITIALIZER;

static void give_up(const char *what)
{
    perror(what);
    exit(1);
}

/* ---- the file -------------------------------------------------------------------- */

static long read_total(const char *path)
{
    FILE *file = fopen(path, "r");
    long total = 0;

    if (!file || fscanf(file, "%ld", &total) != 1)
        give_up(path);
    fclose(file);
    return total;
}

/* Writes in place, in one call: a reader sees either the old number or the new one. */
static void write_total(const char *path, long total)
{
    FILE *file = fopen(path, "r+");

    if (!file || fprintf(file, "%020ld\n", total) < 0 || fclose(file) != 0)
        give_up(path);
}

static void add(const char *path, long number)
{
    long total;

    if ((errno = pthread_mutex_lock(&file_mutex)) != 0)
        give_up("lock");
    total = read_total(path);
    sched_yield(); /* other processes may run at any point; here they often do */
    write_total(path, total + number);
    pthread_mutex_unlock(&file_mutex);
}

/* ---- the pool -------------------------------------------------------------------- */

static void put(struct pool *pool, long job)
{
    pthread_mutex_lock(&pool->mutex);
    while (pool->count == ROOM)
        pthread_cond_wait(&pool->emptied, &pool->mutex);
    pool->jobs[(pool->first + pool->count++) % ROOM] = job;
    pthread_cond_signal(&pool->filled);
    pthread_mutex_unlock(&pool->mutex);
}

/* Returns 0 when there are no more. */
static int take(struct pool *pool, long *ret_job)
{
    int has_job;

    pthread_mutex_lock(&pool->mutex);
    while (pool->count == 0 && !pool->is_closed)
        pthread_cond_wait(&pool->filled, &pool->mutex);
    has_job = pool->count > 0;
    if (has_job) {
        *ret_job = pool->jobs[pool->first];
        pool->first = (pool->first + 1) % ROOM;
        pool->count--;
        pthread_cond_signal(&pool->emptied);
    }
    pthread_mutex_unlock(&pool->mutex);
    return has_job;
}

static void close_pool(struct pool *pool)
{
    pthread_mutex_lock(&pool->mutex);
    pool->is_closed = 1;
    pthread_cond_broadcast(&pool->filled);
    pthread_mutex_unlock(&pool->mutex);
}

static void *work(void *user)
{
    struct pool *pool = user;
    long job;

    while (take(pool, &job))
        add(pool->path, job);
    return NULL;
}

int main(int argc, char **argv)
{
    static struct pool pool;
    pthread_t threads[THREADS];
    long number;

    if (argc != 2)
        return 2;
    pool.path = argv[1];
    if (pthread_mutex_init(&pool.mutex, NULL) || pthread_cond_init(&pool.filled, NULL) ||
        pthread_cond_init(&pool.emptied, NULL))
        give_up("init");
    for (int i = 0; i < THREADS; i++) {
        if (pthread_create(&threads[i], NULL, work, &pool) != 0)
            give_up("thread");
    }
    while (scanf("%ld", &number) == 1)
        put(&pool, number);
    close_pool(&pool);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    pthread_cond_destroy(&pool.emptied);
    pthread_cond_destroy(&pool.filled);
    pthread_mutex_destroy(&pool.mutex);
    return 0;
}
