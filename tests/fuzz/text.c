/* SPDX-License-Identifier: BSD-2-Clause */
#include "fuzz.h"

#include <string.h>

const char *fuzz_text(const uint8_t *bytes, size_t length)
{
    static char *text;

    free(text); /* of the exact size, so that the sanitizer notices a read beyond the text */
    text = malloc(length + 1);
    must(text);
    if (length)
        memcpy(text, bytes, length);
    text[length] = '\0';
    return text;
}
