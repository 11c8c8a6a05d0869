/* SPDX-License-Identifier: BSD-2-Clause */
#include "check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "redis/keys.h"
#include "scripting.h"
#include "server.h"
#include "world.h"

#define WAITERS_MAX 64
#define IDS (1 << 14)
#define HOLDS_REMEMBERED 64

struct waiter {
    char id[80];
    uint64_t place; /* in the order of arrival, as seen here; 0: it came back to a place of before */
    bool is_live, is_robust;
    bool is_behind_cursor; /* not among those that were looked at in vain last time */
};

struct hold {
    uint64_t id, token;
};

/* What is known of a name. */
struct known {
    struct dm_keys *keys, *condition;
    char hold[80]; /* the id of the hold that the server has, "" none */
    uint64_t most_token, entered_token; /* since the last loss of data */
    uint64_t ever_token;                /* the highest there ever was */
    uint64_t lost_us; /* where the server's clock was when data were lost: behind it nothing is known */
    struct hold holds[HOLDS_REMEMBERED];
    int hold_count;
    bool is_hold_found; /* was there when data were lost: how it began is not known */
    uint64_t dead_hold; /* granted with the word that an owner died */
    bool was_unhealthy; /* before the script */
    int signals;        /* before the script: on their way to a waiter, or owed to one */
    bool had_sleeper;   /* before the script: a live one */
    struct waiter waiters[WAITERS_MAX]; /* before the script */
    int waiter_count;
    int64_t idle_since_ns;
};

static struct {
    struct known names[NAMES_MAX];
    int count;
    uint64_t over[IDS]; /* attempts that the server was told the end of */
    int over_count;
    struct arrival {
        uint64_t id, place;
    } arrivals[IDS]; /* one that meets another here is forgotten, and not compared */
    uint64_t last_place;
    int64_t forgiven_until_ns;
    bool is_due;
    bool is_torn; /* keys of a name do not fit each other, by no fault of the library */
    int locks;
} check;

void check_soon(void)
{
    check.is_due = true;
}

/* ---- I11: the library's lock --------------------------------------------------------------- */

/* By the linker's --wrap: here is where threads take turns. */
void __real_dm_state_lock(void);
void __real_dm_state_unlock(void);
void __wrap_dm_state_lock(void);
void __wrap_dm_state_unlock(void);

void __wrap_dm_state_lock(void)
{
    thread_preempt();
    __real_dm_state_lock();
    check.locks++;
}

void __wrap_dm_state_unlock(void)
{
    check.locks--;
    __real_dm_state_unlock();
}

void check_no_lock(const char *where)
{
    counters.checks++;
    if (check.locks)
        world_break("I11: %s waits with the state lock held", where);
}

/* ---- I1: who believes ---------------------------------------------------------------------- */

/* Names are "ng/x0", "ng/x1" ... */
static int name_of(const char *key)
{
    return key[0] == 'n' ? key[4] - '0' : -1;
}

static void check_believers(void)
{
    const struct dm_claim *believer[NAMES_MAX] = { NULL };
    int of_process[NAMES_MAX] = { 0 };

    for (struct process *process = processes(); process; process = process->next) {
        const struct dm_claim *claim = process->is_alive ? process->runtime.registry.claims : NULL;

        for (; claim; claim = claim->next) {
            int name = name_of(claim->name->key);

            if (!dm_attempt_is_certain(&claim->attempt, process_local_ns(process)))
                continue;
            if (believer[name])
                world_break("I1: p%d attempt %" PRIu64 " (token %" PRIu64 ") and p%d attempt %" PRIu64 " (token %" PRIu64
                            ") both own x%d",
                            of_process[name], believer[name]->attempt.serial, believer[name]->attempt.token,
                            process->number, claim->attempt.serial, claim->attempt.token, name);
            believer[name] = claim;
            of_process[name] = process->number;
        }
    }
}

void check_all(void)
{
    if (!check.is_due)
        return;
    check.is_due = false;
    counters.checks++;
    if (world_now() >= check.forgiven_until_ns)
        check_believers();
}

/* ---- ids ----------------------------------------------------------------------------------- */

static uint64_t hash_of(const char *bytes, size_t length)
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

static void note_over(struct text id)
{
    uint64_t *place = find_over(hash_of(id.bytes, id.length));

    if (!*place && ++check.over_count > IDS / 2) { /* the oldest are forgotten with the rest */
        memset(check.over, 0, sizeof check.over);
        check.over_count = 0;
        place = find_over(hash_of(id.bytes, id.length));
    }
    *place = hash_of(id.bytes, id.length);
}

/* ---- what the server has ------------------------------------------------------------------- */

static struct key *key_of(const struct dm_keys *keys, int which)
{
    return store_find(server_store(), (struct text){ keys->text[which], keys->length[which] });
}

static const char *field(const struct key *key, const char *name)
{
    const struct item *item = item_find(key, (struct text){ name, strlen(name) });

    return item ? item->value : "";
}

static void copy_id(char id[80], const char *hold)
{
    snprintf(id, 80, "%.*s", (int)strcspn(hold, " "), hold);
}

/* As lua/_serve.lua: heard of lately, and its inbox is there. */
static bool is_live(const char *id, const struct key *waiters, bool *ret_is_robust)
{
    unsigned long long request, lease, robust, heard;
    const char *said = field(waiters, id);
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
    uint64_t hash = hash_of(id, strlen(id));

    return check.arrivals[hash % IDS].id == hash ? check.arrivals[hash % IDS].place : 0;
}

static void note_arrival(const char *id, uint64_t place)
{
    uint64_t hash = hash_of(id, strlen(id));

    check.arrivals[hash % IDS] = (struct arrival){ hash, place };
}

/* Who is there now and was not before has just come. */
static void note_arrivals(const struct known *known, bool is_back)
{
    const struct key *queue = key_of(known->keys, DM_KEY_QUEUE);

    for (int i = 0; queue && i < queue->count; i++) {
        bool was_there = false;

        for (int j = 0; j < known->waiter_count && !was_there; j++)
            was_there = strcmp(known->waiters[j].id, queue->items[i].name) == 0;
        if (!was_there)
            note_arrival(queue->items[i].name, is_back ? 0 : ++check.last_place);
    }
}

/* The text behind `count` words. */
static const char *behind_words(const char *text, int count)
{
    for (; count > 0 && *text; count--) {
        text += strcspn(text, " ");
        text += *text == ' ';
    }
    return text;
}

/* Carried by waiters, carried by an owner that has not been heard of since, owed. */
static int count_signals(const struct known *known)
{
    const struct key *state = key_of(known->keys, DM_KEY_STATE), *waiters = key_of(known->keys, DM_KEY_WAITER);
    char debt[100];
    int count;

    snprintf(debt, sizeof debt, "debt %s", known->condition->text[DM_KEY_COND]);
    count = atoi(field(state, debt)) + (behind_words(field(state, "hold"), 2)[0] == '@');
    for (int i = 0; waiters && i < waiters->count; i++)
        count += behind_words(waiters->items[i].value, 5)[0] == '@';
    return count;
}

static bool has_live_sleeper(const struct known *known)
{
    const struct key *cond = key_of(known->condition, DM_KEY_COND), *sleepers = key_of(known->condition, DM_KEY_SLEEPER);
    bool is_robust;

    for (int i = 0; cond && i < cond->count; i++) {
        if (is_live(cond->items[i].name, sleepers, &is_robust))
            return true;
    }
    return false;
}

static void look_at_queue(struct known *known)
{
    const struct key *queue = key_of(known->keys, DM_KEY_QUEUE), *waiters = key_of(known->keys, DM_KEY_WAITER);

    const struct key *state = key_of(known->keys, DM_KEY_STATE);
    double cursor = strtod(field(state, "cursor"), NULL);

    known->was_unhealthy = field(state, "health")[0] != '\0';
    known->signals = count_signals(known);
    known->had_sleeper = has_live_sleeper(known);
    known->waiter_count = 0;
    for (int i = 0; queue && i < queue->count && i < WAITERS_MAX; i++) {
        struct waiter *waiter = &known->waiters[known->waiter_count++];

        snprintf(waiter->id, sizeof waiter->id, "%s", queue->items[i].name);
        waiter->place = place_of(waiter->id);
        waiter->is_robust = false;
        waiter->is_live = is_live(waiter->id, waiters, &waiter->is_robust);
        waiter->is_behind_cursor = queue->items[i].score > cursor;
    }
}

void check_before_script(void)
{
    for (int i = 0; i < check.count; i++)
        look_at_queue(&check.names[i]);
}

/* ---- I5: where an attempt is ------------------------------------------------------------------ */

static void check_members(const char *what, const struct key *set, const struct key *hash, int extra)
{
    int members = set ? set->count : 0, entries = hash ? hash->count : 0;

    for (int i = 0; i < members; i++) {
        if (!item_find(hash, (struct text){ set->items[i].name, set->items[i].name_length }))
            world_break("I5: %s has no entry in the %s", set->items[i].name, what);
    }
    for (int i = 0; i < entries && set; i++) {
        const struct item *item = &hash->items[i];

        if (strchr(item->name, ':') && !item_find(set, (struct text){ item->name, item->name_length }))
            world_break("I5: %s has an entry and is not in the %s", item->name, what);
    }
    if (!set && entries > extra)
        world_break("I5: %d entries and no %s", entries, what);
}

static void check_places(const struct known *known, const char *hold)
{
    const struct key *queue = key_of(known->keys, DM_KEY_QUEUE), *cond = key_of(known->condition, DM_KEY_COND);
    struct text id = { hold, strlen(hold) };

    check_members("queue", queue, key_of(known->keys, DM_KEY_WAITER), 0);
    check_members("condition", cond, key_of(known->condition, DM_KEY_SLEEPER), 2);
    if (hold[0] && item_find(queue, id))
        world_break("I5: %s owns and waits in the queue", hold);
    if (hold[0] && item_find(cond, id))
        world_break("I5: %s owns and waits on the condition", hold);
    for (int i = 0; queue && i < queue->count; i++) {
        if (item_find(cond, (struct text){ queue->items[i].name, queue->items[i].name_length }))
            world_break("I5: %s is in the queue and on the condition", queue->items[i].name);
    }
}

/* ---- I2, I4, I8, I9: a hold begins --------------------------------------------------------------- */

/*
 * The same hold with the same token may be seen again: put back by its owner.  With another token it
 * is a new hold, also of an attempt that held before, without having heard of it.
 */
static void check_token(struct known *known, int name, const char *id, uint64_t token)
{
    uint64_t hash = hash_of(id, strlen(id));

    for (int i = 0; i < HOLDS_REMEMBERED; i++) {
        if (known->holds[i].id == hash && known->holds[i].token == token)
            return;
    }
    if (token <= known->most_token && (uint64_t)server_now_us() > known->lost_us)
        world_break("I2: x%d goes to %s with token %" PRIu64 ", %" PRIu64 " was before", name, id, token, known->most_token);
    known->most_token = token;
    if (token > known->ever_token)
        known->ever_token = token;
    known->holds[known->hold_count++ % HOLDS_REMEMBERED] = (struct hold){ hash, token };
    counters.holds++;
}

static bool is_waiting(const struct known *known, const char *id)
{
    return item_find(key_of(known->keys, DM_KEY_QUEUE), (struct text){ id, strlen(id) }) != NULL;
}

/*
 * Who came before and is alive goes before.  Who came just now came behind all.  Those before the
 * cursor were not alive at the last look, and are not looked at this time.
 */
static void check_order(const struct known *known, int name, const char *id)
{
    uint64_t place = UINT64_MAX;

    for (int i = 0; i < known->waiter_count; i++) {
        if (strcmp(known->waiters[i].id, id) == 0)
            place = known->waiters[i].place; /* 0: before all, as far as is known */
    }
    for (int i = 0; i < known->waiter_count; i++) {
        const struct waiter *waiter = &known->waiters[i];

        if (waiter->is_live && waiter->is_behind_cursor && waiter->place && waiter->place < place && is_waiting(known, waiter->id))
            world_break("I8: x%d goes to %s before %s", name, id, waiter->id);
    }
}

/* The call that is being checked. */
struct script_call {
    const char *name;
    const struct text *keys;
    int key_count;
    const struct text *arguments;
    int count;
    bool is_back; /* brings an arrival number back, or a hold */
};

static bool is_id(struct text text, const char *id)
{
    return text.length == strlen(id) && memcmp(text.bytes, id, text.length) == 0;
}

/* Releases that an acquire names: "<thread>:<attempt>:<how>" of the same process. */
static bool is_named(const struct script_call *call, const char *id)
{
    size_t uuid = strcspn(id, ":") + 1;

    if (strcmp(call->name, "acquire") != 0 || strncmp(call->arguments[0].bytes, id, uuid) != 0)
        return false;
    for (int i = 10; i < call->count; i++) {
        if (call->arguments[i].length == strlen(id + uuid) + 2 &&
            memcmp(call->arguments[i].bytes, id + uuid, strlen(id + uuid)) == 0)
            return true;
    }
    return false;
}

/* The call gave this hold back. */
static bool is_given_back(const struct script_call *call, const char *id)
{
    bool is_first = strcmp(call->name, "release") == 0 || strcmp(call->name, "cond_wait") == 0;

    return (is_first && is_id(call->arguments[0], id)) || is_named(call, id);
}

/* Whether who owns now is robust: -1 not known. */
static int is_next_robust(const struct known *known, const struct script_call *call, const char *id)
{
    for (int i = 0; i < known->waiter_count; i++) {
        if (strcmp(known->waiters[i].id, id) == 0)
            return known->waiters[i].is_robust;
    }
    if (strcmp(call->name, "acquire") == 0 && strncmp(call->arguments[1].bytes, id, strlen(id)) == 0)
        return call->arguments[5].bytes[0] == '1';
    return -1;
}

/* I9: a hold that ended without a word is a death, and one that ended with one is none. */
static void check_death(const struct known *known, const struct script_call *call, int name, const char *id)
{
    bool is_dead = strcmp(field(key_of(known->keys, DM_KEY_STATE), "health"), "1") == 0;
    bool was_over = *find_over(hash_of(known->hold, strlen(known->hold))) != 0;

    if (!known->hold[0] || known->is_hold_found)
        return;
    if (is_dead && !known->was_unhealthy && was_over)
        world_break("I9: %s gave x%d back and is taken for dead", known->hold, name);
    if (id[0] && strcmp(id, known->hold) != 0 && !is_dead && !was_over && !is_given_back(call, known->hold) &&
        is_next_robust(known, call, id) == 1)
        world_break("I9: x%d goes to %s, which is not told that %s died", name, id, known->hold);
}

static void check_new_hold(struct known *known, const struct script_call *call, int name, const char *id)
{
    bool is_put_back = strcmp(call->name, "renew") == 0 && world_now() < check.forgiven_until_ns;
    const struct key *state = key_of(known->keys, DM_KEY_STATE);
    uint64_t hash = hash_of(id, strlen(id));
    bool is_dead = strcmp(field(state, "health"), "1") == 0;

    world_note("x%d goes to %s", name, id);
    if (*find_over(hash))
        world_break("I4: x%d goes to %s, which was given back", name, id);
    if (!is_put_back) /* by one of two owners, after a fault that makes them */
        check_token(known, name, id, strtoull(field(state, "token"), NULL, 10));
    if (!call->is_back && !check.is_torn)
        check_order(known, name, id);
    known->is_hold_found = false;
    known->dead_hold = is_dead ? hash : 0;
}

/* ---- I10: what is left ------------------------------------------------------------------------- */

static void check_lifetimes(const struct dm_keys *keys, int count)
{
    for (int i = 0; i < count; i++) {
        const struct key *key = key_of(keys, i);

        if (key && key->expires_ms < 0)
            world_break("I10: %s never expires", keys->text[i]);
    }
}

/* ---- after a script ---------------------------------------------------------------------------- */

static void check_owner(const struct known *known, int name, const char *hold)
{
    const struct key *lock = key_of(known->keys, DM_KEY_LOCK);

    if (!lock)
        return;
    if (lock->count != 1)
        world_break("I1: the lock of x%d has %d owners", name, lock->count);
    else if (strncmp(lock->items[0].name, hold, lock->items[0].name_length) != 0 ||
             hold[lock->items[0].name_length] != ':')
        world_break("I1: the lock of x%d is %s's, its hold %s", name, lock->items[0].name, hold);
}

static void note_idle(struct known *known)
{
    bool is_idle = false;

    look_at_queue(known);
    for (int i = 0; i < known->waiter_count; i++)
        is_idle = is_idle || known->waiters[i].is_live;
    if (!is_idle || key_of(known->keys, DM_KEY_LOCK))
        known->idle_since_ns = DM_NEVER;
    else if (known->idle_since_ns == DM_NEVER)
        known->idle_since_ns = world_now();
}

int64_t check_idle_since(int name)
{
    note_idle(&check.names[name]);
    return check.names[name].idle_since_ns;
}

static bool begins_with_id(struct text text, const char *id)
{
    size_t length = strlen(id);

    return text.length >= length && memcmp(text.bytes, id, length) == 0 && (text.length == length || text.bytes[length] == ' ');
}

/* The call asks about this attempt, and so its answer is "owned" if it owns. */
static bool is_about(const struct script_call *call, const char *id)
{
    if (strcmp(call->name, "acquire") == 0)
        return begins_with_id(call->arguments[1], id);
    if (strcmp(call->name, "cond_wait") == 0)
        return begins_with_id(call->arguments[2], id);
    if (strcmp(call->name, "cancel") == 0 || strcmp(call->name, "cond_cancel") == 0)
        return begins_with_id(call->arguments[0], id);
    for (int i = 3; strcmp(call->name, "poll") == 0 && i < call->count; i += 6) {
        if (begins_with_id(call->arguments[i], id))
            return true;
    }
    return false;
}

/* I1: "owned" promises a whole lease from now. */
static void check_lease(const struct known *known, const struct script_call *call, int name, const char *hold)
{
    const struct key *lock = key_of(known->keys, DM_KEY_LOCK);
    int64_t lease_ms = strtoll(behind_words(field(key_of(known->keys, DM_KEY_STATE), "hold"), 1), NULL, 10);

    if (hold[0] && is_about(call, hold) && (!lock || lock->expires_ms < server_now_us() / 1000 + lease_ms))
        world_break("I1: %s is told that it owns x%d, and has no whole lease", hold, name);
}

/* I7: a signal ends with an owner that lives on, or gives the mutex back; else it goes to who sleeps. */
static void check_signals(const struct known *known, const struct script_call *call, int name)
{
    bool has_sleepers = key_of(known->condition, DM_KEY_COND) != NULL;
    bool is_unusable = strcmp(field(key_of(known->keys, DM_KEY_STATE), "health"), "2") == 0;

    if (strcmp(call->name, "cond_signal") == 0 && call->key_count == 6 && call->arguments[3].length == 0 &&
        is_id(call->keys[0], known->condition->text[DM_KEY_COND]) && known->had_sleeper && !is_unusable &&
        count_signals(known) <= known->signals)
        world_break("I7: a signal of c%d reaches nobody, and a live waiter was there", name);
    if (!has_sleepers || is_unusable || count_signals(known) >= known->signals || strcmp(call->name, "renew") == 0)
        return;
    if (!known->hold[0] || !is_given_back(call, known->hold))
        world_break("I7: %d signals of c%d are on their way after %s, %d were before", count_signals(known), name, call->name,
                    known->signals);
}

static void check_name(struct known *known, int name, const struct script_call *call)
{
    char hold[80];

    copy_id(hold, field(key_of(known->keys, DM_KEY_STATE), "hold"));
    counters.checks++;
    if (!check.is_torn) {
        check_owner(known, name, hold);
        check_places(known, hold);
        check_lifetimes(known->keys, DM_KEY_COUNT);
        check_lifetimes(known->condition, DM_COND_KEY_COUNT);
    }
    if (!check.is_torn) {
        check_signals(known, call, name);
        check_lease(known, call, name, hold);
    }
    check_death(known, call, name, hold);
    if (hold[0] && strcmp(hold, known->hold) != 0)
        check_new_hold(known, call, name, hold);
    memcpy(known->hold, hold, sizeof hold);
    note_arrivals(known, call->is_back);
}

void check_after_script(int script, const struct text *keys, int key_count, const struct text *arguments,
                        int argument_count)
{
    struct script_call call = { scripting_name(script), keys, key_count, arguments, argument_count, false };

    call.is_back = strcmp(call.name, "renew") == 0 ||
                   (strcmp(call.name, "acquire") == 0 && argument_count > 7 && arguments[7].length > 0);
    for (int i = 0; i < check.count; i++)
        check_name(&check.names[i], i, &call);
    if (strcmp(call.name, "release") == 0)
        note_over(arguments[0]);
    check_soon();
}

/* ---- what is forgiven ------------------------------------------------------------------------------ */

/* What the server has now is where the checks begin again. */
static void begin_again(struct known *known)
{
    const struct key *queue = key_of(known->keys, DM_KEY_QUEUE);

    copy_id(known->hold, field(key_of(known->keys, DM_KEY_STATE), "hold"));
    for (int i = 0; queue && i < queue->count; i++)
        note_arrival(queue->items[i].name, 0);
    known->is_hold_found = true;
    known->lost_us = (uint64_t)server_now_us();
    if (known->lost_us < known->ever_token)
        known->lost_us = known->ever_token;
}

void check_forgive(enum forgiven what)
{
    if (what == DATA_BACK || what == DATA_GRACED) {
        memset(check.over, 0, sizeof check.over);
        check.over_count = 0;
    }
    check.is_torn = check.is_torn || what == DATA_TORN;
    if (what != DATA_GRACED)
        check.forgiven_until_ns = world_now() + LEASE_MAX_MS * MS * 5 / 4;
    for (int i = 0; i < check.count && what != CLOCK_STEPPED; i++)
        begin_again(&check.names[i]);
}

/* ---- what threads say ---------------------------------------------------------------------------- */

void check_entered(int name, const struct dm_claim *claim)
{
    struct known *known = &check.names[name];
    char id[80];
    uint64_t hash;

    snprintf(id, sizeof id, "%s:%" PRIu64 ":%" PRIu64, process_current()->runtime.ident.uuid, claim->attempt.thread,
             claim->attempt.serial);
    hash = hash_of(id, strlen(id));
    if (claim->attempt.token <= known->entered_token && claim->attempt.token > known->lost_us &&
        world_now() >= check.forgiven_until_ns)
        world_break("I2: x%d is entered with token %" PRIu64 " after %" PRIu64, name, claim->attempt.token,
                    known->entered_token);
    known->entered_token = claim->attempt.token;
    if (strcmp(known->hold, id) == 0 && claim->attempt.is_robust && !known->is_hold_found &&
        claim->attempt.is_owner_dead != (known->dead_hold == hash))
        world_break("I9: %s owns x%d and is told %s death", id, name, claim->attempt.is_owner_dead ? "a" : "no");
    check_soon();
}

void check_lost(const char *name, uint64_t token)
{
    world_note("lost %s %" PRIu64, name, token);
    counters.losses++;
}

/* ---- beginning and end ------------------------------------------------------------------------------ */

void check_begin(int names)
{
    memset(&check, 0, sizeof check);
    check.count = names;
    for (int i = 0; i < names; i++) {
        char name[24];

        snprintf(name, sizeof name, "g/x%d", i);
        check.names[i].keys = dm_keys_new("d", name, false);
        name[2] = 'c';
        check.names[i].condition = dm_keys_new_condition("d", NULL, name, false);
        check.names[i].idle_since_ns = DM_NEVER;
    }
}

void check_end(void)
{
    for (int i = 0; i < check.count; i++) {
        free(check.names[i].keys);
        free(check.names[i].condition);
    }
}

bool check_is_torn(void)
{
    return check.is_torn;
}
