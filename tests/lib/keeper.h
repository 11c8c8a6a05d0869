/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ends everything that a test started.
 *
 * test_begin() forks the keeper, a process that only measures (late.h) until the test program ends, in whatever way;
 * then the keeper kills the processes and deletes the folders that the tests have told.
 */
#ifndef TEST_KEEPER_H
#define TEST_KEEPER_H

#include <sys/types.h>

/* Before the first thread; test_begin() calls the function. */
void keeper_begin(void);

/* The keeper's measurements. */
struct late *keeper_late(void);

/* Processes: tell the keeper of a process at the birth, forget the process before waiting for the end. */
void keeper_watch(pid_t pid);
void keeper_forget(pid_t pid);

/* A new folder directly below /tmp, so that a socket's path in the folder is short. */
void keeper_make_folder(char *ret_path, size_t size);
void keeper_remove_folder(const char *path);

/* fork(), and the keeper knows of the child.  The child ends with _exit(). */
pid_t keeper_fork(void);

/*
 * In a forked child whose parent had no threads: leaks of the child are looked for at the exit, as in a program that is
 * started, and in no other child.
 */
void keeper_mind_leaks(void);

/*
 * Waits for a child's end and forgets the child: the wait status. A child that does not end within four WAIT_LIMIT_MS
 * is killed: SIGALRM is then the status.
 */
int keeper_reap(pid_t pid);

#endif
