/* SPDX-License-Identifier: BSD-2-Clause */
#include "config/url_parts.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/login.h"

bool dm_url_complain(char *ret_reason, const char *sentence)
{
    snprintf(ret_reason, DM_REASON_ROOM, "%s", sentence);
    return false;
}

struct dm_part dm_part_rest(const char *text)
{
    return (struct dm_part){ text, strlen(text) };
}

struct dm_part dm_part_cut(struct dm_part *from, char mark, bool *ret_found)
{
    const char *at = memchr(from->text, mark, from->length);
    struct dm_part head = *from;

    *ret_found = at != NULL;
    if (at) {
        head.length = (size_t)(at - from->text);
        from->text = at + 1;
        from->length -= head.length + 1;
    } else {
        from->text += from->length;
        from->length = 0;
    }
    return head;
}

/*
 * The value of a hexadecimal digit, or -1. The cast keeps bytes above 127 from being negative, which <ctype.h> does not
 * allow.
 */
static int hex_value(char digit)
{
    if (!isxdigit((unsigned char)digit))
        return -1;
    return isdigit((unsigned char)digit) ? digit - '0' : tolower((unsigned char)digit) - 'a' + 10;
}

/* A bad escape counts as a NUL, which is refused because the text after it would be lost. */
char *dm_part_decode(struct dm_part part)
{
    char *out = malloc(part.length + 1);
    size_t used = 0;

    for (size_t i = 0; out && i < part.length; i++) {
        int byte = (unsigned char)part.text[i];

        if (byte == '%') {
            int high = i + 2 < part.length ? hex_value(part.text[i + 1]) : -1;
            int low = high >= 0 ? hex_value(part.text[i + 2]) : -1;

            byte = low >= 0 ? high * 16 + low : 0;
            i += 2;
        }
        if (byte == 0) {
            out[used] = '\0';
            dm_login_wipe(out); /* it may be the beginning of a password */
            return NULL;
        }
        out[used++] = (char)byte;
    }
    if (out)
        out[used] = '\0';
    return out;
}

/* Accepts only digits, unlike strtoul(), which accepts blanks and a sign. Nine digits always fit into 32 bits. */
bool dm_part_number(struct dm_part part, unsigned least, unsigned most, unsigned *ret_number)
{
    unsigned long number = 0;

    if (part.length == 0 || part.length > 9)
        return false;
    for (size_t i = 0; i < part.length; i++) {
        if (!isdigit((unsigned char)part.text[i]))
            return false;
        number = number * 10 + (unsigned)(part.text[i] - '0');
    }
    if (number < least || number > most)
        return false;
    *ret_number = (unsigned)number;
    return true;
}

/* Frees the previous text, because an option may be given twice: the last one counts. */
bool dm_part_set(char **slot, struct dm_part value)
{
    free(*slot);
    *slot = dm_part_decode(value);
    return *slot != NULL;
}

bool dm_part_is(struct dm_part part, const char *word)
{
    return part.length == strlen(word) && memcmp(part.text, word, part.length) == 0;
}
