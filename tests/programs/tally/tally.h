/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program of the old days, which knows pthreads only: three files with a number each, and for each a
 * mutex somewhere else.
 */
#ifndef TALLY_H
#define TALLY_H

#include <pthread.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Adds one to the number in the file.  Whoever comes in between is not counted. */
void tally_add(const char *path, pthread_mutex_t *mutex);

/* Three times so, with a mutex of the shared library, of C++ and of the main program. */
void tally_in_library(const char *path);
void tally_in_cxx(const char *path);
void tally_in_main(const char *path);

#ifdef __cplusplus
}
#endif

#endif
