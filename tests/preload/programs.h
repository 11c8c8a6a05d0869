/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Plain pthread programs (programs/), compiled by the test without any header of libdmutex, and started under the
 * module.
 *
 *     build("legacy", LEGACY, "");
 *     a = start_program("legacy", "sym:legacy:queue_lock => t/queue", NULL);
 *     actor_do(a, "EBUSY", "trylock queue_lock");
 *     actor_end(a);
 */
#ifndef TEST_PRELOAD_PROGRAMS_H
#define TEST_PRELOAD_PROGRAMS_H

#include "../lib/folder.h"
#include "../lib/testlib.h"

/* Group fixtures: test_group_setup() and a folder; folder_setup() for a group without a server: the folder only. */
int programs_setup(void **state);
int programs_teardown(void **state);
int folder_setup(void **state);

/*
 * Compiles sources of programs/, words separated by blanks, to a file of the folder, with further switches, in which
 * $folder is the folder.
 */
void build(const char *output, const char *sources, const char *switches);

/* The sources of the program that obeys commands (programs/legacy.c). */
#define LEGACY "legacy.c legacy_calls.c legacy_around.c"

/* Builds the same program with C++'s mutexes, as `guarded`, if there is a C++ compiler. */
void build_guarded(void);
bool has_cxx(void);

/*
 * True if the module is sanitized. Then the sanitizer's library is between program and module: the library calls
 * dlopen() itself, refuses RTLD_DEEPBIND, and keeps memory for a while.
 */
bool is_sanitized(void);

/* The value of LD_PRELOAD: the module; in a sanitized build, the sanitizer's runtime before the module. */
const char *module_path(void);

/*
 * Starts a program of the folder under the module, with rules (NULL: none) and further environment strings, at the end
 * NULL.
 */
struct actor *start_program(const char *name, const char *rules, ...) __attribute__((__sentinel__));

/* Starts a program without the module. */
struct actor *start_bare(const char *name, ...) __attribute__((__sentinel__));

/*
 * All output of this test's programs to standard error, and the number of times a text occurs there. forget_said() is
 * the setup of a test that calls said().
 */
const char *said(void);
int said_count(const char *text);
int forget_said(void **state);

/* Asserts that the text was said once. */
#define assert_said(text)                                              \
    do {                                                               \
        if (said_count(text) != 1)                                     \
            fail_msg("\"%s\" was expected once in: %s", text, said()); \
    } while (0)

/* Runs a command of the shell in the folder, under the module with rules: exit status and output in `ran`. */
void run_under(const char *rules, const char *command);

#endif
