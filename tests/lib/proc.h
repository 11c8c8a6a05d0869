/* SPDX-License-Identifier: BSD-2-Clause */
/* What the kernel says about a process or a thread. */
#ifndef TEST_PROC_H
#define TEST_PROC_H

#include <stdbool.h>
#include <sys/types.h>

/* The letter of its state: S asleep, T stopped, Z not reaped; X also if there is no such process. */
char proc_state(pid_t id);

/* True if the process is neither gone nor waiting to be reaped. */
bool proc_is_alive(pid_t id);

/* 0 if there is none. */
pid_t proc_parent(pid_t id);

/* True if the signal is pending for the process, or for its first thread. */
bool proc_has_pending(pid_t id, int number);

/* The memory of a process in KiB: "RssAnon" and "RssFile" are in use now, "VmHWM" was the most of both. */
long proc_kib(pid_t id, const char *kind);

/* How many threads this process has. */
int proc_own_threads(void);

#endif
