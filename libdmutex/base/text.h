/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes texts from outside safe to show. */
#ifndef DM_BASE_TEXT_H
#define DM_BASE_TEXT_H

#include <stddef.h>

/* Room for the reason of a failure, one sentence. */
#define DM_REASON_ROOM 320

/*
 * Makes a text safe for a terminal and for a log with one line per message: every byte that is not part of printable
 * UTF-8 becomes '?', including line ends, ESC, and marks that change the direction of writing.
 */
void dm_text_clean(char *text);

/*
 * What an errno value means, in English.  strerror() would translate it: then a sentence is in two languages and
 * character sets, and the first call may load a library (gconv) and wait for another thread's dlopen().
 */
const char *dm_text_error(int error);

/*
 * The length of the character at the beginning of a text, if it is one that dm_text_clean() leaves; 0 for any other
 * byte, and at the end of the text.
 */
size_t dm_text_printable(const char *text);

/*
 * The same for any UTF-8 character, control characters included: 0 if the bytes are no character, and at the end of the
 * text.
 */
size_t dm_text_character(const char *text);

#endif
