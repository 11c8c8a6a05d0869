/* SPDX-License-Identifier: BSD-2-Clause */
#include "check_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server.h"
#include "world.h"

/* ---- ids ----------------------------------------------------------------------------------- */

uint64_t look_hash(const char *bytes, size_t length)
{
    uint64_t hash = UINT64_C(14695981039346656037);

    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)bytes[i]) * UINT64_C(1099511628211);
    return hash ? hash : 1;
}

static uint64_t *find_over(uint64_t id)
{
    uint64_t at = id % IDS;

    while (check.over[at] && check.over[at] != id)
        at = (at + 1) % IDS;
    return &check.over[at];
}

bool look_is_over(uint64_t id)
{
    return *find_over(id) != 0;
}

void look_note_over(struct text id)
{
    uint64_t *place = find_over(look_hash(id.bytes, id.length));

    if (!*place && ++check.over_count > IDS / 2) { /* forgets all, not only the oldest */
        memset(check.over, 0, sizeof check.over);
        check.over_count = 0;
        place = find_over(look_hash(id.bytes, id.length));
    }
    *place = look_hash(id.bytes, id.length);
}

void look_forget_over(struct text id)
{
    uint64_t *place = find_over(look_hash(id.bytes, id.length));

    if (*place)
        *place = UINT64_MAX; /* not 0: other ids may follow this place */
}

/* ---- the server's data --------------------------------------------------------------------- */

struct key *look_key(const struct dm_place *keys, int which)
{
    return store_find(server_store(), (struct text){ keys->text[which], keys->length[which] });
}

const char *look_field(const struct key *key, const char *name)
{
    const struct item *item = item_find(key, (struct text){ name, strlen(name) });

    return item ? item->value : "";
}

const char *look_hold(const struct known *known)
{
    const char *hold = look_field(look_key(known->keys, DM_KEY_STATE), "hold");

    return hold[0] == '-' ? "" : hold;
}

void look_copy_id(char id[80], const char *hold)
{
    snprintf(id, 80, "%.*s", (int)strcspn(hold, " "), hold);
}

/* The lone waiter, which is in `state` and in no queue, "<id> <words>", or "". */
static const char *lone_of(const struct known *known)
{
    const char *wanted = look_field(look_key(known->keys, DM_KEY_STATE), "wanted");

    return wanted[0] && wanted[1] ? wanted : "";
}

int look_count_waiters(const struct known *known)
{
    const struct key *queue = look_key(known->keys, DM_KEY_QUEUE);

    return (queue ? queue->count : 0) + (lone_of(known)[0] ? 1 : 0);
}

const char *look_waiter(const struct known *known, int number, char id[80])
{
    const struct key *queue = look_key(known->keys, DM_KEY_QUEUE);
    const char *lone = lone_of(known);

    if (queue && number < queue->count) {
        snprintf(id, 80, "%s", queue->items[number].name);
        return look_field(look_key(known->keys, DM_KEY_WAITER), id);
    }
    look_copy_id(id, lone);
    return look_behind_words(lone, 1);
}

bool look_waits(const struct known *known, const char *id)
{
    char other[80];

    for (int i = 0; i < look_count_waiters(known); i++) {
        look_waiter(known, i, other);
        if (strcmp(id, other) == 0)
            return true;
    }
    return false;
}

/* True if a waiter is live, as in lua/_serve.lua: heard from recently, and with an inbox on the server. */
static bool is_live(const char *id, const char *said, bool *ret_is_robust)
{
    unsigned long long request, lease, robust, heard;
    int64_t silent_us;
    struct text uuid = { id, strcspn(id, ":") };

    if (sscanf(said, "%llu %llu %llu %llu", &request, &lease, &robust, &heard) != 4)
        return false;
    *ret_is_robust = robust;
    silent_us = server_now_us() - (int64_t)heard;
    return silent_us <= (int64_t)(lease * 2000 / 3 > 1000000 ? lease * 2000 / 3 : 1000000) && server_hears(uuid);
}

static uint64_t place_of(const char *id)
{
    uint64_t hash = look_hash(id, strlen(id));

    return check.arrivals[hash % IDS].id == hash ? check.arrivals[hash % IDS].place : 0;
}

void look_note_arrival(const char *id, uint64_t place)
{
    uint64_t hash = look_hash(id, strlen(id));

    check.arrivals[hash % IDS] = (struct arrival){ hash, place };
}

void look_note_arrivals(const struct known *known, bool is_back)
{
    char id[80];

    for (int i = 0; i < look_count_waiters(known); i++) {
        bool was_there = false;

        look_waiter(known, i, id);
        for (int j = 0; j < known->waiter_count && !was_there; j++)
            was_there = strcmp(known->waiters[j].id, id) == 0;
        if (!was_there)
            look_note_arrival(id, is_back ? 0 : ++check.last_place);
    }
}

const char *look_behind_words(const char *text, int count)
{
    for (; count > 0 && *text; count--) {
        text += strcspn(text, " ");
        text += *text == ' ';
    }
    return text;
}

int look_count_signals(const struct known *known)
{
    const struct key *state = look_key(known->keys, DM_KEY_STATE), *waiters = look_key(known->keys, DM_KEY_WAITER);
    char debt[100];
    int count;

    snprintf(debt, sizeof debt, "debt %s", known->condition->text[DM_KEY_COND]);
    count = atoi(look_field(state, debt)) + (look_behind_words(look_hold(known), 2)[0] == '@');
    for (int i = 0; waiters && i < waiters->count; i++)
        count += look_behind_words(waiters->items[i].value, 5)[0] == '@';
    return count;
}

static bool has_live_sleeper(const struct known *known)
{
    const struct key *cond = look_key(known->condition, DM_KEY_COND),
                     *sleepers = look_key(known->condition, DM_KEY_SLEEPER);
    bool is_robust;

    for (int i = 0; cond && i < cond->count; i++) {
        if (is_live(cond->items[i].name, look_field(sleepers, cond->items[i].name), &is_robust))
            return true;
    }
    return false;
}

/* The mark of a hold, '+' or '-'; 0: none. */
static char mark_of(const char *hold)
{
    const char *label = look_behind_words(hold, 2);

    if (label[0] == '@')
        label = look_behind_words(label, 1);
    return (label[0] == '+' || label[0] == '-') && label[1] == ' ' ? label[0] : '\0';
}

void look_at_queue(struct known *known)
{
    const struct key *queue = look_key(known->keys, DM_KEY_QUEUE);
    const struct key *state = look_key(known->keys, DM_KEY_STATE);
    double cursor = strtod(look_field(state, "cursor"), NULL);

    known->was_unhealthy = look_field(state, "health")[0] != '\0';
    known->mark = mark_of(look_hold(known));
    known->signals = look_count_signals(known);
    known->had_sleeper = has_live_sleeper(known);
    known->waiter_count = 0;
    for (int i = 0; i < look_count_waiters(known) && i < WAITERS_MAX; i++) {
        struct waiter *waiter = &known->waiters[known->waiter_count++];
        const char *words = look_waiter(known, i, waiter->id);

        waiter->place = place_of(waiter->id);
        waiter->is_robust = false;
        waiter->is_live = is_live(waiter->id, words, &waiter->is_robust);
        waiter->is_behind_cursor = !queue || i >= queue->count || queue->items[i].score > cursor;
    }
}

void check_before_script(int script, const struct text *arguments, int argument_count)
{
    named_check(script, arguments, argument_count);
    if (!server_is_judged())
        return;
    check.told_count = 0;
    for (int i = 0; i < check.count; i++)
        look_at_queue(&check.names[i]);
}

static bool has_orphans(const struct key *set, const struct key *hash)
{
    for (int i = 0; hash && i < hash->count; i++) {
        const struct item *item = &hash->items[i];

        if (strchr(item->name, ':') && !item_find(set, (struct text){ item->name, item->name_length }))
            return true;
    }
    return false;
}

bool look_has_orphans(const struct known *known)
{
    return has_orphans(look_key(known->keys, DM_KEY_QUEUE), look_key(known->keys, DM_KEY_WAITER)) ||
           has_orphans(look_key(known->condition, DM_KEY_COND), look_key(known->condition, DM_KEY_SLEEPER));
}
