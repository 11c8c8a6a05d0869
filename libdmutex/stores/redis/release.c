/* SPDX-License-Identifier: BSD-2-Clause */
/* How an attempt leaves: cancel and release. */
#include <string.h>

#include "base/self.h"
#include "store/calls.h"
#include "stores/redis/parts.h"
#include "stores/redis/wire/reply.h"

/* Grants to nobody else: either confirms the caller's hold, or takes the caller out of the queue. */
struct dm_answer dm_redis_cancel(struct dm_store *store, const struct dm_ask *ask, const struct dm_deadline *deadline,
                                 char ret_reason[DM_REASON_ROOM])
{
    struct dm_script script = SCRIPT(store, cancel);
    struct dm_identity identity;
    struct dm_args args;
    redisReply *reply = NULL;
    enum dm_verdict verdict;

    if (!dm_redis_begin(&args, script, DM_KEY_COUNT, 4, 3))
        return (struct dm_answer){ .verdict = dm_redis_no_memory(ret_reason) };
    dm_redis_identify(&identity, store, ask->thread, ask->attempt);
    dm_redis_put_keys(&args, ask->place, DM_KEY_COUNT);
    dm_args_text(&args, identity.text);
    dm_args_number(&args, ask->lease_ms);
    dm_args_text(&args, dm_redis_flag(ask->is_robust));
    dm_args_origin(&args);
    verdict = dm_redis_run(store, &args, script, deadline, ret_reason, &reply);
    if (verdict != DM_SAYS_DONE)
        return (struct dm_answer){ .verdict = verdict };
    return dm_redis_answer_or_nonsense(reply, ret_reason);
}

/*
 * The texts of a release: the id of the attempt, and "-<how> <held ms> <thread> <label>", the text of the ended hold.
 */
struct release_texts {
    struct dm_identity identity;
    char ended[4 + 2 * DM_ARG_DIGITS + DM_LABEL_ROOM];
};

static char *write_ended(char *to, const struct dm_store *store, const struct dm_ask *ask, enum dm_end end)
{
    *to++ = '-';
    *to++ = (char)('0' + end);
    *to++ = ' ';
    to = dm_number_write(to, (uint64_t)ask->held_ms);
    *to++ = ' ';
    to = dm_number_write(to, dm_self_tid(ask->thread));
    *to++ = ' ';
    return stpcpy(to, dm_redis(store)->label);
}

/* Shared by the awaited and the posted release. */
static bool write_release(const struct dm_store *store, const struct dm_ask *ask, enum dm_end end,
                          struct release_texts *texts, struct dm_args *args)
{
    char *ended = texts->ended;

    if (!dm_redis_begin(args, SCRIPT(store, release), dm_redis_count_keys(ask), end == DM_END_UNLOCKED ? 4 : 5, 3))
        return false;
    args->is_for_ending = true;
    args->is_news_first = ask->is_contested;
    dm_redis_identify(&texts->identity, store, ask->thread, ask->attempt);
    dm_redis_put_all_keys(args, ask);
    dm_args_text(args, texts->identity.text);
    dm_args_bytes(args, ended, (size_t)(write_ended(ended, store, ask, end) - ended));
    dm_args_text(args, ask->place->inbox);
    dm_args_origin(args);
    if (end != DM_END_UNLOCKED)
        dm_args_number(args, end);
    return true;
}

/* "left" is DONE, too: the attempt waited, and no longer does. */
struct dm_answer dm_redis_read_release(const redisReply *reply, int index)
{
    struct dm_answer answer = { .verdict = DM_SAYS_NOTHING };

    (void)index;
    if (dm_reply_is(reply, "notowner"))
        answer.verdict = DM_SAYS_NOT_OWNER;
    else if (dm_reply_is(reply, "released") || dm_reply_is(reply, "left"))
        answer.verdict = DM_SAYS_DONE;
    answer.is_wanted = dm_reply_is(reply, "released") && dm_redis_number_at(reply, 1) != 0;
    return answer;
}

/* NOTHING without an answer: the release may have been executed; then a second one gets "notowner". */
struct dm_answer dm_redis_release(struct dm_store *store, const struct dm_ask *ask, enum dm_end end,
                                  const struct dm_deadline *deadline, char ret_reason[DM_REASON_ROOM])
{
    struct dm_answer answer = { .verdict = DM_SAYS_NOTHING };
    struct release_texts texts;
    struct dm_args args;
    redisReply *reply = NULL;

    if (!write_release(store, ask, end, &texts, &args)) {
        answer.verdict = dm_redis_no_memory(ret_reason);
        return answer;
    }
    answer.verdict = dm_redis_run(store, &args, SCRIPT(store, release), deadline, ret_reason, &reply);
    if (answer.verdict == DM_SAYS_DONE) {
        answer = dm_redis_read_release(reply, 0);
        dm_reply_free(reply);
    }
    return answer;
}

/* If it cannot be sent, opens the connection, so that even a process that makes no other call releases. */
bool dm_redis_post_release(struct dm_store *store, const struct dm_ask *ask, enum dm_end end, dm_answers_fn handler,
                           void *user)
{
    struct dm_posting *posting = dm_posting_new(store, DM_POSTS_RELEASE, dm_redis_read_release, 1, handler, user);
    struct release_texts texts;
    struct dm_args args;

    if (posting && write_release(store, ask, end, &texts, &args) && dm_posting_send(posting, &args, dm_node_post))
        return true;
    dm_posting_free(posting);
    dm_store_want(store, ask->place, DM_ASKS);
    return false;
}
