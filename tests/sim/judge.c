/* SPDX-License-Identifier: BSD-2-Clause */
#include "check_parts.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scripting.h"
#include "server.h"
#include "world.h"

/* ---- I5: places of an attempt ----------------------------------------------------------------- */

static void check_members(const char *what, const struct key *set, const struct key *hash)
{
    for (int i = 0; set && i < set->count; i++) {
        if (!item_find(hash, (struct text){ set->items[i].name, set->items[i].name_length }))
            world_break("I5: %s has no entry in the %s", set->items[i].name, what);
    }
}

static void check_places(const struct known *known, const char *hold)
{
    const struct key *queue = look_key(known->keys, DM_KEY_QUEUE), *cond = look_key(known->condition, DM_KEY_COND);
    struct text id = { hold, strlen(hold) };
    int waiters = look_count_waiters(known);
    char waiter[80];

    check_members("queue", queue, look_key(known->keys, DM_KEY_WAITER));
    check_members("condition", cond, look_key(known->condition, DM_KEY_SLEEPER));
    if (!known->has_revived && look_has_orphans(known))
        world_break("I5: an entry of %s is in no queue and on no condition", known->keys->text[DM_KEY_WAITER]);
    if (queue && waiters > queue->count)
        world_break("I5: a waiter of %s is alone beside a queue", known->keys->text[DM_KEY_STATE]);
    if (hold[0] && look_waits(known, hold))
        world_break("I5: %s owns and waits in the queue", hold);
    if (hold[0] && item_find(cond, id))
        world_break("I5: %s owns and waits on the condition", hold);
    for (int i = 0; i < waiters; i++) {
        look_waiter(known, i, waiter);
        if (item_find(cond, (struct text){ waiter, strlen(waiter) }))
            world_break("I5: %s is in the queue and on the condition", waiter);
    }
}

/* ---- I2, I4, I8, I9: a hold begins --------------------------------------------------------------- */

/*
 * A known hold with the known token may be seen again: put back by its owner.  With another token the hold
 * is new, also for an attempt that had a hold before and did not hear of the hold.
 */
static const struct hold *find_hold(const struct known *known, uint64_t id, uint64_t token)
{
    for (int i = 0; i < HOLDS_REMEMBERED; i++) {
        if (known->holds[i].id == id && known->holds[i].token == token)
            return &known->holds[i];
    }
    return NULL;
}

static void check_token(struct known *known, int name, const char *id, uint64_t token, bool is_dead)
{
    if (token <= known->most_token && server_now_token() > known->lost_token)
        world_break("I2: x%d goes to %s with token %" PRIu64 ", %" PRIu64 " was before", name, id, token,
                    known->most_token);
    known->most_token = token;
    if (token > known->ever_token)
        known->ever_token = token;
    known->holds[known->hold_count++ % HOLDS_REMEMBERED] = (struct hold){ look_hash(id, strlen(id)), token, is_dead };
    counters.holds++;
}

/*
 * A live waiter that came earlier goes first.  An attempt that has just come is after all waiters.  Waiters before the
 * cursor were dead when last checked; no script checks such a waiter again before it polls.
 */
static void check_order(const struct known *known, int name, const char *id)
{
    uint64_t place = UINT64_MAX;

    for (int i = 0; i < known->waiter_count; i++) {
        if (strcmp(known->waiters[i].id, id) == 0)
            place = known->waiters[i].place; /* 0: before all waiters, as far as known */
    }
    for (int i = 0; i < known->waiter_count; i++) {
        const struct waiter *waiter = &known->waiters[i];

        if (waiter->is_live && waiter->is_behind_cursor && waiter->place && waiter->place < place &&
            look_waits(known, waiter->id))
            world_break("I8: x%d goes to %s before %s", name, id, waiter->id);
    }
}

/* The checked call. */
struct script_call {
    const char *name;
    const struct text *keys;
    int key_count;
    const struct text *arguments;
    int count;
    bool is_back; /* brings an arrival number back, or a hold */
};

/* True if an acquire names the release of `id`: "<thread>:<attempt>:<how>" of the same process. */
static bool is_named(const struct script_call *call, const char *id)
{
    size_t uuid = strcspn(id, ":") + 1;

    if (strcmp(call->name, "acquire") != 0 || strncmp(call->arguments[0].bytes, id, uuid) != 0)
        return false;
    for (int i = LOOK_OWED; i < call->count; i++) {
        if (call->arguments[i].length == strlen(id + uuid) + 2 &&
            memcmp(call->arguments[i].bytes, id + uuid, strlen(id + uuid)) == 0)
            return true;
    }
    return false;
}

/* True if the call released the hold `id`. */
static bool is_given_back(const struct script_call *call, const char *id)
{
    bool is_first = strcmp(call->name, "release") == 0 || strcmp(call->name, "cond_wait") == 0;

    return (is_first && text_is(call->arguments[0], id)) || is_named(call, id);
}

/* "<request> <lease> <robust>" */
static bool is_robust_of(struct text words)
{
    return words.bytes[words.length - 1] == '1';
}

/* Whether the new owner `id` is robust; -1: not known. */
static int is_next_robust(const struct known *known, const struct script_call *call, const char *id)
{
    for (int i = 0; i < known->waiter_count; i++) {
        if (strcmp(known->waiters[i].id, id) == 0)
            return known->waiters[i].is_robust;
    }
    if (strcmp(call->name, "acquire") == 0 && strncmp(call->arguments[0].bytes, id, strlen(id)) == 0)
        return is_robust_of(call->arguments[LOOK_WORDS]);
    return -1;
}

static bool begins_with_id(struct text text, const char *id)
{
    size_t length = strlen(id);

    return text.length >= length && memcmp(text.bytes, id, length) == 0 &&
           (text.length == length || text.bytes[length] == ' ');
}

/* True if the call asks about the attempt `id`; then the answer to an owner is "owned". */
static bool is_about(const struct script_call *call, const char *id)
{
    if (strcmp(call->name, "acquire") == 0)
        return begins_with_id(call->arguments[0], id);
    if (strcmp(call->name, "cond_wait") == 0)
        return begins_with_id(call->arguments[2], id);
    if (strcmp(call->name, "cancel") == 0 || strcmp(call->name, "cond_cancel") == 0)
        return begins_with_id(call->arguments[0], id);
    for (int i = 2; strcmp(call->name, "poll") == 0 && i < call->count; i += 7) {
        if (begins_with_id(call->arguments[i], id))
            return true;
    }
    return false;
}

/* I9: with the mark "-", the end of the lease is no death. */
static void check_marked_end(const struct known *known, const struct script_call *call, int name, bool is_dead)
{
    if (is_dead && !known->was_unhealthy && !is_given_back(call, known->hold) && strcmp(call->name, "force") != 0)
        world_break("I9: the lease of %s has ended, and x%d has a death in spite of the mark", known->hold, name);
}

/*
 * I9: a hold that ended without a release is a death.  A released hold is no death, nor is a hold whose own attempt
 * asks again: its thread lives, and was not inside.
 */
static void check_death(const struct known *known, const struct script_call *call, int name, const char *id)
{
    bool is_dead = strcmp(look_field(look_key(known->keys, DM_KEY_STATE), "health"), "1") == 0;
    bool was_over = look_is_over(look_hash(known->hold, strlen(known->hold)));

    if (!known->hold[0] || known->is_hold_found)
        return;
    if (is_dead && !known->was_unhealthy && was_over)
        world_break("I9: %s gave x%d back and is taken for dead", known->hold, name);
    if (known->mark == '-')
        check_marked_end(known, call, name, is_dead);
    else if (id[0] && strcmp(id, known->hold) != 0 && !is_dead && !was_over && !is_given_back(call, known->hold) &&
             !is_about(call, known->hold) && is_next_robust(known, call, id) == 1)
        world_break("I9: x%d goes to %s, which is not told that %s died", name, id, known->hold);
}

/*
 * I8: no message grants the lock without an inbox to hear it; otherwise the next waiter waits for the end of a lease,
 * and gets a false death.
 */
static void check_hears(const struct script_call *call, int name, const char *id)
{
    if (!is_about(call, id) && !server_hears((struct text){ id, strcspn(id, ":") }))
        world_break("I8: x%d goes to %s, whose inbox is not there", name, id);
}

static void check_new_hold(struct known *known, const struct script_call *call, int name, const char *id)
{
    bool is_renewed = strcmp(call->name, "renew") == 0;
    bool is_put_back = is_renewed && world_now() < check.forgiven_until_ns;
    const struct key *state = look_key(known->keys, DM_KEY_STATE);
    uint64_t hash = look_hash(id, strlen(id)), token = strtoull(look_field(state, "token"), NULL, 10);
    const struct hold *before = find_hold(known, hash, token);
    bool is_dead = strcmp(look_field(state, "health"), "1") == 0;

    counters.put_back += is_renewed && look_key(known->condition, DM_KEY_COND);
    world_note("x%d goes to %s", name, id);
    if (look_is_over(hash) && !check.is_torn)
        world_break("I4: x%d goes to %s, which was given back", name, id);
    if (!is_put_back && !before) /* put back: by one of two owners, after a fault that makes two */
        check_token(known, name, id, token, is_dead);
    if (!call->is_back && !check.is_torn)
        check_order(known, name, id);
    if (!is_renewed)
        check_hears(call, name, id);
    known->is_hold_found =
        is_renewed && before && before->is_dead != is_dead; /* an older copy decides: reported or not */
    known->dead_hold = is_dead ? hash : 0;
}

/* I4: a release comes after all requests of its attempt, so no request puts the attempt into the queue again. */
static void check_over(const struct known *known, int name)
{
    char id[80];

    for (int i = 0; i < look_count_waiters(known); i++) {
        look_waiter(known, i, id);
        if (look_is_over(look_hash(id, strlen(id))))
            world_break("I4: %s waits for x%d, and was given back", id, name);
    }
}

/* ---- I10: keys left over ----------------------------------------------------------------------- */

static void check_lifetimes(const struct dm_place *keys, int count)
{
    for (int i = 0; i < count; i++) {
        const struct key *key = look_key(keys, i);

        if (key && key->expires_ms < 0)
            world_break("I10: %s never expires", keys->text[i]);
    }
}

/* ---- I6: the owner of a marked hold --------------------------------------------------------------- */

void check_told(struct text channel, struct text message)
{
    struct text uuid = { memrchr(channel.bytes, ':', channel.length), 0 };

    if (!server_is_judged() || !uuid.bytes || message.length < 7 || memcmp(message.bytes, "wanted ", 7) != 0 ||
        check.told_count == TOLD_MAX)
        return;
    uuid.length = channel.length - (size_t)(uuid.bytes - channel.bytes);
    snprintf(check.told[check.told_count++], sizeof check.told[0], "%.*s %.*s", (int)uuid.length - 1, uuid.bytes + 1,
             (int)message.length, message.bytes);
}

static bool is_told(const char *id)
{
    char expected[80];

    snprintf(expected, sizeof expected, "%.*s wanted %s", (int)strcspn(id, ":"), id, strrchr(id, ':') + 1);
    for (int i = 0; i < check.told_count; i++) {
        if (strcmp(check.told[i], expected) == 0)
            return true;
    }
    return false;
}

/*
 * The owner of a marked hold is notified of the first waiter, by the script that lets the waiter wait, and of no other.
 */
static void check_wanted(const struct known *known, int name, const char *id)
{
    if (!id[0] || strcmp(id, known->hold) != 0 || look_count_waiters(known) <= known->waiter_count)
        return;
    if (known->mark && known->waiter_count == 0 && !is_told(id))
        world_break("I6: %s keeps x%d, and is not told that another attempt waits", id, name);
    if ((!known->mark || known->waiter_count > 0) && is_told(id))
        world_break("I6: %s is told once more that another attempt waits for x%d", id, name);
}

/* ---- after a script ---------------------------------------------------------------------------- */

static void check_owner(const struct known *known, int name, const char *hold)
{
    const struct key *lock = look_key(known->keys, DM_KEY_LOCK);

    if (!lock)
        return;
    if (!hold[0])
        world_break("I1: the lock of x%d is held, and nobody holds it", name);
}

static void note_idle(struct known *known)
{
    bool is_idle = false;

    look_at_queue(known);
    for (int i = 0; i < known->waiter_count; i++)
        is_idle = is_idle || known->waiters[i].is_live;
    if (!is_idle || look_key(known->keys, DM_KEY_LOCK))
        known->idle_since_ns = DM_NEVER;
    else if (known->idle_since_ns == DM_NEVER)
        known->idle_since_ns = world_now();
}

int64_t check_idle_since(int name)
{
    note_idle(&check.names[name]);
    return check.names[name].idle_since_ns;
}

/*
 * True if a try gets "busy" in the grace, though the server's copy names the attempt as the owner: the lease of the
 * named hold has ended.
 */
static bool is_put_off(const struct script_call *call, const struct key *lock)
{
    return !lock && strcmp(call->name, "acquire") == 0 && call->arguments[LOOK_MANNER].bytes[0] == 't'; /* "try" */
}

/* I1: "owned" promises a whole lease from now. */
static void check_lease(const struct known *known, const struct script_call *call, int name, const char *hold)
{
    const struct key *lock = look_key(known->keys, DM_KEY_LOCK);
    int64_t lease_ms = strtoll(look_behind_words(look_hold(known), 1), NULL, 10);

    if (hold[0] && is_about(call, hold) && !is_put_off(call, lock) &&
        (!lock || lock->expires_ms < server_now_us() / 1000 + lease_ms))
        world_break("I1: %s is told that it owns x%d, and has no whole lease", hold, name);
}

/* I7: a signal ends with an owner that lives on or releases the mutex; otherwise the signal goes to a sleeper. */
static void check_signals(const struct known *known, const struct script_call *call, int name)
{
    bool has_sleepers = look_key(known->condition, DM_KEY_COND) != NULL;
    bool is_unusable = strcmp(look_field(look_key(known->keys, DM_KEY_STATE), "health"), "2") == 0;

    if (strcmp(call->name, "cond_signal") == 0 && call->key_count == 6 && call->arguments[3].length == 0 &&
        text_is(call->keys[0], known->condition->text[DM_KEY_COND]) && known->had_sleeper && !is_unusable &&
        look_count_signals(known) <= known->signals)
        world_break("I7: a signal of c%d reaches nobody, and a live waiter was there", name);
    if (!has_sleepers || is_unusable || look_count_signals(known) >= known->signals)
        return;
    if (!known->hold[0] || !is_given_back(call, known->hold))
        world_break("I7: %d signals of c%d are on their way after %s, %d were before", look_count_signals(known), name,
                    call->name, known->signals);
}

static void check_name(struct known *known, int name, const struct script_call *call)
{
    char hold[80];

    known->has_revived = known->has_revived && look_has_orphans(known);
    look_copy_id(hold, look_hold(known));
    counters.checks++;
    if (!check.is_torn) {
        check_owner(known, name, hold);
        check_places(known, hold);
        check_over(known, name);
        check_lifetimes(known->keys, DM_KEY_COUNT);
        check_lifetimes(known->condition, DM_COND_KEY_COUNT);
        check_signals(known, call, name);
        check_lease(known, call, name, hold);
        check_wanted(known, name, hold);
    }
    check_death(known, call, name, hold);
    if (hold[0] && strcmp(hold, known->hold) != 0)
        check_new_hold(known, call, name, hold);
    memcpy(known->hold, hold, sizeof hold);
    look_note_arrivals(known, call->is_back);
}

void check_late_script(int script, const struct text *arguments)
{
    if (strcmp(scripting_name(script), "acquire") == 0)
        look_forget_over(arguments[0]);
}

void check_after_script(int script, const struct text *keys, int key_count, const struct text *arguments,
                        int argument_count)
{
    struct script_call call = { scripting_name(script), keys, key_count, arguments, argument_count, false };

    check_soon();
    if (!server_is_judged())
        return;
    call.is_back = strcmp(call.name, "renew") == 0 ||
                   (strcmp(call.name, "acquire") == 0 && isdigit((unsigned char)arguments[LOOK_MANNER].bytes[0]));
    for (int i = 0; i < check.count; i++)
        check_name(&check.names[i], i, &call);
    if (strcmp(call.name, "release") == 0)
        look_note_over(arguments[0]);
}
