/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The basic example: a number in a file that many processes change, one at a time.
 *
 *     counter           four processes add to a temporary file; 0 if the total is exact
 *     counter FILE N    adds N to FILE; run on several hosts that share the file
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <dmutex/dmutex.h>

enum { PROCESSES = 4, TIMES = 250 };

/* Guards the file on all hosts, because the name is the same on all of them. */
static dmutex_t ledger = DMUTEX_INITIALIZER("billing/ledger");

static void give_up(const char *what, const char *why)
{
    fprintf(stderr, "counter: %s: %s\n", what, why);
    exit(1);
}

/* The number in the file.  A missing or empty file counts as 0. */
static long read_total(const char *path)
{
    FILE *file = fopen(path, "r");
    long total = 0;

    if (file && fscanf(file, "%ld", &total) != 1)
        total = 0;
    if (file)
        fclose(file);
    return total;
}

/* Reads, adds, writes.  If two processes did so at once, one addition would be lost. */
static void add_to_total(const char *path, long number)
{
    long total = read_total(path);
    FILE *file = fopen(path, "w");

    if (!file || fprintf(file, "%ld\n", total + number) < 0 || fclose(file) != 0)
        give_up(path, "cannot be written");
}

static void add_many(const char *path, long times)
{
    for (long i = 0; i < times; i++) {
        if (dmutex_lock(&ledger) != 0)
            give_up("dmutex_lock", dmutex_strerror_np());
        add_to_total(path, 1);
        if (dmutex_unlock(&ledger) != 0)
            give_up("dmutex_unlock", dmutex_strerror_np());
    }
}

/* Each process connects at its first lock, and shares no connection with its parent. */
static int show(void)
{
    char path[] = "/tmp/dmutex-counter-XXXXXX";
    int file = mkstemp(path), status, failures = 0;
    long total;

    if (file < 0)
        give_up(path, "cannot be made");
    for (int i = 0; i < PROCESSES; i++) {
        if (fork() == 0) {
            add_many(path, TIMES);
            exit(0);
        }
    }
    while (wait(&status) > 0)
        failures += status != 0;
    total = read_total(path);
    unlink(path);
    printf("%d processes added 1, %d times each: the total is %ld.\n", PROCESSES, TIMES, total);
    return failures == 0 && total == PROCESSES * TIMES ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return show();
    add_many(argv[1], atol(argv[2]));
    printf("The total is %ld.\n", read_total(argv[1]));
    return 0;
}
