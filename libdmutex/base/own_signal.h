/* SPDX-License-Identifier: BSD-2-Clause */
/* A signal by which this process is to end, or to learn something. */
#ifndef DM_BASE_OWN_SIGNAL_H
#define DM_BASE_OWN_SIGNAL_H

/*
 * Sends this process the signal.  In process 1 of a container, to which the kernel gives no signal that the process has
 * not asked for, a signal that would have ended any other process ends this one, too, with status 128 and the number.
 */
void dm_own_signal(int number);

#endif
