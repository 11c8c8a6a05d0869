/* SPDX-License-Identifier: BSD-2-Clause */
#include "store.h"

#include <stdlib.h>
#include <string.h>

bool text_is(struct text text, const char *word)
{
    return text.length == strlen(word) && memcmp(text.bytes, word, text.length) == 0;
}

/* ---- memory ------------------------------------------------------------------------------ */

static char *copy_bytes(const char *bytes, size_t length)
{
    char *copy = malloc(length + 1);

    if (!copy)
        abort();
    memcpy(copy, bytes, length);
    copy[length] = '\0';
    return copy;
}

static struct item *grow(struct key *key)
{
    if (key->count == key->room) {
        key->room = key->room ? key->room * 2 : 4;
        key->items = realloc(key->items, (size_t)key->room * sizeof *key->items);
        if (!key->items)
            abort();
    }
    return &key->items[key->count++];
}

static void free_item(struct item *item)
{
    free(item->name);
    free(item->value);
}

static void free_key(struct key *key)
{
    for (int i = 0; i < key->count; i++)
        free_item(&key->items[i]);
    free(key->items);
    free(key->name);
    free(key);
}

/* ---- keys -------------------------------------------------------------------------------- */

static struct key **bucket_of(struct store *store, struct text name)
{
    uint32_t hash = 2166136261u;

    for (size_t i = 0; i < name.length; i++)
        hash = (hash ^ (unsigned char)name.bytes[i]) * 16777619u;
    return &store->buckets[(hash ^ hash >> 16) % STORE_BUCKETS];
}

static struct key **link_of(struct store *store, struct text name)
{
    struct key **link = bucket_of(store, name);

    while (*link && ((*link)->length != name.length || memcmp((*link)->name, name.bytes, name.length) != 0))
        link = &(*link)->next;
    return link;
}

static void cut(struct key **link)
{
    struct key *key = *link;

    *link = key->next;
    free_key(key);
}

static bool has_expired(const struct store *store, const struct key *key)
{
    return key->expires_ms >= 0 && store->now_ms > key->expires_ms;
}

struct key *store_find(struct store *store, struct text name)
{
    struct key **link = link_of(store, name);

    if (*link && has_expired(store, *link))
        cut(link);
    else if (*link)
        return *link;
    return NULL;
}

struct key *store_make(struct store *store, struct text name, enum store_kind kind)
{
    struct key *key = store_find(store, name);
    struct key **bucket;

    if (key)
        return key;
    key = calloc(1, sizeof *key);
    if (!key)
        abort();
    key->name = copy_bytes(name.bytes, name.length);
    key->length = name.length;
    key->kind = kind;
    key->expires_ms = -1;
    bucket = bucket_of(store, name);
    key->next = *bucket;
    *bucket = key;
    return key;
}

bool store_delete(struct store *store, struct text name)
{
    struct key **link = link_of(store, name);
    bool was_there = *link && !has_expired(store, *link);

    if (*link)
        cut(link);
    return was_there;
}

void store_tidy(struct store *store, struct key *key)
{
    if (key->count == 0)
        store_delete(store, (struct text){ key->name, key->length });
}

void store_clear(struct store *store)
{
    for (int i = 0; i < STORE_BUCKETS; i++) {
        while (store->buckets[i])
            cut(&store->buckets[i]);
    }
}

static struct key *copy_key(const struct key *from)
{
    struct key *key = malloc(sizeof *key);

    if (!key)
        abort();
    *key = *from;
    key->name = copy_bytes(from->name, from->length);
    key->items = malloc((size_t)from->room * sizeof *key->items);
    if (!key->items)
        abort();
    for (int i = 0; i < from->count; i++) {
        key->items[i] = from->items[i];
        key->items[i].name = copy_bytes(from->items[i].name, from->items[i].name_length);
        if (from->items[i].value)
            key->items[i].value = copy_bytes(from->items[i].value, from->items[i].value_length);
    }
    return key;
}

void store_copy(struct store *to, const struct store *from)
{
    store_clear(to);
    for (int i = 0; i < STORE_BUCKETS; i++) {
        struct key **end = &to->buckets[i];

        for (const struct key *key = from->buckets[i]; key; key = key->next) {
            *end = copy_key(key);
            end = &(*end)->next;
        }
        *end = NULL;
    }
}

void store_copy_key(struct store *to, const struct key *key)
{
    struct text name = { key->name, key->length };
    struct key *copy = copy_key(key), **bucket;

    store_delete(to, name);
    bucket = bucket_of(to, name);
    copy->next = *bucket;
    *bucket = copy;
}

void store_move_key(struct store *to, struct store *from, const struct key *key)
{
    store_copy_key(to, key);
    store_delete(from, (struct text){ key->name, key->length });
}

static int by_name(const void *a, const void *b)
{
    const struct key *const *left = a, *const *right = b;

    return strcmp((*left)->name, (*right)->name);
}

int store_list(struct store *store, struct key **keys, int most)
{
    int count = 0;

    for (int i = 0; i < STORE_BUCKETS; i++) {
        for (struct key *key = store->buckets[i]; key && count < most; key = key->next) {
            if (!has_expired(store, key))
                keys[count++] = key;
        }
    }
    qsort(keys, (size_t)count, sizeof *keys, by_name);
    return count;
}

static bool is_same_text(const char *text, size_t length, const char *other, size_t other_length)
{
    return length == other_length && (length == 0 || memcmp(text, other, length) == 0);
}

static bool is_same_key(const struct key *key, const struct key *other)
{
    bool is_same = is_same_text(key->name, key->length, other->name, other->length) && key->kind == other->kind &&
                   key->expires_ms == other->expires_ms && key->count == other->count;

    for (int i = 0; is_same && i < key->count; i++) {
        const struct item *item = &key->items[i], *one = &other->items[i];

        is_same = is_same_text(item->name, item->name_length, one->name, one->name_length) &&
                  is_same_text(item->value, item->value_length, one->value, one->value_length) &&
                  item->score == one->score;
    }
    return is_same;
}

#define COMPARED_MOST 64

bool store_is_same(struct store *store, struct store *other)
{
    struct key *keys[COMPARED_MOST], *others[COMPARED_MOST];
    int count = store_list(store, keys, COMPARED_MOST);
    bool is_same = count == store_list(other, others, COMPARED_MOST);

    for (int i = 0; is_same && i < count; i++)
        is_same = is_same_key(keys[i], others[i]);
    return is_same;
}

/* ---- members ----------------------------------------------------------------------------- */

struct item *item_find(const struct key *key, struct text name)
{
    for (int i = 0; key && i < key->count; i++) {
        struct item *item = &key->items[i];

        if (item->name_length == name.length && memcmp(item->name, name.bytes, name.length) == 0)
            return item;
    }
    return NULL;
}

bool hash_set(struct key *key, struct text name, struct text value)
{
    struct item *item = item_find(key, name);
    bool is_new = !item;

    if (is_new) {
        item = grow(key);
        *item = (struct item){ .name = copy_bytes(name.bytes, name.length), .name_length = name.length };
    }
    free(item->value);
    item->value = copy_bytes(value.bytes, value.length);
    item->value_length = value.length;
    return is_new;
}

static int compare(const struct item *item, double score, struct text name)
{
    size_t common = item->name_length < name.length ? item->name_length : name.length;
    int order;

    if (item->score != score)
        return item->score < score ? -1 : 1;
    order = memcmp(item->name, name.bytes, common);
    if (order)
        return order;
    return item->name_length < name.length ? -1 : item->name_length > name.length;
}

bool zset_add(struct key *key, struct text name, double score)
{
    bool is_new = !item_remove(key, name);
    struct item item = { .name = copy_bytes(name.bytes, name.length), .name_length = name.length, .score = score };
    int at = 0;

    grow(key);
    while (at < key->count - 1 && compare(&key->items[at], score, name) < 0)
        at++;
    memmove(&key->items[at + 1], &key->items[at], (size_t)(key->count - 1 - at) * sizeof item);
    key->items[at] = item;
    return is_new;
}

bool item_remove(struct key *key, struct text name)
{
    struct item *item = item_find(key, name);
    size_t behind;

    if (!item)
        return false;
    behind = (size_t)(&key->items[key->count] - item) - 1;
    free_item(item);
    memmove(item, item + 1, behind * sizeof *item);
    key->count--;
    return true;
}
