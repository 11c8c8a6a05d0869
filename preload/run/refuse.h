/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Failures of dmutex-run. A failure is a GError whose code is the exit status, and whose message says what to do.
 * Functions that can fail return false with a GError.
 */
#ifndef DM_RUN_REFUSE_H
#define DM_RUN_REFUSE_H

#include <stdbool.h>

#include <glib.h>

/* The statuses of <sysexits.h>, and those that shells, env(1) and nice(1) use for a command. */
enum refuse_status {
    REFUSE_USAGE = 64,
    REFUSE_DOWN = 69,
    REFUSE_CONFIG = 78,
    REFUSE_CANNOT_RUN = 126,
    REFUSE_NOT_FOUND = 127
};

/* Sets the error, and returns false. */
bool refuse(GError **error, enum refuse_status status, const char *format, ...) G_GNUC_PRINTF(3, 4);

/* How much to say besides errors: with -q, with neither, with -v. */
enum say_level { SAY_ERRORS, SAY_WARNINGS, SAY_ALL };
extern enum say_level say_level;

/* Writes one line to standard error. */
void say_error(const char *format, ...) G_GNUC_PRINTF(1, 2);
void say_warning(const char *format, ...) G_GNUC_PRINTF(1, 2);
void say_note(const char *format, ...) G_GNUC_PRINTF(1, 2);

/* The text as a terminal may show it (shared/text.h). The caller frees it. */
char *say_clean(const char *words);

#endif
