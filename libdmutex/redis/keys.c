/* SPDX-License-Identifier: BSD-2-Clause */
#include "redis/keys.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const mutex_kinds[] = { "lock", "state", "queue", "waiter" };
static const char *const condition_kinds[] = { "cond", "sleeper" };

_Static_assert(sizeof mutex_kinds / sizeof *mutex_kinds == DM_KEY_COUNT, "one kind for each key");
_Static_assert(sizeof condition_kinds / sizeof *condition_kinds == DM_COND_KEY_COUNT, "one kind for each key");

/* The parts common to all keys of one object. */
struct place {
    const char *prefix;
    const char *name; /* group and leaf, or the id that an anonymous mutex has as its group */
    int is_anonymous;
    const char *leaf_id; /* of an anonymous condition; NULL: the leaf of `name` */
};

/* Writes the encoded bytes and returns the end. */
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

static char *write_key(char *to, const struct place *place, const char *kind)
{
    size_t group = place->is_anonymous ? strlen(place->name) : strcspn(place->name, "/");
    const char *leaf = place->name[group] ? place->name + group + 1 : "";

    to += sprintf(to, "%s:{", place->prefix);
    if (place->is_anonymous)
        to += sprintf(to, "%s", place->name);
    else
        to = encode(to, place->name, group);
    to += sprintf(to, "}:%s:", kind);
    if (place->leaf_id)
        to += sprintf(to, "%s", place->leaf_id);
    else
        to = encode(to, leaf, strlen(leaf));
    *to = '\0';
    return to;
}

static struct dm_keys *write_keys(const struct place *place, const char *const *kinds, int count)
{
    size_t longest = strlen(place->prefix) + 3 * strlen(place->name) +
                     sizeof ":{}:sleeper:" + (place->leaf_id ? strlen(place->leaf_id) : 0);
    struct dm_keys *keys = calloc(1, sizeof *keys + (size_t)count * longest);
    struct dm_keys *fitted;
    char *at, *end;

    if (!keys)
        return NULL;
    at = (char *)(keys + 1);
    for (int key = 0; key < count; key++) {
        end = write_key(at, place, kinds[key]);
        keys->length[key] = (size_t)(end - at);
        at = end + 1;
    }
    fitted = realloc(keys, (size_t)(at - (char *)keys));
    keys = fitted ? fitted : keys;
    at = (char *)(keys + 1);
    for (int key = 0; key < count; key++) {
        keys->text[key] = at;
        at += keys->length[key] + 1;
    }
    return keys;
}

struct dm_keys *dm_keys_new(const char *prefix, const char *name, int is_anonymous)
{
    struct place place = { prefix, name, is_anonymous, NULL };

    return write_keys(&place, mutex_kinds, DM_KEY_COUNT);
}

struct dm_keys *dm_keys_new_condition(const char *prefix, const char *id, const char *name, int is_anonymous)
{
    struct place place = { prefix, name, is_anonymous, id };

    return write_keys(&place, condition_kinds, DM_COND_KEY_COUNT);
}
