/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The standard error of the process that took a lock, where we tell the job that its lock was lost. It is a terminal, a
 * pipe or a local socket that the process has open for writing and has handed over with its question. We write to
 * nothing else: not to a regular file, which may be data, however it was opened; nor to another process's standard
 * error.
 */
#ifndef DM_PRELOAD_KEEPER_VOICE_H
#define DM_PRELOAD_KEEPER_VOICE_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * Somebody may be waiting for the end of a pipe, as `$(flock 9 2>&1)` does, while the lock goes on. So a pipe or
 * terminal that the keeper may open is kept by O_PATH, which the kernel does not count as a writer. Anything else is
 * kept as it came, and dropped when the process ends or changes its standard error.
 */
struct voice {
    int fd;      /* 0: none */
    int process; /* /proc/PID while the voice must be dropped with the process; 0: by O_PATH */
};

/* Takes the process's standard error, or -1. Closes it if we must not write to it. */
void voice_take(struct voice *ret_voice, int given, pid_t pid);

/* Drops a voice that its process no longer has. */
void voice_look(struct voice *voice);

void voice_dismiss(struct voice *voice);

/* Writes the line to a voice's descriptor; never waits. False if nobody got the line. Any thread. */
bool voice_say(int fd, const char *line);

#endif
