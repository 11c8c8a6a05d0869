/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Descriptors in a process whose program does not know of them.
 *
 * Programs close what they did not open: closefrom(3), or a loop of close().  A number that the program gets next
 * would be ours for us and its own for it, so ours are high ones, which it gets last.  What it has closed says
 * EBADF then, and is opened anew.
 */
#ifndef DM_BASE_DESCRIPTOR_H
#define DM_BASE_DESCRIPTOR_H

/* The same with a high number, if one can be had.  -1 stays -1, with its errno. */
int dm_descriptor_move_up(int fd);

/* An eventfd that wakes who polls it.  -1 with errno. */
int dm_bell_open(void);

/* Both open another one in the place of one that is gone.  Who sleeps in poll() with the old one is not woken. */
void dm_bell_ring(int *bell);
void dm_bell_answer(int *bell); /* it does not ring any more */

#endif
