/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Each script call is written, run and read in the same way:
 *
 *   dm_redis_begin()      the script, by hash, and the number of keys
 *   dm_redis_put_*()      the keys of the place
 *   dm_args_*()           the arguments, in the order of ARGV in the script's head
 *   dm_redis_run()        one round trip; two if the server does not know the script
 *   dm_redis_read_*()     the answer in the reply; a reply of another shape is REFUSED or NOTHING, never a grant
 *
 * The memory of a call is one block for the arguments and one for the bytes; a call that fails has freed both.
 */
#include "stores/redis/parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bug.h"
#include "base/self.h"
#include "store/calls.h"
#include "stores/redis/wire/reply.h"

/* A call that nodes redirect in a circle is given up after this many redirects, and tried again after a pause. */
#define SENT_ON_MOST 5

/* Borrows all three texts: URL and identity live as long as the process. */
void dm_redis_init(struct dm_redis *redis, const char *prefix, const char *uuid, const char *label)
{
    DM_BUG(label[0] < '0' || label[0] > '9'); /* the scripts would take its first character for a mark */
    redis->uuid = uuid;
    redis->label = label;
    snprintf(redis->inbox_prefix, sizeof redis->inbox_prefix, "%s:inbox:", prefix);
    redis->naming = (struct dm_naming){ prefix, redis->is_cluster ? NULL : redis->inbox_prefix };
}

/* ---- writing ----------------------------------------------------------------------------- */

/* The caller counts the room, and each use checks it, so that a miscount does not cut a command. */
bool dm_redis_begin(struct dm_args *args, struct dm_script script, int keys, int arguments, int numbers)
{
    if (dm_args_init(args, 3 + keys + arguments, 1 + numbers) < 0)
        return false;
    dm_args_text(args, "EVALSHA");
    dm_args_text(args, script.sha);
    dm_args_number(args, (uint64_t)keys);
    return true;
}

/* The next argument, the number of keys, stays. */
void dm_redis_send_text(struct dm_args *args, struct dm_script script)
{
    args->texts[0] = "EVAL";
    args->lengths[0] = 4;
    args->texts[1] = script.text;
    args->lengths[1] = strlen(script.text);
}

/* Without a condition two keys are missing, not empty: scripts check the number of keys. */
int dm_redis_count_keys(const struct dm_question *question)
{
    return DM_KEY_COUNT + (question->condition ? DM_COND_KEY_COUNT : 0);
}

/* The mutex's keys first, as all scripts read KEYS. */
void dm_redis_put_all_keys(struct dm_args *args, const struct dm_question *question)
{
    dm_redis_put_keys(args, question->place, DM_KEY_COUNT);
    if (question->condition)
        dm_redis_put_keys(args, question->condition, DM_COND_KEY_COUNT);
}

/* Until the command is formatted, the place must be pinned, or belong to a claim that the caller keeps. */
void dm_redis_put_keys(struct dm_args *args, const struct dm_place *keys, int count)
{
    for (int key = 0; key < count; key++)
        dm_args_bytes(args, keys->text[key], keys->length[key]);
}

/* The marks of holds, as the scripts read them: see lua/_numbers.lua. */
static const char *const marks[] = {
    [DM_MARK_NONE] = "",
    [DM_MARK_TELL] = "+ ",
    [DM_MARK_TELL_NO_DEATH] = "- ",
};

/* An attempt is identified by uuid, thread and number. */
char *dm_redis_write_id(char *to, const struct dm_store *store, uint64_t thread, uint64_t attempt)
{
    to = stpcpy(to, dm_redis(store)->uuid);
    *to++ = ':';
    to = dm_number_write(to, thread);
    *to++ = ':';
    return dm_number_write(to, attempt);
}

void dm_redis_identify(char *to, const struct dm_store *store, uint64_t thread, uint64_t attempt)
{
    *dm_redis_write_id(to, store, thread, attempt) = '\0';
}

/* The label is for people, and never compared. */
char *dm_redis_write_hold(char *to, const struct dm_store *store, uint64_t thread, uint64_t attempt, uint32_t lease_ms,
                          enum dm_mark mark)
{
    to = dm_redis_write_id(to, store, thread, attempt);
    *to++ = ' ';
    to = dm_number_write(to, lease_ms);
    *to++ = ' ';
    return stpcpy(stpcpy(to, marks[mark]), dm_redis(store)->label);
}

/* A text of one digit, because the scripts compare flags as texts. */
const char *dm_redis_flag(bool is_set)
{
    return is_set ? "1" : "0";
}

/* ---- asking and waiting ------------------------------------------------------------------ */

/*
 * NOTHING for everything that may soon be different: the caller has a deadline, and asks again until then.  REFUSED
 * ends the call with the server's error.  A node of a Cluster that has become a replica answers MOVED, and keeps its
 * link.
 */
static enum dm_verdict verdict_of(const struct dm_redis *redis, struct dm_node *node, const redisReply *reply,
                                  char *ret_reason)
{
    enum dm_error_row row = dm_reply_row(reply);

    if (row == DM_ROW_NONE)
        return DM_SAYS_DONE;
    if (dm_reply_is_denial(reply))
        dm_node_note_denial(node);
    snprintf(ret_reason, DM_REASON_ROOM, "%.*s", DM_REASON_ROOM - 1, reply->str);
    if (row == DM_ROW_NO_MEMORY)
        return DM_SAYS_NO_MEMORY;
    if (row == DM_ROW_REFUSED)
        return DM_SAYS_REFUSED;
    if (row == DM_ROW_REDISCOVER && !(redis->is_cluster && strncmp(reply->str, "MOVED ", 6) == 0))
        dm_node_distrust(node, reply->str);
    return DM_SAYS_NOTHING;
}

/* "WRONGTYPE" does not name the key: another program has written one of the keys that the script was given. */
static void name_key(const struct dm_args *args, const redisReply *reply, char *ret_reason)
{
    if (args->count > 3 && strncmp(reply->str, "WRONGTYPE", 9) == 0)
        snprintf(ret_reason, DM_REASON_ROOM,
                 "%.*s, or a key beside it, is not the library's: find out who writes it, and delete it (WRONGTYPE)",
                 (int)(args->lengths[3] < 200 ? args->lengths[3] : 200), args->texts[3]);
}

/* Keeps the reason of an earlier answer while there is a connection. */
static void note_reason(struct dm_node *node, char *ret_reason)
{
    if (!ret_reason[0] || !dm_node_is_ready(node))
        dm_node_reason(node, node->commands.link, ret_reason);
}

/* In a Cluster a call does not wait forever for a node that does not answer: another node may serve the slot by now. */
static struct dm_deadline patience_of(const struct dm_route *route, const struct dm_deadline *deadline)
{
    if (route->one)
        return *deadline;
    return dm_deadline_sooner(deadline, route->url->command_timeout_ms * DM_NS_PER_MS);
}

/*
 * Sends the call to the node `at`, or else to the node of its keys, following redirects.  A server that does not know
 * the script gets its text at once, and from then on knows it by its hash: each restart and each SCRIPT FLUSH costs one
 * more round trip per script.  Returns the node that was, or would have been, asked last; NULL: no node is known.
 */
static struct dm_node *call(const struct dm_route *route, struct dm_node *at, struct dm_args *args,
                            struct dm_script script, const struct dm_deadline *deadline,
                            enum dm_link_result *ret_result, redisReply **ret_reply)
{
    bool is_text = false;
    int sent_on = 0;

    for (;;) {
        struct dm_node *node = at ? at : dm_route_await(route, args, deadline);
        struct dm_deadline patience = patience_of(route, deadline);

        if (!node)
            return dm_route_of_args(route, args);
        *ret_result = dm_node_call(node, args, at ? deadline : &patience, ret_reply);
        if (*ret_result != DM_LINK_OK || (*ret_reply)->type != REDIS_REPLY_ERROR)
            return node;
        if (!is_text && dm_reply_row(*ret_reply) == DM_ROW_SCRIPT) {
            is_text = true;
            dm_redis_send_text(args, script);
        } else if (at || sent_on++ == SENT_ON_MOST ||
                   !dm_route_redirect(route, node, args->texts[3], args->lengths[3], (*ret_reply)->str)) {
            return node;
        }
        dm_reply_free(*ret_reply);
        *ret_result = DM_LINK_LATE; /* until the next answer */
    }
}

/* The verdict without an answer, with the reason.  node NULL: no node could be asked. */
static enum dm_verdict without_answer(const struct dm_route *route, struct dm_node *node, enum dm_link_result result,
                                      char *ret_reason)
{
    if (!node) {
        dm_cluster_reason(route->cluster, ret_reason);
        return route->cluster->is_ended ? DM_SAYS_REFUSED : DM_SAYS_NOTHING;
    }
    if (result == DM_LINK_NO_MEMORY)
        return dm_redis_no_memory(ret_reason);
    note_reason(node, ret_reason);
    return result == DM_LINK_DOWN ? DM_SAYS_REFUSED : DM_SAYS_NOTHING;
}

enum dm_verdict dm_redis_run(struct dm_store *store, struct dm_node *at, struct dm_args *args, struct dm_script script,
                             const struct dm_deadline *deadline, char *ret_reason, redisReply **ret_reply)
{
    const struct dm_route *route = &dm_redis(store)->route;
    enum dm_link_result result = DM_LINK_LATE;
    redisReply *reply = NULL;
    struct dm_node *node = call(route, at, args, script, deadline, &result, &reply);
    enum dm_verdict verdict;

    if (result != DM_LINK_OK) {
        dm_args_free(args);
        return without_answer(route, node, result, ret_reason);
    }
    verdict = verdict_of(dm_redis(store), node, reply, ret_reason);
    if (verdict == DM_SAYS_REFUSED)
        name_key(args, reply, ret_reason);
    dm_args_free(args);
    if (verdict == DM_SAYS_DONE)
        *ret_reply = reply;
    else
        dm_reply_free(reply);
    return verdict;
}

/* Like a missing answer, because nothing was sent: a release stays pending, and a lock may be tried again. */
enum dm_verdict dm_redis_no_memory(char *ret_reason)
{
    snprintf(ret_reason, DM_REASON_ROOM, "out of memory");
    return DM_SAYS_NOTHING;
}

/* Not tried again, because another program or a newer script would answer the same each time. */
enum dm_verdict dm_redis_nonsense(char *ret_reason)
{
    snprintf(ret_reason, DM_REASON_ROOM, "the server's answer is not one of ours: is this a Redis server?");
    return DM_SAYS_REFUSED;
}

/* ---- reading ----------------------------------------------------------------------------- */

/* In no answer of the scripts does 0 mean anything else than "absent", so the two need not be distinguished. */
uint64_t dm_redis_number_at(const redisReply *reply, size_t index)
{
    uint64_t number = 0;

    dm_reply_number(reply, index, &number);
    return number;
}

/*
 * The limit of a time in nanoseconds, beyond which sums could overflow.  As microseconds the limit is in the year 2112.
 */
#define TIME_MAX (INT64_MAX / 2048)

/* Cuts off instead of refusing: a lease of centuries is as good as any, and only sums must not overflow. */
int64_t dm_redis_time_of(uint64_t number)
{
    return number < TIME_MAX ? (int64_t)number : TIME_MAX;
}

int64_t dm_redis_time_at(const redisReply *reply, size_t index)
{
    return dm_redis_time_of(dm_redis_number_at(reply, index));
}

/* Some 18 years, so that the sum of a time and a few such spans does not overflow. */
#define SPAN_MAX_MS (INT64_MAX / DM_NS_PER_MS / 16)

int64_t dm_redis_span_of(uint64_t ms)
{
    return ms < SPAN_MAX_MS ? (int64_t)ms : SPAN_MAX_MS;
}

int64_t dm_redis_span_at(const redisReply *reply, size_t index)
{
    return dm_redis_span_of(dm_redis_number_at(reply, index));
}
