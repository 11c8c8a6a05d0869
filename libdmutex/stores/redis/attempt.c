/* SPDX-License-Identifier: BSD-2-Clause */
/* Questions about an attempt: acquire, cancel, release, and the renewals and polls that keep it. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/self.h"
#include "stores/redis/parts.h"
#include "stores/redis/wire/reply.h"

/* ---- reading ----------------------------------------------------------------------------- */

/* The words after the first in the scripts' answers about an attempt, in the order of lua/acquire.lua and others. */
enum { OWNED_TOKEN = 1, OWNED_DEAD, OWNED_NOW_US };
enum { BUSY_REMAINING_MS = 1, BUSY_NOW_US, BUSY_GRACE_MS, BUSY_MORE };
enum { QUEUED_POSITION = 1, QUEUED_REMAINING_MS, QUEUED_ARRIVAL, QUEUED_NOW_US, QUEUED_MORE };
enum { UNKNOWN_MORE = 1 };                 /* lua/poll.lua */
enum { WAITING_MORE = 1, WAITING_NOW_US }; /* lua/cond_wait.lua, lua/poll.lua */

static bool read_attempt(const redisReply *reply, struct dm_answer *ret_answer)
{
    if (dm_reply_is(reply, "owned")) {
        ret_answer->verdict = DM_SAYS_OWNED;
        ret_answer->is_owner_dead = dm_redis_number_at(reply, OWNED_DEAD) == 1;
        ret_answer->store_us = dm_redis_time_at(reply, OWNED_NOW_US);
        if (!dm_reply_number(reply, OWNED_TOKEN, &ret_answer->token) || ret_answer->token >= DM_TOKEN_LIMIT)
            return false;
    } else if (dm_reply_is(reply, "busy")) {
        ret_answer->verdict = DM_SAYS_BUSY;
        ret_answer->remaining_ms = dm_redis_span_at(reply, BUSY_REMAINING_MS);
        ret_answer->store_us = dm_redis_time_at(reply, BUSY_NOW_US);
        ret_answer->grace_ms = dm_redis_span_at(reply, BUSY_GRACE_MS);
        ret_answer->is_wanted = dm_redis_number_at(reply, BUSY_MORE) == 1;
    } else if (dm_reply_is(reply, "queued")) {
        ret_answer->verdict = DM_SAYS_QUEUED;
        ret_answer->position = dm_redis_number_at(reply, QUEUED_POSITION);
        ret_answer->remaining_ms = dm_redis_span_at(reply, QUEUED_REMAINING_MS);
        ret_answer->arrival = dm_redis_number_at(reply, QUEUED_ARRIVAL);
        ret_answer->store_us = dm_redis_time_at(reply, QUEUED_NOW_US);
        ret_answer->is_wanted = dm_redis_number_at(reply, QUEUED_MORE) == 1;
    } else if (dm_reply_is(reply, "unknown")) {
        ret_answer->verdict = DM_SAYS_UNKNOWN;
        ret_answer->is_wanted = dm_redis_number_at(reply, UNKNOWN_MORE) == 1;
    } else if (dm_reply_is(reply, "waiting")) {
        ret_answer->verdict = DM_SAYS_WAITING;
        ret_answer->is_wanted = dm_redis_number_at(reply, WAITING_MORE) == 1;
        ret_answer->store_us = dm_redis_time_at(reply, WAITING_NOW_US);
    } else if (dm_reply_is(reply, "notowner")) {
        ret_answer->verdict = DM_SAYS_NOT_OWNER;
    } else if (dm_reply_is(reply, "bound")) {
        ret_answer->verdict = DM_SAYS_BOUND;
    } else if (dm_reply_is(reply, "full")) {
        ret_answer->verdict = DM_SAYS_FULL;
    } else if (dm_reply_is(reply, "notrecoverable")) {
        ret_answer->verdict = DM_SAYS_NOT_RECOVERABLE;
    } else if (dm_reply_is(reply, "left")) {
        ret_answer->verdict = DM_SAYS_DONE;
    } else {
        return false;
    }
    return true;
}

bool dm_redis_read_attempt(const struct dm_reading *reading, struct dm_answer *ret_answer)
{
    return read_attempt(reading->reply, ret_answer);
}

/* "left" is DONE, too: the attempt waited, and no longer does. */
bool dm_redis_read_release(const struct dm_reading *reading, struct dm_answer *ret_answer)
{
    const redisReply *reply = reading->reply;
    bool is_released = dm_reply_is(reply, "released");

    if (is_released || dm_reply_is(reply, "left"))
        ret_answer->verdict = DM_SAYS_DONE;
    else if (dm_reply_is(reply, "notowner"))
        ret_answer->verdict = DM_SAYS_NOT_OWNER;
    ret_answer->is_wanted = is_released && dm_redis_number_at(reply, 1) != 0;
    return ret_answer->verdict != DM_SAYS_NOTHING;
}

/* Element 0 is the server's clock; one answer per attempt follows. */
bool dm_redis_read_poll(const struct dm_reading *reading, struct dm_answer *ret_answer)
{
    const redisReply *reply = reading->reply;
    size_t index = (size_t)reading->index + 1;

    if (reply->type != REDIS_REPLY_ARRAY || index >= reply->elements ||
        !read_attempt(reply->element[index], ret_answer))
        return false;
    ret_answer->store_us = dm_redis_time_at(reply, 0);
    return true;
}

/*
 * The server says 1 to the present owner, or 2 if others wait; only 0 is a loss.  A reply without a number is no
 * answer, and the hold goes on until it is no longer certain.
 */
bool dm_redis_read_renewal(const struct dm_reading *reading, struct dm_answer *ret_answer)
{
    uint64_t state;

    if (!dm_reply_number(reading->reply, (size_t)reading->index + 1, &state) || state > 2)
        return false;
    ret_answer->verdict = state ? DM_SAYS_OWNED : DM_SAYS_UNKNOWN;
    ret_answer->has_waiter = state == 2;
    ret_answer->store_us = dm_redis_time_at(reading->reply, 0);
    return true;
}

/* ---- acquire, cancel, release ------------------------------------------------------------ */

/* Numbers in the text of a pending release: thread, attempt, end. */
#define OWED_NUMBERS 3

/* "<request> <lease> <robust>", as a waiter's data begin, in the room of three numbers. */
static void put_words(struct dm_args *args, const struct dm_question *question)
{
    char *text = dm_args_room(args, 3), *end = dm_number_write(text, question->request.serial);

    *end++ = ' ';
    end = dm_number_write(end, question->lease_ms);
    *end++ = ' ';
    *end++ = question->is_robust ? '1' : '0';
    dm_args_bytes(args, text, (size_t)(end - text));
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
 * Numbers: lease, three words, seen, arrival, two of the origin.  The origin is filled in when the command is written
 * for a server.
 */
bool dm_redis_write_acquire(const struct dm_writing *writing, struct dm_args *args)
{
    const struct dm_question *question = writing->questions;
    int owed_count = question->acquire.owed_count;

    if (!dm_redis_begin(args, writing->script, dm_redis_count_keys(question), 8 + owed_count,
                        8 + OWED_NUMBERS * owed_count))
        return false;
    dm_redis_identify(writing->texts->who, writing->store, question->thread, question->attempt);
    dm_redis_put_all_keys(args, question);
    dm_args_text(args, writing->texts->who);
    dm_args_number(args, question->lease_ms);
    put_words(args, question);
    dm_args_number(args, question->seen);
    if (question->acquire.may_queue && question->arrival)
        dm_args_number(args, question->arrival);
    else
        dm_args_text(args, question->acquire.may_queue ? "queue" : "try");
    dm_args_text(args, question->place->inbox);
    dm_args_origin(args);
    dm_args_text(args, dm_redis(writing->store)->label);
    for (int i = 0; i < owed_count; i++)
        put_owed(args, &question->acquire.owed[i]);
    return true;
}

/* Grants to nobody else: either confirms the caller's hold, or takes the caller out of the queue. */
bool dm_redis_write_cancel(const struct dm_writing *writing, struct dm_args *args)
{
    const struct dm_question *question = writing->questions;

    if (!dm_redis_begin(args, writing->script, DM_KEY_COUNT, 4, 3))
        return false;
    dm_redis_identify(writing->texts->who, writing->store, question->thread, question->attempt);
    dm_redis_put_keys(args, question->place, DM_KEY_COUNT);
    dm_args_text(args, writing->texts->who);
    dm_args_number(args, question->lease_ms);
    dm_args_text(args, dm_redis_flag(question->is_robust));
    dm_args_origin(args);
    return true;
}

/* "-<how> <held ms> <thread> <label>", the text of the ended hold. */
static char *write_ended(char *to, const struct dm_store *store, const struct dm_question *question)
{
    *to++ = '-';
    *to++ = (char)('0' + question->release.end);
    *to++ = ' ';
    to = dm_number_write(to, (uint64_t)question->release.held_ms);
    *to++ = ' ';
    to = dm_number_write(to, dm_self_tid(question->thread));
    *to++ = ' ';
    return stpcpy(to, dm_redis(store)->label);
}

/* Without an answer the release may have been executed; then a second one gets "notowner". */
bool dm_redis_write_release(const struct dm_writing *writing, struct dm_args *args)
{
    const struct dm_question *question = writing->questions;
    enum dm_end end = question->release.end;
    char *ended = writing->texts->other;

    if (!dm_redis_begin(args, writing->script, dm_redis_count_keys(question), end == DM_END_UNLOCKED ? 4 : 5, 3))
        return false;
    args->is_for_ending = true;
    args->is_news_first = question->is_contested;
    dm_redis_identify(writing->texts->who, writing->store, question->thread, question->attempt);
    dm_redis_put_all_keys(args, question);
    dm_args_text(args, writing->texts->who);
    dm_args_bytes(args, ended, (size_t)(write_ended(ended, writing->store, question) - ended));
    dm_args_text(args, question->place->inbox);
    dm_args_origin(args);
    if (end != DM_END_UNLOCKED)
        dm_args_number(args, end);
    return true;
}

/* ---- polls and renewals ------------------------------------------------------------------ */

/* Keys of a mutex that the script renew declares: the first two. */
#define RENEW_KEYS 2

/* Adds " COUNT:THREAD+MS,THREAD+MS" to a label. */
static void write_crowd(char *to, const struct dm_crowd *crowd)
{
    if (!crowd || !crowd->count)
        return;
    to += sprintf(to, " %u", crowd->count);
    for (unsigned i = 0; i < crowd->told; i++)
        to += sprintf(to, "%c%" PRIu64 "+%" PRId64, i ? ',' : ':', crowd->first[i].thread, crowd->first[i].waited_ms);
}

/* The text has the id and, after its NUL, the label with the crowd. */
static void put_poll(struct dm_args *args, const struct dm_store *store, const struct dm_question *poll, char *text)
{
    char *label = dm_redis_write_id(text, store, poll->thread, poll->attempt) + 1;

    label[-1] = '\0';
    write_crowd(stpcpy(label, dm_redis(store)->label), poll->crowd);
    dm_args_text(args, text);
    dm_args_number(args, poll->request.serial);
    dm_args_number(args, poll->lease_ms);
    dm_args_text(args, dm_redis_flag(poll->is_robust));
    dm_args_number(args, poll->seen);
    dm_args_number(args, (uint64_t)dm_redis_count_keys(poll));
    dm_args_text(args, label);
}

/*
 * An attempt has four keys or six, so the number of its keys goes along, for the script to find the next attempt's.
 * The inbox is the same for all: all are on one server, or there is only one attempt.
 */
bool dm_redis_write_polls(const struct dm_writing *writing, struct dm_args *args)
{
    const struct dm_question *polls = writing->questions;
    int keys = 0, count = writing->count;

    for (int i = 0; i < count; i++)
        keys += dm_redis_count_keys(&polls[i]);
    if (!dm_redis_begin(args, writing->script, keys, 2 + count * 7, 2 + count * 4))
        return false;
    for (int i = 0; i < count; i++)
        dm_redis_put_all_keys(args, &polls[i]);
    dm_args_text(args, polls[0].place->inbox);
    dm_args_origin(args);
    for (int i = 0; i < count; i++)
        put_poll(args, writing->store, &polls[i], writing->texts[i].who);
    return true;
}

/* With a plus sign for a part of a quorum: see lua/renew.lua. */
static void put_token(struct dm_args *args, const struct dm_question *renewal)
{
    char *text = dm_args_room(args, 1);

    snprintf(text, DM_ARG_DIGITS, renewal->renew.is_part ? "+%" PRIu64 : "%" PRIu64, renewal->renew.token);
    dm_args_text(args, text);
}

/* The keys that the script renew does not declare; empty words instead of a condition's. */
static void put_other_keys(struct dm_args *args, const struct dm_question *renewal)
{
    for (int key = RENEW_KEYS; key < DM_KEY_COUNT; key++)
        dm_args_bytes(args, renewal->place->text[key], renewal->place->length[key]);
    if (renewal->condition)
        dm_redis_put_keys(args, renewal->condition, DM_COND_KEY_COUNT);
    for (int key = 0; !renewal->condition && key < DM_COND_KEY_COUNT; key++)
        dm_args_text(args, "");
}

/*
 * Only lock and state are declared as keys, because a node of a Cluster runs a script only if all its keys are there,
 * and the others come and go.
 */
bool dm_redis_write_renewals(const struct dm_writing *writing, struct dm_args *args)
{
    int count = writing->count;

    if (!dm_redis_begin(args, writing->script, count * RENEW_KEYS, count * 8, count * 3))
        return false;
    for (int i = 0; i < count; i++)
        dm_redis_put_keys(args, writing->questions[i].place, RENEW_KEYS);
    for (int i = 0; i < count; i++) {
        const struct dm_question *renewal = &writing->questions[i];
        char *text = writing->texts[i].who;

        write_crowd(dm_redis_write_hold(text, writing->store, renewal->thread, renewal->attempt, renewal->lease_ms,
                                        renewal->renew.mark),
                    renewal->crowd);
        dm_args_text(args, text);
        dm_args_number(args, renewal->lease_ms);
        dm_args_number(args, renewal->renew.depth);
        put_token(args, renewal);
        put_other_keys(args, renewal);
    }
    return true;
}
