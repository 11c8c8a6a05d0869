/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Descriptors of the library in a process whose program does not know of these descriptors.
 *
 * Programs close descriptors that others opened: closefrom(3), or a loop of close().  If the program gets a closed
 * number next, the library and the program would both use the number.  So the library takes high numbers, which the
 * program gets last.  A descriptor that the program has closed gives EBADF, and is opened anew.
 */
#ifndef DM_BASE_DESCRIPTOR_H
#define DM_BASE_DESCRIPTOR_H

/* Moves a descriptor to a high number, if a high number is free.  -1 stays -1, with errno. */
int dm_descriptor_move_up(int fd);

/* An eventfd that wakes the threads in poll().  -1 with errno. */
int dm_bell_open(void);

/* A bell whose owner has closed it for good, in place of the number: nobody sleeps on it, and a ring is nothing. */
#define DM_BELL_GONE (-2)

/*
 * Both functions open another bell in the place of a closed bell.  A thread that sleeps in poll() with the closed bell
 * is not woken.
 */
void dm_bell_ring(int *bell);
void dm_bell_answer(int *bell); /* stops the ringing */

#endif
