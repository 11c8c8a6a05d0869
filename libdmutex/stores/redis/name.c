/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests about a name, whoever holds it: query, declare consistent, break by force, destroy.  None of them is ordered
 * among the attempts' requests: each acts on the server's present state, in one script.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/self.h"
#include "stores/redis/parts.h"
#include "stores/redis/wire/reply.h"

/*
 * One key is enough: the mark is a field of `state`, and the lock need not be checked, because `hold` names the holder
 * until another one comes.
 */
bool dm_redis_write_consistent(const struct dm_writing *writing, struct dm_args *args)
{
    const struct dm_question *question = writing->questions;

    if (!dm_redis_begin(args, writing->script, 1, 1, 0))
        return false;
    dm_redis_identify(writing->texts->who, writing->store, question->thread, question->attempt);
    dm_args_bytes(args, question->place->text[DM_KEY_STATE], question->place->length[DM_KEY_STATE]);
    dm_args_text(args, writing->texts->who);
    return true;
}

/* Any number but 0 counts as 1: no script returns more. */
static bool read_flag(const redisReply *reply, enum dm_verdict zero, struct dm_answer *ret_answer)
{
    ret_answer->verdict = reply->integer == 0 ? zero : DM_SAYS_DONE;
    return reply->type == REDIS_REPLY_INTEGER;
}

bool dm_redis_read_consistent(const struct dm_reading *reading, struct dm_answer *ret_answer)
{
    return read_flag(reading->reply, DM_SAYS_UNKNOWN, ret_answer);
}

/* Nobody repeats this: a second call would break the next holder's hold (I3). */
bool dm_redis_write_force(const struct dm_writing *writing, struct dm_args *args)
{
    const struct dm_place *keys = writing->questions->place;

    if (!dm_redis_begin(args, writing->script, DM_KEY_COUNT, 2, 2))
        return false;
    dm_redis_put_keys(args, keys, DM_KEY_COUNT);
    dm_args_text(args, keys->inbox);
    dm_args_origin(args);
    return true;
}

/* The words of lua/force.lua. */
enum { BROKEN_MORE = 1 };

bool dm_redis_read_force(const struct dm_reading *reading, struct dm_answer *ret_answer)
{
    ret_answer->verdict = DM_SAYS_DONE;
    ret_answer->is_wanted = dm_redis_number_at(reading->reply, BROKEN_MORE) == 1;
    return dm_reply_is(reading->reply, "broken") || dm_reply_is(reading->reply, "free");
}

bool dm_redis_write_drop(const struct dm_writing *writing, struct dm_args *args)
{
    const struct dm_question *question = writing->questions;

    if (!dm_redis_begin(args, writing->script, DM_KEY_COUNT, 2, 0))
        return false;
    dm_redis_put_keys(args, question->place, DM_KEY_COUNT);
    dm_args_text(args, question->is_anonymous ? "delete" : "clean");
    dm_args_text(args, question->place->inbox);
    return true;
}

/* BUSY, which the script answers as 0, changes nothing on the server. */
bool dm_redis_read_drop(const struct dm_reading *reading, struct dm_answer *ret_answer)
{
    return read_flag(reading->reply, DM_SAYS_BUSY, ret_answer);
}

const char *dm_redis_text_at(const redisReply *reply, size_t index)
{
    const redisReply *element = index < reply->elements ? reply->element[index] : NULL;

    return element && element->type == REDIS_REPLY_STRING ? element->str : "";
}

/* "COUNT:THREAD+MS,THREAD+MS" */
static void read_crowd(const char *words, struct dm_crowd *ret_crowd)
{
    struct dm_crowd crowd = { 0 };
    uint64_t thread;
    int64_t waited_ms;
    int used;

    if (words[strspn(words, "0123456789:+,")] || sscanf(words, "%9u%n", &crowd.count, &used) != 1)
        return; /* sscanf() would accept a sign */
    for (words += used; crowd.told < DM_CROWD_TOLD; words += used) {
        if (sscanf(words, "%*1[:,]%19" SCNu64 "+%18" SCNd64 "%n", &thread, &waited_ms, &used) != 2)
            break;
        crowd.first[crowd.told].thread = dm_self_tid(thread);
        crowd.first[crowd.told++].waited_ms = waited_ms;
    }
    if (crowd.told <= crowd.count)
        *ret_crowd = crowd;
}

void dm_redis_read_label(const char *label, uint32_t *ret_pid, char ret_host[65], char ret_program[33],
                         struct dm_crowd *ret_crowd)
{
    int used = 0;

    *ret_crowd = (struct dm_crowd){ 0 };
    if (sscanf(label, "%" SCNu32 " %64s %32s %n", ret_pid, ret_host, ret_program, &used) == 3 && used)
        read_crowd(label + used, ret_crowd);
}

void dm_redis_read_shown(const redisReply *reply, dmutex_info_t *ret_info, struct dm_crowd *ret_crowd)
{
    dmutex_info_t info = { .struct_size = sizeof info };
    const char *owner = dm_redis_text_at(reply, DM_SHOWN_OWNER);

    info.token = dm_redis_number_at(reply, DM_SHOWN_TOKEN);
    info.waiters = (uint32_t)dm_redis_number_at(reply, DM_SHOWN_WAITERS);
    info.health = (uint32_t)dm_redis_number_at(reply, DM_SHOWN_HEALTH);
    if (owner[0]) {
        info.locked = 1;
        info.hold_count = (uint32_t)dm_redis_number_at(reply, DM_SHOWN_HOLD_COUNT);
        info.remaining_ms = dm_redis_span_at(reply, DM_SHOWN_REMAINING_MS);
        sscanf(owner, "%32[^:]:%" SCNu64, info.owner, &info.thread);
        info.thread = dm_self_tid(info.thread);
        dm_redis_read_label(dm_redis_text_at(reply, DM_SHOWN_LABEL), &info.pid, info.host, info.program, ret_crowd);
        info.waiters += ret_crowd->count;
    }
    *ret_info = info;
}

/* The words of lua/info.lua, in its order. */
enum { INFO_NOW_US = DM_SHOWN_COUNT, INFO_GRANTED_US, INFO_POSITION, INFO_GRACE_MS, INFO_COUNT };

/*
 * Reads the answer of lua/info.lua.  A token is the time of its grant, unless the server's clock was set back after
 * that.
 */
static void read_info(const redisReply *reply, struct dm_info *ret_info)
{
    int64_t now_us = dm_redis_time_at(reply, INFO_NOW_US), granted_us = dm_redis_time_at(reply, INFO_GRANTED_US);
    struct dm_crowd crowd = { 0 };

    dm_redis_read_shown(reply, &ret_info->shown, &crowd);
    ret_info->crowd = crowd.count;
    ret_info->held_ms = now_us > granted_us ? (now_us - granted_us) / 1000 : 0;
    ret_info->position = dm_redis_number_at(reply, INFO_POSITION);
    ret_info->grace_ms = dm_redis_span_at(reply, INFO_GRACE_MS);
}

/* Writes nothing on the server, so even a replica or a full server would run the script. */
bool dm_redis_write_info(const struct dm_writing *writing, struct dm_args *args)
{
    const struct dm_question *question = writing->questions;

    if (!dm_redis_begin(args, writing->script, 3, 3, 3))
        return false;
    dm_redis_identify(writing->texts->who, writing->store, question->thread, question->attempt);
    dm_redis_put_keys(args, question->place, 3);
    dm_args_text(args, question->attempt ? writing->texts->who : "");
    dm_args_number(args, question->lease_ms);
    dm_args_origin(args);
    return true;
}

bool dm_redis_read_info(const struct dm_reading *reading, struct dm_answer *ret_answer)
{
    const redisReply *reply = reading->reply;

    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != INFO_COUNT)
        return false;
    read_info(reply, &reading->ret_more->info);
    ret_answer->verdict = DM_SAYS_DONE;
    return true;
}
