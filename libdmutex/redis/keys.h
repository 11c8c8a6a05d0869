/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names as keys of the server.
 *
 * "group/leaf" becomes PREFIX:{group}:KIND:leaf, every byte outside A-Z a-z 0-9 . _ - written as %XX, so that two names
 * never share a key and a key never has a second tag.  An anonymous mutex has a group that begins with '~', and no name
 * encodes to such a group.  A condition lives in the group of its mutex; the leaf of an anonymous condition begins with
 * '~'.
 */
#ifndef DM_REDIS_KEYS_H
#define DM_REDIS_KEYS_H

#include <stddef.h>

enum dm_key { DM_KEY_LOCK, DM_KEY_STATE, DM_KEY_QUEUE, DM_KEY_WAITER, DM_KEY_COUNT }; /* of a mutex */
enum { DM_KEY_COND, DM_KEY_SLEEPER, DM_COND_KEY_COUNT };                              /* of a condition */

/* A name on this store: the keys of a mutex, or of a condition, which has fewer. */
struct dm_place {
    const char *text[DM_KEY_COUNT];
    size_t length[DM_KEY_COUNT];
};

/*
 * The keys of a name of `length` bytes; of an anonymous mutex when the name begins with '~' and is_anonymous is set.
 * One block of memory, to be freed by free(); NULL without memory.
 */
struct dm_place *dm_keys_new(const char *prefix, const char *name, int is_anonymous);

/*
 * The keys of the condition of that name; or, if `id` is not NULL, of the anonymous condition `id` (which begins with
 * '~') in the group of the mutex `name`.
 */
struct dm_place *dm_keys_new_condition(const char *prefix, const char *id, const char *name, int is_anonymous);

/* The keys of a name that has this key in the process: see store/store.h. */
struct dm_place *dm_keys_of(const char *prefix, const char *key);

#endif
