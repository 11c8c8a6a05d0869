/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Each operation is written, run and read in the same way:
 *
 *   dm_store_begin()      the script, by hash, and the number of keys
 *   dm_store_put_*()      the keys of the place
 *   dm_args_*()           the arguments, in the order of ARGV in the script's head
 *   dm_store_run()        one round trip; two if the server does not know the script
 *   dm_store_read_*()     an answer out of the reply; a reply of another shape is REFUSED or NOTHING, never a grant
 *
 * All memory of a call is one block for the arguments and one for the bytes; a call that fails has freed both.
 */
#include "redis/store_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bug.h"
#include "redis/reply.h"

/* Numbers in the text of a pending release: thread, attempt, end. */
#define OWED_NUMBERS 3

/* Borrows all three texts: the URL and the identity live as long as the process. */
void dm_redis_init(struct dm_redis *redis, const char *prefix, const char *uuid, const char *label)
{
    DM_BUG(label[0] < '0' || label[0] > '9'); /* the scripts would read the label's beginning as a mark */
    redis->prefix = prefix;
    redis->uuid = uuid;
    redis->label = label;
    snprintf(redis->inbox_prefix, sizeof redis->inbox_prefix, "%s:inbox:", prefix);
}

/* ---- writing ----------------------------------------------------------------------------- */

/* The room is counted by the caller and checked at each use, so that no command is cut by a miscount. */
bool dm_store_begin(struct dm_args *args, struct dm_script script, bool by_text, int keys, int arguments, int numbers)
{
    if (dm_args_init(args, 3 + keys + arguments, 1 + numbers) < 0)
        return false;
    dm_args_text(args, by_text ? "EVAL" : "EVALSHA");
    dm_args_text(args, by_text ? script.text : script.sha);
    dm_args_number(args, (uint64_t)keys);
    return true;
}

/* Without a condition two keys are missing, not empty: a script sees the number of keys. */
int dm_store_count_keys(const struct dm_ask *ask)
{
    return DM_KEY_COUNT + (ask->condition ? DM_COND_KEY_COUNT : 0);
}

/* The mutex's keys first, as all scripts read KEYS. */
void dm_store_put_all_keys(struct dm_args *args, const struct dm_ask *ask)
{
    dm_store_put_keys(args, ask->place, DM_KEY_COUNT);
    if (ask->condition)
        dm_store_put_keys(args, ask->condition, DM_COND_KEY_COUNT);
}

/* The place is pinned, or belongs to a claim that the caller keeps, until the command is formatted. */
void dm_store_put_keys(struct dm_args *args, const struct dm_place *keys, int count)
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

/* Attempts are told apart by uuid, thread and number; the label is for people, and never compared. */
static void identify(struct dm_identity *identity, const struct dm_store *store, uint64_t thread, uint64_t attempt,
                     uint32_t lease_ms, enum dm_mark mark)
{
    snprintf(identity->owner, sizeof identity->owner, "%s:%" PRIu64, dm_redis(store)->uuid, thread);
    snprintf(identity->id, sizeof identity->id, "%s:%" PRIu64, identity->owner, attempt);
    snprintf(identity->hold, sizeof identity->hold, "%s %" PRIu32 " %s%s", identity->id, lease_ms, marks[mark],
             dm_redis(store)->label);
}

void dm_store_identify(struct dm_identity *identity, const struct dm_store *store, uint64_t thread, uint64_t attempt,
                       uint32_t lease_ms)
{
    identify(identity, store, thread, attempt, lease_ms, DM_MARK_NONE);
}

/* As the scripts compare flags: a text of one digit. */
const char *dm_store_flag(bool is_set)
{
    return is_set ? "1" : "0";
}

/* ---- asking and waiting ------------------------------------------------------------------ */

/*
 * NOTHING for all that may be different soon: the caller has a deadline, and asks again until then.  REFUSED ends the
 * call with the server's own sentence.
 */
static enum dm_verdict verdict_of(struct dm_store *store, const redisReply *reply, char *ret_reason)
{
    enum dm_error_row row = dm_reply_row(reply);

    if (row == DM_ROW_NONE)
        return DM_SAYS_DONE;
    snprintf(ret_reason, DM_REASON_ROOM, "%.*s", DM_REASON_ROOM - 1, reply->str);
    if (row == DM_ROW_NO_MEMORY)
        return DM_SAYS_NO_MEMORY;
    if (row == DM_ROW_REFUSED)
        return DM_SAYS_REFUSED;
    if (row == DM_ROW_REDISCOVER)
        dm_node_distrust(&dm_redis(store)->node, reply->str);
    return DM_SAYS_NOTHING;
}

/* "WRONGTYPE" alone names no key: another program has written one of the keys that the script was given. */
static void name_key(const struct dm_args *args, const redisReply *reply, char *ret_reason)
{
    if (args->count > 3 && strncmp(reply->str, "WRONGTYPE", 9) == 0)
        snprintf(ret_reason, DM_REASON_ROOM,
                 "%.*s, or a key beside it, is not the library's: find out who writes it, and delete it: %.60s",
                 (int)(args->lengths[3] < 200 ? args->lengths[3] : 200), args->texts[3], reply->str);
}

/* The reason in an earlier answer stays the reason while there is a connection. */
static void note_reason(struct dm_node *node, char *ret_reason)
{
    if (!ret_reason[0] || !dm_node_is_ready(node))
        dm_node_reason(node, node->commands.link, ret_reason);
}

/*
 * A server that does not know the script gets the text once, in the same call: each restart and each SCRIPT FLUSH costs
 * each script one round trip more.  The text is known by its hash from then on.
 */
enum dm_verdict dm_store_run(struct dm_store *store, struct dm_args *args, struct dm_script script,
                             const struct dm_deadline *deadline, char *ret_reason, redisReply **ret_reply)
{
    struct dm_node *node = &dm_redis(store)->node;
    redisReply *reply = NULL;
    enum dm_link_result result = dm_node_call(node, args, deadline, &reply);
    enum dm_verdict verdict;

    if (result == DM_LINK_OK && dm_reply_row(reply) == DM_ROW_SCRIPT) {
        freeReplyObject(reply);
        args->texts[0] = "EVAL";
        args->lengths[0] = 4;
        args->texts[1] = script.text;
        args->lengths[1] = strlen(script.text);
        result = dm_node_call(node, args, deadline, &reply);
    }
    verdict = result == DM_LINK_OK ? verdict_of(store, reply, ret_reason) : DM_SAYS_NOTHING;
    if (result == DM_LINK_OK && verdict == DM_SAYS_REFUSED)
        name_key(args, reply, ret_reason);
    dm_args_free(args);
    if (result == DM_LINK_NO_MEMORY)
        return dm_store_no_memory(ret_reason);
    if (result != DM_LINK_OK) {
        note_reason(node, ret_reason);
        return result == DM_LINK_DOWN ? DM_SAYS_REFUSED : DM_SAYS_NOTHING;
    }
    if (verdict == DM_SAYS_DONE)
        *ret_reply = reply;
    else
        freeReplyObject(reply);
    return verdict;
}

/* As a missing answer, because nothing was sent: a release stays pending, and a lock may be tried again. */
enum dm_verdict dm_store_no_memory(char *ret_reason)
{
    snprintf(ret_reason, DM_REASON_ROOM, "out of memory");
    return DM_SAYS_NOTHING;
}

/* Not tried again: another program, or a newer script, answers so each time. */
enum dm_verdict dm_store_nonsense(char *ret_reason)
{
    snprintf(ret_reason, DM_REASON_ROOM, "the server's answer is not one of ours: is this a Redis server?");
    return DM_SAYS_REFUSED;
}

/* Any number but 0 counts as 1, because no script answers more. */
enum dm_verdict dm_store_run_for_number(struct dm_store *store, struct dm_args *args, struct dm_script script,
                                        enum dm_verdict zero, const struct dm_deadline *deadline, char *ret_reason)
{
    redisReply *reply = NULL;
    enum dm_verdict verdict = dm_store_run(store, args, script, deadline, ret_reason, &reply);

    if (verdict != DM_SAYS_DONE)
        return verdict;
    if (reply->type != REDIS_REPLY_INTEGER)
        verdict = dm_store_nonsense(ret_reason);
    else if (reply->integer == 0)
        verdict = zero;
    freeReplyObject(reply);
    return verdict;
}

/* ---- reading ----------------------------------------------------------------------------- */

/* 0 is no meaning of its own in any answer of the scripts, so "absent" and 0 need not be told apart. */
uint64_t dm_store_number_at(const redisReply *reply, size_t index)
{
    uint64_t number = 0;

    dm_reply_number(reply, index, &number);
    return number;
}

/*
 * Limit of a time in nanoseconds; a later time could not be reckoned with.  As microseconds the limit is in the year
 * 2112.
 */
#define TIME_MAX (INT64_MAX / 2048)

/* Cuts instead of refusing: a lease of centuries is as good as any, and only sums must not overflow. */
int64_t dm_store_time_of(uint64_t number)
{
    return number < TIME_MAX ? (int64_t)number : TIME_MAX;
}

int64_t dm_store_time_at(const redisReply *reply, size_t index)
{
    return dm_store_time_of(dm_store_number_at(reply, index));
}

/* {owned, token, dead, now} {busy, remaining, now, grace, more} {queued, position, remaining, arrival, now, more} */
bool dm_store_read_answer(const redisReply *reply, struct dm_answer *ret_answer)
{
    struct dm_answer answer = { 0 };

    if (dm_reply_is(reply, "owned")) {
        answer.verdict = DM_SAYS_OWNED;
        answer.is_owner_dead = dm_store_number_at(reply, 2) == 1;
        answer.store_us = dm_store_time_at(reply, 3);
        if (!dm_reply_number(reply, 1, &answer.token) || answer.token >= DM_TOKEN_LIMIT)
            return false;
    } else if (dm_reply_is(reply, "busy")) {
        answer.verdict = DM_SAYS_BUSY;
        answer.remaining_ms = dm_store_time_at(reply, 1);
        answer.store_us = dm_store_time_at(reply, 2);
        answer.grace_ms = dm_store_time_at(reply, 3);
        answer.is_wanted = dm_store_number_at(reply, 4) == 1;
    } else if (dm_reply_is(reply, "queued")) {
        answer.verdict = DM_SAYS_QUEUED;
        answer.position = dm_store_number_at(reply, 1);
        answer.remaining_ms = dm_store_time_at(reply, 2);
        answer.arrival = dm_store_number_at(reply, 3);
        answer.store_us = dm_store_time_at(reply, 4);
        answer.is_wanted = dm_store_number_at(reply, 5) == 1;
    } else if (dm_reply_is(reply, "unknown")) {
        answer.verdict = DM_SAYS_UNKNOWN;
        answer.is_wanted = dm_store_number_at(reply, 1) == 1;
    } else if (dm_reply_is(reply, "waiting")) {
        answer.verdict = DM_SAYS_WAITING;
        answer.is_wanted = dm_store_number_at(reply, 1) == 1;
        answer.store_us = dm_store_time_at(reply, 2);
    } else if (dm_reply_is(reply, "notowner")) {
        answer.verdict = DM_SAYS_NOT_OWNER;
    } else if (dm_reply_is(reply, "bound")) {
        answer.verdict = DM_SAYS_BOUND;
    } else if (dm_reply_is(reply, "full")) {
        answer.verdict = DM_SAYS_FULL;
    } else if (dm_reply_is(reply, "notrecoverable")) {
        answer.verdict = DM_SAYS_NOT_RECOVERABLE;
    } else if (dm_reply_is(reply, "left")) {
        answer.verdict = DM_SAYS_DONE;
    } else {
        return false;
    }
    *ret_answer = answer;
    return true;
}

/* A reply of another shape is never taken for a grant: what cannot be read refuses. */
struct dm_answer dm_store_answer_or_nonsense(redisReply *reply, char *ret_reason)
{
    struct dm_answer answer;

    if (!dm_store_read_answer(reply, &answer))
        answer = (struct dm_answer){ .verdict = dm_store_nonsense(ret_reason) };
    freeReplyObject(reply);
    return answer;
}

/* ---- acquire, cancel, release ------------------------------------------------------------ */

/*
 * In the order of ARGV of lua/acquire.lua, which has names for all of them.  `born` and `run` are filled in when the
 * command is written for a server.
 */
static void put_acquire(struct dm_args *args, const struct dm_store *store, const struct dm_ask *ask, bool may_queue,
                        const struct dm_identity *identity)
{
    dm_store_put_all_keys(args, ask);
    dm_args_text(args, identity->id);
    dm_args_number(args, ask->lease_ms);
    dm_args_number(args, ask->seen);
    dm_args_number(args, ask->request.serial);
    dm_args_text(args, dm_store_flag(ask->is_robust));
    dm_args_text(args, may_queue ? "queue" : "try");
    if (ask->arrival)
        dm_args_number(args, ask->arrival);
    else
        dm_args_text(args, "");
    dm_args_text(args, dm_redis(store)->inbox_prefix);
    dm_args_born(args);
    dm_args_run(args);
    dm_args_text(args, dm_redis(store)->label);
}

/* <thread>:<attempt>:<end>, in the room of three numbers */
static void put_owed(struct dm_args *args, const struct dm_owed *owed)
{
    char *text = dm_args_room(args, OWED_NUMBERS);

    snprintf(text, OWED_NUMBERS * DM_ARG_DIGITS, "%" PRIu64 ":%" PRIu64 ":%d", owed->thread, owed->attempt,
             (int)owed->end);
    dm_args_text(args, text);
}

/*
 * The identity is borrowed by the arguments until dm_store_run() has formatted them, so it stands on this stack.  6
 * numbers: lease, seen, request, arrival, born, run.
 */
struct dm_answer dm_redis_acquire(struct dm_store *store, const struct dm_ask *ask, bool may_queue,
                                  const struct dm_owed *owed, int owed_count, const struct dm_deadline *deadline,
                                  char ret_reason[DM_REASON_ROOM])
{
    struct dm_script script = SCRIPT(acquire);
    struct dm_identity identity;
    struct dm_args args;
    redisReply *reply = NULL;
    enum dm_verdict verdict;

    if (!dm_store_begin(&args, script, false, dm_store_count_keys(ask), 11 + owed_count, 6 + OWED_NUMBERS * owed_count))
        return (struct dm_answer){ .verdict = dm_store_no_memory(ret_reason) };
    dm_store_identify(&identity, store, ask->thread, ask->attempt, ask->lease_ms);
    put_acquire(&args, store, ask, may_queue, &identity);
    for (int i = 0; i < owed_count; i++)
        put_owed(&args, &owed[i]);
    verdict = dm_store_run(store, &args, script, deadline, ret_reason, &reply);
    if (verdict != DM_SAYS_DONE)
        return (struct dm_answer){ .verdict = verdict };
    return dm_store_answer_or_nonsense(reply, ret_reason);
}

/*
 * Gets no run id, because the script grants to nobody else: the caller's own hold is confirmed, or the caller leaves.
 */
struct dm_answer dm_redis_cancel(struct dm_store *store, const struct dm_ask *ask, const struct dm_deadline *deadline,
                                 char ret_reason[DM_REASON_ROOM])
{
    struct dm_script script = SCRIPT(cancel);
    struct dm_identity identity;
    struct dm_args args;
    redisReply *reply = NULL;
    enum dm_verdict verdict;

    if (!dm_store_begin(&args, script, false, DM_KEY_COUNT, 4, 2))
        return (struct dm_answer){ .verdict = dm_store_no_memory(ret_reason) };
    dm_store_identify(&identity, store, ask->thread, ask->attempt, ask->lease_ms);
    dm_store_put_keys(&args, ask->place, DM_KEY_COUNT);
    dm_args_text(&args, identity.id);
    dm_args_number(&args, ask->lease_ms);
    dm_args_text(&args, dm_store_flag(ask->is_robust));
    dm_args_born(&args);
    verdict = dm_store_run(store, &args, script, deadline, ret_reason, &reply);
    if (verdict != DM_SAYS_DONE)
        return (struct dm_answer){ .verdict = verdict };
    return dm_store_answer_or_nonsense(reply, ret_reason);
}

/* Shared by the awaited and the posted release.  The lease is 0 in the identity, because only the id is sent. */
static bool write_release(const struct dm_store *store, const struct dm_ask *ask, enum dm_end end, bool by_text,
                          struct dm_identity *identity, struct dm_args *args)
{
    if (!dm_store_begin(args, SCRIPT(release), by_text, dm_store_count_keys(ask), 5, 3))
        return false;
    dm_store_identify(identity, store, ask->thread, ask->attempt, 0);
    dm_store_put_all_keys(args, ask);
    dm_args_text(args, identity->id);
    dm_args_number(args, end);
    dm_args_text(args, dm_redis(store)->inbox_prefix);
    dm_args_born(args);
    dm_args_run(args);
    return true;
}

/* "left" is DONE as well: the attempt waited, and waits no more. */
struct dm_answer dm_store_read_release(const redisReply *reply, int index)
{
    struct dm_answer answer = { .verdict = DM_SAYS_NOTHING };

    (void)index;
    if (dm_reply_is(reply, "notowner"))
        answer.verdict = DM_SAYS_NOT_OWNER;
    else if (dm_reply_is(reply, "released") || dm_reply_is(reply, "left"))
        answer.verdict = DM_SAYS_DONE;
    answer.is_wanted = dm_reply_is(reply, "released") && dm_store_number_at(reply, 1) != 0;
    return answer;
}

/* NOTHING without an answer: the release may have been executed, and a second one finds "notowner". */
struct dm_answer dm_redis_release(struct dm_store *store, const struct dm_ask *ask, enum dm_end end,
                                  const struct dm_deadline *deadline, char ret_reason[DM_REASON_ROOM])
{
    struct dm_answer answer = { .verdict = DM_SAYS_NOTHING };
    struct dm_identity identity;
    struct dm_args args;
    redisReply *reply = NULL;

    if (!write_release(store, ask, end, false, &identity, &args)) {
        answer.verdict = dm_store_no_memory(ret_reason);
        return answer;
    }
    answer.verdict = dm_store_run(store, &args, SCRIPT(release), deadline, ret_reason, &reply);
    if (answer.verdict == DM_SAYS_DONE) {
        answer = dm_store_read_release(reply, 0);
        freeReplyObject(reply);
    }
    return answer;
}

/* A release that cannot be sent opens the connection, so that a process without any other call still releases. */
bool dm_redis_post_release(struct dm_store *store, const struct dm_ask *ask, enum dm_end end, dm_answers_fn handler,
                           void *user)
{
    struct dm_posting *posting = dm_posting_new(store, DM_POSTS_RELEASE, 1, handler, user);
    struct dm_identity identity;
    struct dm_args args;

    if (posting && write_release(store, ask, end, posting->is_by_text, &identity, &args) &&
        dm_posting_send(posting, &args, dm_node_post))
        return true;
    free(posting);
    dm_node_want(&dm_redis(store)->node);
    return false;
}

/* ---- batches ----------------------------------------------------------------------------- */

/*
 * Attempts have four keys or six: the number of each attempt's keys goes along, for the script to find the next
 * attempt's.
 */
static bool write_polls(const struct dm_store *store, const struct dm_ask *asks, int count, bool by_text,
                        struct dm_identity *identities, struct dm_args *args)
{
    int keys = 0;

    for (int i = 0; i < count; i++)
        keys += dm_store_count_keys(&asks[i]);
    if (!identities || !dm_store_begin(args, SCRIPT(poll), by_text, keys, 4 + count * 6, 2 + count * 4))
        return false;
    for (int i = 0; i < count; i++)
        dm_store_put_all_keys(args, &asks[i]);
    dm_args_text(args, dm_redis(store)->inbox_prefix);
    dm_args_text(args, dm_redis(store)->label);
    dm_args_born(args);
    dm_args_run(args);
    for (int i = 0; i < count; i++) {
        dm_store_identify(&identities[i], store, asks[i].thread, asks[i].attempt, 0);
        dm_args_text(args, identities[i].id);
        dm_args_number(args, asks[i].request.serial);
        dm_args_number(args, asks[i].lease_ms);
        dm_args_text(args, dm_store_flag(asks[i].is_robust));
        dm_args_number(args, asks[i].seen);
        dm_args_number(args, (uint64_t)dm_store_count_keys(&asks[i]));
    }
    return true;
}

/*
 * The identities are in the heap: a hundred of them would not fit a small stack, and are gone once the command is
 * formatted.
 */
bool dm_redis_post_poll(struct dm_store *store, const struct dm_ask *asks, int count, dm_answers_fn handler, void *user)
{
    struct dm_posting *posting = dm_posting_new(store, DM_POSTS_POLL, count, handler, user);
    struct dm_identity *identities = malloc((size_t)count * sizeof *identities);
    struct dm_args args;
    bool is_posted = posting && write_polls(store, asks, count, posting->is_by_text, identities, &args) &&
                     dm_posting_send(posting, &args, dm_node_post_quietly);

    if (!is_posted)
        free(posting);
    free(identities);
    return is_posted;
}

/* Element 0 is the server's clock, then one answer per attempt. */
struct dm_answer dm_store_read_poll(const redisReply *reply, int index)
{
    struct dm_answer answer = { .verdict = DM_SAYS_NOTHING };

    if (reply->type == REDIS_REPLY_ARRAY && (size_t)index + 1 < reply->elements &&
        dm_store_read_answer(reply->element[index + 1], &answer))
        answer.store_us = dm_store_time_at(reply, 0);
    return answer;
}

/* `identities`: room for `count`, borrowed by the arguments. */
static bool write_renewals(const struct dm_store *store, const struct dm_renewal *renewals, int count, bool by_text,
                           struct dm_identity *identities, struct dm_args *args)
{
    if (!identities || !dm_store_begin(args, SCRIPT(renew), by_text, count * DM_KEY_COUNT, count * 4, count * 3))
        return false;
    for (int i = 0; i < count; i++)
        dm_store_put_keys(args, renewals[i].place, DM_KEY_COUNT);
    for (int i = 0; i < count; i++) {
        identify(&identities[i], store, renewals[i].thread, renewals[i].attempt, renewals[i].lease_ms,
                 renewals[i].mark);
        dm_args_text(args, identities[i].hold);
        dm_args_number(args, renewals[i].lease_ms);
        dm_args_number(args, renewals[i].depth);
        dm_args_number(args, renewals[i].token);
    }
    return true;
}

/* As dm_redis_post_poll(): quiet, because the caller chose the holds under the state lock. */
bool dm_redis_post_renew(struct dm_store *store, const struct dm_renewal *renewals, int count, dm_answers_fn handler,
                         void *user)
{
    struct dm_posting *posting = dm_posting_new(store, DM_POSTS_RENEW, count, handler, user);
    struct dm_identity *identities = malloc((size_t)count * sizeof *identities);
    struct dm_args args;
    bool is_posted = posting && write_renewals(store, renewals, count, posting->is_by_text, identities, &args) &&
                     dm_posting_send(posting, &args, dm_node_post_quietly);

    if (!is_posted)
        free(posting);
    free(identities);
    return is_posted;
}

/*
 * The server tells the present owner of its lock, 1, or that others wait, too, 2; 0 alone is a loss.  A reply that has
 * no number there is no answer, and the hold goes on until its certainty ends.
 */
struct dm_answer dm_store_read_renew(const redisReply *reply, int index)
{
    struct dm_answer answer = { .verdict = DM_SAYS_NOTHING };
    uint64_t state;

    if (!dm_reply_number(reply, (size_t)index + 1, &state) || state > 2)
        return answer;
    answer.verdict = state ? DM_SAYS_OWNED : DM_SAYS_UNKNOWN;
    answer.has_waiter = state == 2;
    answer.store_us = dm_store_time_at(reply, 0);
    return answer;
}

/* One hold by the script of many: the same promises, and no second text. */
struct dm_answer dm_redis_renew(struct dm_store *store, const struct dm_renewal *renewal,
                                const struct dm_deadline *deadline, char ret_reason[DM_REASON_ROOM])
{
    struct dm_answer answer = { .verdict = DM_SAYS_NOTHING };
    struct dm_identity identity;
    struct dm_args args;
    redisReply *reply = NULL;

    if (!write_renewals(store, renewal, 1, false, &identity, &args)) {
        answer.verdict = dm_store_no_memory(ret_reason);
        return answer;
    }
    answer.verdict = dm_store_run(store, &args, SCRIPT(renew), deadline, ret_reason, &reply);
    if (answer.verdict == DM_SAYS_DONE) {
        answer = dm_store_read_renew(reply, 0);
        freeReplyObject(reply);
    }
    return answer;
}
