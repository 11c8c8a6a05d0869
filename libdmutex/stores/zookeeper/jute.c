/* SPDX-License-Identifier: BSD-2-Clause */
#include "stores/zookeeper/jute.h"

#include <string.h>

/* NULL if there are fewer bytes. */
static const uint8_t *take(struct dm_jute *jute, size_t size)
{
    const uint8_t *taken = jute->at;

    if (jute->is_bad || jute->left < size) {
        jute->is_bad = true;
        return NULL;
    }
    jute->at += size;
    jute->left -= size;
    return taken;
}

static uint64_t take_number(struct dm_jute *jute, size_t size)
{
    const uint8_t *at = take(jute, size);
    uint64_t number = 0;

    for (size_t i = 0; at && i < size; i++)
        number = number << 8 | at[i];
    return number;
}

int32_t dm_jute_int(struct dm_jute *jute)
{
    return (int32_t)(uint32_t)take_number(jute, 4);
}

int64_t dm_jute_long(struct dm_jute *jute)
{
    return (int64_t)take_number(jute, 8);
}

bool dm_jute_bool(struct dm_jute *jute)
{
    return take_number(jute, 1) != 0;
}

const char *dm_jute_bytes(struct dm_jute *jute, size_t *ret_size)
{
    int32_t size = dm_jute_int(jute);
    const char *bytes;

    *ret_size = 0;
    if (size < -1)
        jute->is_bad = true;
    bytes = (const char *)take(jute, size > 0 ? (size_t)size : 0);
    if (bytes && size > 0)
        *ret_size = (size_t)size;
    return bytes;
}

static void add_number(struct dm_bytes *to, uint64_t number, int size)
{
    uint8_t bytes[8];

    for (int i = size - 1; i >= 0; i--, number >>= 8)
        bytes[i] = (uint8_t)number;
    dm_bytes_add(to, bytes, (size_t)size);
}

void dm_jute_add_int(struct dm_bytes *to, int32_t number)
{
    add_number(to, (uint32_t)number, 4);
}

void dm_jute_add_long(struct dm_bytes *to, int64_t number)
{
    add_number(to, (uint64_t)number, 8);
}

void dm_jute_add_bool(struct dm_bytes *to, bool is_true)
{
    add_number(to, is_true, 1);
}

void dm_jute_add_bytes(struct dm_bytes *to, const void *bytes, size_t size)
{
    dm_jute_add_int(to, (int32_t)size);
    dm_bytes_add(to, bytes, size);
}

void dm_jute_add_text(struct dm_bytes *to, const char *text)
{
    dm_jute_add_bytes(to, text, strlen(text));
}

size_t dm_jute_begin(struct dm_bytes *to)
{
    dm_jute_add_int(to, 0);
    return to->size;
}

void dm_jute_end(struct dm_bytes *to, size_t begin)
{
    size_t size = to->size - begin;

    if (to->is_short)
        return;
    for (size_t i = 1; i <= 4; i++, size >>= 8)
        to->at[begin - i] = (char)(uint8_t)size;
}

struct dm_jute_stat dm_jute_stat(struct dm_jute *jute)
{
    struct dm_jute_stat stat;

    take(jute, 8); /* czxid */
    stat.changed_zxid = dm_jute_long(jute);
    take(jute, 8); /* ctime */
    stat.changed_ms = dm_jute_long(jute);
    take(jute, 36); /* versions, the owner, sizes, pzxid */
    return stat;
}
