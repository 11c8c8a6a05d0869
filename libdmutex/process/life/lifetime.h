/* SPDX-License-Identifier: BSD-2-Clause */
/* The ends that the library is told of: of a thread, of the process, and fork() in between. */
#ifndef DM_PROCESS_LIFE_LIFETIME_H
#define DM_PROCESS_LIFE_LIFETIME_H

#include <stdbool.h>

/*
 * True if the process tells the library of all ends.  A runtime asks before it begins; the question also brings
 * lifetime.c into a program that is linked with our archives, from which the linker takes only what is named.
 */
bool dm_lifetime_is_told(void);

#endif
