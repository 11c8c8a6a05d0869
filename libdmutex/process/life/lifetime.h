/* SPDX-License-Identifier: BSD-2-Clause */
/* How the library learns of the end of a thread, the end of the process, and fork(). */
#ifndef DM_PROCESS_LIFE_LIFETIME_H
#define DM_PROCESS_LIFE_LIFETIME_H

#include <stdbool.h>

/*
 * True if the library learns of all of them.  A runtime checks this before it starts; the call also brings lifetime.c
 * into a program that is linked with our archives, from which the linker takes only what is referenced.
 */
bool dm_lifetime_is_told(void);

#endif
