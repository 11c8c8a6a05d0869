/* SPDX-License-Identifier: BSD-2-Clause */
#include "redis/keys.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const kinds[DM_KEY_COUNT] = { "lock", "state", "queue", "waiter" };

/* Writes the encoded bytes and returns their end. */
static char *encode(char *to, const char *from, size_t length)
{
    static const char digits[] = "0123456789ABCDEF";

    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)from[i];

        if ((byte < 128 && isalnum(byte)) || byte == '.' || byte == '_' || byte == '-') {
            *to++ = (char)byte;
        } else {
            *to++ = '%';
            *to++ = digits[byte >> 4];
            *to++ = digits[byte & 15];
        }
    }
    return to;
}

static char *write_key(char *to, const char *prefix, const char *kind, const char *name, int is_anonymous)
{
    size_t group = is_anonymous ? strlen(name) : strcspn(name, "/");
    const char *leaf = name[group] ? name + group + 1 : "";

    to += sprintf(to, "%s:{", prefix);
    if (is_anonymous)
        to += sprintf(to, "%s", name);
    else
        to = encode(to, name, group);
    to += sprintf(to, "}:%s:", kind);
    to = encode(to, leaf, strlen(leaf));
    *to = '\0';
    return to;
}

struct dm_keys *dm_keys_new(const char *prefix, const char *name, int is_anonymous)
{
    size_t longest = strlen(prefix) + 3 * strlen(name) + sizeof ":{}:waiter:";
    struct dm_keys *keys = malloc(sizeof *keys + DM_KEY_COUNT * longest);
    struct dm_keys *fitted;
    char *at, *end;

    if (!keys)
        return NULL;
    at = (char *)(keys + 1);
    for (int key = 0; key < DM_KEY_COUNT; key++) {
        end = write_key(at, prefix, kinds[key], name, is_anonymous);
        keys->length[key] = (size_t)(end - at);
        at = end + 1;
    }
    fitted = realloc(keys, (size_t)(at - (char *)keys));
    keys = fitted ? fitted : keys;
    at = (char *)(keys + 1);
    for (int key = 0; key < DM_KEY_COUNT; key++) {
        keys->text[key] = at;
        at += keys->length[key] + 1;
    }
    return keys;
}
