/* SPDX-License-Identifier: BSD-2-Clause */
/* Text for people: one line on standard error, names that may contain any byte, lengths of time. */
#ifndef DM_TOOLS_SAY_H
#define DM_TOOLS_SAY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Prints "dmutex: ", the sentence and a newline to standard error.  Bytes that a terminal would obey become '?'. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* False if say() would have to wait for the reader, as with a full pipe or a stopped terminal. */
bool say_has_room(void);

#define SAY_NAME_ROOM (4 * 256)
#define SAY_TIME_ROOM 32

/*
 * Writes a name, or another text from the server.  What dm_text_clean() would replace, backslashes, and a blank at
 * either end are written as \xHH, so that different names look different.  Returns ret_text.
 */
const char *say_name(const char *name, char ret_text[SAY_NAME_ROOM]);

/* Writes a length of time: "0.3 s", "12.3 s", "4 min 3 s", "2 h 5 min", "3 d 2 h".  Returns ret_text. */
const char *say_time(int64_t ms, char ret_text[SAY_TIME_ROOM]);

/* The same in 6 columns at most: "12.3s", "4m03s", "2h05m", "3d02h", "412d". */
const char *say_short_time(int64_t ms, char ret_text[SAY_TIME_ROOM]);

/* The columns that a text takes: characters, not bytes. */
int say_width(const char *text);

/*
 * Prints a cell of a table: at least `least` columns and a gap of two.  Text beyond `most` columns is cut and ends with
 * '~'.
 */
void say_cell(const char *text, int least, int most);

/* True if the stream can show live screens and colours: a terminal that is not dumb. */
bool say_is_screen(FILE *to);

#endif
