/* SPDX-License-Identifier: BSD-2-Clause */
#include "random_calls.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "../unit/random.h"
#include "stores/redis/wire/scripts.h"

void call_add(struct call *call, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(call->room[call->count], sizeof call->room[0], format, arguments);
    va_end(arguments);
    call->words[call->count] = call->room[call->count];
    call->count++;
}

const char *call_say(const char *word, int64_t now_us, char room[CALL_ROOM])
{
    size_t length = strlen(CALL_NOW);

    if (strncmp(word, CALL_NOW, length) != 0)
        return word;
    snprintf(room, CALL_ROOM, "%" PRId64 "%s", now_us, word + length);
    return room;
}

const char *call_any_of(const char *const *words, unsigned count)
{
    return words[random_below(count)];
}

const char *const call_keys[] = { "d:{g}:lock:x",   "d:{g}:state:x", "d:{g}:queue:x",
                                  "d:{g}:waiter:x", "d:{g}:cond:c",  "d:{g}:sleeper:c" };

/* An attempt of one of three processes; only the process "a" has an inbox. */
struct who {
    const char *uuid;
    unsigned thread, attempt;
};

static void add_keys(struct call *call, int count)
{
    for (int i = 0; i < count; i++)
        call_add(call, "%s", call_keys[i]);
    call->keys = count;
}

static void add_id(struct call *call, const struct who *who)
{
    call_add(call, "%s:%u:%u", who->uuid, who->thread, who->attempt);
}

static void add_hold(struct call *call, const struct who *who)
{
    call_add(call, "%s:%u:%u 60000000 label of %s", who->uuid, who->thread, who->attempt, who->uuid);
}

#define RUN " 0123456789abcdef"

/* Adds the origin: the server is there since long, or since just now. */
static void add_origin(struct call *call)
{
    call_add(call, "%s", ANY("0" RUN, "0" RUN, CALL_NOW RUN));
}

static void call_acquire(struct call *call, const struct who *who)
{
    add_keys(call, 4);
    add_id(call, who);
    call_add(call, "60000000"), call_add(call, "%u 60000000 %u", 1 + random_below(3), random_below(2));
    call_add(call, "0"), call_add(call, "%s", ANY("try", "queue", "queue")), call_add(call, "d:inbox:");
    add_origin(call), call_add(call, "label of %s", who->uuid);
    if (random_below(4) == 0)
        call_add(call, "%u:%u:%u", 1 + random_below(2), 1 + random_below(4), random_below(2));
}

static void call_poll(struct call *call, const struct who *who)
{
    int keys = random_below(2) ? 6 : 4;

    add_keys(call, keys);
    call_add(call, "d:inbox:"), add_origin(call);
    add_id(call, who);
    call_add(call, "%u", 1 + random_below(3)), call_add(call, "60000000"), call_add(call, "%u", random_below(2));
    call_add(call, "0"), call_add(call, "%d", keys), call_add(call, "label of %s", who->uuid);
}

static void call_cond_wait(struct call *call, const struct who *who)
{
    struct who next = { who->uuid, who->thread, 1 + random_below(4) };

    add_keys(call, 6);
    add_id(call, who);
    call_add(call, "%s", ANY("0", "0", "0", "2")), add_hold(call, &next), call_add(call, "60000000"),
        call_add(call, "0");
    call_add(call, "1"), call_add(call, "%u", random_below(2)), call_add(call, "ng/x"), call_add(call, "d:inbox:");
    add_origin(call);
}

static void call_cond_cancel(struct call *call, const struct who *who)
{
    add_keys(call, 6);
    add_hold(call, who);
    call_add(call, "60000000"), call_add(call, "0"), call_add(call, "2"), call_add(call, "%u", random_below(2)),
        call_add(call, "d:inbox:");
    add_origin(call);
}

static void call_cond_signal(struct call *call, const struct who *who)
{
    bool is_known = random_below(4);

    (void)who;
    call_add(call, "%s", call_keys[4]), call_add(call, "%s", call_keys[5]);
    for (int i = 0; is_known && i < 4; i++)
        call_add(call, "%s", call_keys[i]);
    call->keys = call->count;
    call_add(call, "%s", is_known ? "ng/x" : ""), call_add(call, "d:inbox:"), call_add(call, "%s", ANY("1", "256")),
        call_add(call, "%s", "");
    add_origin(call);
}

static void call_release(struct call *call, const struct who *who)
{
    static const int ends[] = { 0, 0, 0, 1, 1, 2 };
    int how = ends[random_below(6)];

    add_keys(call, random_below(2) ? 6 : 4);
    add_id(call, who);
    call_add(call, "-%d 17 2 label of %s", how, who->uuid), call_add(call, "d:inbox:");
    add_origin(call);
    if (how)
        call_add(call, "%d", how);
}

static void call_renew(struct call *call, const struct who *who)
{
    add_keys(call, 2);
    call_add(call, "%s:%u:%u 60000000 %slabel of %s", who->uuid, who->thread, who->attempt, ANY("", "+ ", "- ", "- "),
             who->uuid);
    call_add(call, "60000000"), call_add(call, "%u", 1 + random_below(2)), call_add(call, "5");
    call_add(call, "%s", call_keys[2]), call_add(call, "%s", call_keys[3]);
    for (int key = 4, has_condition = random_below(2); key < 6; key++)
        call_add(call, "%s", has_condition ? call_keys[key] : "");
}

static void call_cancel(struct call *call, const struct who *who)
{
    add_keys(call, 4);
    add_id(call, who);
    call_add(call, "60000000"), call_add(call, "%u", random_below(2));
    add_origin(call);
}

static void call_consistent(struct call *call, const struct who *who)
{
    call_add(call, "%s", call_keys[1]);
    call->keys = 1;
    add_id(call, who);
}

static void call_force(struct call *call, const struct who *who)
{
    (void)who;
    add_keys(call, 4);
    call_add(call, "d:inbox:"), call_add(call, "0" RUN);
}

static void call_drop(struct call *call, const struct who *who)
{
    (void)who;
    add_keys(call, 4);
    call_add(call, "%s", ANY("clean", "clean", "delete"));
    call_add(call, "d:inbox:");
}

static void call_cond_drop(struct call *call, const struct who *who)
{
    (void)who;
    call_add(call, "%s", call_keys[4]), call_add(call, "%s", call_keys[5]);
    call->keys = 2;
    call_add(call, "%s", ANY("delete", "look"));
}

static void call_info(struct call *call, const struct who *who)
{
    add_keys(call, 3);
    add_id(call, who);
    call_add(call, "60000000");
    add_origin(call);
}

static const struct {
    const char *name, *text;
    void (*make)(struct call *call, const struct who *who);
} calls[] = {
    { "acquire", dm_lua_acquire, call_acquire },
    { "acquire", dm_lua_acquire, call_acquire },
    { "release", dm_lua_release, call_release },
    { "release", dm_lua_release, call_release },
    { "poll", dm_lua_poll, call_poll },
    { "poll", dm_lua_poll, call_poll },
    { "cond_wait", dm_lua_cond_wait, call_cond_wait },
    { "cond_wait", dm_lua_cond_wait, call_cond_wait },
    { "cond_signal", dm_lua_cond_signal, call_cond_signal },
    { "cond_cancel", dm_lua_cond_cancel, call_cond_cancel },
    { "renew", dm_lua_renew, call_renew },
    { "cancel", dm_lua_cancel, call_cancel },
    { "consistent", dm_lua_consistent, call_consistent },
    { "force", dm_lua_force, call_force },
    { "drop", dm_lua_drop, call_drop },
    { "cond_drop", dm_lua_cond_drop, call_cond_drop },
    { "info", dm_lua_info, call_info },
};

/* The usual acquire or release, of the attempt "PROCESS:2:3". */
static const char *make_usual(struct call *call, const char *process, bool is_acquire, const char **ret_text)
{
    add_keys(call, 4);
    call_add(call, "%s:2:3", process);
    if (is_acquire) {
        call_add(call, "60000000"), call_add(call, "1 60000000 0"), call_add(call, "0");
        call_add(call, "queue"), call_add(call, "d:inbox:"), call_add(call, "0" RUN);
        call_add(call, "label of %s", process);
    } else {
        call_add(call, "-0 17 2 label of %s", process), call_add(call, "d:inbox:"), call_add(call, "0" RUN);
    }
    *ret_text = is_acquire ? dm_lua_acquire : dm_lua_release;
    return is_acquire ? "acquire" : "release";
}

/* Two handoffs, one call at a time, which random calls make too rarely: the waiter of the second one waits alone. */
#define TURN 8
#define BETWEEN_TURNS 30 /* calls, on average */

static const char *make_handoff(struct call *call, const char **ret_text)
{
    static unsigned step;
    const char *name;

    if (step == 0 && random_below(BETWEEN_TURNS))
        return NULL;
    name = make_usual(call, step % 2 ? "a" : "c", step % 4 < 2, ret_text);
    step = (step + 1) % TURN;
    return name;
}

const char *call_make(struct call *call, const char **ret_text)
{
    const char *name = make_handoff(call, ret_text);
    struct who who = { ANY("a", "b", "c"), 1 + random_below(2), 1 + random_below(3) };
    unsigned which = random_below(sizeof calls / sizeof calls[0]);

    if (name)
        return name;
    calls[which].make(call, &who);
    *ret_text = calls[which].text;
    return calls[which].name;
}
