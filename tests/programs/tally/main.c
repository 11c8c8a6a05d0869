/* SPDX-License-Identifier: BSD-2-Clause */
/* tally DIRECTORY THREADS ROUNDS: says "ready", and begins with a byte of input. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tally.h"

static pthread_mutex_t lock_of_main = PTHREAD_MUTEX_INITIALIZER;

static const char *directory;
static int rounds;

void tally_in_main(const char *path)
{
    tally_add(path, &lock_of_main);
}

static void add_to(const char *name, void (*tally)(const char *path))
{
    char path[4096];

    snprintf(path, sizeof path, "%s/%s", directory, name);
    tally(path);
}

static void *work(void *unused)
{
    for (int i = 0; i < rounds; i++) {
        add_to("main", tally_in_main);
        add_to("cxx", tally_in_cxx);
        add_to("library", tally_in_library);
    }
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t threads[16];
    int count = argc == 4 ? atoi(argv[2]) : 0;
    char start;

    if (count < 1 || count > 16)
        return 2;
    directory = argv[1];
    rounds = atoi(argv[3]);
    puts("ready");
    fflush(stdout);
    if (read(0, &start, 1) != 1)
        return 2;
    for (int i = 0; i < count; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
