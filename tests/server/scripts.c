/* SPDX-License-Identifier: BSD-2-Clause */
#include "scripts.h"

#include <hiredis.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stores/redis/wire/scripts.h"

#define ARGUMENTS_MAX 1024
#define TEXTS 1024

static redisContext *context;

/* The texts of the scripts, for one server or for a node of a Cluster, and the inboxes that belong to the texts. */
static bool is_clustered;
static const char *inboxes_prefix = INBOX;
#define TEXT(name) (is_clustered ? dm_lua_##name##_cluster : dm_lua_##name)

/* ---- texts ------------------------------------------------------------------------------- */

/* A text that lives for the next TEXTS texts. */
static char **next_text(void)
{
    static char *texts[TEXTS];
    static int at;

    at = (at + 1) % TEXTS;
    free(texts[at]);
    texts[at] = NULL;
    return &texts[at];
}

const char *scripts_text(const char *format, ...)
{
    char **text = next_text();
    va_list arguments;

    va_start(arguments, format);
    assert_true(vasprintf(text, format, arguments) >= 0);
    va_end(arguments);
    return *text;
}

/* Frees the reply. */
static const char *text_of(redisReply *reply)
{
    char **text = next_text();
    size_t length;
    FILE *out = open_memstream(text, &length);

    if (!reply)
        fail_msg("the connection broke: %s", context->errstr);
    if (reply->type == REDIS_REPLY_ERROR)
        fputs("error\n", out);
    side_write_reply(out, reply);
    fclose(out);
    freeReplyObject(reply);
    return *text;
}

const char *line_of(const char *answer, int index)
{
    while (index-- > 0 && *answer) {
        answer += strcspn(answer, "\n");
        answer += *answer != '\0';
    }
    return scripts_text("%.*s", (int)strcspn(answer, "\n"), answer);
}

long long number_of(const char *answer, int index)
{
    if (strncmp(answer, "error\n", 6) == 0)
        fail_msg("the server answers with an %s", answer);
    return strtoll(line_of(answer, index), NULL, 10);
}

/* ---- commands ---------------------------------------------------------------------------- */

const char *command(const char *format, ...)
{
    redisReply *reply;
    va_list arguments;

    va_start(arguments, format);
    reply = redisvCommand(context, format, arguments);
    va_end(arguments);
    return text_of(reply);
}

long long command_number(const char *format, ...)
{
    redisReply *reply;
    va_list arguments;

    va_start(arguments, format);
    reply = redisvCommand(context, format, arguments);
    va_end(arguments);
    return strtoll(text_of(reply), NULL, 10);
}

static const char *run(const char *script, int keys, const char *const *arguments)
{
    const char *words[ARGUMENTS_MAX] = { "EVAL", script, scripts_text("%d", keys) };
    int count = 3;

    while (*arguments) {
        assert_true(count < ARGUMENTS_MAX);
        words[count++] = *arguments++;
    }
    return text_of(redisCommandArgv(context, count, words, NULL));
}

const char *run_script(const char *script, int keys, ...)
{
    const char *arguments[ARGUMENTS_MAX] = { NULL };
    va_list more;
    int count = 0;

    va_start(more, keys);
    while ((arguments[count] = va_arg(more, const char *)))
        assert_true(++count < ARGUMENTS_MAX);
    va_end(more);
    return run(script, keys, arguments);
}

const char *key(const char *kind, const char *leaf)
{
    return scripts_text("dmutex:{t}:%s:%s", kind, leaf);
}

#define KEYS(leaf) key("lock", leaf), key("state", leaf), key("queue", leaf), key("waiter", leaf)
#define COND_KEYS(cond) key("cond", cond), key("sleeper", cond)

/* ---- the scripts ------------------------------------------------------------------------- */

const char *server_born = "0";
#define LABEL "1 host program"

struct who who(const char *uuid)
{
    return (struct who){ .uuid = uuid,
                         .leaf = "x",
                         .cond = "c",
                         .thread = 1,
                         .attempt = 1,
                         .request = 1,
                         .lease_ms = LEASE,
                         .is_robust = true,
                         .seen = "0",
                         .mark = "" };
}

static const char *owner_of(const struct who *who)
{
    return scripts_text("%s:%lld", who->uuid, who->thread);
}

static const char *id_of(const struct who *who)
{
    return scripts_text("%s:%lld:%lld", who->uuid, who->thread, who->attempt);
}

static const char *hold_of(const struct who *who)
{
    return scripts_text("%s:%lld:%lld %lld " LABEL, who->uuid, who->thread, who->attempt, who->lease_ms);
}

static const char *number(long long value)
{
    return scripts_text("%lld", value);
}

/* As lua/_origin.lua splits it. */
static const char *origin(void)
{
    return scripts_text("%s " SERVER_RUN, server_born);
}

/* An answer that is one text has a word in each line then, as an answer that is an array; an error stays. */
static const char *in_lines(const char *answer)
{
    char **text;

    if (strchr(answer, '\n'))
        return answer;
    text = next_text();
    *text = strdup(answer);
    assert_non_null(*text);
    for (char *at = strchr(*text, ' '); at; at = strchr(at, ' '))
        *at = '\n';
    return *text;
}

/* As a waiter's words begin. */
static const char *words_of(const struct who *who)
{
    return scripts_text("%lld %lld %d", who->request, who->lease_ms, who->is_robust);
}

#define ACQUIRE_ARGUMENTS(who, how)                                                                              \
    id_of(who), number((who)->lease_ms), words_of(who), (who)->seen, (who)->arrival[0] ? (who)->arrival : (how), \
        inboxes_prefix, origin(), LABEL

const char *acquire(const struct who *who, const char *how)
{
    return acquire_naming(who, how, NULL);
}

const char *acquire_naming(const struct who *who, const char *how, const char *owed)
{
    return in_lines(run_script(TEXT(acquire), 4, KEYS(who->leaf), ACQUIRE_ARGUMENTS(who, how), owed, NULL));
}

/* The text of the ended hold, the inboxes and the origin, and how the hold ended unless it was unlocked. */
#define RELEASE_ARGUMENTS(who, how)                                                               \
    id_of(who), scripts_text("-%d 17 %lld " LABEL, how, (who)->thread), inboxes_prefix, origin(), \
        (how) == UNLOCKED ? NULL : number(how), NULL

const char *release(const struct who *who, int how)
{
    return in_lines(run_script(TEXT(release), 4, KEYS(who->leaf), RELEASE_ARGUMENTS(who, how)));
}

/* The first two keys are declared, the others are arguments. */
#define RENEW_KEYS(who) key("lock", (who)->leaf), key("state", (who)->leaf)
#define OTHER_KEYS(who) key("queue", (who)->leaf), key("waiter", (who)->leaf)

const char *renew(const struct who *who, int depth, const char *token)
{
    const char *hold = scripts_text("%s %lld %s" LABEL, id_of(who), who->lease_ms, who->mark);

    return run_script(TEXT(renew), 2, RENEW_KEYS(who), hold, number(who->lease_ms), number(depth), token,
                      OTHER_KEYS(who), "", "", NULL);
}

const char *poll_of(const struct who *who)
{
    return run_script(TEXT(poll), 4, KEYS(who->leaf), inboxes_prefix, origin(), id_of(who), number(who->request),
                      number(who->lease_ms), who->is_robust ? "1" : "0", who->seen, "4", LABEL, NULL);
}

const char *poll_serving(const char *leaf)
{
    struct who nobody = { .uuid = "nobody", .leaf = leaf, .lease_ms = LEASE, .seen = "0" };

    return poll_of(&nobody);
}

#define POLL_ARGUMENTS(who) id_of(who), number((who)->request), number((who)->lease_ms), "1", (who)->seen, "4", LABEL

const char *poll_both(const struct who *first, const struct who *second)
{
    return run_script(TEXT(poll), 8, KEYS(first->leaf), KEYS(second->leaf), inboxes_prefix, origin(),
                      POLL_ARGUMENTS(first), POLL_ARGUMENTS(second), NULL);
}

#define RENEW_ARGUMENTS(who) hold_of(who), number((who)->lease_ms), "1", "1", OTHER_KEYS(who), "", ""

const char *renew_both(const struct who *first, const struct who *second)
{
    return run_script(TEXT(renew), 4, RENEW_KEYS(first), RENEW_KEYS(second), RENEW_ARGUMENTS(first),
                      RENEW_ARGUMENTS(second), NULL);
}

const char *renew_all(const struct who *who, int count)
{
    const char *words[ARGUMENTS_MAX] = { NULL };
    int at = 0;

    for (int i = 0; i < count; i++) {
        const char *const keys[] = { RENEW_KEYS(&who[i]) };

        memcpy(words + at, keys, sizeof keys);
        at += sizeof keys / sizeof keys[0];
    }
    for (int i = 0; i < count; i++) {
        const char *const arguments[] = { RENEW_ARGUMENTS(&who[i]) };

        memcpy(words + at, arguments, sizeof arguments);
        at += sizeof arguments / sizeof arguments[0];
    }
    return run(TEXT(renew), count * 2, words);
}

const char *cancel(const struct who *who)
{
    return run_script(TEXT(cancel), 4, KEYS(who->leaf), id_of(who), number(who->lease_ms), who->is_robust ? "1" : "0",
                      origin(), NULL);
}

const char *consistent(const struct who *who)
{
    return run_script(TEXT(consistent), 1, key("state", who->leaf), id_of(who), NULL);
}

const char *force(const char *leaf)
{
    return run_script(TEXT(force), 4, KEYS(leaf), inboxes_prefix, origin(), NULL);
}

const char *info(const char *leaf)
{
    return run_script(TEXT(info), 3, key("lock", leaf), key("state", leaf), key("queue", leaf), "", "10000", origin(),
                      NULL);
}

const char *drop(const char *leaf, const char *how)
{
    return run_script(TEXT(drop), 4, KEYS(leaf), how, inboxes_prefix, NULL);
}

/* ---- the scripts of conditions ----------------------------------------------------------- */

/* The mutex as clients write the binding. */
static const char *bound_of(const char *leaf)
{
    return scripts_text("nt/%s", leaf);
}

const char *cond_wait(const struct who *who, long long hold)
{
    return cond_wait_ending(who, hold, UNLOCKED);
}

const char *cond_acquire(const struct who *who, const char *how)
{
    return in_lines(
        run_script(TEXT(acquire), 6, KEYS(who->leaf), COND_KEYS(who->cond), ACQUIRE_ARGUMENTS(who, how), NULL));
}

const char *cond_wait_ending(const struct who *who, long long hold, int how)
{
    return run_script(TEXT(cond_wait), 6, KEYS(who->leaf), COND_KEYS(who->cond),
                      scripts_text("%s:%lld", owner_of(who), hold), number(how), hold_of(who), number(who->lease_ms),
                      who->seen, number(who->request), who->is_robust ? "1" : "0", bound_of(who->leaf), inboxes_prefix,
                      origin(), NULL);
}

#define COND_POLL_ARGUMENTS(who) \
    id_of(who), number((who)->request), number((who)->lease_ms), (who)->is_robust ? "1" : "0", (who)->seen, "6", LABEL

const char *cond_poll(const struct who *who)
{
    return run_script(TEXT(poll), 6, KEYS(who->leaf), COND_KEYS(who->cond), inboxes_prefix, origin(),
                      COND_POLL_ARGUMENTS(who), NULL);
}

const char *cond_poll_both(const struct who *sleeper, const struct who *waiter)
{
    return run_script(TEXT(poll), 10, KEYS(sleeper->leaf), COND_KEYS(sleeper->cond), KEYS(waiter->leaf), inboxes_prefix,
                      origin(), COND_POLL_ARGUMENTS(sleeper), POLL_ARGUMENTS(waiter), NULL);
}

const char *cond_cancel(const struct who *who)
{
    return run_script(TEXT(cond_cancel), 6, KEYS(who->leaf), COND_KEYS(who->cond), hold_of(who), number(who->lease_ms),
                      who->seen, number(who->request), who->is_robust ? "1" : "0", inboxes_prefix, origin(), NULL);
}

const char *cond_release(const struct who *who, int how)
{
    return in_lines(run_script(TEXT(release), 6, KEYS(who->leaf), COND_KEYS(who->cond), RELEASE_ARGUMENTS(who, how)));
}

const char *cond_renew(const struct who *who, const char *token)
{
    return run_script(TEXT(renew), 2, RENEW_KEYS(who), hold_of(who), number(who->lease_ms), "1", token, OTHER_KEYS(who),
                      COND_KEYS(who->cond), NULL);
}

const char *cond_drop(const char *cond, const char *how)
{
    return run_script(TEXT(cond_drop), 2, COND_KEYS(cond), how, NULL);
}

const char *cond_signal(const char *cond, const char *leaf, int most, const char *upto)
{
    if (!leaf)
        return run_script(TEXT(cond_signal), 2, COND_KEYS(cond), "", inboxes_prefix, number(most), upto, origin(),
                          NULL);
    return run_script(TEXT(cond_signal), 6, COND_KEYS(cond), KEYS(leaf), bound_of(leaf), inboxes_prefix, number(most),
                      upto, origin(), NULL);
}

const char *signal_one(void)
{
    return cond_signal("c", "x", 1, "");
}

void assert_moved(const char *answer, int left, int more)
{
    assert_answer(answer, "moved");
    assert_int_equal(number_of(answer, 2), left);
    assert_int_equal(number_of(answer, 3), more);
}

void fall_asleep(struct who *who)
{
    assert_answer(acquire(who, TRY), "owned");
    who->attempt++;
    assert_answer(cond_wait(who, who->attempt - 1), "waiting");
}

void enter_sleepers(const char *uuid, const char *cond, int count, long long age_ms)
{
    static const char script[] =
        "local newest = tonumber(redis.call('HGET', KEYS[2], 'arrival') or 1000)\n"
        "local heard = redis.call('TIME')[1] .. '000000'\n"
        "heard = string.format('%.0f', heard - ARGV[3] * 1000)\n"
        "for i = 1, tonumber(ARGV[2]) do\n"
        "  local id = ARGV[1] .. ':' .. i .. ':1'\n"
        "  newest = newest + 1\n"
        "  redis.call('ZADD', KEYS[1], string.format('%.0f', newest), id)\n"
        "  redis.call('HSET', KEYS[2], id, '1 60000 1 ' .. heard .. ' 0 1 h p')\n"
        "end\n"
        "return redis.call('HSET', KEYS[2], 'arrival', string.format('%.0f', newest), 'mutex', "
        "ARGV[4])\n";

    run_script(script, 2, COND_KEYS(cond), uuid, number(count), number(age_ms), bound_of("x"), NULL);
}

const char *probe(void)
{
    return run_script(TEXT(probe), 2, key("state", "~probe"), key("queue", "~probe"),
                      scripts_text("%sprobe", inboxes_prefix), NULL);
}

/* ---- moving time ------------------------------------------------------------------------- */

void end_lease(const char *leaf)
{
    command("DEL %s", key("lock", leaf));
}

static void age_entry(const char *hash, const struct who *who, long long ms)
{
    static const char script[] = "local e = redis.call('HGET', KEYS[1], ARGV[1])\n"
                                 "local head, heard, rest = e:match('^(%d+ %d+ %d) (%d+) (.*)$')\n"
                                 "heard = string.format('%.0f', heard - ARGV[2] * 1000)\n"
                                 "return redis.call('HSET', KEYS[1], ARGV[1], head .. ' ' .. heard .. ' ' .. rest)\n";

    assert_string_equal(run_script(script, 1, hash, id_of(who), number(ms), NULL), "0");
}

void age(const struct who *who, long long ms)
{
    age_entry(key("waiter", who->leaf), who, ms);
}

void age_lone(const char *leaf, long long ms)
{
    static const char script[] =
        "local front, heard, rest = redis.call('HGET', KEYS[1], 'wanted'):match('^(%S+ %d+ %d+ %d) (%d+) (.*)$')\n"
        "heard = string.format('%.0f', heard - ARGV[1] * 1000)\n"
        "return redis.call('HSET', KEYS[1], 'wanted', front .. ' ' .. heard .. ' ' .. rest)\n";

    assert_string_equal(run_script(script, 1, key("state", leaf), number(ms), NULL), "0");
}

void age_sleeper(const struct who *who, long long ms)
{
    age_entry(key("sleeper", who->cond), who, ms);
}

/* ---- fixtures ---------------------------------------------------------------------------- */

void scripts_reconnect(void)
{
    if (context)
        redisFree(context);
    context = redisConnectUnix(the_server->path);
    assert_true(context && !context->err);
}

void scripts_use(struct server *server, bool is_node)
{
    the_server = server;
    is_clustered = is_node;
    inboxes_prefix = is_node ? SHARDED_INBOX : INBOX;
    scripts_reconnect();
}

void become(const char *rules)
{
    char words[200];

    snprintf(words, sizeof words, "ACL SETUSER other reset on >pw ~* &* +@all %s", rules);
    assert_string_equal(command(words), "OK");
    assert_string_equal(command("AUTH other pw"), "OK");
}

void become_nobody_special(void)
{
    scripts_reconnect();
    command("ACL DELUSER other");
}

int scripts_group_setup(void **state)
{
    (void)state;
    the_server = server_start();
    scripts_reconnect();
    return 0;
}

void scripts_close(void)
{
    redisFree(context);
    context = NULL;
    for (int i = 0; i < TEXTS; i++)
        next_text();
}

int scripts_group_teardown(void **state)
{
    (void)state;
    scripts_close();
    server_end(the_server);
    return 0;
}

int scripts_setup(void **state)
{
    (void)state;
    inbox_close_all(); /* those of a failed test would hear messages for the next test */
    command("FLUSHALL");
    command("CONFIG SET maxmemory 0");
    return 0;
}
