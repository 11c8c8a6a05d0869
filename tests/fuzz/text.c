/* SPDX-License-Identifier: BSD-2-Clause */
#include "fuzz.h"

#include <string.h>

const char *fuzz_text(const uint8_t *bytes, size_t length)
{
    static char *text;

    free(text); /* of the very size, so that a byte read behind it is seen */
    text = malloc(length + 1);
    must(text);
    if (length)
        memcpy(text, bytes, length);
    text[length] = '\0';
    return text;
}
