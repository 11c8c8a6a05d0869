/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Texts without malloc, stdio and locale: for code that may run in a signal handler, inside malloc, or in a child
 * between vfork() and exec().
 */
#ifndef DM_PRELOAD_TEXT_H
#define DM_PRELOAD_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A text that grows in a buffer, is always terminated, and notes when more did not fit. */
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

/* Reads a number, decimal or with 0x, that is all of the text; false if the text is no number. */
bool text_number(const char *text, uint64_t *ret_number);

/* The part behind the last slash. */
const char *text_basename(const char *path);

/* Matches a path: the glob's `*` and `?` match a slash only if a literal slash stands there. */
bool text_matches(const char *glob, const char *text);

/* The same, with a `?` for each byte that dm_text_clean() of the library takes away. */
void text_add_clean(struct text *text, const char *more);

/* Says "dmutex: " and the texts up to a NULL, cleaned, as one line to standard error, by one write. */
void text_say(const char *first, ...) __attribute__((sentinel));

#endif
