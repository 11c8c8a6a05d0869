/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the kernel is to a link: descriptors of sockets and bells, and threads that sleep on them.  Replaces
 * base/poll.c, link/stream.c, link/race.c and the bells of base/descriptor.c; the rest of link/ runs unchanged.
 */
#ifndef SIM_SOCKETS_H
#define SIM_SOCKETS_H

#include "net.h"

struct dm_link;

/* Forgets all descriptors; a number is used once in a run. */
void sockets_begin(void);

/* The number of the client's end of a new link. */
int sockets_add(struct link *link);

/* Something has come, or the link is open or closed: the threads that poll it wake up. */
void sockets_ring(const struct link *link);

/* Frees the link of a killed process; no handler is called. */
void sockets_free(struct dm_link *link);

#endif
