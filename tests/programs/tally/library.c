/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tally.h"

pthread_mutex_t tally_lock_of_library = PTHREAD_MUTEX_INITIALIZER;

static long read_number(const char *path)
{
    FILE *file = fopen(path, "r");
    long number = 0;

    if (!file || fscanf(file, "%ld", &number) != 1)
        abort();
    fclose(file);
    return number;
}

/* Writes in place, so that a reader finds a number at all times. */
static void write_number(const char *path, long number)
{
    FILE *file = fopen(path, "r+");

    if (!file || fprintf(file, "%010ld\n", number) < 0 || fclose(file) != 0)
        abort();
}

void tally_add(const char *path, pthread_mutex_t *mutex)
{
    long number;

    pthread_mutex_lock(mutex);
    number = read_number(path);
    usleep(200); /* lets other programs come in between */
    write_number(path, number + 1);
    pthread_mutex_unlock(mutex);
}

void tally_in_library(const char *path)
{
    tally_add(path, &tally_lock_of_library);
}
