/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Nothing of a test outlives it.
 *
 * test_begin() forks the keeper, a process that only measures (late.h) until the test program ends, in
 * whatever way; then it kills the processes and deletes the folders that it was told of.
 */
#ifndef TEST_KEEPER_H
#define TEST_KEEPER_H

#include <sys/types.h>

/* Before the first thread; test_begin() does it. */
void keeper_begin(void);

/* What it has measured. */
struct late *keeper_late(void);

/* Processes: tell of one when it is born, forget it before its end is waited for. */
void keeper_watch(pid_t pid);
void keeper_forget(pid_t pid);

/* A new folder directly below /tmp, so that a socket's path in it is short. */
void keeper_make_folder(char *ret_path, size_t size);
void keeper_remove_folder(const char *path);

/* fork(), and the keeper knows of the child.  The child ends with _exit(). */
pid_t keeper_fork(void);

/*
 * In a forked child whose parent had no threads: its leaks are looked for at its exit, as are those of no
 * other child.
 */
void keeper_mind_leaks(void);

/*
 * Waits for a child's end and forgets it: its wait status.  One that does not end within
 * four WAIT_LIMIT_MS is killed: SIGALRM is then its status.
 */
int keeper_reap(pid_t pid);

#endif
