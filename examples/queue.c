/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A bounded queue between processes: producers wait while it is full, consumers while it is empty. Here the queue is in
 * shared memory; but the mutex and the conditions have names, so a file, a table or a device would work as well, on any
 * number of hosts.
 */
#include <dmutex/dmutex.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROOM = 4, PRODUCERS = 2, CONSUMERS = 2, ITEMS = 200, END = -1 };

static dmutex_t guard = DMUTEX_INITIALIZER("example/queue");
static dcond_t filled = DCOND_INITIALIZER("example/filled");
static dcond_t emptied = DCOND_INITIALIZER("example/emptied");

/* Guarded by `guard`. */
struct queue {
    int items[ROOM];
    int first, count;
    long sum; /* of the numbers taken out */
};
static struct queue *queue;

static void check(int error, const char *what)
{
    if (!error)
        return;
    fprintf(stderr, "%s: %s: %s\n", what, strerror(error), dmutex_strerror_np());
    exit(1);
}

static void put(int item)
{
    check(dmutex_lock(&guard), "lock");
    while (queue->count == ROOM)
        check(dcond_wait(&emptied, &guard), "wait");
    queue->items[(queue->first + queue->count++) % ROOM] = item;
    check(dcond_signal(&filled), "signal");
    check(dmutex_unlock(&guard), "unlock");
}

static int take(void)
{
    int item;

    check(dmutex_lock(&guard), "lock");
    while (queue->count == 0)
        check(dcond_wait(&filled, &guard), "wait");
    item = queue->items[queue->first];
    queue->first = (queue->first + 1) % ROOM;
    queue->count--;
    if (item != END)
        queue->sum += item;
    check(dcond_signal(&emptied), "signal");
    check(dmutex_unlock(&guard), "unlock");
    return item;
}

static void produce(void)
{
    for (int item = 1; item <= ITEMS; item++)
        put(item);
}

static void consume(void)
{
    while (take() != END)
        continue;
}

static void start(void (*work)(void))
{
    pid_t pid = fork();

    if (pid < 0)
        check(EAGAIN, "fork");
    if (pid > 0)
        return;
    work();
    exit(0);
}

/* Returns how many of the children failed. */
static int await(int children)
{
    int failed = 0, status;

    while (children-- > 0) {
        wait(&status);
        failed += status != 0;
    }
    return failed;
}

int main(void)
{
    long expected = (long)PRODUCERS * ITEMS * (ITEMS + 1) / 2;
    int failed = 0;

    queue = mmap(NULL, sizeof *queue, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (queue == MAP_FAILED)
        check(ENOMEM, "mmap");
    for (int i = 0; i < PRODUCERS; i++)
        start(produce);
    for (int i = 0; i < CONSUMERS; i++)
        start(consume);
    failed += await(PRODUCERS);
    for (int i = 0; i < CONSUMERS; i++)
        put(END);
    failed += await(CONSUMERS);
    printf("%d processes put %d items each, %d took them out: their sum is %ld, expected %ld\n", PRODUCERS, ITEMS,
           CONSUMERS, queue->sum, expected);
    return failed || queue->sum != expected;
}
