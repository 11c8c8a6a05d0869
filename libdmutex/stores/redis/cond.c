/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The scripts of conditions.  A waiting attempt has six keys, the mutex's and the condition's, which are in one group.
 * So one script moves the attempt from one queue to the other, and no signal is lost in between.
 */
#include <stdio.h>
#include <string.h>

#include "stores/redis/parts.h"
#include "stores/redis/wire/reply.h"

/*
 * One script gives the hold back and waits, so no signal is lost in between.  The caller repeats the same call until
 * the server has said what became of the hold; the script recognises a repetition by the attempt.
 */
struct dm_answer dm_redis_cond_wait(struct dm_store *store, const struct dm_ask *ask, const struct dm_leaving *leaving,
                                    const struct dm_deadline *deadline, char ret_reason[DM_REASON_ROOM])
{
    struct dm_script script = SCRIPT(store, cond_wait);
    struct dm_identity hold, waiter;
    struct dm_args args;
    struct redisReply *reply = NULL;
    enum dm_verdict verdict;

    if (!dm_redis_begin(&args, script, dm_redis_count_keys(ask), 10, 6))
        return (struct dm_answer){ .verdict = dm_redis_no_memory(ret_reason) };
    dm_redis_identify(&hold, store, leaving->thread, leaving->attempt);
    dm_redis_write_hold(waiter.text, store, ask->thread, ask->attempt, ask->lease_ms, DM_MARK_NONE);
    dm_redis_put_all_keys(&args, ask);
    dm_args_text(&args, hold.text);
    dm_args_number(&args, leaving->end);
    dm_args_text(&args, waiter.text);
    dm_args_number(&args, ask->lease_ms);
    dm_args_number(&args, ask->seen);
    dm_args_number(&args, ask->request.serial);
    dm_args_text(&args, dm_redis_flag(ask->is_robust));
    dm_args_text(&args, leaving->mutex);
    dm_args_text(&args, ask->place->inbox);
    dm_args_origin(&args);
    verdict = dm_redis_run(store, &args, script, deadline, ret_reason, &reply);
    if (verdict != DM_SAYS_DONE)
        return (struct dm_answer){ .verdict = verdict };
    return dm_redis_answer_or_nonsense(reply, ret_reason);
}

/*
 * The last number of every answer says whether a signal came first; without an answer *ret_is_signalled is untouched.
 */
struct dm_answer dm_redis_cond_cancel(struct dm_store *store, const struct dm_ask *ask,
                                      const struct dm_deadline *deadline, bool *ret_is_signalled,
                                      char ret_reason[DM_REASON_ROOM])
{
    struct dm_script script = SCRIPT(store, cond_cancel);
    struct dm_identity identity;
    struct dm_args args;
    struct redisReply *reply = NULL;
    enum dm_verdict verdict;

    if (!dm_redis_begin(&args, script, dm_redis_count_keys(ask), 7, 5))
        return (struct dm_answer){ .verdict = dm_redis_no_memory(ret_reason) };
    dm_redis_write_hold(identity.text, store, ask->thread, ask->attempt, ask->lease_ms, DM_MARK_NONE);
    dm_redis_put_all_keys(&args, ask);
    dm_args_text(&args, identity.text);
    dm_args_number(&args, ask->lease_ms);
    dm_args_number(&args, ask->seen);
    dm_args_number(&args, ask->request.serial);
    dm_args_text(&args, dm_redis_flag(ask->is_robust));
    dm_args_text(&args, ask->place->inbox);
    dm_args_origin(&args);
    verdict = dm_redis_run(store, &args, script, deadline, ret_reason, &reply);
    if (verdict != DM_SAYS_DONE)
        return (struct dm_answer){ .verdict = verdict };
    if (reply->type == REDIS_REPLY_ARRAY && reply->elements > 0)
        *ret_is_signalled = dm_redis_number_at(reply, reply->elements - 1) == 1;
    return dm_redis_answer_or_nonsense(reply, ret_reason);
}

/* {bound, mutex}: accepts only a mutex's key in the registry's form. */
static bool read_bound(const struct redisReply *reply, struct dm_signalled *signalled)
{
    const struct redisReply *mutex = reply->elements == 2 ? reply->element[1] : NULL;

    if (!mutex || mutex->type != REDIS_REPLY_STRING || mutex->len < 2 || mutex->len >= sizeof signalled->mutex ||
        strlen(mutex->str) != mutex->len || (mutex->str[0] != 'n' && mutex->str[0] != 'a'))
        return false;
    signalled->verdict = DM_SAYS_BOUND;
    memcpy(signalled->mutex, mutex->str, mutex->len + 1);
    return true;
}

/* The words after `moved` in the answer of lua/cond_signal.lua, which also answers {none} and {bound, mutex}. */
enum { MOVED_UPTO = 1, MOVED_LEFT, MOVED_MORE };

static bool read_signalled(const struct redisReply *reply, struct dm_signalled *signalled)
{
    if (dm_reply_is(reply, "none"))
        return true;
    if (dm_reply_is(reply, "bound"))
        return read_bound(reply, signalled);
    signalled->upto = dm_redis_number_at(reply, MOVED_UPTO);
    signalled->has_left = dm_redis_number_at(reply, MOVED_LEFT) == 1;
    signalled->must_serve = dm_redis_number_at(reply, MOVED_MORE) == 1;
    return dm_reply_is(reply, "moved");
}

/*
 * Without the mutex's keys the script can only name the mutex: the caller must give the keys, but only the server knows
 * what the condition is bound to.  `upto` keeps a broadcast in several calls from waking waiters that came after the
 * first call.
 */
struct dm_signalled dm_redis_cond_signal(struct dm_store *store, const struct dm_signal *signal,
                                         const struct dm_deadline *deadline, char ret_reason[DM_REASON_ROOM])
{
    struct dm_signalled signalled = { 0 };
    struct dm_args args;
    struct redisReply *reply = NULL;

    if (!dm_redis_begin(&args, SCRIPT(store, cond_signal), DM_COND_KEY_COUNT + (signal->place ? DM_KEY_COUNT : 0), 5,
                        4)) {
        signalled.verdict = dm_redis_no_memory(ret_reason);
        return signalled;
    }
    dm_redis_put_keys(&args, signal->condition, DM_COND_KEY_COUNT);
    if (signal->place)
        dm_redis_put_keys(&args, signal->place, DM_KEY_COUNT);
    dm_args_text(&args, signal->mutex);
    dm_args_text(&args, signal->condition->inbox);
    dm_args_number(&args, (uint64_t)signal->most);
    if (signal->upto)
        dm_args_number(&args, signal->upto);
    else
        dm_args_text(&args, "");
    dm_args_origin(&args);
    signalled.verdict = dm_redis_run(store, &args, SCRIPT(store, cond_signal), deadline, ret_reason, &reply);
    if (signalled.verdict != DM_SAYS_DONE)
        return signalled;
    if (!read_signalled(reply, &signalled))
        signalled.verdict = dm_redis_nonsense(ret_reason);
    dm_reply_free(reply);
    return signalled;
}

/* "look" deletes nothing: the keys of a named condition belong to all processes, and expire by themselves. */
enum dm_verdict dm_redis_cond_drop(struct dm_store *store, const struct dm_place *condition, bool is_anonymous,
                                   const struct dm_deadline *deadline, char ret_reason[DM_REASON_ROOM])
{
    struct dm_args args;

    if (!dm_redis_begin(&args, SCRIPT(store, cond_drop), DM_COND_KEY_COUNT, 1, 0))
        return dm_redis_no_memory(ret_reason);
    dm_redis_put_keys(&args, condition, DM_COND_KEY_COUNT);
    dm_args_text(&args, is_anonymous ? "delete" : "look");
    return dm_redis_run_for_number(store, &args, SCRIPT(store, cond_drop), DM_SAYS_BUSY, deadline, ret_reason);
}
