/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Descriptors of the library in a process whose program does not know of these descriptors.
 *
 * Programs close descriptors that others opened: closefrom(3), or a loop of close().  If the program gets a closed
 * number next, the library and the program would both use the number.  So the library takes high numbers, which the
 * program gets last, and asks whether a number is still its own before it uses or closes one: bells each time, sockets
 * and files as base/fileid.h tells.  A descriptor that the program has closed is opened anew.
 */
#ifndef DM_BASE_DESCRIPTOR_H
#define DM_BASE_DESCRIPTOR_H

#include <stdbool.h>

/* In the place of a descriptor: the machine is short of something that it may have again. */
#define DM_OPEN_LATER (-2)

/* Moves a descriptor to a high number, if a high number is free.  -1 stays -1, with errno. */
int dm_descriptor_move_up(int fd);

/*
 * A sign on an open file, by which its number is known to be the library's, for one system call.  Bells, epolls,
 * the log and the local server's folder need it: eventfds and epolls share one inode, a log is opened by another name
 * again, and the program may open the folder, too.
 */
enum dm_tag { DM_TAG_BELL, DM_TAG_LOG, DM_TAG_EPOLL, DM_TAG_FOLDER };
bool dm_descriptor_tag(int fd, enum dm_tag tag); /* false with errno */
bool dm_descriptor_is(int fd, enum dm_tag tag);

/* An eventfd that wakes the threads in poll().  -1 with errno. */
int dm_bell_open(void);

/* A bell whose owner has closed it for good, in place of the number: nobody sleeps on it, and a ring is nothing. */
#define DM_BELL_GONE (-2)

/* Closes the bell, unless the number is the program's by now.  -1 and DM_BELL_GONE are nothing. */
void dm_bell_close(int bell);

/*
 * Both functions open another bell in the place of a closed bell.  A thread that sleeps in poll() with the closed bell
 * is not woken.
 */
void dm_bell_ring(int *bell);
void dm_bell_answer(int *bell); /* stops the ringing */

#endif
