/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names as keys of the server.
 *
 * "group/leaf" becomes PREFIX:{group}:KIND:leaf, every byte outside A-Z a-z 0-9 . _ - written as
 * %XX, so that two names never share a key and a key never has a second tag.  An anonymous mutex
 * has a group that begins with '~', which no name encodes to.
 */
#ifndef DM_REDIS_KEYS_H
#define DM_REDIS_KEYS_H

#include <stddef.h>

enum dm_key { DM_KEY_LOCK, DM_KEY_STATE, DM_KEY_QUEUE, DM_KEY_WAITER, DM_KEY_COUNT };

struct dm_keys {
    const char *text[DM_KEY_COUNT];
    size_t length[DM_KEY_COUNT];
};

/*
 * The keys of a name of `length` bytes; of an anonymous mutex when it begins with '~' and
 * is_anonymous is set.  One block of memory, to be freed by free(); NULL without memory.
 */
struct dm_keys *dm_keys_new(const char *prefix, const char *name, int is_anonymous);

#endif
