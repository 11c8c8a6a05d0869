/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The library's descriptors, in a process whose program does not know of them.
 *
 * Programs close descriptors that others opened: closefrom(3), or a loop of close().  If the program then gets the same
 * number again, both would use it.  So the library takes high numbers, which the program gets last, and checks that a
 * number is still its own before it uses or closes it: for bells each time, for sockets and files as base/fileid.h
 * says.  A descriptor that the program has closed is opened again.
 */
#ifndef DM_BASE_DESCRIPTOR_H
#define DM_BASE_DESCRIPTOR_H

#include <stdbool.h>

/* Instead of a descriptor: the machine lacks something that it may have again later. */
#define DM_OPEN_LATER (-2)

/* Moves a descriptor to a high number, if one is free. -1 stays -1, with errno. */
int dm_descriptor_move_up(int fd);

/*
 * Marks an open file, so that one system call can tell whether its number is still the library's.  The inode is not
 * enough for these: eventfds and epolls all share one, the log may be opened again under another name, and the program
 * may open the folder of the local server, too.
 */
enum dm_tag { DM_TAG_BELL, DM_TAG_LOG, DM_TAG_EPOLL, DM_TAG_FOLDER };
bool dm_descriptor_tag(int fd, enum dm_tag tag); /* false with errno */
bool dm_descriptor_is(int fd, enum dm_tag tag);

/* An eventfd that wakes the threads in poll().  -1 with errno. */
int dm_bell_open(void);

/*
 * Instead of the number: the owner has closed the bell and opens no other.  Nobody sleeps on it, and ringing it does
 * nothing.
 */
#define DM_BELL_GONE (-2)

/* Closes the bell, unless the number now belongs to the program.  Does nothing for -1 and DM_BELL_GONE. */
void dm_bell_close(int bell);

/*
 * Both open another bell in place of one that was closed.  A thread that sleeps in poll() on the closed one is not
 * woken.
 */
void dm_bell_ring(int *bell);
void dm_bell_answer(int *bell); /* stops the ringing */

#endif
