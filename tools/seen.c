/* SPDX-License-Identifier: BSD-2-Clause */
#include "seen.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "say.h"

static void *need(void *memory)
{
    if (memory)
        return memory;
    say("out of memory");
    exit(EXIT_FAILURE);
}

/* The name after the letter of a key; for an anonymous condition, GROUP/~ID. */
static char *name_of(const char *key)
{
    const char *blank = key[0] == 'd' ? strchr(key, ' ') : NULL;
    char *name = NULL;

    if (!blank)
        return need(strdup(key + 1));
    if (asprintf(&name, "%s/%.*s", blank + 2, (int)(blank - key - 1), key + 1) < 0)
        name = NULL;
    return need(name);
}

struct seen seen_copy(const struct dm_seen *data)
{
    struct seen seen = { .data = *data };

    seen.key = need(strdup(data->key));
    seen.name = name_of(data->key);
    seen.mutex = need(strdup(data->mutex ? data->mutex : ""));
    seen.fault = data->fault ? need(strdup(data->fault)) : NULL;
    seen.waiters = need(calloc((size_t)data->waiter_count + 1, sizeof *seen.waiters));
    if (data->waiter_count)
        memcpy(seen.waiters, data->waiters, (size_t)data->waiter_count * sizeof *seen.waiters);
    seen.data.key = seen.key;
    seen.data.mutex = seen.mutex;
    seen.data.fault = seen.fault;
    seen.data.waiters = seen.waiters;
    if (data->info.shown.locked)
        keeper_find_job(&data->info.shown, seen.name, &seen.job);
    return seen;
}

void seen_clear(struct seen *seen)
{
    free(seen->key);
    free(seen->name);
    free(seen->mutex);
    free(seen->fault);
    free(seen->waiters);
}

bool seen_is_condition(const struct seen *seen)
{
    return seen->key[0] == 'c' || seen->key[0] == 'd';
}

bool seen_is_anonymous(const struct seen *seen)
{
    return seen->key[0] == 'a' || seen->key[0] == 'd';
}

const char *seen_party(uint32_t pid, const char *host, const char *program, char ret_text[SEEN_PARTY_ROOM])
{
    char clean_host[SAY_NAME_ROOM], clean_program[SAY_NAME_ROOM];

    snprintf(ret_text, SEEN_PARTY_ROOM, "%.200s (process %" PRIu32 ") on %.200s", say_name(program, clean_program), pid,
             say_name(host, clean_host));
    return ret_text;
}

const char *seen_holder(const struct seen *seen, char ret_text[SEEN_PARTY_ROOM])
{
    const dmutex_info_t *shown = &seen->data.info.shown;

    if (strcmp(shown->owner, "?") == 0)
        snprintf(ret_text, SEEN_PARTY_ROOM, "a holder of which the server has lost the record");
    else if (seen->job.pid)
        seen_party(seen->job.pid, shown->host, seen->job.program, ret_text);
    else
        seen_party(shown->pid, shown->host, shown->program, ret_text);
    return ret_text;
}

bool seen_is_silent(const struct dm_seen_waiter *waiter)
{
    return waiter->silent_ms > (int64_t)waiter->lease_ms;
}

unsigned seen_count_silent(const struct seen *seen)
{
    unsigned count = 0;

    for (int i = 0; i < seen->data.waiter_count; i++)
        count += seen_is_silent(&seen->waiters[i]);
    return count;
}

const char *seen_health(const struct seen *seen)
{
    static const char *const healths[] = { "clean", "dead", "notrecoverable" };
    uint32_t health = seen->data.info.shown.health;

    return health < sizeof healths / sizeof healths[0] ? healths[health] : "unknown";
}

/* ---- JSON -------------------------------------------------------------------------------- */

static void write_party(struct json *json, uint32_t pid, const char *host, const char *program)
{
    json_text(json, "program", program);
    json_number(json, "pid", pid);
    json_text(json, "host", host);
}

void seen_json_holder(struct json *json, const struct seen *seen)
{
    const dmutex_info_t *shown = &seen->data.info.shown;

    if (!shown->locked) {
        json_null(json, "holder");
        return;
    }
    json_open(json, "holder", '{');
    write_party(json, shown->pid, shown->host, shown->program);
    json_text(json, "process", shown->owner);
    json_number(json, "thread", (int64_t)shown->thread);
    if (seen->job.pid) {
        json_open(json, "job", '{');
        json_text(json, "program", seen->job.program);
        json_number(json, "pid", seen->job.pid);
        json_text(json, "path", seen->job.path);
        json_close(json);
    }
    json_close(json);
}

/* The token is the time of the grant by the store's clock, so every snapshot of a hold shows the same time. */
static void write_moment(struct json *json, uint64_t token)
{
    if (token)
        json_moment(json, "since", ((int64_t)token + DM_TOKEN_EPOCH_US) / 1000);
    else
        json_null(json, "since");
}

static void write_hold(struct json *json, const struct seen *seen)
{
    const dmutex_info_t *shown = &seen->data.info.shown;

    if (!shown->locked)
        return;
    write_moment(json, shown->token);
    json_number(json, "held_ms", seen->data.info.held_ms);
    json_number(json, "lease_ms", seen->data.lease_ms);
    json_number(json, "remaining_ms", shown->remaining_ms);
    json_number(json, "count", shown->hold_count);
    json_bool(json, "kept", seen->data.is_kept);
}

void seen_json_waiter(struct json *json, const struct dm_seen_waiter *waiter)
{
    write_party(json, waiter->pid, waiter->host, waiter->program);
    json_text(json, "process", waiter->owner);
    json_number(json, "thread", (int64_t)waiter->thread);
    json_number(json, "waited_ms", waiter->waited_ms);
    json_number(json, "silent_ms", waiter->silent_ms);
    json_number(json, "lease_ms", waiter->lease_ms);
}

static void write_queue(struct json *json, const struct seen *seen)
{
    json_number(json, "waiters", seen->data.info.shown.waiters);
    if (seen->data.waiter_count == 0)
        return;
    json_open(json, "queue", '[');
    for (int i = 0; i < seen->data.waiter_count; i++) {
        json_open(json, NULL, '{');
        seen_json_waiter(json, &seen->waiters[i]);
        json_close(json);
    }
    json_close(json);
}

void seen_json(struct json *json, const struct seen *seen)
{
    json_name(json, seen->name);
    json_text(json, "kind", seen_is_condition(seen) ? "condition" : "mutex");
    json_bool(json, "anonymous", seen_is_anonymous(seen));
    if (seen->fault) {
        json_text(json, "fault", seen->fault);
        return;
    }
    if (seen_is_condition(seen)) {
        if (*seen->mutex)
            json_text(json, "mutex", seen->mutex + 1);
        write_queue(json, seen);
        return;
    }
    json_bool(json, "locked", seen->data.info.shown.locked);
    seen_json_holder(json, seen);
    json_long(json, "token", seen->data.info.shown.token << DM_TOKEN_SHIFT);
    write_hold(json, seen);
    json_text(json, "health", seen_health(seen));
    write_queue(json, seen);
    json_number(json, "grace_ms", seen->data.info.grace_ms);
}
