/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The scripts of conditions.  A waiting attempt has six keys, the mutex's and the condition's, which are in one group.
 * So one script moves the attempt from one queue to the other, and no signal is lost in between.
 */
#include <string.h>

#include "stores/redis/parts.h"
#include "stores/redis/wire/reply.h"

/*
 * One script gives the hold back and waits, so no signal is lost in between.  The caller repeats the same call until
 * the server has said what became of the hold; the script recognises a repetition by the attempt.
 */
bool dm_redis_write_cond_wait(const struct dm_writing *writing, struct dm_args *args)
{
    const struct dm_question *question = writing->questions;
    const struct dm_leaving *leave = &question->leave;
    char *hold = writing->texts->other, *waiter = writing->texts->who;

    if (!dm_redis_begin(args, writing->script, dm_redis_count_keys(question), 10, 6))
        return false;
    dm_redis_identify(hold, writing->store, leave->thread, leave->attempt);
    dm_redis_write_hold(waiter, writing->store, question->thread, question->attempt, question->lease_ms, DM_MARK_NONE);
    dm_redis_put_all_keys(args, question);
    dm_args_text(args, hold);
    dm_args_number(args, leave->end);
    dm_args_text(args, waiter);
    dm_args_number(args, question->lease_ms);
    dm_args_number(args, question->seen);
    dm_args_number(args, question->request.serial);
    dm_args_text(args, dm_redis_flag(question->is_robust));
    dm_args_text(args, leave->mutex);
    dm_args_text(args, question->place->inbox);
    dm_args_origin(args);
    return true;
}

bool dm_redis_write_cond_cancel(const struct dm_writing *writing, struct dm_args *args)
{
    const struct dm_question *question = writing->questions;
    char *waiter = writing->texts->who;

    if (!dm_redis_begin(args, writing->script, dm_redis_count_keys(question), 7, 5))
        return false;
    dm_redis_write_hold(waiter, writing->store, question->thread, question->attempt, question->lease_ms, DM_MARK_NONE);
    dm_redis_put_all_keys(args, question);
    dm_args_text(args, waiter);
    dm_args_number(args, question->lease_ms);
    dm_args_number(args, question->seen);
    dm_args_number(args, question->request.serial);
    dm_args_text(args, dm_redis_flag(question->is_robust));
    dm_args_text(args, question->place->inbox);
    dm_args_origin(args);
    return true;
}

/* The last number of every answer says whether a signal came first. */
bool dm_redis_read_cond_cancel(const struct dm_reading *reading, struct dm_answer *ret_answer)
{
    const redisReply *reply = reading->reply;

    if (!dm_redis_read_attempt(reading, ret_answer))
        return false;
    ret_answer->is_signalled =
        reply->type == REDIS_REPLY_ARRAY && reply->elements > 0 && dm_redis_number_at(reply, reply->elements - 1) == 1;
    return true;
}

/*
 * Without the mutex's keys the script can only name the mutex: the caller must give the keys, but only the server knows
 * what the condition is bound to.  `upto` keeps a broadcast in several calls from waking waiters that came after the
 * first call.
 */
bool dm_redis_write_cond_signal(const struct dm_writing *writing, struct dm_args *args)
{
    const struct dm_question *question = writing->questions;

    if (!dm_redis_begin(args, writing->script, DM_COND_KEY_COUNT + (question->place ? DM_KEY_COUNT : 0), 5, 4))
        return false;
    dm_redis_put_keys(args, question->condition, DM_COND_KEY_COUNT);
    if (question->place)
        dm_redis_put_keys(args, question->place, DM_KEY_COUNT);
    dm_args_text(args, question->signal.mutex);
    dm_args_text(args, question->condition->inbox);
    dm_args_number(args, (uint64_t)question->signal.most);
    if (question->signal.upto)
        dm_args_number(args, question->signal.upto);
    else
        dm_args_text(args, "");
    dm_args_origin(args);
    return true;
}

/* {bound, mutex}: accepts only a mutex's key in the registry's form. */
static bool read_bound(const struct dm_reading *reading, struct dm_answer *ret_answer)
{
    const redisReply *reply = reading->reply, *mutex = reply->elements == 2 ? reply->element[1] : NULL;

    if (!mutex || mutex->type != REDIS_REPLY_STRING || mutex->len < 2 || mutex->len >= DM_MUTEX_KEY_ROOM ||
        strlen(mutex->str) != mutex->len || (mutex->str[0] != 'n' && mutex->str[0] != 'a'))
        return false;
    ret_answer->verdict = DM_SAYS_BOUND;
    memcpy(reading->ret_more->mutex, mutex->str, mutex->len + 1);
    return true;
}

/* The words after `moved` in the answer of lua/cond_signal.lua, which also answers {none} and {bound, mutex}. */
enum { MOVED_UPTO = 1, MOVED_LEFT, MOVED_MORE };

bool dm_redis_read_cond_signal(const struct dm_reading *reading, struct dm_answer *ret_answer)
{
    const redisReply *reply = reading->reply;

    if (dm_reply_is(reply, "bound"))
        return read_bound(reading, ret_answer);
    ret_answer->verdict = DM_SAYS_DONE;
    if (dm_reply_is(reply, "none"))
        return true;
    if (!dm_reply_is(reply, "moved"))
        return false;
    reading->ret_more->upto = dm_redis_number_at(reply, MOVED_UPTO);
    ret_answer->has_left = dm_redis_number_at(reply, MOVED_LEFT) == 1;
    ret_answer->is_wanted = dm_redis_number_at(reply, MOVED_MORE) == 1;
    return true;
}

/* "look" deletes nothing: the keys of a named condition belong to all processes, and expire by themselves. */
bool dm_redis_write_cond_drop(const struct dm_writing *writing, struct dm_args *args)
{
    const struct dm_question *question = writing->questions;

    if (!dm_redis_begin(args, writing->script, DM_COND_KEY_COUNT, 1, 0))
        return false;
    dm_redis_put_keys(args, question->condition, DM_COND_KEY_COUNT);
    dm_args_text(args, question->is_anonymous ? "delete" : "look");
    return true;
}
