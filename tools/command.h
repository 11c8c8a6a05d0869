/* SPDX-License-Identifier: BSD-2-Clause */
/* The command of dmutex run: a child process, which gets the signals that this process gets. */
#ifndef DM_TOOLS_COMMAND_H
#define DM_TOOLS_COMMAND_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * Starts the command, found in PATH, with the signal mask of now, and blocks the signals that are to be passed on.
 * The kernel sends the command signal_of_death (0: none) when this process is killed.  A command that cannot be run
 * ends with 127 or 126, and has said why.  -1 with errno: no process could be made.
 */
pid_t command_start(char *const *command, int signal_of_death);

/* Passes signals on until the command has ended; returns the wait status. */
int command_await(pid_t pid);

/* Sends a signal to all descendants of this process.  Any thread. */
void command_signal_all(int number);

bool command_ended_by_signal(int status);

/* The exit status, or the signal's number. */
int command_number_of(int status);

#endif
