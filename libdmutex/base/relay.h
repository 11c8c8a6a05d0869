/* SPDX-License-Identifier: BSD-2-Clause */
/* For a program that runs a command in its place: passes signals to the command, and ends as the command ended. */
#ifndef DM_BASE_RELAY_H
#define DM_BASE_RELAY_H

#include <signal.h>

/*
 * Signals by which people and programs ask a command for something, and SIGCHLD.  To be blocked and awaited by
 * sigwaitinfo(), which takes also a signal that came before the call.  Signals of the terminal that stop are not among
 * these: they go to the whole group by themselves.
 */
sigset_t dm_relay_signals(void);

/*
 * Ends this process by the signal that has ended the command, if any: a shell that is told of SIGINT ends its loop,
 * which it would not after a status of 130.  Returns the exit status if no signal has, or the signal does not end this
 * process.  status: as of wait(2).
 */
int dm_relay_end(int status);

#endif
