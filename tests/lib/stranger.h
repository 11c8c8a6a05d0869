/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Another user of this machine, who means no good. Only root can act for another user: a test with a stranger calls
 * stranger_require() first.
 */
#ifndef TEST_STRANGER_H
#define TEST_STRANGER_H

#include <sys/types.h>

/* The stranger, and a user whom the stranger attacks. Both have neither name nor home. */
#define STRANGER 61234
#define VICTIM 61235

/* Ends the program, skipped, if the program is not root's. */
void stranger_require(void);

/* Runs a shell command as the user; the command must succeed. */
void stranger_run(uid_t user, const char *format, ...) __attribute__((__format__(__printf__, 2, 3)));

/* A server that listens at folder/s for all, as the user. Ends with the test program. */
pid_t stranger_serve(uid_t user, const char *folder);
void stranger_end(pid_t server);

/* Becomes the user in a forked child, and ends with the function's result, up to 255. Returns the result. */
int stranger_call(uid_t user, int (*function)(void *argument), void *argument);

#endif
