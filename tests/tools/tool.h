/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For the tests of dmutex(1): a server for the group, in DMUTEX_URL, and lines for a shell in which $dmutex is the
 * program and $F the server's folder.
 *
 *     command_run("exec $dmutex show t/x");
 *     assert_status(0);
 */
#ifndef TEST_TOOL_H
#define TEST_TOOL_H

#include "../lib/testlib.h"

/* Sets $dmutex, $F and DMUTEX_URL; tool_setup() does. */
void tool_use(const char *in_folder, const char *url);

int tool_setup(void **state);
int tool_teardown(void **state);

/*
 * A command in the background that waits for the test: a line that contains `read go <$F/go` stops there until
 * tool_go().  Standard error goes to $F/errors.  One at a time.
 */
pid_t tool_start(const char *format, ...) __attribute__((format(printf, 1, 2)));
void tool_go(void);

/* Waits for the end.  Returns the exit status, or 128 plus the signal. */
int tool_await(pid_t pid);

/* True if $F/errors contains the text. */
bool tool_has_said(const char *text);

/* True if the file $F/NAME exists; the number in it. */
bool tool_has(const char *name);
long tool_number(const char *name);

/* True if the mutex with this name is held. */
bool tool_is_held(const char *name);

/* Asserts that the last output is one JSON document.  False if no program is installed to check it. */
bool tool_check_json(void);

/* Subcommands that ask the server, in this order, about a lock tw/held that another process holds. */
struct tool_subcommand {
    const char *arguments, *output;
    int status;
};
#define TOOL_WORDS 12
extern const struct tool_subcommand tool_subcommands[TOOL_WORDS];

/* Every subcommand works at this URL. */
void tool_use_subcommands(const char *url);

/*
 * Every subcommand at this URL, and doctor, prints the sentence and exits with 69. found: doctor's line that contains
 * the sentence.
 */
void tool_check_refusals(const char *url, const char *found, const char *sentence);

/*
 * Makes a server user with the rights that dmutex(7) lists and the changes, such as "-hget".  Returns its URL, valid
 * until the next call.
 */
const char *tool_user(const char *changes);

#endif
