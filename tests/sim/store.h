/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The data of a simulated server: keys with hashes and sorted sets, as far as the library's scripts
 * use hashes and sets, and the keys' expiry.  The clock is the caller's.
 */
#ifndef SIM_STORE_H
#define SIM_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text {
    const char *bytes;
    size_t length;
};

/* True if the text is this word. */
bool text_is(struct text text, const char *word);

/* One member of a collection: of a hash with a value, of a sorted set with a score. */
struct item {
    char *name, *value;
    size_t name_length, value_length;
    double score;
};

enum store_kind { KIND_NONE, KIND_HASH, KIND_ZSET };

struct key {
    struct key *next;
    char *name;
    size_t length;
    enum store_kind kind;
    int64_t expires_ms; /* -1: never */
    struct item *items; /* a hash in the order of writing, a sorted set by score and name */
    int count, room;
};

#define STORE_BUCKETS 64

struct store {
    struct key *buckets[STORE_BUCKETS];
    int64_t now_ms; /* set before each use */
};

void store_clear(struct store *store);
void store_copy(struct store *to, const struct store *from);

/* The same keys with the same contents and ends. */
bool store_is_same(struct store *store, struct store *other);

/* A key of `from` replaces the key with that name; in the second, it is then gone from `from`. */
void store_copy_key(struct store *to, const struct key *key);
void store_move_key(struct store *to, struct store *from, const struct key *key);

/* Returns the key if present and not expired, else NULL. */
struct key *store_find(struct store *store, struct text name);

/* Returns the key as store_find() does; makes a missing key. */
struct key *store_make(struct store *store, struct text name, enum store_kind kind);

bool store_delete(struct store *store, struct text name);

/* Deletes an empty collection, as the server does. */
void store_tidy(struct store *store, struct key *key);

/* Lists all keys not yet expired, sorted by name; returns the number.  `keys` has room for `most`. */
int store_list(struct store *store, struct key **keys, int most);

struct item *item_find(const struct key *key, struct text name);

/* Of a hash: true if the field is new. */
bool hash_set(struct key *key, struct text name, struct text value);

/* Of a sorted set: true if the member is new. */
bool zset_add(struct key *key, struct text name, double score);

bool item_remove(struct key *key, struct text name);

#endif
