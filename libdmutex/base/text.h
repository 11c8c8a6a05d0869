/* SPDX-License-Identifier: BSD-2-Clause */
/* Texts from outside, made safe before people see them. */
#ifndef DM_BASE_TEXT_H
#define DM_BASE_TEXT_H

#include <stddef.h>

/* Room for a reason in one sentence, in all code that speaks to the server. */
#define DM_REASON_ROOM 320

/*
 * Makes a text safe for a terminal and for a log of one line each: every byte outside printable UTF-8 becomes '?', also
 * line ends, ESC, and marks that change the direction of writing.
 */
void dm_text_clean(char *text);

/*
 * The length of the character at the beginning of a text, if it is one that dm_text_clean() leaves; 0 for any other
 * byte, and at the end of the text.
 */
size_t dm_text_printable(const char *text);

/* The same for any character of UTF-8, controls too: 0 if the bytes are none, and at the end of the text. */
size_t dm_text_character(const char *text);

#endif
