/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends this process a signal that ends it, or that its program handles. */
#ifndef DM_BASE_OWN_SIGNAL_H
#define DM_BASE_OWN_SIGNAL_H

/*
 * Process 1 of a container gets only signals for which it has a handler.  There, a signal that would have ended any
 * other process ends this one as well, with exit status 128 plus the number.
 */
void dm_own_signal(int number);

#endif
