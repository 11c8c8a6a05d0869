/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A command line as a user types it: its output, and how it ends.
 *
 *     command_run("exec %s --version", dmutex_run);
 *     assert_status(0);
 */
#ifndef TEST_COMMAND_H
#define TEST_COMMAND_H

#include <sys/types.h>

#define COMMAND_ROOM (64 * 1024)

/* The last command. */
extern struct command {
    char line[COMMAND_ROOM];   /* the line given to the shell */
    char output[COMMAND_ROOM]; /* to standard output, cut if too long */
    char errors[COMMAND_ROOM]; /* to standard error */
    int status;                /* the exit status, or 128 plus the signal */
} ran;

/* Runs the line with /bin/sh, and waits for its end. */
void command_run(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same in two steps.  Returns the child's pid, which is the command's own if the line begins with exec. */
pid_t command_start(const char *format, ...) __attribute__((format(printf, 1, 2)));
void command_await(pid_t pid);

/* Asserts the status of the last command; on a failure prints all its output. */
#define assert_status(wanted) command_check_status(wanted, __FILE__, __LINE__)
/* Assert that the last command printed the text to standard output or standard error, perhaps among other text. */
#define assert_output(text) command_check_text(ran.output, text, __FILE__, __LINE__)
#define assert_errors(text) command_check_text(ran.errors, text, __FILE__, __LINE__)

void command_check_status(int wanted, const char *file, int line);
void command_check_text(const char *printed, const char *text, const char *file, int line);

#endif
