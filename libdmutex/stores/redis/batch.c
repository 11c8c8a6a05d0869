/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Polls and renewals, up to DM_BATCH in one request.  On one server a request is one script call; in a Cluster one
 * script call for each name, in a row, because keys of a call must be in one slot.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stores/redis/parts.h"
#include "stores/redis/wire/reply.h"

/* Keys of a mutex that the script renew declares: the first two. */
#define RENEW_KEYS 2

/* Identifies an attempt, with its label and a crowd, in one text or in two. */
struct text {
    char bytes[sizeof(struct dm_identity) + 2 * DM_ARG_DIGITS * (DM_CROWD_TOLD + 1)];
};

/* Writes `count` of the questions, from `first` on.  `texts`: room for `count`, borrowed by the arguments. */
typedef bool write_fn(const struct dm_store *store, const void *questions, int first, int count, struct text *texts,
                      struct dm_args *args);

/* ---- sending ----------------------------------------------------------------------------- */

/*
 * One script call for each question, in one write: all are of one lane, which is a node.  A part that cannot be sent is
 * left out: other parts may go to other nodes, ahead of their slots.  Once all parts are sent, the posting is no longer
 * ours.
 */
static bool post_each(struct dm_posting *posting, write_fn *write, const void *questions, struct text *text)
{
    const struct dm_store *store = posting->store;
    struct dm_member *member = dm_fleet_of_slot(&dm_redis(store)->fleet, posting->parts[0].place->slot);
    int left_out = 0;
    struct dm_args args;

    if (!member)
        return false;
    dm_node_hold(&member->node);
    for (int i = 0, count = posting->count; i < count; i++) {
        if (!write(store, questions, i, 1, text, &args) ||
            !dm_posting_send_part(posting, i, &args, dm_node_post_quietly))
            left_out++;
    }
    dm_node_let_go(&member->node);
    return left_out == 0 || dm_posting_leave_out(posting, left_out);
}

static bool post_at_once(struct dm_posting *posting, write_fn *write, const void *questions, struct text *texts)
{
    struct dm_args args;

    return write(posting->store, questions, 0, posting->count, texts, &args) &&
           dm_posting_send(posting, &args, dm_node_post_quietly);
}

/*
 * Posts quietly, because the caller holds the state lock, under which it chose the questions.  The texts are on the
 * heap, because a hundred of them would not fit a small stack; they are freed once the command is formatted.
 */
static bool post(struct dm_posting *posting, write_fn *write, const void *questions)
{
    struct text *texts;
    bool is_posted;

    if (!posting)
        return false;
    texts = malloc((size_t)(posting->parts ? 1 : posting->count) * sizeof *texts);
    is_posted = texts && (posting->parts ? post_each : post_at_once)(posting, write, questions, texts);
    if (!is_posted)
        dm_posting_free(posting);
    free(texts);
    return is_posted;
}

/* Adds " COUNT:THREAD+MS,THREAD+MS" to a label. */
static void write_crowd(char *to, const struct dm_crowd *crowd)
{
    if (!crowd || !crowd->count)
        return;
    to += sprintf(to, " %u", crowd->count);
    for (unsigned i = 0; i < crowd->told; i++)
        to += sprintf(to, "%c%" PRIu64 "+%" PRId64, i ? ',' : ':', crowd->first[i].thread, crowd->first[i].waited_ms);
}

/* ---- polls ------------------------------------------------------------------------------- */

/*
 * An attempt has four keys or six, so the number of its keys goes along, for the script to find the next attempt's.
 * The inbox is the same for all: all are on one server, or there is only one attempt.
 */
static bool write_polls(const struct dm_store *store, const void *questions, int first, int count, struct text *texts,
                        struct dm_args *args)
{
    const struct dm_ask *asks = (const struct dm_ask *)questions + first;
    int keys = 0;

    for (int i = 0; i < count; i++)
        keys += dm_redis_count_keys(&asks[i]);
    if (!dm_redis_begin(args, SCRIPT(store, poll), keys, 2 + count * 7, 2 + count * 4))
        return false;
    for (int i = 0; i < count; i++)
        dm_redis_put_all_keys(args, &asks[i]);
    dm_args_text(args, asks[0].place->inbox);
    dm_args_origin(args);
    for (int i = 0; i < count; i++) {
        char *label = dm_redis_write_id(texts[i].bytes, store, asks[i].thread, asks[i].attempt) + 1;

        label[-1] = '\0';
        write_crowd(stpcpy(label, dm_redis(store)->label), asks[i].crowd);
        dm_args_text(args, texts[i].bytes);
        dm_args_number(args, asks[i].request.serial);
        dm_args_number(args, asks[i].lease_ms);
        dm_args_text(args, dm_redis_flag(asks[i].is_robust));
        dm_args_number(args, asks[i].seen);
        dm_args_number(args, (uint64_t)dm_redis_count_keys(&asks[i]));
        dm_args_text(args, label);
    }
    return true;
}

bool dm_redis_post_poll(struct dm_store *store, const struct dm_ask *asks, int count, dm_answers_fn handler, void *user)
{
    struct dm_posting *posting = dm_posting_new(store, DM_POSTS_POLL, dm_redis_read_poll, count, handler, user);

    for (int i = 0; posting && posting->parts && i < count; i++)
        posting->parts[i].place = asks[i].place;
    return post(posting, write_polls, asks);
}

/* Element 0 is the server's clock; one answer per attempt follows. */
struct dm_answer dm_redis_read_poll(const redisReply *reply, int index)
{
    struct dm_answer answer = { .verdict = DM_SAYS_NOTHING };

    if (reply->type == REDIS_REPLY_ARRAY && (size_t)index + 1 < reply->elements &&
        dm_redis_read_answer(reply->element[index + 1], &answer))
        answer.store_us = dm_redis_time_at(reply, 0);
    return answer;
}

/* ---- renewals ---------------------------------------------------------------------------- */

/* With a plus sign for a part of a quorum: see lua/renew.lua. */
static void put_token(struct dm_args *args, const struct dm_renewal *renewal)
{
    char *text = dm_args_room(args, 1);

    snprintf(text, DM_ARG_DIGITS, renewal->is_part ? "+%" PRIu64 : "%" PRIu64, renewal->token);
    dm_args_text(args, text);
}

/* The keys that the script renew does not declare; empty words instead of a condition's. */
static void put_other_keys(struct dm_args *args, const struct dm_renewal *renewal)
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
static bool write_renewals(const struct dm_store *store, const void *questions, int first, int count,
                           struct text *texts, struct dm_args *args)
{
    const struct dm_renewal *renewals = (const struct dm_renewal *)questions + first;

    if (!dm_redis_begin(args, SCRIPT(store, renew), count * RENEW_KEYS, count * 8, count * 3))
        return false;
    for (int i = 0; i < count; i++)
        dm_redis_put_keys(args, renewals[i].place, RENEW_KEYS);
    for (int i = 0; i < count; i++) {
        char *end = dm_redis_write_hold(texts[i].bytes, store, renewals[i].thread, renewals[i].attempt,
                                        renewals[i].lease_ms, renewals[i].mark);

        write_crowd(end, renewals[i].crowd);
        dm_args_text(args, texts[i].bytes);
        dm_args_number(args, renewals[i].lease_ms);
        dm_args_number(args, renewals[i].depth);
        put_token(args, &renewals[i]);
        put_other_keys(args, &renewals[i]);
    }
    return true;
}

bool dm_redis_post_renew(struct dm_store *store, const struct dm_renewal *renewals, int count, dm_answers_fn handler,
                         void *user)
{
    struct dm_posting *posting = dm_posting_new(store, DM_POSTS_RENEW, dm_redis_read_renew, count, handler, user);

    for (int i = 0; posting && posting->parts && i < count; i++)
        posting->parts[i].place = renewals[i].place;
    return post(posting, write_renewals, renewals);
}

/*
 * The server says 1 to the present owner, or 2 if others wait; only 0 is a loss.  A reply without a number is no
 * answer, and the hold goes on until it is no longer certain.
 */
struct dm_answer dm_redis_read_renew(const redisReply *reply, int index)
{
    struct dm_answer answer = { .verdict = DM_SAYS_NOTHING };
    uint64_t state;

    if (!dm_reply_number(reply, (size_t)index + 1, &state) || state > 2)
        return answer;
    answer.verdict = state ? DM_SAYS_OWNED : DM_SAYS_UNKNOWN;
    answer.has_waiter = state == 2;
    answer.store_us = dm_redis_time_at(reply, 0);
    return answer;
}

/* One hold, with the script for many: the same promises, and no second text. */
struct dm_answer dm_redis_renew(struct dm_store *store, const struct dm_renewal *renewal,
                                const struct dm_deadline *deadline, char ret_reason[DM_REASON_ROOM])
{
    struct dm_answer answer = { .verdict = DM_SAYS_NOTHING };
    struct text text;
    struct dm_args args;
    redisReply *reply = NULL;

    if (!write_renewals(store, renewal, 0, 1, &text, &args)) {
        answer.verdict = dm_redis_no_memory(ret_reason);
        return answer;
    }
    answer.verdict = dm_redis_run(store, &args, SCRIPT(store, renew), deadline, ret_reason, &reply);
    if (answer.verdict == DM_SAYS_DONE) {
        answer = dm_redis_read_renew(reply, 0);
        dm_reply_free(reply);
    }
    return answer;
}
