/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names and their data, for people: SCAN finds keys, which contain the names, and one script reads the data of up to
 * DM_BATCH names.  Nothing is written.
 *
 * SCAN returns all keys that exist during the whole series of calls, some of them twice.  If the database has other
 * keys, the server looks at those, too, a thousand per call.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/minmax.h"
#include "base/self.h"
#include "stores/redis/parts.h"
#include "stores/redis/wire/reply.h"

/* Room for the key of an anonymous condition of the longest group. */
#define KEY_ROOM (2 * DM_MUTEX_KEY_ROOM + 64)

/* Keys that the server looks at in one call. */
#define LOOKED_AT "1000"

struct found {
    char key[KEY_ROOM];
    struct dm_place *place;
};

/* The names of one script call, and room for the waiters of one name.  On the heap, because stacks may be small. */
struct batch {
    struct found found[DM_BATCH];
    int count;
    struct dm_seen_waiter waiters[DM_SEEN_WAITERS];
};

static bool is_condition(const char *key)
{
    return key[0] == 'c' || key[0] == 'd';
}

static int count_keys(const char *key)
{
    return is_condition(key) ? DM_COND_KEY_COUNT : DM_KEY_COUNT;
}

/* ---- from keys of the server to keys of the process ------------------------------------------- */

static int digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Decodes `length` bytes.  Returns the end, or NULL: not encoded by stores/redis/wire/keys.c, or no room. */
static char *decode(char *to, const char *end, const char *from, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        int byte = (unsigned char)from[i];

        if (byte == '%') {
            if (length - i < 3 || digit(from[i + 1]) < 0 || digit(from[i + 2]) < 0)
                return NULL;
            byte = digit(from[i + 1]) << 4 | digit(from[i + 2]);
            i += 2;
        }
        if (byte == 0 || to + 1 >= end)
            return NULL;
        *to++ = (char)byte;
    }
    *to = '\0';
    return to;
}

/* The parts of a key on the server, PREFIX:{group}:KIND:leaf. */
struct parts {
    const char *group, *kind, *leaf;
    size_t group_length, kind_length, leaf_length;
};

static bool split(const char *prefix, const char *text, size_t length, struct parts *ret_parts)
{
    const char *end = text + length, *group = text + strlen(prefix) + 2, *brace, *colon;

    if (length < strlen(prefix) + 2 || memcmp(text, prefix, strlen(prefix)) != 0 || memcmp(group - 2, ":{", 2) != 0)
        return false;
    brace = memchr(group, '}', (size_t)(end - group));
    if (!brace || end - brace < 2 || brace[1] != ':')
        return false;
    colon = memchr(brace + 2, ':', (size_t)(end - brace - 2));
    if (!colon)
        return false;
    *ret_parts = (struct parts){
        group, brace + 2, colon + 1, (size_t)(brace - group), (size_t)(colon - brace - 2), (size_t)(end - colon - 1)
    };
    return true;
}

static bool is_kind(const struct parts *parts, const char *kind)
{
    return parts->kind_length == strlen(kind) && memcmp(parts->kind, kind, parts->kind_length) == 0;
}

/* "n" and the name, of a mutex; "c" and the name, of a condition; "a" and the id. */
static bool write_named(const struct parts *parts, char letter, char ret_key[KEY_ROOM])
{
    char *end = ret_key + KEY_ROOM, *to = ret_key;

    *to++ = letter;
    to = decode(to, end, parts->group, parts->group_length);
    if (to && parts->leaf_length) {
        *to++ = '/';
        to = decode(to, end, parts->leaf, parts->leaf_length);
    }
    return to && to > ret_key + 1;
}

/* "d", the id, a blank, and the key of the group. */
static bool write_anonymous_condition(const struct parts *parts, char ret_key[KEY_ROOM])
{
    char *end = ret_key + KEY_ROOM, *to = ret_key;

    *to++ = 'd';
    to = decode(to, end - 3, parts->leaf, parts->leaf_length);
    if (!to)
        return false;
    *to++ = ' ';
    *to++ = parts->group[0] == '~' ? 'a' : 'n';
    return decode(to, end, parts->group, parts->group_length) != NULL;
}

/* False for a key that stands for no name: `state` stands for a mutex, `cond` for a condition that is waited on. */
static bool write_key(const struct parts *parts, char ret_key[KEY_ROOM])
{
    bool is_anonymous = parts->group_length && parts->group[0] == '~';

    if (is_kind(parts, "state"))
        return write_named(parts, is_anonymous ? 'a' : 'n', ret_key);
    if (!is_kind(parts, "cond"))
        return false;
    return parts->leaf_length && parts->leaf[0] == '~' ? write_anonymous_condition(parts, ret_key)
                                                       : !is_anonymous && write_named(parts, 'c', ret_key);
}

/*
 * Adds the name of a key, if stores/redis/wire/keys.c would write exactly this key for the name: a similar key of
 * another program would show the data of one of our names.
 */
static void add(const struct dm_redis *redis, const char *text, size_t length, struct batch *batch)
{
    struct found *found = &batch->found[batch->count];
    const char *written;
    struct parts parts;

    if (!split(redis->naming.prefix, text, length, &parts) || !write_key(&parts, found->key))
        return;
    found->place = dm_keys_of(&redis->naming, found->key);
    if (!found->place)
        return;
    written = found->place->text[is_condition(found->key) ? DM_KEY_LOCK : DM_KEY_STATE];
    if (strlen(written) == length && memcmp(written, text, length) == 0)
        batch->count++;
    else
        free(found->place);
}

static void empty(struct batch *batch)
{
    for (int i = 0; i < batch->count; i++)
        free(batch->found[i].place);
    batch->count = 0;
}

/* ---- the script -------------------------------------------------------------------------- */

/* The words of lua/view.lua, in its order: the first answer, about all names, and then those about each name. */
enum { HEAD_NOW_US, HEAD_GRACE_MS };
enum { MUTEX_GRANTED_US = DM_SHOWN_COUNT, MUTEX_LEASE_MS, MUTEX_MARK, MUTEX_LAST, MUTEX_WAITERS_BEGIN };
enum { COND_MUTEX, COND_WAITERS, COND_WAITERS_BEGIN };
enum { WAITER_ID, WAITER_ARRIVAL_US, WAITER_HEARD_US, WAITER_LEASE_MS, WAITER_LABEL };

static int64_t since(const redisReply *head, uint64_t moment_us)
{
    int64_t now_us = dm_redis_time_at(head, HEAD_NOW_US), then_us = dm_redis_time_of(moment_us);

    return now_us > then_us ? (now_us - then_us) / 1000 : 0;
}

/* Adds the threads that wait in a process for its attempt `leader`, as far as there is room. */
static void add_crowd(struct dm_seen *seen, struct dm_seen_waiter *waiters, const struct dm_seen_waiter *leader,
                      const struct dm_crowd *crowd)
{
    for (unsigned i = 0; i < crowd->told && seen->waiter_count < DM_SEEN_WAITERS; i++) {
        struct dm_seen_waiter *waiter = &waiters[seen->waiter_count++];

        *waiter = *leader;
        waiter->thread = crowd->first[i].thread;
        waiter->waited_ms = crowd->first[i].waited_ms + leader->silent_ms;
    }
}

static void add_waiter(struct dm_seen *seen, struct dm_seen_waiter *waiters, const redisReply *head,
                       const redisReply *reply)
{
    struct dm_seen_waiter waiter = { .lease_ms = (uint32_t)dm_redis_number_at(reply, WAITER_LEASE_MS) };
    struct dm_crowd crowd;

    sscanf(dm_redis_text_at(reply, WAITER_ID), "%32[^:]:%" SCNu64, waiter.owner, &waiter.thread);
    waiter.thread = dm_self_tid(waiter.thread);
    dm_redis_read_label(dm_redis_text_at(reply, WAITER_LABEL), &waiter.pid, waiter.host, waiter.program, &crowd);
    waiter.waited_ms = since(head, dm_redis_number_at(reply, WAITER_ARRIVAL_US));
    waiter.silent_ms = since(head, dm_redis_number_at(reply, WAITER_HEARD_US));
    waiters[seen->waiter_count++] = waiter;
    seen->info.shown.waiters += crowd.count;
    add_crowd(seen, waiters, &waiter, &crowd);
}

/* The server last heard from the holder when its present lease began. */
static void add_crowd_of_holder(struct dm_seen *seen, struct dm_seen_waiter *waiters, const struct dm_crowd *crowd)
{
    const dmutex_info_t *shown = &seen->info.shown;
    struct dm_seen_waiter holder = { .pid = shown->pid, .lease_ms = seen->lease_ms };

    memcpy(holder.owner, shown->owner, sizeof holder.owner);
    memcpy(holder.host, shown->host, sizeof holder.host);
    memcpy(holder.program, shown->program, sizeof holder.program);
    holder.silent_ms = (int64_t)seen->lease_ms > shown->remaining_ms ? seen->lease_ms - shown->remaining_ms : 0;
    add_crowd(seen, waiters, &holder, crowd);
}

/* "-<how> <held ms> <thread> <label>", see lua/_numbers.lua.  A text of another form says nothing. */
static struct dm_last read_last(const redisReply *head, const redisReply *reply)
{
    const char *text = dm_redis_text_at(reply, MUTEX_LAST);
    struct dm_last last = { .from_us = dm_redis_time_at(reply, MUTEX_GRANTED_US) };
    struct dm_crowd crowd;
    int used = 0;

    if (sscanf(text, "-%1u %15" SCNd64 " %19" SCNu64 " %n", &last.how, &last.held_ms, &last.thread, &used) < 3 || !used)
        return (struct dm_last){ 0 };
    last.thread = dm_self_tid(last.thread);
    dm_redis_read_label(text + used, &last.pid, last.host, last.program, &crowd);
    last.is_known = last.how <= DM_END_BROKEN && last.held_ms >= 0 && last.program[0];
    last.ago_ms = dm_max64(since(head, (uint64_t)last.from_us) - last.held_ms, 0);
    return last;
}

/* Reads the words about a mutex or a condition.  Returns where its waiters begin. */
static size_t read_words(const redisReply *head, const redisReply *reply, struct dm_seen *seen,
                         struct dm_seen_waiter *waiters)
{
    struct dm_crowd crowd = { 0 };

    if (is_condition(seen->key)) {
        seen->mutex = dm_redis_text_at(reply, COND_MUTEX);
        seen->info.shown.waiters = (uint32_t)dm_redis_number_at(reply, COND_WAITERS);
        return COND_WAITERS_BEGIN;
    }
    dm_redis_read_shown(reply, &seen->info.shown, &crowd);
    seen->info.held_ms = since(head, dm_redis_number_at(reply, MUTEX_GRANTED_US));
    seen->info.grace_ms = dm_redis_span_at(head, HEAD_GRACE_MS);
    seen->lease_ms = (uint32_t)dm_redis_number_at(reply, MUTEX_LEASE_MS);
    seen->is_kept = seen->info.shown.locked && strcmp(dm_redis_text_at(reply, MUTEX_MARK), "- ") == 0;
    seen->last = read_last(head, reply);
    add_crowd_of_holder(seen, waiters, &crowd);
    return MUTEX_WAITERS_BEGIN;
}

static void tell(const struct dm_view *view, const struct found *found, struct dm_seen_waiter *waiters,
                 const redisReply *head, const redisReply *reply)
{
    struct dm_seen seen = { .key = found->key, .mutex = "", .waiters = waiters };

    if (reply->type == REDIS_REPLY_ARRAY) {
        for (size_t i = read_words(head, reply, &seen, waiters);
             i < reply->elements && seen.waiter_count < DM_SEEN_WAITERS; i++)
            add_waiter(&seen, waiters, head, reply->element[i]);
    } else {
        seen.fault = reply->type == REDIS_REPLY_STRING ? reply->str : "no answer of ours";
    }
    view->handler(view->user, &seen);
}

/* Some of the names, from `first` on. */
static bool write_view(struct dm_script script, const struct dm_view *view, const struct batch *batch, int first,
                       int count, struct dm_args *args)
{
    int keys = 0;

    for (int i = first; i < first + count; i++)
        keys += count_keys(batch->found[i].key);
    if (!dm_redis_begin(args, script, keys, 3 + count, 4 + count))
        return false;
    for (int i = first; i < first + count; i++)
        dm_redis_put_keys(args, batch->found[i].place, count_keys(batch->found[i].key));
    dm_args_number(args, (uint64_t)view->waiters);
    dm_args_number(args, DM_LEASE_DEFAULT_MS);
    dm_args_origin(args);
    for (int i = first; i < first + count; i++)
        dm_args_number(args, (uint64_t)count_keys(batch->found[i].key));
    return true;
}

static enum dm_verdict tell_range(struct dm_store *store, const struct dm_view *view, struct batch *batch, int first,
                                  int count, const struct dm_deadline *deadline, char *ret_reason)
{
    struct dm_script script = dm_redis(store)->is_cluster
                                  ? (struct dm_script){ dm_sha_view_cluster, dm_lua_view_cluster }
                                  : (struct dm_script){ dm_sha_view, dm_lua_view };
    redisReply *reply = NULL;
    enum dm_verdict verdict;
    struct dm_args args;

    if (!write_view(script, view, batch, first, count, &args))
        return dm_redis_no_memory(ret_reason);
    verdict = dm_redis_run(store, NULL, &args, script, deadline, ret_reason, &reply);
    if (verdict != DM_SAYS_DONE)
        return verdict;
    if (reply->type == REDIS_REPLY_ARRAY && reply->elements == (size_t)count + 1)
        for (int i = 0; i < count; i++)
            tell(view, &batch->found[first + i], batch->waiters, reply->element[0], reply->element[i + 1]);
    else
        verdict = dm_redis_nonsense(ret_reason);
    dm_reply_free(reply);
    return verdict;
}

/* One name in a Cluster.  A name whose slot is moving to another node is shown without its data. */
static enum dm_verdict tell_one_of_many(struct dm_store *store, const struct dm_view *view, struct batch *batch,
                                        int index, const struct dm_deadline *deadline, char *ret_reason)
{
    const struct dm_seen moving = { .key = batch->found[index].key, .fault = "the slot is being moved" };
    enum dm_verdict verdict = tell_range(store, view, batch, index, 1, deadline, ret_reason);

    if (verdict != DM_SAYS_NOTHING || strncmp(ret_reason, "TRYAGAIN", 8) != 0)
        return verdict;
    view->handler(view->user, &moving);
    ret_reason[0] = '\0';
    return DM_SAYS_DONE;
}

/* In a Cluster the names are in several slots, so each has a call of its own. */
static enum dm_verdict tell_batch(struct dm_store *store, const struct dm_view *view, struct batch *batch,
                                  const struct dm_deadline *deadline, char *ret_reason)
{
    enum dm_verdict verdict = DM_SAYS_DONE;

    if (!dm_redis(store)->is_cluster && batch->count)
        return tell_range(store, view, batch, 0, batch->count, deadline, ret_reason);
    for (int i = 0; i < batch->count && verdict == DM_SAYS_DONE; i++)
        verdict = tell_one_of_many(store, view, batch, i, deadline, ret_reason);
    return verdict;
}

/* ---- SCAN -------------------------------------------------------------------------------- */

/* The prefix has no special bytes of patterns, and the encoding leaves none. */
static bool write_pattern(const struct dm_redis *redis, const char *group, char *ret_pattern, size_t room)
{
    struct dm_place *place = group ? dm_keys_of(&redis->naming, group) : NULL;

    if (group && !place)
        return false;
    if (place)
        snprintf(ret_pattern, room, "%.*s:*", (int)(strchr(place->text[0], '}') + 1 - place->text[0]), place->text[0]);
    else
        snprintf(ret_pattern, room, "%s:{*}:*", redis->naming.prefix);
    free(place);
    return true;
}

/*
 * In a Cluster the cursor has the node's number in its highest byte: the nodes are scanned one after the other; if a
 * group is given, only its node.
 */
#define NODE_SHIFT 56

/* The first node from `index` on that serves slots; the number of nodes if there is none. */
static unsigned next_node(struct dm_cluster *cluster, unsigned index)
{
    while (index < dm_cluster_count(cluster) && dm_cluster_first_slot(cluster->nodes[index]) < 0)
        index++;
    return index;
}

/*
 * The node to scan; NULL: that of the pattern, which is in the first key's position, or none is known, and the call
 * will fail.
 */
static struct dm_node *node_of(struct dm_store *store, const struct dm_view *view, const struct dm_deadline *deadline)
{
    struct dm_cluster *cluster = dm_redis(store)->route.cluster;
    unsigned index;

    if (!dm_redis(store)->is_cluster || view->group || !dm_cluster_await_slot(cluster, 0, deadline))
        return NULL;
    index = next_node(cluster, view->cursor >> NODE_SHIFT);
    return index < dm_cluster_count(cluster) ? &cluster->nodes[index]->base : NULL;
}

/* After the last key of a node, the next node begins. */
static uint64_t next_cursor(struct dm_store *store, const struct dm_view *view, const char *cursor)
{
    struct dm_cluster *cluster = dm_redis(store)->route.cluster;
    uint64_t next = strtoull(cursor, NULL, 10), node;

    if (!cluster || view->group)
        return next;
    node = next_node(cluster, view->cursor >> NODE_SHIFT);
    if (next == 0)
        node = next_node(cluster, (unsigned)node + 1);
    return node < dm_cluster_count(cluster) ? node << NODE_SHIFT | next : 0;
}

static enum dm_verdict scan(struct dm_store *store, const struct dm_view *view, const struct dm_deadline *deadline,
                            char *ret_reason, redisReply **ret_reply)
{
    struct dm_node *node = node_of(store, view, deadline);
    uint64_t node_bits = dm_redis(store)->is_cluster && !view->group ? UINT64_C(255) << NODE_SHIFT : 0;
    char pattern[4 * DM_MUTEX_KEY_ROOM];
    struct dm_args args;

    if (!write_pattern(dm_redis(store), view->group, pattern, sizeof pattern) || dm_args_init(&args, 6, 1) < 0)
        return dm_redis_no_memory(ret_reason);
    dm_args_text(&args, "SCAN");
    dm_args_number(&args, view->cursor & ~node_bits);
    dm_args_text(&args, "MATCH");
    dm_args_text(&args, pattern);
    dm_args_text(&args, "COUNT");
    dm_args_text(&args, LOOKED_AT);
    return dm_redis_run(store, node, &args, (struct dm_script){ "", "" }, deadline, ret_reason, ret_reply);
}

/* Reads the keys of one SCAN in batches, because a script that reads a thousand names would delay everybody's locks. */
static enum dm_verdict tell_keys(struct dm_store *store, struct dm_view *view, const redisReply *keys,
                                 const struct dm_deadline *deadline, char *ret_reason)
{
    struct batch *batch = calloc(1, sizeof *batch);
    enum dm_verdict verdict = DM_SAYS_DONE;

    if (!batch)
        return dm_redis_no_memory(ret_reason);
    for (size_t i = 0; i < keys->elements && verdict == DM_SAYS_DONE; i++) {
        if (keys->element[i]->type == REDIS_REPLY_STRING)
            add(dm_redis(store), keys->element[i]->str, (size_t)keys->element[i]->len, batch);
        if (batch->count == DM_BATCH) {
            verdict = tell_batch(store, view, batch, deadline, ret_reason);
            empty(batch);
        }
    }
    if (verdict == DM_SAYS_DONE)
        verdict = tell_batch(store, view, batch, deadline, ret_reason);
    empty(batch);
    free(batch);
    return verdict;
}

static enum dm_verdict tell_some(struct dm_store *store, struct dm_view *view, const struct dm_deadline *deadline,
                                 char *ret_reason)
{
    redisReply *reply = NULL;
    enum dm_verdict verdict = scan(store, view, deadline, ret_reason, &reply);

    if (verdict != DM_SAYS_DONE)
        return verdict;
    if (reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 && reply->element[0]->type == REDIS_REPLY_STRING &&
        reply->element[1]->type == REDIS_REPLY_ARRAY)
        verdict = tell_keys(store, view, reply->element[1], deadline, ret_reason);
    else
        verdict = dm_redis_nonsense(ret_reason);
    if (verdict == DM_SAYS_DONE)
        view->cursor = next_cursor(store, view, reply->element[0]->str);
    dm_reply_free(reply);
    return verdict;
}

static enum dm_verdict tell_one(struct dm_store *store, const struct dm_view *view, const struct dm_deadline *deadline,
                                char *ret_reason)
{
    struct batch *batch = calloc(1, sizeof *batch);
    enum dm_verdict verdict;

    if (!batch)
        return dm_redis_no_memory(ret_reason);
    snprintf(batch->found[0].key, KEY_ROOM, "%s", view->key);
    batch->found[0].place = dm_keys_of(&dm_redis(store)->naming, view->key);
    batch->count = 1;
    verdict =
        batch->found[0].place ? tell_batch(store, view, batch, deadline, ret_reason) : dm_redis_no_memory(ret_reason);
    empty(batch);
    free(batch);
    return verdict;
}

enum dm_verdict dm_redis_view(struct dm_store *store, struct dm_view *view, const struct dm_deadline *deadline,
                              char ret_reason[DM_REASON_ROOM])
{
    return view->key ? tell_one(store, view, deadline, ret_reason) : tell_some(store, view, deadline, ret_reason);
}
