/* SPDX-License-Identifier: BSD-2-Clause */
#include "text.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "base/shield.h"
#include "base/stderr.h"
#include "base/text.h"

struct text text_in(char *buffer, size_t room)
{
    buffer[0] = '\0';
    return (struct text){ .bytes = buffer, .room = room };
}

void text_add_bytes(struct text *text, const char *bytes, size_t length)
{
    size_t left = text->room - text->length - 1;

    if (length > left) {
        text->is_cut = true;
        length = left;
    }
    memcpy(text->bytes + text->length, bytes, length);
    text->length += length;
    text->bytes[text->length] = '\0';
}

void text_add(struct text *text, const char *more)
{
    text_add_bytes(text, more, strlen(more));
}

void text_add_clean(struct text *text, const char *more)
{
    while (*more) {
        size_t length = dm_text_printable(more);

        text_add_bytes(text, length ? more : "?", length ? length : 1);
        more += length ? length : 1;
    }
}

static void add_digits(struct text *text, uint64_t number, unsigned base)
{
    char digits[20];
    size_t first = sizeof digits;

    do {
        digits[--first] = "0123456789abcdef"[number % base];
        number /= base;
    } while (number);
    text_add_bytes(text, digits + first, sizeof digits - first);
}

void text_add_number(struct text *text, uint64_t number)
{
    add_digits(text, number, 10);
}

void text_add_hex(struct text *text, uint64_t number)
{
    text_add(text, "0x");
    add_digits(text, number, 16);
}

/* -1: not a digit. */
static int digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

bool text_number(const char *text, uint64_t *ret_number)
{
    uint64_t base = strncmp(text, "0x", 2) == 0 ? 16 : 10, number = 0;

    if (base == 16)
        text += 2;
    if (!*text)
        return false;
    for (; *text; text++) {
        int value = digit(*text);

        if (value < 0 || (uint64_t)value >= base || number > (UINT64_MAX - (uint64_t)value) / base)
            return false;
        number = number * base + (uint64_t)value;
    }
    *ret_number = number;
    return true;
}

const char *text_basename(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/*
 * On a mismatch the last star takes one more byte. No earlier star needs more, because the text between the two was
 * found as early as possible; nor after a slash, because no star matches a slash.
 */
bool text_matches(const char *glob, const char *text)
{
    const char *star = NULL, *taken = NULL; /* the last star, and where the text that it matches ends */

    for (;;) {
        if (*glob == '*') {
            star = glob++;
            taken = text;
        } else if (*text && (*glob == '?' ? *text != '/' : *glob == *text)) {
            if (*text == '/')
                star = NULL;
            glob++;
            text++;
        } else if (!*text && !*glob) {
            return true;
        } else {
            if (!star || !*taken || *taken == '/')
                return false;
            glob = star + 1;
            text = ++taken;
        }
    }
}

void text_say(const char *first, ...)
{
    char line[1024];
    struct text text = text_in(line, sizeof line - 1);
    int error = errno, cancel_state;
    struct dm_shield shield;
    va_list more;

    text_add(&text, "dmutex: ");
    va_start(more, first);
    for (const char *part = first; part; part = va_arg(more, const char *))
        text_add_clean(&text, part);
    va_end(more);
    line[text.length] = '\n';
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state); /* the caller may be no cancellation point */
    dm_shield_raise(&shield);
    if (dm_stderr_is_usable() && write(STDERR_FILENO, line, text.length + 1) < 0)
        errno = 0; /* nobody reads it */
    dm_shield_lower(&shield);
    pthread_setcancelstate(cancel_state, NULL);
    errno = error;
}
