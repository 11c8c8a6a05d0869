/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A library with a constructor and a destructor that use the library's own mutex; PLACE is the library's name in the
 * output.
 */
#include "places.h"

static pthread_mutex_t library_lock = PTHREAD_MUTEX_INITIALIZER;

void PLACE_function(void);

__attribute__((constructor)) static void begin(void)
{
    snippet(PLACE "-constructor", &library_lock);
}

__attribute__((destructor)) static void end(void)
{
    snippet(PLACE "-destructor", &library_lock);
}

void PLACE_function(void)
{
    snippet(PLACE "-function", &library_lock);
}
