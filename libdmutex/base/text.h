/* SPDX-License-Identifier: BSD-2-Clause */
/* Texts from outside, made safe before people see them. */
#ifndef DM_BASE_TEXT_H
#define DM_BASE_TEXT_H

/* Room for a reason in one sentence, in all code that speaks to the server. */
#define DM_REASON_ROOM 320

/*
 * Makes a text safe for a terminal and for a log of one line each: every byte outside printable UTF-8 becomes '?', also
 * line ends, ESC, and marks that change the direction of writing.
 */
void dm_text_clean(char *text);

#endif
