/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Another user of this machine, with bad intentions. Only root can act as another user: a test with a stranger calls
 * stranger_require() first.
 */
#ifndef TEST_STRANGER_H
#define TEST_STRANGER_H

#include <sys/types.h>

/* The stranger, and a user whom the stranger attacks. Neither has a name or a home. */
#define STRANGER 61234
#define VICTIM 61235

/* Skips the program unless root runs it. */
void stranger_require(void);

/* Runs a shell command as the user; it must succeed. */
void stranger_run(uid_t user, const char *format, ...) __attribute__((__format__(__printf__, 2, 3)));

/* A server that listens at folder/s for everybody, run by the user. Ends with the test program. */
pid_t stranger_serve(uid_t user, const char *folder);
void stranger_end(pid_t server);

/* Becomes the user in a forked child, calls the function, and returns its result, at most 255. */
int stranger_call(uid_t user, int (*function)(void *argument), void *argument);

#endif
