/* SPDX-License-Identifier: BSD-2-Clause */
/* A library whose constructor and destructor use a mutex of its own; PLACE says what it is called. */
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
