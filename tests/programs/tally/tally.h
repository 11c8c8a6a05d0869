/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program of the old days, which knows pthreads only: three files with a number each, and for each file a mutex in
 * another place.
 */
#ifndef TALLY_H
#define TALLY_H

#include <pthread.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Adds one to the number in the file. An addition of another program in between is lost. */
void tally_add(const char *path, pthread_mutex_t *mutex);

/* Add one, with a mutex of the shared library, of C++ and of the main program. */
void tally_in_library(const char *path);
void tally_in_cxx(const char *path);
void tally_in_main(const char *path);

#ifdef __cplusplus
}
#endif

#endif
