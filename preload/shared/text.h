/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Texts without malloc, stdio or locale: for code that may run in a signal handler, inside malloc, or in a child
 * between vfork() and exec().
 */
#ifndef DM_PRELOAD_TEXT_H
#define DM_PRELOAD_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A text that grows in a buffer, is always terminated, and remembers whether something did not fit. */
struct text {
    char *bytes;
    size_t room, length;
    bool is_cut;
};

struct text text_in(char *buffer, size_t room);
void text_add(struct text *text, const char *more);
void text_add_bytes(struct text *text, const char *bytes, size_t length);
void text_add_number(struct text *text, uint64_t number);
void text_add_hex(struct text *text, uint64_t number);

/* Reads a number, decimal or with 0x, that is the whole text; false if the text is not a number. */
bool text_number(const char *text, uint64_t *ret_number);

/* The part after the last slash. */
const char *text_basename(const char *path);

/* Matches a path. `*` and `?` in the glob do not match a slash. */
bool text_matches(const char *glob, const char *text);

/* The same, with a `?` for each byte that the library's dm_text_clean() would remove. */
void text_add_clean(struct text *text, const char *more);

/* Prints "dmutex: " and the texts up to a NULL, cleaned, as one line to standard error, in one write. */
void text_say(const char *first, ...) __attribute__((sentinel));

#endif
