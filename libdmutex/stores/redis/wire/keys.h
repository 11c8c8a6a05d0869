/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names as keys of the server.
 *
 * "group/leaf" becomes PREFIX:{group}:KIND:leaf.  Every byte outside A-Z a-z 0-9 . _ - is written as %XX, so that two
 * names never share a key, and a key never has a second tag.  An anonymous mutex has a group that begins with '~'; no
 * name is encoded to such a group.  A condition is in the group of its mutex; the leaf of an anonymous condition begins
 * with '~'.
 *
 * The inbox of a process is PREFIX:inbox:UUID.  In a Cluster a process has an inbox for each group,
 * PREFIX:{group}:inbox:UUID, because a script may only publish to inboxes in the slot of its keys.
 */
#ifndef DM_REDIS_WIRE_KEYS_H
#define DM_REDIS_WIRE_KEYS_H

#include <stddef.h>
#include <stdint.h>

enum dm_key { DM_KEY_LOCK, DM_KEY_STATE, DM_KEY_QUEUE, DM_KEY_WAITER, DM_KEY_COUNT }; /* of a mutex */
enum { DM_KEY_COND, DM_KEY_SLEEPER, DM_COND_KEY_COUNT };                              /* of a condition */

/* A name in this store: the keys of a mutex, or of a condition, which has fewer. */
struct dm_place {
    const char *text[DM_KEY_COUNT];
    size_t length[DM_KEY_COUNT];
    const char *inbox; /* how the names of all inboxes for this name begin */
    uint16_t slot;     /* in a Cluster; else 0 */
};

/* How a store writes keys and inboxes.  The texts outlive all places. */
struct dm_naming {
    const char *prefix;
    const char *inbox; /* how all inboxes' names begin; NULL in a Cluster, where each group has its own inboxes */
};

/*
 * The keys of a name; if is_anonymous is set, the name begins with '~' and is that of an anonymous mutex.  One block of
 * memory, which the caller frees with free(); NULL without memory.
 */
struct dm_place *dm_keys_new(const struct dm_naming *naming, const char *name, int is_anonymous);

/*
 * The keys of the condition of that name; or, if `id` is not NULL, of the anonymous condition `id` (which begins with
 * '~') in the group of the mutex `name`.
 */
struct dm_place *dm_keys_new_condition(const struct dm_naming *naming, const char *id, const char *name,
                                       int is_anonymous);

/* The keys of the name that has this key in the process: see store/store.h. */
struct dm_place *dm_keys_of(const struct dm_naming *naming, const char *key);

#endif
