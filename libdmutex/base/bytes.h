/* SPDX-License-Identifier: BSD-2-Clause */
/* A growing block of bytes. */
#ifndef DM_BASE_BYTES_H
#define DM_BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/attrs.h"

/* All zero: empty.  A NUL stands after the bytes, if there are any. */
struct dm_bytes {
    char *at;
    size_t size, room;
    bool is_short; /* memory was missing once: the bytes are not whole */
};

void dm_bytes_add(struct dm_bytes *bytes, const void *more, size_t size);
void dm_bytes_print(struct dm_bytes *bytes, const char *format, ...) DM_PRINTF(2, 3);

/* Adds the bytes in base64, with its padding. */
void dm_bytes_add_base64(struct dm_bytes *bytes, const void *more, size_t size);

/* Decodes base64, with its padding; `size` counts its characters.  Returns the number of bytes, or -1. */
long dm_base64_decode(const char *text, size_t size, void *ret_bytes, size_t room);

/* Takes bytes off the beginning. */
void dm_bytes_take(struct dm_bytes *bytes, size_t size);

void dm_bytes_free(struct dm_bytes *bytes);

#endif
