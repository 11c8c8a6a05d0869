/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The standard error of the process that took a lock, where the job is told that the lock was lost: a terminal, a pipe
 * or a local socket that the process has open for writing, and handed over with its question. Nothing else is written
 * to: not a regular file, which may be data, however it is opened; not what another process has as its standard error.
 */
#ifndef DM_PRELOAD_KEEPER_VOICE_H
#define DM_PRELOAD_KEEPER_VOICE_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * Somebody may wait for the end of a pipe, as `$(flock 9 2>&1)` does, while the lock goes on. So a pipe or terminal
 * that the keeper may open is kept by O_PATH, which is no writer to the kernel. All else is kept as it came, and
 * dropped when the process ends or has another standard error.
 */
struct voice {
    int fd;      /* 0: none */
    int process; /* the folder of /proc/PID while the voice is to be dropped with the process; 0: by O_PATH */
};

/* Takes the process's standard error, or -1, and closes it if it is none to be written to. */
void voice_take(struct voice *ret_voice, int given, pid_t pid);

/* Drops a voice that its process has no more. */
void voice_look(struct voice *voice);

void voice_dismiss(struct voice *voice);

/* Writes the line to a voice's descriptor; never waits. False: nobody has the line. Any thread. */
bool voice_say(int fd, const char *line);

#endif
