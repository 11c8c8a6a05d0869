/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The lock protocol is written twice: as scripts for Redis, and as registers/apply for all other stores.  Random calls
 * about one mutex and two conditions have the same answers and notices from both, and the same attempts hold, wait and
 * sleep in the same order afterwards.
 *
 * The two differ where doc/design/registers.md says so, and there this test asks both for what they have in common:
 *
 * - A hold dies with its lease in Redis, and with its session in a register.  Here a process dies by both at once.
 * - A signal that dies is a debt in Redis until a sleeper polls; so sleepers poll until no debt is left.
 * - In Redis the attempts leave a mutex that is not recoverable as they ask; so all ask at once.
 * - Tokens are the clock's in Redis.  While the clock stands still, both count by ones and have the same tokens; while
 *   it runs, both rise at the same steps.
 */
#include "../lib/testlib.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "../unit/random.h"
#include "random_calls.h"
#include "registers/apply.h"
#include "scripting.h"
#include "stores/redis/wire/scripts.h"

#define LEASE_MS DM_LEASE_MAX_MS
#define LEASE "3600000"
#define RUN " 0123456789abcdef"
#define IDENTITY 9
#define PROCESSES 4
#define ATTEMPTS 3
#define TEXT_ROOM 2000
#define NEWS_MAX 64
#define BROADCAST 256 /* the most that a script signals at once */

static int64_t now_us = INT64_C(1700000000000000);
static bool is_clock_running;
static int lives[PROCESSES]; /* a process that died comes again with another uuid */

/* An attempt, or nobody: attempt 0. */
struct who {
    int process, life;
    unsigned attempt;
};

static bool is_robust(const struct who *who)
{
    return who->attempt % 2;
}

static const char *uuid_of(const struct who *who, char room[16])
{
    snprintf(room, 16, "%c%d", 'a' + who->process, who->life);
    return room;
}

static const char *name_of(const struct who *who, char room[32])
{
    snprintf(room, 32, "%c%d:1:%u", 'a' + who->process, who->life, who->attempt);
    return room;
}

/* One call, to be made of both. */
struct call_of_both {
    enum dm_reg_act act;
    struct who who, next; /* next: the attempt of a wait */
    enum dm_end end;
    char condition; /* x, y */
    bool is_anonymous;
    int most;
    enum dm_reg_mark mark;
    struct who owed; /* attempt 0: nothing */
    enum dm_end owed_end;
};

/* Notices, as sorted texts. */
struct news {
    char text[NEWS_MAX][48];
    int count;
};

static void add_news(struct news *news, const char *format, ...) __attribute__((__format__(__printf__, 2, 3)));
static void add_news(struct news *news, const char *format, ...)
{
    va_list arguments;

    assert_true(news->count < NEWS_MAX);
    va_start(arguments, format);
    vsnprintf(news->text[news->count++], sizeof news->text[0], format, arguments);
    va_end(arguments);
}

static int compare_news(const void *one, const void *other)
{
    return strcmp(one, other);
}

static void print_news(struct news *news, char text[TEXT_ROOM])
{
    size_t length = 0;

    text[0] = '\0';
    qsort(news->text, (size_t)news->count, sizeof news->text[0], compare_news);
    for (int i = 0; i < news->count; i++)
        length += (size_t)snprintf(text + length, TEXT_ROOM - length, "%s, ", news->text[i]);
}

/* ---- the scripts ------------------------------------------------------------------------- */

static struct scripting *scripting;
static struct store store;
static struct news script_news;

static int subscribers(void *user, struct text channel)
{
    (void)user, (void)channel;
    return 1;
}

static int publish(void *user, struct text channel, struct text message)
{
    char uuid[16], text[96];
    unsigned attempt, request;
    long long token, lease;
    int is_dead;

    (void)user;
    snprintf(uuid, sizeof uuid, "%.*s", (int)(channel.length - strlen("d:inbox:")), channel.bytes + strlen("d:inbox:"));
    snprintf(text, sizeof text, "%.*s", (int)message.length, message.bytes);
    if (sscanf(text, "granted %u %u %lld %lld %d", &attempt, &request, &token, &lease, &is_dead) == 5)
        add_news(&script_news, "granted %s:1:%u dead %d", uuid, attempt, is_dead);
    else if (sscanf(text, "wanted %u", &attempt) == 1)
        add_news(&script_news, "wanted %s:1:%u", uuid, attempt);
    else if (sscanf(text, "lost %u", &attempt) == 1)
        add_news(&script_news, "lost %s:1:%u", uuid, attempt);
    return 1;
}

/* Writes the words of the reply, each with a space after it. */
static void run(const char *script, const struct call *call, char ret_words[TEXT_ROOM])
{
    struct site site = { .store = &store, .now_us = now_us, .publish = publish, .subscribers = subscribers };
    struct text words[WORDS_MAX];
    struct bytes reply = { 0 };
    int number = scripting_by_text((struct text){ script, strlen(script) });
    size_t length = 0;

    for (int i = 0; i < call->count; i++)
        words[i] = (struct text){ call->words[i], strlen(call->words[i]) };
    if (number >= 0)
        scripting_run(scripting, number, &site, words, call->keys, words + call->keys, call->count - call->keys,
                      &reply);
    else
        scripting_eval(scripting, script, &site, words, call->keys, words + call->keys, call->count - call->keys,
                       &reply);
    ret_words[0] = '\0';
    for (const char *line = reply.data; *line; line = strchr(line, '\n') + 1) {
        if (!strchr("*$", line[0]) || line[1] < '0' || line[1] > '9') {
            line += line[0] == ':';
            length += (size_t)snprintf(ret_words + length, TEXT_ROOM - length, "%.*s ", (int)strcspn(line, "\r"), line);
        }
    }
    free(reply.data);
    if (ret_words[0] == '-' && ret_words[1] >= 'A')
        fail_msg("%s", ret_words);
}

static void add_keys(struct call *call, bool with_mutex, char condition)
{
    for (int i = 0; with_mutex && i < 4; i++)
        call_add(call, "%s", call_keys[i]);
    if (condition) {
        call_add(call, "d:{g}:cond:%c", condition);
        call_add(call, "d:{g}:sleeper:%c", condition);
    }
    call->keys = call->count;
}

static void add_label(struct call *call, const struct who *who)
{
    call_add(call, "7 host %c", 'a' + who->process);
}

static void add_hold(struct call *call, const struct who *who, const char *mark)
{
    char name[32];

    call_add(call, "%s " LEASE " %s7 host %c", name_of(who, name), mark, 'a' + who->process);
}

static void add_end(struct call *call)
{
    call_add(call, "d:inbox:");
    call_add(call, "0" RUN);
}

static void make_acquire(struct call *call, const struct call_of_both *both)
{
    char name[32];

    add_keys(call, true, both->condition);
    call_add(call, "%s", name_of(&both->who, name)), call_add(call, LEASE);
    call_add(call, "1 " LEASE " %d", is_robust(&both->who)), call_add(call, "0");
    call_add(call, "%s", both->act == DM_REG_TRY ? "try" : "queue");
    add_end(call);
    add_label(call, &both->who);
    if (both->owed.attempt)
        call_add(call, "1:%u:%d", both->owed.attempt, both->owed_end);
}

static void make_release(struct call *call, const struct call_of_both *both)
{
    char name[32];

    add_keys(call, true, both->condition);
    call_add(call, "%s", name_of(&both->who, name)), call_add(call, "-%d 17 1 7 host program", both->end);
    add_end(call);
    if (both->end)
        call_add(call, "%d", both->end);
}

static void make_mark(struct call *call, const struct call_of_both *both)
{
    static const char *const marks[] = { "", "+ ", "- " };

    add_keys(call, true, 0);
    call->keys = 2;
    call->count = 2;
    add_hold(call, &both->who, marks[both->mark]);
    call_add(call, LEASE), call_add(call, "1"), call_add(call, "1");
    for (int i = 2; i < 6; i++)
        call_add(call, "%s", i < 4 ? call_keys[i] : "");
}

static void make_wait(struct call *call, const struct call_of_both *both)
{
    char name[32];

    add_keys(call, true, both->condition);
    call_add(call, "%s", name_of(&both->who, name)), call_add(call, "%d", both->end);
    add_hold(call, &both->next, "");
    call_add(call, LEASE), call_add(call, "0"), call_add(call, "1"), call_add(call, "%d", is_robust(&both->next));
    call_add(call, "ng/x");
    add_end(call);
}

static void make_cond_cancel(struct call *call, const struct call_of_both *both)
{
    add_keys(call, true, both->condition);
    add_hold(call, &both->who, "");
    call_add(call, LEASE), call_add(call, "0"), call_add(call, "2"), call_add(call, "%d", is_robust(&both->who));
    add_end(call);
}

static void make_signal(struct call *call, const struct call_of_both *both)
{
    add_keys(call, false, both->condition);
    add_keys(call, true, 0);
    call_add(call, "ng/x"), call_add(call, "d:inbox:"), call_add(call, "%d", both->most), call_add(call, "%s", "");
    call_add(call, "0" RUN);
}

static void make_poll(struct call *call, const struct call_of_both *both)
{
    char name[32];

    add_keys(call, true, both->condition);
    add_end(call);
    call_add(call, "%s", name_of(&both->who, name)), call_add(call, "2"), call_add(call, LEASE);
    call_add(call, "%d", is_robust(&both->who)), call_add(call, "0"), call_add(call, "%d", call->keys);
    add_label(call, &both->who);
}

/* Makes the call of a script, and writes the words of its answer. */
static void call_script(const struct call_of_both *both, char ret_words[TEXT_ROOM])
{
    const char *script = NULL;
    struct call call = { 0 };
    char name[32];

    switch (both->act) {
    case DM_REG_ACQUIRE:
    case DM_REG_TRY:
        make_acquire(&call, both), script = dm_lua_acquire;
        break;
    case DM_REG_RELEASE:
        make_release(&call, both), script = dm_lua_release;
        break;
    case DM_REG_CANCEL:
        add_keys(&call, true, 0);
        call_add(&call, "%s", name_of(&both->who, name)), call_add(&call, LEASE);
        call_add(&call, "%d", is_robust(&both->who)), call_add(&call, "0" RUN);
        script = dm_lua_cancel;
        break;
    case DM_REG_CONSISTENT:
        call_add(&call, "%s", call_keys[1]);
        call.keys = 1;
        call_add(&call, "%s", name_of(&both->who, name));
        script = dm_lua_consistent;
        break;
    case DM_REG_FORCE:
        add_keys(&call, true, 0);
        add_end(&call);
        script = dm_lua_force;
        break;
    case DM_REG_DROP:
        add_keys(&call, true, 0);
        call_add(&call, "%s", both->is_anonymous ? "delete" : "clean"), call_add(&call, "d:inbox:");
        script = dm_lua_drop;
        break;
    case DM_REG_MARK:
        make_mark(&call, both), script = dm_lua_renew;
        break;
    case DM_REG_WAIT:
        make_wait(&call, both), script = dm_lua_cond_wait;
        break;
    case DM_REG_COND_CANCEL:
        make_cond_cancel(&call, both), script = dm_lua_cond_cancel;
        break;
    case DM_REG_SIGNAL:
        make_signal(&call, both), script = dm_lua_cond_signal;
        break;
    default:
        make_poll(&call, both), script = dm_lua_poll;
    }
    run(script, &call, ret_words);
}

/* The answer of a script in words of ours. */
static void say_script(const struct call_of_both *both, char ret_text[TEXT_ROOM])
{
    char words[TEXT_ROOM], word[32] = "";
    long long first = 0, second = 0, last = 0;
    const char *end;

    call_script(both, words);
    sscanf(words, both->act == DM_REG_SERVE || both->act == DM_REG_MARK ? "%*s %31s %lld %lld" : "%31s %lld %lld", word,
           &first, &second);
    end = strrchr(words, ' ');
    while (end > words && end[-1] != ' ')
        end--;
    last = strtoll(end, NULL, 10);
    if (strcmp(word, "owned") == 0)
        snprintf(ret_text, TEXT_ROOM, "owned dead %lld", second);
    else if (strcmp(word, "queued") == 0)
        snprintf(ret_text, TEXT_ROOM, "queued %lld", first);
    else if (both->act == DM_REG_MARK)
        snprintf(ret_text, TEXT_ROOM, "%s%s", word[0] == '0' ? "unknown" : "marked",
                 word[0] == '2' && both->mark != DM_REG_MARK_NONE ? ", wanted" : "");
    else if (both->act == DM_REG_CONSISTENT)
        snprintf(ret_text, TEXT_ROOM, "%s", word[0] == '1' ? "done" : "unknown");
    else if (both->act == DM_REG_DROP)
        snprintf(ret_text, TEXT_ROOM, "%s", word[0] == '1' ? "done" : "busy");
    else if (strstr("released left broken free moved none", word))
        snprintf(ret_text, TEXT_ROOM, "done");
    else
        snprintf(ret_text, TEXT_ROOM, "%s", word);
    if (both->act == DM_REG_COND_CANCEL && last)
        strcat(ret_text, ", signalled");
}

/* Holder, queue, sleepers, health: a holder whose lock has ended died, unless its mark says otherwise. */
static const char state_of_scripts[] =
    "local out, health = {}, redis.call('HGET', KEYS[2], 'health') or '0'\n"
    "local function carried(label) local c = label:match('^@%S+:(%w) ') return c and '+' .. c or '' end\n"
    "local id, label = (redis.call('HGET', KEYS[2], 'hold') or '-'):match('^([^-]%S*) %d+ (.*)$')\n"
    "if id and redis.call('EXISTS', KEYS[1]) == 1 then out[1] = id .. carried(label)\n"
    "elseif id and not label:gsub('^@%S+ ', ''):find('^%- ') then health = '1' end\n"
    "out[#out + 1] = '|'\n"
    "local lone, words = (redis.call('HGET', KEYS[2], 'wanted') or ''):match('^(%S+) %d+ %d+ %d %d+ %d+ (.*)$')\n"
    "if lone then out[#out + 1] = lone .. carried(words) end\n"
    "for _, i in ipairs({ 3, 5, 7 }) do\n"
    "  for _, id in ipairs(redis.call('ZRANGE', KEYS[i], 0, -1)) do\n"
    "    local words = redis.call('HGET', KEYS[i + 1], id):match('^%d+ %d+ %d %d+ %d+ (.*)$')\n"
    "    out[#out + 1] = id .. (i == 3 and carried(words) or '')\n"
    "  end\n"
    "  out[#out + 1] = '|'\n"
    "end\n"
    "out[#out + 1] = health\n"
    "return out\n";

static void show_scripts(char ret_text[TEXT_ROOM])
{
    struct call call = { 0 };

    add_keys(&call, true, 'x');
    add_keys(&call, false, 'y');
    run(state_of_scripts, &call, ret_text);
}

static long long number_of_scripts(const char *field)
{
    char script[96], words[TEXT_ROOM];
    struct call call = { 0 };

    add_keys(&call, true, 0);
    snprintf(script, sizeof script, "return redis.call('HGET', KEYS[2], '%s') or '0'", field);
    run(script, &call, words);
    return strtoll(words, NULL, 10);
}

/* ---- the register ------------------------------------------------------------------------ */

static uint8_t bytes[8192];
static size_t size;
static struct dm_reg_writer writer;
static struct dm_reg_session_id dead[PROCESSES];
static int dead_count; /* at most one of each letter: the value has forgotten the earlier ones */
static struct news register_news;

static struct dm_reg_ref ref_of(const struct who *who)
{
    struct dm_reg_ref ref = { .session = { .serial = 1, .lease_ms = LEASE_MS, .identity = IDENTITY },
                              .thread = 1,
                              .attempt = who->attempt };
    char room[16];

    if (!who->attempt)
        return (struct dm_reg_ref){ 0 };
    uuid_of(who, room);
    memcpy(ref.session.uuid, room, strlen(room));
    return ref;
}

static struct dm_reg_name_value decode(void)
{
    struct dm_reg_name_value value;
    const char *reason = "";

    if (dm_reg_name_decode(&value, bytes, size, &reason) != 0)
        fail_msg("%s", reason);
    return value;
}

static void note_register_news(const struct dm_reg_notice *notice)
{
    char name[32];

    snprintf(name, sizeof name, "%s:1:%d", (const char *)notice->session.uuid, (int)notice->attempt);
    if (notice->news == DM_REG_NEWS_GRANTED)
        add_news(&register_news, "granted %s dead %d", name, notice->is_owner_dead);
    else if (notice->news == DM_REG_NEWS_WANTED)
        add_news(&register_news, "wanted %s", name);
    else if (notice->news == DM_REG_NEWS_LOST)
        add_news(&register_news, "lost %s", name);
}

static struct dm_reg_step step_of(const struct call_of_both *both)
{
    static struct dm_reg_owed owed;
    static char condition[2];
    struct dm_reg_step step = {
        .act = both->act,
        .me = ref_of(both->act == DM_REG_WAIT ? &both->next : &both->who),
        .capacity = 1,
        .weight = 1,
        .is_robust = is_robust(both->act == DM_REG_WAIT ? &both->next : &both->who),
        .end = both->end,
        .mark = both->act == DM_REG_MARK ? both->mark : DM_REG_MARK_NONE,
        .is_anonymous = both->is_anonymous,
        .condition = condition,
        .most = both->most,
        .identity = IDENTITY,
        .quiet_ms = LEASE_MS,
        .clock_us = now_us,
        .dead = dead,
        .dead_count = dead_count,
    };

    condition[0] = both->condition;
    if (both->act == DM_REG_WAIT)
        step.leaving = ref_of(&both->who);
    if (both->owed.attempt) {
        owed = (struct dm_reg_owed){ ref_of(&both->owed), both->owed_end };
        step.owed = &owed;
        step.owed_count = 1;
    }
    return step;
}

static const char *word_of(enum dm_verdict verdict)
{
    switch (verdict) {
    case DM_SAYS_DONE:
        return "done";
    case DM_SAYS_BUSY:
        return "busy";
    case DM_SAYS_WAITING:
        return "waiting";
    case DM_SAYS_UNKNOWN:
        return "unknown";
    case DM_SAYS_NOT_RECOVERABLE:
        return "notrecoverable";
    case DM_SAYS_NOT_OWNER:
        return "notowner";
    default:
        return "?";
    }
}

/* Does the step, swaps the value, and says the answer in words. */
static void say_register(const struct call_of_both *both, char ret_text[TEXT_ROOM])
{
    struct dm_reg_notice notices[8];
    struct dm_reg_result result = { .notices = notices, .notice_room = 8 };
    struct dm_reg_step step = step_of(both);
    struct dm_reg_name_value value = decode();

    dm_reg_apply(&value, &step, &result);
    if (result.is_changed) {
        value.version = dm_reg_writer_next(&writer);
        size = result.is_deleted ? 0 : dm_reg_name_encode(&value, bytes, sizeof bytes);
        assert_true(size <= sizeof bytes);
    }
    dm_reg_name_free(&value);
    for (int i = 0; i < result.notice_count; i++)
        note_register_news(&notices[i]);
    if (both->act == DM_REG_MARK && result.answer.verdict == DM_SAYS_OWNED)
        snprintf(ret_text, TEXT_ROOM, "marked%s",
                 result.answer.has_waiter && both->mark != DM_REG_MARK_NONE ? ", wanted" : "");
    else if (result.answer.verdict == DM_SAYS_OWNED)
        snprintf(ret_text, TEXT_ROOM, "owned dead %d", result.answer.is_owner_dead);
    else if (result.answer.verdict == DM_SAYS_QUEUED)
        snprintf(ret_text, TEXT_ROOM, "queued %d", (int)result.answer.position);
    else
        snprintf(ret_text, TEXT_ROOM, "%s", word_of(result.answer.verdict));
    if (both->act == DM_REG_COND_CANCEL && result.is_signalled)
        strcat(ret_text, ", signalled");
}

static bool is_dead(const struct dm_reg_session_id *id)
{
    for (int i = 0; i < dead_count; i++) {
        if (dm_reg_session_id_equals(id, &dead[i]))
            return true;
    }
    return false;
}

/* As the scripts' state; the dead are gone, whether or not a step has said so yet. */
static void show_register(char ret_text[TEXT_ROOM])
{
    struct dm_reg_name_value value = decode();
    int ends[] = { value.hold_count, value.hold_count + value.queue_count }, health = value.health;
    size_t length = 0;

    ret_text[0] = '\0';
    for (int part = 0; part < 4; part++) {
        int from = part ? ends[part > 1] : 0, to = part < 2 ? ends[part] : ends[1] + value.sleeper_count;

        for (int i = from; i < to; i++) {
            const struct dm_reg_entry *entry = &value.entries[i];
            const struct dm_reg_session_id *id = &value.sessions[entry->session].id;
            const char *condition =
                part > 1 || entry->flags & DM_REG_CARRIES ? value.conditions[entry->condition].name : "";

            if (is_dead(id)) {
                health = part == 0 && !(entry->flags & DM_REG_KEPT) ? 1 : health;
            } else if (part < 2 || condition[0] == "xy"[part - 2]) {
                length +=
                    (size_t)snprintf(ret_text + length, TEXT_ROOM - length, "%s:1:%d%s%s ", (const char *)id->uuid,
                                     (int)entry->attempt, part < 2 && *condition ? "+" : "", part < 2 ? condition : "");
            }
        }
        length += (size_t)snprintf(ret_text + length, TEXT_ROOM - length, "| ");
    }
    snprintf(ret_text + length, TEXT_ROOM - length, "%d ", health);
    dm_reg_name_free(&value);
}

static long long register_token(void)
{
    struct dm_reg_name_value value = decode();
    long long token = (long long)value.token;

    dm_reg_name_free(&value);
    return token;
}

/* Where an attempt is, by the register. */
static enum dm_reg_place place_of(const struct who *who, struct dm_reg_entry *ret_entry, char *ret_condition)
{
    struct dm_reg_name_value value = decode();
    struct dm_reg_ref ref = ref_of(who);
    enum dm_reg_place place;
    int index;

    place = dm_reg_find(&value, &ref, &index);
    if (place != DM_REG_NOWHERE) {
        *ret_entry = value.entries[index];
        *ret_condition = value.condition_count ? value.conditions[ret_entry->condition].name[0] : 0;
    }
    dm_reg_name_free(&value);
    return place;
}

/* ---- both -------------------------------------------------------------------------------- */

static bool is_mutated; /* the sides are to differ */
static long long tokens[2];

static bool is_same(const char *what, const struct call_of_both *both, const char *of_scripts, const char *of_register)
{
    char name[32], next[32];

    if (strcmp(of_scripts, of_register) == 0)
        return true;
    if (!is_mutated)
        print_message(
            "%s after act %d of %s (next %s, end %d, condition %c, owed %u)\n   scripts: %s\n  register: %s\n", what,
            both->act, name_of(&both->who, name), name_of(&both->next, next), both->end,
            both->condition ? both->condition : '-', both->owed.attempt, of_scripts, of_register);
    return false;
}

static bool is_same_call(const struct call_of_both *both)
{
    char of_scripts[TEXT_ROOM], of_register[TEXT_ROOM];

    say_script(both, of_scripts);
    say_register(both, of_register);
    return is_same("answers", both, of_scripts, of_register);
}

/* An attempt as the scripts' state shows it: "a1:1:2+x". */
static bool read_who(const char *text, struct who *ret_who)
{
    char letter;

    if (sscanf(text, "%c%d:1:%u", &letter, &ret_who->life, &ret_who->attempt) != 3)
        return false;
    ret_who->process = letter - 'a';
    return true;
}

/* Polls of all that wait or sleep, as the scripts know them, the sleepers first. */
static bool do_all_poll(void)
{
    char state[TEXT_ROOM];
    const char *parts[5] = { state };
    struct call_of_both both = { .act = DM_REG_SERVE };

    show_scripts(state);
    for (int i = 1; i < 5; i++)
        parts[i] = strchr(parts[i - 1], '|') + 1;
    for (int part = 3; part >= 1; part--) {
        for (const char *at = parts[part]; at < parts[part + 1] && *at && *at != '|'; at += strcspn(at, " ") + 1) {
            at += strspn(at, " ");
            both.condition = part == 1 ? 0 : "xy"[part - 2];
            if (read_who(at, &both.who) && !is_same_call(&both))
                return false;
        }
    }
    return true;
}

static bool has_debts(void)
{
    return number_of_scripts("debt d:{g}:cond:x") || number_of_scripts("debt d:{g}:cond:y");
}

static bool is_never(void)
{
    return number_of_scripts("health") == 2;
}

/* Compares what is there after a call, and who was told. */
static bool is_same_after(const struct call_of_both *both, bool was_told)
{
    char of_scripts[TEXT_ROOM], of_register[TEXT_ROOM];
    long long now[] = { number_of_scripts("token"), register_token() };

    print_news(&script_news, of_scripts);
    print_news(&register_news, of_register);
    if (was_told && !is_same("notices", both, of_scripts, of_register))
        return false;
    show_scripts(of_scripts);
    show_register(of_register);
    if (!is_same("states", both, of_scripts, of_register))
        return false;
    snprintf(of_scripts, TEXT_ROOM, "%lld", is_clock_running ? (now[0] > tokens[0]) - (now[0] < tokens[0]) : now[0]);
    snprintf(of_register, TEXT_ROOM, "%lld", is_clock_running ? (now[1] > tokens[1]) - (now[1] < tokens[1]) : now[1]);
    tokens[0] = now[0];
    tokens[1] = now[1];
    return is_same("tokens", both, of_scripts, of_register);
}

/*
 * One call of both, once or twice, and then all that the scripts need to come to the same: the polls that pay debts,
 * and the questions of those who can never have the lock.
 */
static bool is_call_the_same(const struct call_of_both *both, bool is_repeated)
{
    bool is_told = true;

    script_news.count = register_news.count = 0;
    for (int i = 0; i <= is_repeated; i++) {
        if (!is_same_call(both))
            return false;
    }
    if (has_debts() || is_never()) {
        is_told = false;
        if (!do_all_poll())
            return false;
    }
    return is_same_after(both, is_told);
}

/* The death of a process: its lock ends, its attempts go, and its session is dead. */
static bool is_death_the_same(int process)
{
    struct call_of_both both = { .act = DM_REG_SERVE, .who = { process, lives[process], 1 } };
    struct dm_reg_entry entry;
    char words[TEXT_ROOM], condition;
    struct call call = { 0 };

    for (both.who.attempt = 1; both.who.attempt <= ATTEMPTS; both.who.attempt++) {
        enum dm_reg_place place = place_of(&both.who, &entry, &condition);

        if (place == DM_REG_HOLDS) {
            add_keys(&call, true, 0);
            run("return redis.call('DEL', KEYS[1])", &call, words);
        } else if (place != DM_REG_NOWHERE) {
            both.act = DM_REG_RELEASE;
            both.condition = place == DM_REG_SLEEPS ? condition : 0;
            call_script(&both, words);
        }
    }
    both.who.attempt = 1;
    for (int i = 0; i < dead_count; i++) {
        if (dead[i].uuid[0] == 'a' + process)
            dead[i] = dead[--dead_count];
    }
    dead[dead_count++] = ref_of(&both.who).session;
    lives[process]++;
    both = (struct call_of_both){ .act = DM_REG_SERVE }; /* of nobody: what is left of the dead goes */
    return do_all_poll() && is_same_call(&both) && do_all_poll() && is_same_after(&both, false);
}

/* ---- random calls ------------------------------------------------------------------------ */

static struct who random_who(void)
{
    int process = (int)random_below(PROCESSES);

    return (struct who){ process, lives[process], 1 + random_below(ATTEMPTS) };
}

/* Mostly one that is there: the holder, or any. */
static struct who random_present(bool is_holder)
{
    struct who who = random_who();
    char state[TEXT_ROOM];

    if (random_below(4) == 0)
        return who;
    show_scripts(state);
    for (const char *at = state; *at; at += strcspn(at, " ") + 1) {
        read_who(at, &who);
        if (is_holder || random_below(3) == 0)
            break;
    }
    return who;
}

static struct call_of_both random_call(void)
{
    static const enum dm_reg_act acts[] = {
        DM_REG_ACQUIRE, DM_REG_ACQUIRE, DM_REG_ACQUIRE, DM_REG_TRY,        DM_REG_RELEASE, DM_REG_RELEASE,
        DM_REG_RELEASE, DM_REG_CANCEL,  DM_REG_WAIT,    DM_REG_WAIT,       DM_REG_SIGNAL,  DM_REG_COND_CANCEL,
        DM_REG_SERVE,   DM_REG_MARK,    DM_REG_FORCE,   DM_REG_CONSISTENT, DM_REG_DROP,
    };
    static const enum dm_end ends[] = { DM_END_UNLOCKED, DM_END_UNLOCKED, DM_END_UNLOCKED,
                                        DM_END_DIED,     DM_END_DIED,     DM_END_NOT_RECOVERABLE };
    struct call_of_both both = { .act = acts[random_below(sizeof acts / sizeof acts[0])] };
    bool is_holders = both.act == DM_REG_RELEASE || both.act == DM_REG_WAIT || both.act == DM_REG_MARK ||
                      both.act == DM_REG_CONSISTENT;
    bool is_of_present = both.act == DM_REG_SERVE || both.act == DM_REG_COND_CANCEL || both.act == DM_REG_CANCEL;

    both.who = is_holders ? random_present(true) : is_of_present ? random_present(false) : random_who();
    both.next = (struct who){ both.who.process, both.who.life, 1 + random_below(ATTEMPTS) };
    both.condition = "xy"[random_below(2)];
    both.most = random_below(2) ? 1 : BROADCAST;
    both.mark = (enum dm_reg_mark)random_below(3);
    both.is_anonymous = random_below(4) == 0;
    both.end = ends[random_below(random_below(2) ? 5 : 6)];
    if (both.act == DM_REG_WAIT && both.end == DM_END_DIED)
        both.end = DM_END_UNLOCKED;
    if (both.act == DM_REG_ACQUIRE && random_below(3) == 0) {
        both.owed = (struct who){ both.who.process, both.who.life, 1 + random_below(ATTEMPTS) };
        both.owed_end = random_below(2) ? DM_END_UNLOCKED : DM_END_DIED;
    }
    return both;
}

/* True if a holder has died, and no script has come since. */
static bool is_holder_dead(void)
{
    char words[TEXT_ROOM];
    struct call call = { 0 };

    add_keys(&call, true, 0);
    run("return redis.call('EXISTS', KEYS[1]) == 0 and (redis.call('HGET', KEYS[2], 'hold') or '-')", &call, words);
    return words[0] && words[0] != '-' && words[0] != '$';
}

static bool has_sleepers(void)
{
    struct dm_reg_name_value value = decode();
    bool is_so = value.sleeper_count > 0;

    dm_reg_name_free(&value);
    return is_so;
}

/*
 * True if both are meant to do the same.  Gives the call the keys of the condition on which the attempt sleeps, as the
 * library does.
 */
static bool fit(struct call_of_both *both)
{
    const struct who *attempt = both->act == DM_REG_WAIT ? &both->next : &both->who;
    struct dm_reg_entry entry = { 0 };
    char condition = 0;
    enum dm_reg_place place = place_of(attempt, &entry, &condition);

    if (place == DM_REG_SLEEPS)
        both->condition = condition;
    else if (both->act == DM_REG_ACQUIRE || both->act == DM_REG_TRY)
        both->condition = 0;
    switch (both->act) {
    case DM_REG_ACQUIRE: /* the script does not look at releases of an owner; and sleepers come after the caller */
        return !both->owed.attempt ||
               (both->owed.attempt != both->who.attempt && place != DM_REG_HOLDS && !has_sleepers());
    case DM_REG_TRY: /* a thread that tries does not wait */
        return place != DM_REG_SLEEPS && place != DM_REG_WAITS;
    case DM_REG_CANCEL: /* is not asked for those that come from a condition */
        return place != DM_REG_SLEEPS && !(entry.flags & DM_REG_CARRIES);
    case DM_REG_WAIT: /* "not the owner" comes first in the script */
        return both->who.attempt != both->next.attempt && !is_never();
    case DM_REG_FORCE: /* a holder that is known to be dead: the script breaks it, the step has buried it before */
        both->who = (struct who){ 0 };
        return !is_holder_dead();
    case DM_REG_DROP: /* sleepers keep the register */
        both->who = (struct who){ 0 };
        return !(both->is_anonymous && has_sleepers());
    case DM_REG_SIGNAL:
        both->who = (struct who){ 0 };
        return true;
    case DM_REG_MARK: /* a renewal puts back a hold that the server has lost: a claim */
        return size > 0;
    default:
        return true;
    }
}

/* The second FORCE and SIGNAL do more; to the second wait in vain, the script says "not the owner". */
static bool is_repeatable(const struct call_of_both *both)
{
    return both->act != DM_REG_FORCE && both->act != DM_REG_SIGNAL &&
           !(both->act == DM_REG_WAIT && both->end == DM_END_NOT_RECOVERABLE);
}

static void begin_empty(void)
{
    store_clear(&store);
    size = 0;
    dead_count = 0;
    tokens[0] = tokens[1] = 0;
}

static bool is_random_call_the_same(int number)
{
    struct call_of_both both = random_call();

    if (number % 200 == 0) {
        begin_empty();
        is_clock_running = !is_clock_running;
    }
    if (is_clock_running)
        now_us += 1 + (int64_t)random_below(1000);
    if (random_below(25) == 0)
        return is_death_the_same((int)random_below(PROCESSES));
    if (!fit(&both))
        return true;
    return is_call_the_same(&both, random_below(4) == 0 && is_repeatable(&both));
}

/* Random calls have the same answers, notices and effects in a register as by the scripts. */
static void test_register_does_the_same_as_the_scripts(void **state)
{
    int calls = rounds(20000);

    (void)state;
    for (int i = 0; i < calls; i++)
        assert_true(is_random_call_the_same(i));
}

/* The comparison notices when one of the two is changed. */
static void test_register_differs_when_a_script_is_changed(void **state)
{
    static const struct mutation changes[] = {
        { "release", "if how == '1' then owe_signal(k, s.label) end", "" },
        { "release", "call('HSET', k.state, 'health', s.health)", "" },
        { "force", "if is_followed(s.last) then s.last = s.last + 1 end", "" },
        { "consistent", "redis.call('HDEL', state, 'health')", "" },
        { "cond_cancel", "move(k, c, s, me, at, false)", "move(k, c, s, me, at, true)" },
        { "cond_signal", "move(k, c, s, w, at, true)", "move(k, c, s, w, at, false)" },
        { "cond_wait", "if not winner then end_hold(k, s, 0, held_ms(s, at)) end", "" },
        { "poll", "hear(k, me)", "hear(k, me) forget(k, me.id)" },
        { "drop", "elseif s.health == 2 then", "elseif s.health == 1 then" },
        { "cond_wait", "if waiting == 0 then call('HDEL', k.state, 'debt ' .. c.queue) end", "" },
        { 0 }
    };

    (void)state;
    is_mutated = true;
    for (size_t i = 0; changes[i].script; i++) {
        const struct mutation mutations[] = { changes[i], { 0 } };
        struct scripting *kept = scripting;
        int calls = 0;

        begin_empty();
        scripting = scripting_new(mutations);
        while (is_random_call_the_same(calls))
            assert_true(calls++ < 400000);
        scripting_free(scripting);
        scripting = kept;
    }
    is_mutated = false;
}

static int group_setup(void **state)
{
    (void)state;
    dm_reg_writer_init(&writer);
    scripting = scripting_new(NULL);
    return 0;
}

static int group_teardown(void **state)
{
    (void)state;
    begin_empty();
    scripting_free(scripting);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_register_does_the_same_as_the_scripts),
        cmocka_unit_test(test_register_differs_when_a_script_is_changed),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
