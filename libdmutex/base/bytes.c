/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/bytes.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROOM_MIN 256

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* Room for so many more bytes and a NUL. */
static bool make_room(struct dm_bytes *bytes, size_t size)
{
    size_t room = bytes->room ? bytes->room : ROOM_MIN;
    char *at;

    while (room - bytes->size <= size)
        room *= 2;
    if (room == bytes->room)
        return true;
    at = realloc(bytes->at, room);
    if (!at) {
        bytes->is_short = true;
        return false;
    }
    bytes->at = at;
    bytes->room = room;
    return true;
}

void dm_bytes_add(struct dm_bytes *bytes, const void *more, size_t size)
{
    if (size == 0 || !make_room(bytes, size))
        return;
    memcpy(bytes->at + bytes->size, more, size);
    bytes->size += size;
    bytes->at[bytes->size] = '\0';
}

void dm_bytes_print(struct dm_bytes *bytes, const char *format, ...)
{
    va_list arguments;
    int size;

    va_start(arguments, format);
    size = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (size < 0 || !make_room(bytes, (size_t)size))
        return;
    va_start(arguments, format);
    vsnprintf(bytes->at + bytes->size, (size_t)size + 1, format, arguments);
    va_end(arguments);
    bytes->size += (size_t)size;
}

void dm_bytes_add_base64(struct dm_bytes *bytes, const void *more, size_t size)
{
    const uint8_t *from = more;
    char *to;

    if (!make_room(bytes, (size + 2) / 3 * 4))
        return;
    to = bytes->at + bytes->size;
    for (size_t i = 0; i < size; i += 3) {
        size_t left = size - i;
        uint32_t word = (uint32_t)from[i] << 16 | (left > 1 ? (uint32_t)from[i + 1] << 8 : 0) |
                        (left > 2 ? (uint32_t)from[i + 2] : 0);

        *to++ = digits[word >> 18];
        *to++ = digits[word >> 12 & 63];
        *to++ = left > 1 ? digits[word >> 6 & 63] : '=';
        *to++ = left > 2 ? digits[word & 63] : '=';
    }
    *to = '\0';
    bytes->size = (size_t)(to - bytes->at);
}

static int digit_of(char letter)
{
    if (letter >= 'A' && letter <= 'Z')
        return letter - 'A';
    if (letter >= 'a' && letter <= 'z')
        return letter - 'a' + 26;
    if (letter >= '0' && letter <= '9')
        return letter - '0' + 52;
    return letter == '+' ? 62 : letter == '/' ? 63 : -1;
}

long dm_base64_decode(const char *text, size_t size, void *ret_bytes, size_t room)
{
    uint8_t *to = ret_bytes;
    size_t padding = 0, length;

    if (size % 4 != 0)
        return -1;
    while (padding < 2 && padding < size && text[size - 1 - padding] == '=')
        padding++;
    length = size / 4 * 3 - padding;
    if (length > room)
        return -1;
    for (size_t i = 0, at = 0; i < size; i += 4) {
        uint32_t word = 0;

        for (size_t j = 0; j < 4; j++) {
            int digit = i + j < size - padding ? digit_of(text[i + j]) : 0;

            if (digit < 0)
                return -1;
            word = word << 6 | (uint32_t)digit;
        }
        for (int shift = 16; shift >= 0 && at < length; shift -= 8)
            to[at++] = (uint8_t)(word >> shift);
    }
    return (long)length;
}

void dm_bytes_take(struct dm_bytes *bytes, size_t size)
{
    bytes->size -= size;
    if (bytes->at)
        memmove(bytes->at, bytes->at + size, bytes->size + 1);
}

void dm_bytes_free(struct dm_bytes *bytes)
{
    free(bytes->at);
    *bytes = (struct dm_bytes){ 0 };
}
