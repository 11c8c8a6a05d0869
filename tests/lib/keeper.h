/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ends everything that a test has started.
 *
 * test_begin() forks the keeper, a process that only measures (late.h) until the test program ends, in whatever way.
 * Then the keeper kills the processes and deletes the folders that the tests have registered.
 */
#ifndef TEST_KEEPER_H
#define TEST_KEEPER_H

#include <sys/types.h>

/* Before the first thread; test_begin() calls it. */
void keeper_begin(void);

/* The keeper's measurements. */
struct late *keeper_late(void);

/* Processes: register one when it is born, and forget it before waiting for its end. */
void keeper_watch(pid_t pid);
void keeper_forget(pid_t pid);

/* Makes a new folder directly below /tmp, so that paths of sockets in it are short. */
void keeper_make_folder(char *ret_path, size_t size);
void keeper_remove_folder(const char *path);

/* fork(), and registers the child, which must end with _exit(). */
pid_t keeper_fork(void);

/*
 * In a forked child whose parent had no threads: the child is checked for leaks at its exit, like a program that was
 * started, and unlike other children.
 */
void keeper_mind_leaks(void);

/*
 * Waits for a child's end and forgets it.  Returns the wait status.  A child that does not end within four
 * WAIT_LIMIT_MS is killed; the status is then SIGALRM.
 */
int keeper_reap(pid_t pid);

#endif
