/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The keys of a name are made once, when the process first uses it, in one block with their addresses and lengths, so
 * that a request copies only pointers.
 */
#include "stores/redis/wire/keys.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stores/redis/wire/slots.h"

/* In the order of enum dm_key, and so of KEYS in the scripts. */
static const char *const mutex_kinds[] = { "lock", "state", "queue", "waiter" };
static const char *const condition_kinds[] = { "cond", "sleeper" };

_Static_assert(sizeof mutex_kinds / sizeof *mutex_kinds == DM_KEY_COUNT, "one kind for each key");
_Static_assert(sizeof condition_kinds / sizeof *condition_kinds == DM_COND_KEY_COUNT, "one kind for each key");

/* The parts common to all keys of one mutex or condition. */
struct object {
    const struct dm_naming *naming;
    const char *name; /* group and leaf, or the id that is the group of an anonymous mutex */
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

/*
 * The encoding leaves no slash, brace or colon, so the tag ends at the first closing brace, and a Cluster hashes only
 * the group.  An anonymous id is '~' and hexadecimal digits, which need no encoding.
 */
static char *write_beginning(char *to, const struct object *object, size_t group, const char *kind)
{
    to += sprintf(to, "%s:{", object->naming->prefix);
    if (object->is_anonymous)
        to += sprintf(to, "%s", object->name);
    else
        to = encode(to, object->name, group);
    return to + sprintf(to, "}:%s:", kind);
}

static size_t group_length(const struct object *object)
{
    return object->is_anonymous ? strlen(object->name) : strcspn(object->name, "/");
}

static char *write_key(char *to, const struct object *object, const char *kind)
{
    size_t group = group_length(object);
    const char *leaf = object->name[group] ? object->name + group + 1 : "";

    to = write_beginning(to, object, group, kind);
    if (object->leaf_id)
        to += sprintf(to, "%s", object->leaf_id);
    else
        to = encode(to, leaf, strlen(leaf));
    *to = '\0';
    return to;
}

/*
 * Takes room for the longest possible keys, three bytes for each of the name, and cuts it to size afterwards, because a
 * process may have ten thousand names.  The texts' addresses are set last, because realloc() may move the block.  In a
 * Cluster the beginning of the inboxes' names follows the keys.
 */
static struct dm_place *write_keys(const struct object *object, const char *const *kinds, int count)
{
    size_t longest = strlen(object->naming->prefix) + 3 * strlen(object->name) +
                     sizeof ":{}:sleeper:" + (object->leaf_id ? strlen(object->leaf_id) : 0);
    struct dm_place *keys = calloc(1, sizeof *keys + ((size_t)count + 1) * longest);
    struct dm_place *fitted;
    char *at, *end;

    if (!keys)
        return NULL;
    at = (char *)(keys + 1);
    for (int key = 0; key < count; key++) {
        end = write_key(at, object, kinds[key]);
        keys->length[key] = (size_t)(end - at);
        at = end + 1;
    }
    if (!object->naming->inbox)
        at = write_beginning(at, object, group_length(object), "inbox") + 1;
    fitted = realloc(keys, (size_t)(at - (char *)keys));
    keys = fitted ? fitted : keys;
    at = (char *)(keys + 1);
    for (int key = 0; key < count; key++) {
        keys->text[key] = at;
        at += keys->length[key] + 1;
    }
    keys->inbox = object->naming->inbox ?: at;
    if (!object->naming->inbox)
        keys->slot = (uint16_t)dm_slot_of(keys->text[0], keys->length[0]);
    return keys;
}

struct dm_place *dm_keys_new(const struct dm_naming *naming, const char *name, int is_anonymous)
{
    struct object object = { naming, name, is_anonymous, NULL };

    return write_keys(&object, mutex_kinds, DM_KEY_COUNT);
}

/* In the group of the mutex, because in a Cluster a script may only use keys of one group. */
struct dm_place *dm_keys_new_condition(const struct dm_naming *naming, const char *id, const char *name,
                                       int is_anonymous)
{
    struct object object = { naming, name, is_anonymous, id };

    return write_keys(&object, condition_kinds, DM_COND_KEY_COUNT);
}

/*
 * The first letter of the process's key says what it is.  For 'd' the text after the blank is the key of the mutex,
 * whose own first letter says whether the mutex is anonymous.
 */
struct dm_place *dm_keys_of(const struct dm_naming *naming, const char *key)
{
    const char *group = strchr(key, ' ');
    struct dm_place *keys;
    char *id;

    if (key[0] == 'c')
        return dm_keys_new_condition(naming, NULL, key + 1, 0);
    if (key[0] != 'd')
        return dm_keys_new(naming, key + 1, key[0] == 'a');
    id = strndup(key + 1, (size_t)(group - key - 1));
    keys = id ? dm_keys_new_condition(naming, id, group + 2, group[1] == 'a') : NULL;
    free(id);
    return keys;
}
