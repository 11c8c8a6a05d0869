/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Plain pthread programs (programs/), compiled by the test without any header of ours, and started
 * under the module.
 *
 *     build("legacy", LEGACY, "");
 *     a = start_program("legacy", "sym:legacy:queue_lock => t/queue", NULL);
 *     actor_do(a, "EBUSY", "trylock queue_lock");
 *     actor_end(a);
 */
#ifndef TEST_PRELOAD_PROGRAMS_H
#define TEST_PRELOAD_PROGRAMS_H

#include "../lib/testlib.h"

/* Where the group's programs are. */
extern char folder[64];

/* Group fixtures: test_group_setup() and a folder; for a group without a server, only that. */
int programs_setup(void **state);
int programs_teardown(void **state);
int folder_setup(void **state);
int folder_teardown(void **state);

/*
 * Compiles sources of programs/, words separated by blanks, to a file of the folder, with further switches,
 * in which $folder is that folder.
 */
void build(const char *output, const char *sources, const char *switches);

/* The sources of the program that does what it is told (programs/legacy.c). */
#define LEGACY "legacy.c legacy_calls.c legacy_around.c"

/* The same with C++'s mutexes, as `guarded`, if there is a C++ compiler. */
void build_guarded(void);
bool has_cxx(void);

/*
 * Is the module sanitized?  Then the sanitizer's library is between program and module: it calls dlopen() itself,
 * refuses RTLD_DEEPBIND, and keeps memory for a while.
 */
bool is_sanitized(void);

/* What LD_PRELOAD is set to: the module; in a sanitized build its runtime before it. */
const char *module_path(void);

/*
 * Starts a program of the folder under the module, with these rules (NULL: none) and further
 * environment strings, at the end NULL.
 */
struct actor *start_program(const char *name, const char *rules, ...) __attribute__((__sentinel__));

/* The same without the module. */
struct actor *start_bare(const char *name, ...) __attribute__((__sentinel__));

/*
 * All that programs of this test have written to standard error, and how often a text is in it.
 * forget_said() is the setup of a test that looks at it.
 */
const char *said(void);
int said_count(const char *text);
int forget_said(void **state);

/* It was said, once. */
#define assert_said(text)                                                  \
    do {                                                                   \
        if (said_count(text) != 1)                                         \
            fail_msg("\"%s\" was expected once in: %s", text, said());     \
    } while (0)

/* A command of the shell in the folder, under the module with these rules: exit status and output in `ran`. */
void run_under(const char *rules, const char *command);

#endif
