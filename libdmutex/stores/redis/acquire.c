/* SPDX-License-Identifier: BSD-2-Clause */
/* Acquire: the caller waits for the answer, or it is posted for a quorum. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "stores/redis/parts.h"
#include "stores/redis/wire/reply.h"

/* Numbers in the text of a pending release: thread, attempt, end. */
#define OWED_NUMBERS 3

/* The arguments of an acquire. */
struct acquiring {
    const struct dm_ask *ask;
    bool may_queue;
    const struct dm_owed *owed;
    int owed_count;
};

/* "<request> <lease> <robust>", as a waiter's data begin, in the room of three numbers. */
static void put_words(struct dm_args *args, const struct dm_ask *ask)
{
    char *text = dm_args_room(args, 3), *end = dm_number_write(text, ask->request.serial);

    *end++ = ' ';
    end = dm_number_write(end, ask->lease_ms);
    *end++ = ' ';
    *end++ = ask->is_robust ? '1' : '0';
    dm_args_bytes(args, text, (size_t)(end - text));
}

/*
 * In the order of ARGV in lua/acquire.lua, which has names for all of them.  The origin is filled in when the command
 * is written for a server.
 */
static void put_acquire(struct dm_args *args, const struct dm_store *store, const struct dm_ask *ask, bool may_queue,
                        const struct dm_identity *identity)
{
    dm_redis_put_all_keys(args, ask);
    dm_args_text(args, identity->text);
    dm_args_number(args, ask->lease_ms);
    put_words(args, ask);
    dm_args_number(args, ask->seen);
    if (may_queue && ask->arrival)
        dm_args_number(args, ask->arrival);
    else
        dm_args_text(args, may_queue ? "queue" : "try");
    dm_args_text(args, ask->place->inbox);
    dm_args_origin(args);
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

/* Shared by the awaited and the posted acquire.  Numbers: lease, three words, seen, arrival, two of the origin. */
static bool write_acquire(const struct dm_store *store, const struct acquiring *acquiring, struct dm_identity *identity,
                          struct dm_args *args)
{
    const struct dm_ask *ask = acquiring->ask;
    int owed_count = acquiring->owed_count;

    if (!dm_redis_begin(args, SCRIPT(store, acquire), dm_redis_count_keys(ask), 8 + owed_count,
                        8 + OWED_NUMBERS * owed_count))
        return false;
    dm_redis_identify(identity, store, ask->thread, ask->attempt);
    put_acquire(args, store, ask, acquiring->may_queue, identity);
    for (int i = 0; i < owed_count; i++)
        put_owed(args, &acquiring->owed[i]);
    return true;
}

/* The identity is borrowed by the arguments until dm_redis_run() has formatted them, so it stands on this stack. */
struct dm_answer dm_redis_acquire(struct dm_store *store, const struct dm_ask *ask, bool may_queue,
                                  const struct dm_owed *owed, int owed_count, const struct dm_deadline *deadline,
                                  char ret_reason[DM_REASON_ROOM])
{
    const struct acquiring acquiring = { ask, may_queue, owed, owed_count };
    struct dm_identity identity;
    struct dm_args args;
    redisReply *reply = NULL;
    enum dm_verdict verdict;

    if (!write_acquire(store, &acquiring, &identity, &args))
        return (struct dm_answer){ .verdict = dm_redis_no_memory(ret_reason) };
    verdict = dm_redis_run(store, &args, SCRIPT(store, acquire), deadline, ret_reason, &reply);
    if (verdict != DM_SAYS_DONE)
        return (struct dm_answer){ .verdict = verdict };
    return dm_redis_answer_or_nonsense(reply, ret_reason);
}

/* An error is a verdict here, as for the awaited acquire, because a quorum counts the refusals of its servers. */
struct dm_answer dm_redis_read_acquire(const redisReply *reply, int index)
{
    struct dm_answer answer = { .verdict = DM_SAYS_NOTHING };
    enum dm_error_row row = dm_reply_row(reply);

    (void)index;
    if (row == DM_ROW_NO_MEMORY)
        answer.verdict = DM_SAYS_NO_MEMORY;
    else if (row == DM_ROW_REFUSED || (row == DM_ROW_NONE && !dm_redis_read_answer(reply, &answer)))
        answer.verdict = DM_SAYS_REFUSED;
    return answer;
}

bool dm_redis_post_acquire(struct dm_store *store, const struct dm_ask *ask, bool may_queue, const struct dm_owed *owed,
                           int owed_count, dm_answers_fn handler, void *user)
{
    struct dm_posting *posting = dm_posting_new(store, DM_POSTS_ACQUIRE, dm_redis_read_acquire, 1, handler, user);
    const struct acquiring acquiring = { ask, may_queue, owed, owed_count };
    struct dm_identity identity;
    struct dm_args args;

    if (posting && write_acquire(store, &acquiring, &identity, &args) &&
        dm_posting_send(posting, &args, dm_node_post_quietly))
        return true;
    dm_posting_free(posting);
    return false;
}
