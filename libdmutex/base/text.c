/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

const char *dm_text_error(int error)
{
    const char *text = strerrordesc_np(error);

    return text ? text : "an unknown error";
}

/* The length of the UTF-8 sequence that begins with this byte; 0: none does (RFC 3629: C0, C1 and F5 to FF). */
static size_t announced_length(unsigned char first)
{
    if (first < 0x80)
        return 1;
    if (first >= 0xC2 && first <= 0xDF)
        return 2;
    if (first >= 0xE0 && first <= 0xEF)
        return 3;
    return first >= 0xF0 && first <= 0xF4 ? 4 : 0;
}

/*
 * The character of a sequence of `length` bytes; UINT32_MAX if the sequence is cut or longer than needed. Never reads
 * past the end, because the NUL is no continuation byte.
 */
static uint32_t decode(const unsigned char *at, size_t length)
{
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    uint32_t character = length == 1 ? at[0] : at[0] & (0xFFu >> (length + 1));

    for (size_t i = 1; i < length; i++) {
        if ((at[i] & 0xC0) != 0x80)
            return UINT32_MAX;
        character = character << 6 | (at[i] & 0x3F);
    }
    return character >= least[length] ? character : UINT32_MAX;
}

/*
 * Not printable are control characters, surrogates, line separators and marks of direction; Unicode's
 * Default_Ignorable_Code_Point, which are invisible; and all blanks but U+0020. Two different names must not look alike
 * because of them.
 */
static bool is_printable(uint32_t character)
{
    static const struct {
        uint32_t first, last;
    } unprintable[] = { { 0, 0x1F },          { 0x7F, 0xA0 },       { 0xAD, 0xAD },          { 0x34F, 0x34F },
                        { 0x61C, 0x61C },     { 0x115F, 0x1160 },   { 0x1680, 0x1680 },      { 0x17B4, 0x17B5 },
                        { 0x180B, 0x180F },   { 0x2000, 0x200F },   { 0x2028, 0x202F },      { 0x205F, 0x206F },
                        { 0x3000, 0x3000 },   { 0x3164, 0x3164 },   { 0xD800, 0xDFFF },      { 0xFE00, 0xFE0F },
                        { 0xFEFF, 0xFEFF },   { 0xFFA0, 0xFFA0 },   { 0xFFF0, 0xFFF8 },      { 0x1BCA0, 0x1BCA3 },
                        { 0x1D173, 0x1D17A }, { 0xE0000, 0xE0FFF }, { 0x110000, UINT32_MAX } };

    for (size_t i = 0; i < sizeof unprintable / sizeof unprintable[0]; i++) {
        if (character >= unprintable[i].first && character <= unprintable[i].last)
            return false;
    }
    return true;
}

size_t dm_text_printable(const char *text)
{
    const unsigned char *at = (const unsigned char *)text;
    size_t length = announced_length(*at);

    return length && is_printable(decode(at, length)) ? length : 0;
}

/* Surrogates are not valid in UTF-8, though their bytes can be decoded. */
size_t dm_text_character(const char *text)
{
    const unsigned char *at = (const unsigned char *)text;
    size_t length = announced_length(*at);
    uint32_t character = length && *at ? decode(at, length) : UINT32_MAX;

    return character <= 0x10FFFF && (character < 0xD800 || character > 0xDFFF) ? length : 0;
}

void dm_text_clean(char *text)
{
    while (*text) {
        size_t length = dm_text_printable(text);

        if (length)
            text += length;
        else
            *text++ = '?';
    }
}
