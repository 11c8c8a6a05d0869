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

int tool_setup(void **state);
int tool_teardown(void **state);

/*
 * A command in the background, which waits for the test: a line that has `read go <$F/go` in it ends there until
 * tool_go().  Standard error goes to $F/errors.  One at a time.
 */
pid_t tool_start(const char *format, ...) __attribute__((format(printf, 1, 2)));
void tool_go(void);

/* Awaits the end: the exit status, or 128 and the signal. */
int tool_await(pid_t pid);

/* True if $F/errors has the text. */
bool tool_has_said(const char *text);

/* True if a file $F/NAME is there; a number in it. */
bool tool_has(const char *name);
long tool_number(const char *name);

/* True if the mutex of this name is held. */
bool tool_is_held(const char *name);

/* Asserts that the output of the last command is one JSON document; false if there is no program to check it. */
bool tool_check_json(void);

/* Words of dmutex(1) that ask the server, in this order, about a lock tw/held that another process holds. */
struct tool_word {
    const char *word, *output;
    int status;
};
#define TOOL_WORDS 12
extern const struct tool_word tool_words[TOOL_WORDS];

/* Each word at this URL does its work. */
void tool_use_words(const char *url);

/*
 * Each word at this URL, and doctor, says the sentence and ends with 69.  found: a line of doctor's, with the sentence.
 */
void tool_check_refusals(const char *url, const char *found, const char *sentence);

/* A user of the server with the rights that dmutex(7) names and the changes, as "-hget"; its URL, until the next. */
const char *tool_user(const char *changes);

#endif
