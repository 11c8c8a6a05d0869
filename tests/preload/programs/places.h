/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A snippet that locks a mutex, and prints the place and the result on standard output: "main 0". With PLACES_TRY the
 * snippet only tries.
 */
#ifndef PLACES_H
#define PLACES_H

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static inline void snippet(const char *place, pthread_mutex_t *mutex)
{
    char line[100];
    int is_try = getenv("PLACES_TRY") != NULL;
    int result = is_try ? pthread_mutex_trylock(mutex) : pthread_mutex_lock(mutex);

    if (!result)
        result = pthread_mutex_unlock(mutex);
    snprintf(line, sizeof line, "%s %s\n", place, result ? strerrorname_np(result) : "0");
    if (write(STDOUT_FILENO, line, strlen(line)) < 0)
        abort();
}

#endif
