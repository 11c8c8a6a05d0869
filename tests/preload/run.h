/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For the tests of dmutex-run: the program, a folder, and files in it.
 */
#ifndef TEST_PRELOAD_RUN_H
#define TEST_PRELOAD_RUN_H

#include "../lib/folder.h"
#include "../lib/testlib.h"

/* The path of dmutex-run. */
extern char dmutex_run[4096];

/* Group fixtures. HOME is an empty folder, so that dmutex-run finds no configuration but the test's. */
int run_setup(void **state);

/* The same with a server, in DMUTEX_URL, and with a keeper whose socket is in the folder. */
int run_server_setup(void **state);
int run_server_teardown(void **state);

/* Writes a file with a mode in the folder; returns the path, in static memory, until the next call. */
const char *write_file(const char *name, int mode, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Compiles a source in the folder by $CC to another file there; further switches may follow. */
void compile(const char *source, const char *program, const char *switches);

#endif
