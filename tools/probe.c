/* SPDX-License-Identifier: BSD-2-Clause */
#include "probe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "link/turns.h"
#include "spawn/local.h"
#include "stores/redis/node/node.h"
#include "stores/redis/wire/slots.h"
#include "stores/redis/wire/tls_of.h"

enum step { STEP_LOGIN, STEP_DATABASE, STEP_SUBSCRIPTION, STEPS };

struct probe {
    struct dm_url *url;
    const char *subscribe; /* a command; NULL: this probe asks */
    char channel[160];
    struct dm_link *link;
    int round;
    enum step steps[STEPS]; /* of the round, in the order of its answers */
    int step_count, steps_done;
    enum probe_obstacle obstacle; /* of the last attempt to connect */
    char refusal[DM_REASON_ROOM]; /* the server's words about a database or a channel */
    bool has_heard;
    struct probe *next; /* all probes, because a link is never freed */
};

static struct probe *newest;

/* ---- the greeting: AUTH, SELECT; then the subscription ------------------------------------------ */

static void begin(void *user)
{
    ((struct probe *)user)->round = 0;
}

static void add(struct dm_command *all, const char *const *words)
{
    struct dm_command one;
    struct dm_args args;
    char *bytes;

    if (dm_args_init(&args, 4, 0) < 0)
        return;
    while (*words)
        dm_args_text(&args, *words++);
    one = dm_args_format(&args);
    bytes = one.bytes ? realloc(all->bytes, all->length + one.length + 1) : NULL;
    if (bytes) {
        memcpy(bytes + all->length, one.bytes, one.length + 1);
        all->bytes = bytes;
        all->length += one.length;
    }
    dm_command_free(&one);
    dm_args_free(&args);
}

static void plan(struct probe *probe, enum step step, struct dm_command *round, const char *const *words)
{
    probe->steps[probe->step_count++] = step;
    add(round, words);
}

/* Only the first round has commands. */
static int next_round(void *user, struct dm_command *ret_round)
{
    struct probe *probe = user;
    const struct dm_url *url = probe->url;
    struct dm_command all = { 0 };
    char db[12];

    probe->step_count = probe->steps_done = 0;
    if (probe->round++ > 0)
        return 0;
    snprintf(db, sizeof db, "%u", url->db);
    if (url->password && url->user)
        plan(probe, STEP_LOGIN, &all, (const char *const[]){ "AUTH", url->user, url->password, NULL });
    else if (url->password)
        plan(probe, STEP_LOGIN, &all, (const char *const[]){ "AUTH", url->password, NULL });
    if (url->db && !probe->subscribe)
        plan(probe, STEP_DATABASE, &all, (const char *const[]){ "SELECT", db, NULL });
    if (probe->subscribe)
        plan(probe, STEP_SUBSCRIPTION, &all, (const char *const[]){ probe->subscribe, probe->channel, NULL });
    *ret_round = all;
    return probe->step_count;
}

static bool has_code(const redisReply *reply, const char *code)
{
    return reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, code, strlen(code)) == 0;
}

/*
 * A server that accepts no more clients, or none from other hosts, says so in its first answer, whatever the question.
 */
static bool is_no_place(const redisReply *reply)
{
    return has_code(reply, "ERR max number of clients") || has_code(reply, "DENIED");
}

/* The answer to AUTH is not repeated, because it may quote the password. */
static bool take(void *user, const redisReply *reply, char ret_reason[DM_REASON_ROOM])
{
    struct probe *probe = user;
    enum step step = probe->steps[probe->steps_done++];

    if (reply->type != REDIS_REPLY_ERROR)
        return true;
    if (is_no_place(reply)) {
        snprintf(ret_reason, DM_REASON_ROOM, "%.*s", DM_REASON_ROOM - 1, reply->str);
        return false;
    }
    if (step == STEP_LOGIN || has_code(reply, "NOAUTH")) {
        probe->obstacle = PROBE_LOGIN;
        snprintf(ret_reason, DM_REASON_ROOM, "%s",
                 step != STEP_LOGIN       ? "the server wants a password, and the URL has none"
                 : has_code(reply, "ERR") ? "the password or user is refused (has the server another name for AUTH, or "
                                            "no password?)"
                                          : "the password or user is refused");
        return false;
    }
    probe->obstacle = step == STEP_DATABASE ? PROBE_DATABASE : PROBE_CHANNEL;
    snprintf(probe->refusal, sizeof probe->refusal, "%.*s", DM_REASON_ROOM - 1, reply->str);
    snprintf(ret_reason, DM_REASON_ROOM, "%s", probe->refusal);
    return false;
}

static uint64_t ready(void *user)
{
    (void)user;
    return 1;
}

/* ---- the link ---------------------------------------------------------------------------- */

static int open_local(void *user, bool may_block, char ret_reason[DM_REASON_ROOM])
{
    (void)may_block; /* nothing is started: doctor changes nothing */
    return dm_local_open(((struct probe *)user)->url, false, ret_reason);
}

static void hear(void *user, const redisReply *message, uint64_t peer)
{
    (void)message, (void)peer;
    ((struct probe *)user)->has_heard = true;
}

static void ignore(void *user)
{
    (void)user;
}

struct probe *probe_new(struct dm_url *url)
{
    return probe_new_inbox(url, NULL, "");
}

struct probe *probe_new_inbox(struct dm_url *url, const char *command, const char *channel)
{
    struct probe *probe = calloc(1, sizeof *probe);
    struct dm_link_options options = {
        .address = { .host = url->host, .port = url->port, .path = url->path },
        .tls = dm_redis_tls_of(url),
        .open = url->kind == DM_URL_LOCAL ? open_local : NULL,
        .open_user = probe,
        .connect_timeout_ms = url->connect_timeout_ms,
        .command_timeout_ms = url->command_timeout_ms,
        .is_listening = command != NULL,
    };
    const struct dm_greeter greeter = {
        .begin = begin, .round = next_round, .take = take, .ready = ready, .user = probe
    };
    const struct dm_link_hooks hooks = { .on_ready = ignore, .on_message = hear, .on_change = ignore, .user = probe };

    if (!probe)
        return NULL;
    probe->next = newest;
    newest = probe;
    probe->url = url;
    probe->subscribe = command;
    snprintf(probe->channel, sizeof probe->channel, "%s", channel);
    dm_url_describe(url, options.name, sizeof options.name);
    probe->link = dm_link_new(&options, &greeter, &hooks);
    return probe->link ? probe : NULL;
}

/*
 * Waits for one answer, even an error: with TLS 1.3 a server refuses the client's certificate only after the handshake,
 * and a stopped server accepts connections.  A server that wants a login answers everything with NOAUTH.
 */
static bool answers(struct probe *probe, char ret_reason[DM_REASON_ROOM])
{
    redisReply *reply = probe_ask(probe, (const char *const[]){ "PING", NULL }, ret_reason);
    bool wants_login = reply && has_code(reply, "NOAUTH"), is_welcome = reply && !wants_login && !is_no_place(reply);
    char name[DM_LINK_NAME_ROOM];

    dm_url_describe(probe->url, name, sizeof name);
    if (wants_login) {
        probe->obstacle = PROBE_LOGIN;
        snprintf(ret_reason, DM_REASON_ROOM, "%s: the server wants a password, and the URL has none", name);
    } else if (reply && !is_welcome) {
        snprintf(ret_reason, DM_REASON_ROOM, "%s: %.200s", name, reply->str);
    }
    dm_reply_free(reply);
    return is_welcome;
}

bool probe_connect(struct probe *probe, char ret_reason[DM_REASON_ROOM])
{
    struct dm_deadline deadline = dm_deadline_in_ms(probe->url->command_timeout_ms);

    probe->obstacle = PROBE_WAY;
    if (dm_link_await_ready(probe->link, &deadline))
        return probe->subscribe || answers(probe, ret_reason);
    dm_link_reason(probe->link, ret_reason);
    return false;
}

enum probe_obstacle probe_obstacle(const struct probe *probe)
{
    return probe->obstacle;
}

const char *probe_refusal(const struct probe *probe)
{
    return probe->refusal;
}

redisReply *probe_ask(struct probe *probe, const char *const *words, char ret_reason[DM_REASON_ROOM])
{
    struct dm_deadline deadline = dm_deadline_in_ms(probe->url->command_timeout_ms);
    struct dm_command command = { 0 };
    redisReply *reply = NULL;
    struct dm_args args;
    int count = 0;

    while (words[count])
        count++;
    if (dm_args_init(&args, count, 0) < 0) {
        snprintf(ret_reason, DM_REASON_ROOM, "out of memory");
        return NULL;
    }
    for (int i = 0; i < count; i++)
        dm_args_text(&args, words[i]);
    command = dm_args_format(&args);
    if (count == 2 && strcmp(words[0], "CLUSTER") == 0 && strcmp(words[1], "SLOTS") == 0)
        command.summary = &dm_slots_summary;
    if (dm_link_call(probe->link, &command, &deadline, &reply) != DM_LINK_OK) {
        dm_link_reason(probe->link, ret_reason);
        reply = NULL;
    }
    dm_command_free(&command);
    dm_args_free(&args);
    return reply;
}

/* Reads what has arrived, repeatedly, because no other thread reads this link. */
bool probe_hears(struct probe *probe)
{
    struct dm_deadline deadline = dm_deadline_in_ms(probe->url->command_timeout_ms);
    const struct timespec pause = { 0, DM_NS_PER_MS };

    while (!probe->has_heard && dm_deadline_left_ns(&deadline) > 0) {
        dm_link_work(probe->link);
        if (!probe->has_heard)
            nanosleep(&pause, NULL);
    }
    return probe->has_heard;
}
