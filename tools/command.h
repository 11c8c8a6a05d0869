/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The command of dmutex run and its descendants, which are one job.
 *
 * Between this process and the command stands a process of our own, the warden.  Orphans among the descendants become
 * its children (subreaper), so the job is what descends from the warden, and nothing else: this process may have other
 * children, because a script may have become dmutex run by exec.  The warden waits for the end of all, and if this
 * process is killed, it lives on to signal them.
 */
#ifndef DM_TOOLS_COMMAND_H
#define DM_TOOLS_COMMAND_H

#include <stdbool.h>
#include <sys/types.h>

struct command {
    char *const *words;
    const char *name;    /* of the lock, for people */
    int signal_of_death; /* to all descendants when this process is killed; 0: none */
    bool is_alone;       /* the job is the command, and not its descendants */
};

/*
 * Starts the command, found in PATH, with the signal mask of now, and blocks the signals that are to be passed on.  A
 * command that cannot be run ends with 127 or 126, and has said why.  False with errno: no process could be made.
 */
bool command_start(const struct command *command);

/* Passes signals on until the job has ended; returns the wait status of the command. */
int command_await(void);

/* Sends a signal to all processes of the job.  Any thread.  Returns one that this user may not signal, or 0. */
pid_t command_signal_all(int number);

bool command_ended_by_signal(int status);

/* The exit status, or the signal's number. */
int command_number_of(int status);

#endif
