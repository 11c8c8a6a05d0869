/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keys in their order, by SCAN, which has none: it goes through all keys of the server, and the list keeps the first of
 * those that it meets.  A key that exists all the time is found; one may be found twice.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stores/redis/registers/parts.h"

/* A reply has 256 KiB at most; a SCAN of so many may bring a few more. */
#define AT_ONCE "250"

/* A prefix is no pattern. */
static char *write_pattern(const char *one, const char *other)
{
    char *pattern = malloc(2 * (strlen(one) + strlen(other)) + 2), *to = pattern;
    const char *const texts[] = { one, other };

    for (int i = 0; pattern && i < 2; i++) {
        for (const char *from = texts[i]; *from; from++) {
            if (strchr("*?[]\\^", *from))
                *to++ = '\\';
            *to++ = *from;
        }
    }
    if (pattern)
        strcpy(to, "*");
    return pattern;
}

struct dm_rr_list *dm_rr_list_new(const struct dm_rr *rr, const char *prefix, const char *after, int most)
{
    struct dm_rr_list *list = calloc(1, sizeof *list);

    if (!list)
        return NULL;
    strcpy(list->cursor, "0");
    snprintf(list->after, sizeof list->after, "%s", after);
    list->skip = strlen(rr->prefix);
    list->most = most;
    list->pattern = write_pattern(rr->prefix, prefix);
    if (list->pattern)
        return list;
    free(list);
    return NULL;
}

static void cut(struct dm_rr_list *list, int count)
{
    while (list->count > count)
        free(list->keys[--list->count]);
}

void dm_rr_list_free(struct dm_rr_list *list)
{
    cut(list, 0);
    free(list->keys);
    free(list->pattern);
    free(list);
}

bool dm_rr_list_write(const struct dm_rr_list *list, struct dm_args *args)
{
    const char *const words[] = { "SCAN", list->cursor, "MATCH", list->pattern, "COUNT", AT_ONCE };

    if (dm_args_init(args, 6, 0) < 0)
        return false;
    for (int i = 0; i < 6; i++)
        dm_args_text(args, words[i]);
    return true;
}

static int compare(const void *one, const void *other)
{
    return strcmp(*(char *const *)one, *(char *const *)other);
}

/* Keeps the first `most` + 1: the last of them shows that more follow. */
static void tidy(struct dm_rr_list *list)
{
    int kept = 0;

    if (list->count > 1)
        qsort(list->keys, (size_t)list->count, sizeof *list->keys, compare);
    for (int i = 0; i < list->count; i++) {
        if (kept > 0 && strcmp(list->keys[kept - 1], list->keys[i]) == 0)
            free(list->keys[i]);
        else
            list->keys[kept++] = list->keys[i];
    }
    list->count = kept;
    cut(list, list->most + 1);
}

static bool make_room(struct dm_rr_list *list)
{
    int room = list->room ? 2 * list->room : 64;
    char **keys;

    if (list->count < list->room)
        return true;
    keys = realloc(list->keys, (size_t)room * sizeof *keys);
    if (!keys)
        return false;
    list->keys = keys;
    list->room = room;
    return true;
}

static bool take_key(struct dm_rr_list *list, const redisReply *element)
{
    const char *key;

    if (element->type != REDIS_REPLY_STRING || element->len <= list->skip ||
        element->len - list->skip > DM_REG_KEY_MAX || strlen(element->str) != element->len)
        return true; /* not written by us */
    key = element->str + list->skip;
    if (strcmp(key, list->after) <= 0)
        return true;
    if (!make_room(list) || !(list->keys[list->count] = strdup(key)))
        return false;
    list->count++;
    if (list->count > 2 * (list->most + 1) + 64)
        tidy(list);
    return true;
}

bool dm_rr_list_take(struct dm_rr_list *list, const redisReply *reply)
{
    const redisReply *cursor, *keys;

    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2)
        return false;
    cursor = reply->element[0];
    keys = reply->element[1];
    if (cursor->type != REDIS_REPLY_STRING || cursor->len >= sizeof list->cursor || keys->type != REDIS_REPLY_ARRAY ||
        strspn(cursor->str, "0123456789") != cursor->len)
        return false;
    snprintf(list->cursor, sizeof list->cursor, "%s", cursor->str);
    list->is_over = strcmp(list->cursor, "0") == 0;
    for (size_t i = 0; i < keys->elements; i++)
        list->is_short_of_memory = !take_key(list, keys->element[i]) || list->is_short_of_memory;
    return true;
}

void dm_rr_list_end(struct dm_rr_list *list)
{
    tidy(list);
}
