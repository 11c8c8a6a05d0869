/* SPDX-License-Identifier: BSD-2-Clause */
/* For a program that runs a command and stands in for it: passes on signals, and ends as the command ended. */
#ifndef DM_BASE_RELAY_H
#define DM_BASE_RELAY_H

#include <signal.h>

/*
 * The signals to pass on, and SIGCHLD.  The caller blocks them and awaits them with sigwaitinfo(), which also takes a
 * signal that came before the call.  The terminal's stop signals are not among them: the whole process group gets those
 * anyway.
 */
sigset_t dm_relay_signals(void);

/*
 * Ends this process by the signal that ended the command, if one did: a shell ends its loop if a command died of
 * SIGINT, but not after an exit status of 130.  Otherwise, or if the signal does not end this process, returns the exit
 * status. status: as of wait(2).
 */
int dm_relay_end(int status);

#endif
