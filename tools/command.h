/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The command of dmutex run and its descendants; together they are one job.
 *
 * Between this process and the command stands a process of our own, the warden.  It is the subreaper: orphans among the
 * descendants become its children, so that the job is exactly what descends from the warden.  (This process may have
 * other children, because a script may have become dmutex run by exec.)  The warden waits until all have ended.  If
 * this process is killed, the warden lives on and signals them.
 */
#ifndef DM_TOOLS_COMMAND_H
#define DM_TOOLS_COMMAND_H

#include <stdbool.h>
#include <sys/types.h>

struct command {
    char *const *words;
    const char *name;    /* of the lock, for people */
    int signal_of_death; /* sent to all descendants when this process is killed; 0: none */
    bool is_alone;       /* the job is the command without its descendants */
};

/*
 * Starts the command, found in PATH, with the current signal mask; then blocks the signals that are to be passed on.  A
 * command that cannot be executed reports why and exits with 127 or 126.  False with errno if no process could be made.
 */
bool command_start(const struct command *command);

/* Passes signals on until the job has ended.  Returns the wait status of the command. */
int command_await(void);

/* Sends a signal to all processes of the job.  Any thread.  Returns a process that this user may not signal, or 0. */
pid_t command_signal_all(int number);

bool command_ended_by_signal(int status);

/* The exit status of a wait status, or the number of the signal. */
int command_number_of(int status);

#endif
