/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * First round, of commands: AUTH ROLE SELECT ID INFO PROBE BORN; of an inbox: AUTH ROLE INFO SUBSCRIBE; of a map of a
 * Cluster: AUTH INFO.
 * Second round, if there was an earlier connection to the same server: KILL.
 *
 * The commands of a round go out together, and the replies are read in that order: usually a connection is ready after
 * one round trip, and one that follows a broken connection after two.  A reply that makes the server useless ends the
 * greeting with a reason for people; a missing right that only costs certainty or speed is logged once.
 *
 * No part of the greeting is repeated within a connection: for a server that is not ready, a new one begins later.
 */
#include "stores/redis/node/greeting.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/attrs.h"
#include "base/ident.h"
#include "base/log.h"
#include "stores/redis/wire/reply.h"
#include "stores/redis/wire/scripts.h"

/* 16 of the 40 digits are enough to distinguish servers, and fit a number that requests and messages carry. */
uint64_t dm_server_read_run(const char *text)
{
    char digits[17];

    snprintf(digits, sizeof digits, "%.16s", text);
    return strspn(digits, "0123456789abcdef") == 16 ? strtoull(digits, NULL, 16) : 0;
}

/* An unknown run id equals nothing, not even another unknown one, because these may be two servers. */
bool dm_server_is_same_run(const struct dm_server *server, const struct dm_server *other)
{
    return server->run && server->run == other->run;
}

/* Does not compare the births: the same server has another birth if its mark was deleted. */
bool dm_server_is_same(const struct dm_server *server, const struct dm_server *other)
{
    return dm_server_is_same_run(server, other) && server->epoch == other->epoch;
}

/* The next connection uses a changed password, without a restart of this process. */
void dm_greeting_read_login(struct dm_greeting *greeting)
{
    const struct dm_url *url = greeting->url;
    struct dm_login texts = { url->user, url->password }, login;
    char reason[DM_REASON_ROOM];

    if (dm_login_read(&texts, url->user_file, url->password_file, &login, reason)) {
        dm_login_clear(&greeting->login);
        greeting->login = login;
        greeting->is_login_told = false;
    } else if (!greeting->is_login_told) {
        dm_log_warn("%s; using the login read before", reason);
        greeting->is_login_told = true;
    }
}

static struct dm_login login_of(const struct dm_greeting *greeting)
{
    if (greeting->login.password)
        return greeting->login;
    return (struct dm_login){ greeting->url->user, greeting->url->password };
}

/* Remembers an old connection until its kill was answered, however many connections come and go until then. */
void dm_greeting_begin(struct dm_greeting *greeting)
{
    if (!greeting->probe)
        dm_ident_random(&greeting->probe, 1);
    if (greeting->client_id && !greeting->old_client_id) {
        greeting->old_client_id = greeting->client_id;
        greeting->old_server = greeting->server;
    }
    greeting->client_id = 0;
    greeting->server = (struct dm_server){ 0 };
    greeting->round = 0;
}

/* Always fits: no round has DM_GREETING_STEPS steps. */
static void plan(struct dm_greeting *greeting, enum dm_greeting_step step)
{
    greeting->steps[greeting->step_count++] = step;
}

/*
 * AUTH comes first, because a server with a password answers nothing else.  ROLE comes before the rest, because it
 * gives the best reason for leaving a replica.  The probe comes after INFO, so that a server that may evict keys is
 * refused before anything is written to it.
 */
static void plan_first_round(struct dm_greeting *greeting)
{
    if (login_of(greeting).password)
        plan(greeting, DM_STEP_AUTH);
    if (greeting->role == DM_GREETS_FOR_MAP) {
        plan(greeting, DM_STEP_INFO);
        return;
    }
    plan(greeting, DM_STEP_ROLE);
    if (greeting->role == DM_GREETS_FOR_INBOX) {
        plan(greeting, DM_STEP_INFO);
        if (greeting->inbox)
            plan(greeting, DM_STEP_SUBSCRIBE);
        return;
    }
    if (greeting->url->db)
        plan(greeting, DM_STEP_SELECT);
    plan(greeting, DM_STEP_ID);
    plan(greeting, DM_STEP_INFO);
    if (greeting->is_clustered && !greeting->tag[0])
        return; /* all slots are on other nodes: no key of ours can be touched, and nothing is granted */
    plan(greeting, DM_STEP_PROBE);
    if (__atomic_load_n(&greeting->url->has_grace, __ATOMIC_RELAXED))
        plan(greeting, DM_STEP_BORN);
}

/*
 * After a restart of the server the old connection is gone, and its number belongs to another client.  So nobody is
 * killed unless the server is known to be the same.
 */
static void plan_second_round(struct dm_greeting *greeting)
{
    if (!dm_server_is_same_run(&greeting->server, &greeting->old_server))
        greeting->old_client_id = 0;
    if (greeting->old_client_id)
        plan(greeting, DM_STEP_KILL);
}

/* Words without numbers, up to NULL. */
static void write_words(struct dm_args *args, const char *const *words)
{
    while (*words)
        dm_args_text(args, *words++);
}

/*
 * By text, not by hash, so that the probe also shows whether scripts may be loaded.  Its keys are random, so that no
 * other client's key is in the way.
 */
static void write_probe(const struct dm_greeting *greeting, struct dm_args *args, char room[3][160])
{
    const char *prefix = greeting->url->prefix;

    if (greeting->is_clustered) {
        snprintf(room[0], 160, "%s:{%s}:state:~probe.%016" PRIx64, prefix, greeting->tag, greeting->probe);
        snprintf(room[1], 160, "%s:{%s}:queue:~probe.%016" PRIx64, prefix, greeting->tag, greeting->probe);
        snprintf(room[2], 160, "%s:{%s}:inbox:probe", prefix, greeting->tag);
    } else {
        snprintf(room[0], 160, "%s:{~probe.%016" PRIx64 "}:state", prefix, greeting->probe);
        snprintf(room[1], 160, "%s:{~probe.%016" PRIx64 "}:queue", prefix, greeting->probe);
        snprintf(room[2], 160, "%s:inbox:probe", prefix);
    }
    dm_args_text(args, "EVAL");
    dm_args_text(args, greeting->is_clustered ? dm_lua_probe_cluster : dm_lua_probe);
    dm_args_text(args, "2");
    for (int i = 0; i < 3; i++)
        dm_args_text(args, room[i]);
}

/*
 * By text as well, once per connection.  The mark is one key for all clients of a prefix; a node of a Cluster has it in
 * one of its own slots.
 */
static void write_born(const struct dm_greeting *greeting, struct dm_args *args, char room[160])
{
    if (greeting->is_clustered)
        snprintf(room, 160, "%s:{%s}:server", greeting->url->prefix, greeting->tag);
    else
        snprintf(room, 160, "%s:server", greeting->url->prefix);
    dm_args_text(args, "EVAL");
    dm_args_text(args, greeting->is_clustered ? dm_lua_born_cluster : dm_lua_born);
    dm_args_text(args, "1");
    dm_args_text(args, room);
    if (greeting->config)
        dm_args_number(args, greeting->config);
    if (greeting->url->is_part)
        write_words(args, (const char *const[]){ "", "part", NULL });
}

static void write_login(struct dm_login login, struct dm_args *args)
{
    dm_args_text(args, "AUTH");
    if (login.user)
        dm_args_text(args, login.user);
    dm_args_text(args, login.password);
}

/* `room` holds the texts made here until the command is formatted. */
static void write_step(const struct dm_greeting *greeting, enum dm_greeting_step step, struct dm_args *args,
                       char room[3][160])
{
    const struct dm_url *url = greeting->url;

    switch (step) {
    case DM_STEP_AUTH:
        write_login(login_of(greeting), args);
        return;
    case DM_STEP_SELECT:
        dm_args_text(args, "SELECT");
        dm_args_number(args, url->db);
        return;
    case DM_STEP_ID:
        write_words(args, (const char *const[]){ "CLIENT", "ID", NULL });
        return;
    case DM_STEP_ROLE:
        dm_args_text(args, "ROLE");
        return;
    case DM_STEP_INFO:
        write_words(args, (const char *const[]){ "INFO", "server", "memory", "replication", NULL });
        return;
    case DM_STEP_PROBE:
        write_probe(greeting, args, room);
        return;
    case DM_STEP_BORN:
        write_born(greeting, args, room[0]);
        return;
    case DM_STEP_KILL:
        write_words(args, (const char *const[]){ "CLIENT", "KILL", "ID", NULL });
        dm_args_number(args, greeting->old_client_id);
        return;
    case DM_STEP_IDENTIFY:
        write_words(args, (const char *const[]){ "INFO", "server", "replication", NULL });
        return;
    case DM_STEP_SUBSCRIBE:
        write_words(args, (const char *const[]){ "SUBSCRIBE", greeting->inbox, NULL });
        return;
    }
}

/* One write for a whole round, so that a greeting costs one round trip, not one per command. */
static bool append(struct dm_command *all, const struct dm_command *one)
{
    char *bytes = one->bytes ? realloc(all->bytes, all->length + one->length + 1) : NULL;

    if (!bytes)
        return false;
    memcpy(bytes + all->length, one->bytes, one->length + 1); /* with its NUL, as in a single command */
    all->bytes = bytes;
    all->length += one->length;
    return true;
}

/* 8 arguments are enough for each step; dm_args_bytes() aborts the process at a miscount. */
static struct dm_command format_step(const struct dm_greeting *greeting, enum dm_greeting_step step)
{
    struct dm_args args;
    struct dm_command command;
    char room[3][160];

    if (dm_args_init(&args, 8, 1) < 0)
        return (struct dm_command){ 0 };
    write_step(greeting, step, &args, room);
    command = dm_args_format(&args);
    dm_args_free(&args);
    return command;
}

static bool append_step(const struct dm_greeting *greeting, enum dm_greeting_step step, struct dm_command *all)
{
    struct dm_command command = format_step(greeting, step);
    bool is_done = append(all, &command);

    dm_command_free(&command);
    return is_done;
}

/* A third round has no steps: the greeting is over.  A round cut short by a lack of memory is not sent. */
struct dm_command dm_greeting_round(struct dm_greeting *greeting)
{
    struct dm_command all = { 0 };
    bool is_whole = true;

    greeting->step_count = greeting->steps_done = 0;
    greeting->round++;
    if (greeting->round == 1)
        plan_first_round(greeting);
    else if (greeting->round == 2)
        plan_second_round(greeting);
    for (int i = 0; i < greeting->step_count; i++)
        is_whole = is_whole && append_step(greeting, greeting->steps[i], &all);
    if (!is_whole) {
        free(all.bytes);
        all.bytes = NULL;
    }
    return all;
}

/* INFO without "memory" is cheaper; a server that has not given its identity is only asked for its role. */
struct dm_command dm_greeting_identify(const struct dm_greeting *greeting)
{
    return format_step(greeting, greeting->server.run ? DM_STEP_IDENTIFY : DM_STEP_ROLE);
}

/* A replica may become a master later, so the link tries again, with its pauses. */
static bool take_role(const redisReply *reply, char *ret_reason)
{
    if (dm_reply_is(reply, "master"))
        return true;
    snprintf(ret_reason, DM_REASON_ROOM, "the server is not a master (ROLE says %.40s)%s",
             reply->type == REDIS_REPLY_ARRAY && reply->elements && reply->element[0]->str ? reply->element[0]->str
                                                                                           : "nothing we know",
             dm_reply_is(reply, "sentinel") ? ": sentinels are named by redis+sentinel://host1,host2/master-name" : "");
    return false;
}

/* Copies the value of a line "key:value\r\n" of INFO; "" if there is none. */
static void find_line(const char *info, const char *key, char *value, size_t size)
{
    const char *at = strstr(info, key);

    value[0] = '\0';
    if (at)
        snprintf(value, size, "%.*s", (int)strcspn(at + strlen(key), "\r\n"), at + strlen(key));
}

/*
 * The epoch: a promotion draws a new master_replid, and keeps the previous one as the second.  A new id without a
 * second is not a promotion: the master's first replica has come, or the last one has been gone for an hour.
 */
static struct dm_server server_of(const char *info)
{
    struct dm_server server = { 0 };
    char run_id[48], replid[48], second[48];

    find_line(info, "\nrun_id:", run_id, sizeof run_id);
    find_line(info, "\nmaster_replid:", replid, sizeof replid);
    find_line(info, "\nmaster_replid2:", second, sizeof second);
    server.run = dm_server_read_run(run_id);
    if (strspn(second, "0") < strlen(second))
        server.epoch = dm_server_read_run(replid);
    return server;
}

/* A node of a Cluster has only some of the names, and redirects clients for all others.  Valkey has another key. */
static bool is_clustered(const char *info)
{
    char mode[16];

    find_line(info, "\nredis_mode:", mode, sizeof mode);
    if (!mode[0])
        find_line(info, "\nserver_mode:", mode, sizeof mode);
    return strcmp(mode, "cluster") == 0;
}

/* A missing right is missing on every connection, so it is logged once. */
static void warn_once(struct dm_greeting *greeting, enum dm_greeting_step step, const char *warning)
{
    if (!(greeting->warned & 1u << step))
        dm_log_warn("%s", warning);
    greeting->warned |= 1u << step;
}

/*
 * Before 7.0 INFO took one section at most.  The probe would fail, too, but with an error about the text of a script.
 */
static bool is_too_old(const redisReply *reply)
{
    char version[16] = "";

    if (reply->type == REDIS_REPLY_ERROR)
        return strncmp(reply->str, "ERR syntax error", 16) == 0;
    if (reply->type == REDIS_REPLY_STRING)
        find_line(reply->str, "\nredis_version:", version, sizeof version);
    return version[0] && atoi(version) < 7;
}

/* A server that evicts keys under memory pressure evicts locks. */
static bool take_info(struct dm_greeting *greeting, const redisReply *reply, char *ret_reason)
{
    char policy[40];

    if (is_too_old(reply)) {
        snprintf(ret_reason, DM_REASON_ROOM,
                 "the server is older than Redis 7.0: install Redis 7.0 or later, or Valkey");
        return false;
    }
    if (reply->type != REDIS_REPLY_STRING) {
        if (greeting->role == DM_GREETS_FOR_COMMANDS)
            warn_once(greeting, DM_STEP_INFO,
                      "INFO is not permitted: whether the server may evict keys is not known, and each handoff takes a "
                      "round trip more");
        return true;
    }
    greeting->server = server_of(reply->str);
    if (is_clustered(reply->str) != greeting->is_clustered) {
        snprintf(ret_reason, DM_REASON_ROOM,
                 greeting->is_clustered
                     ? "the server is not a node of a Cluster: write redis:// instead of redis+cluster://"
                     : "the server is a node of a Cluster: write redis+cluster:// instead of redis://");
        return false;
    }
    find_line(reply->str, "\nmaxmemory_policy:", policy, sizeof policy);
    if (!policy[0] || strcmp(policy, "noeviction") == 0 || greeting->url->may_evict)
        return true;
    snprintf(ret_reason, DM_REASON_ROOM,
             "the server may evict locks: set maxmemory-policy to noeviction (it is %s), or add eviction=allow",
             policy);
    return false;
}

/* Without the number, commands of a broken connection may still take effect; what they take ends with its lease. */
static void take_id(struct dm_greeting *greeting, const redisReply *reply)
{
    if (reply->type == REDIS_REPLY_INTEGER && reply->integer > 0)
        greeting->client_id = (uint64_t)reply->integer;
    else
        warn_once(greeting, DM_STEP_ID,
                  "CLIENT ID is not permitted: commands of a broken connection may still run late");
}

/* Without the server's birth there is no grace. */
static void take_born(struct dm_greeting *greeting, const redisReply *reply)
{
    if (reply->type == REDIS_REPLY_INTEGER && reply->integer > 0)
        greeting->server.since_us = (uint64_t)reply->integer;
    else
        warn_once(greeting, DM_STEP_BORN,
                  "the server does not say how long it has existed: after a failover two threads may own a mutex");
}

/* "Not permitted" is an answer; a server that is merely not ready is asked again, in a new greeting. */
static bool take_kill(struct dm_greeting *greeting, const redisReply *reply, char *ret_reason)
{
    if (reply->type == REDIS_REPLY_ERROR && dm_reply_row(reply) != DM_ROW_REFUSED) {
        snprintf(ret_reason, DM_REASON_ROOM, "CLIENT KILL failed: %.200s", reply->str);
        return false;
    }
    if (reply->type != REDIS_REPLY_INTEGER)
        warn_once(greeting, DM_STEP_KILL,
                  "CLIENT KILL is not permitted: commands of a broken connection may still run late");
    greeting->old_client_id = 0;
    return true;
}

/*
 * A server with maxclients connections says so before it has read anything, and closes: what looks like the reply to
 * the first command is not.
 */
static bool is_turned_away(const redisReply *reply, char *ret_reason)
{
    if (reply->type != REDIS_REPLY_ERROR || strncmp(reply->str, "ERR max number of clients", 25) != 0)
        return false;
    snprintf(ret_reason, DM_REASON_ROOM,
             "the server has as many clients as its maxclients allows: raise that, or find idle ones by CLIENT LIST");
    return true;
}

static bool take_auth(struct dm_greeting *greeting, const redisReply *reply, char *ret_reason)
{
    static const char *const delays[] = { "LOADING", "BUSY", "MASTERDOWN" };
    const char *code;

    if (reply->type != REDIS_REPLY_ERROR)
        return true;
    code = dm_reply_code(reply, delays, DM_COUNT(delays));
    if (code) {
        snprintf(ret_reason, DM_REASON_ROOM, "the server is not ready: %s", code);
        return false;
    }
    code = dm_reply_refusal(reply);
    greeting->is_denied = true;
    snprintf(ret_reason, DM_REASON_ROOM, "the password or user is refused: %s%s", code,
             strcmp(code, "ERR") == 0 ? " (has the server another name for AUTH, or no password?)" : "");
    return false;
}

/* Accepts any reply that is not an error. */
static bool take_plain(enum dm_greeting_step step, const redisReply *reply, char *ret_reason)
{
    static const char *const meanings[] = {
        [DM_STEP_SELECT] = "the database cannot be selected",
        [DM_STEP_ROLE] = "ROLE failed",
        [DM_STEP_PROBE] = "the probe failed",
        [DM_STEP_BORN] = "the server's mark cannot be read",
        [DM_STEP_SUBSCRIBE] = "the inbox cannot be subscribed",
    };

    if (reply->type != REDIS_REPLY_ERROR)
        return true;
    snprintf(ret_reason, DM_REASON_ROOM, "%s: %.200s", meanings[step], reply->str);
    return false;
}

/* The mark has one name for all clients, so another program may have used that key. */
static bool take_mark(struct dm_greeting *greeting, const redisReply *reply, char *ret_reason)
{
    if (reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, "WRONGTYPE", 9) == 0) {
        snprintf(ret_reason, DM_REASON_ROOM,
                 "the key %.70s:server is not the library's: find out who writes it, and delete it",
                 greeting->url->prefix);
        return false;
    }
    if (!take_plain(DM_STEP_BORN, reply, ret_reason))
        return false;
    take_born(greeting, reply);
    return true;
}

/* The keys were not there, because their slot is moving away: keys of another slot will do. */
static void note_tag(struct dm_greeting *greeting, const redisReply *reply)
{
    greeting->is_tag_under_way = greeting->is_tag_under_way ||
                                 (greeting->is_clustered && reply->type == REDIS_REPLY_ERROR &&
                                  (strncmp(reply->str, "ASK ", 4) == 0 || strncmp(reply->str, "TRYAGAIN", 8) == 0));
}

static bool take_step(struct dm_greeting *greeting, enum dm_greeting_step step, const redisReply *reply,
                      char ret_reason[DM_REASON_ROOM])
{
    if (step == DM_STEP_PROBE || step == DM_STEP_BORN)
        note_tag(greeting, reply);
    switch (step) {
    case DM_STEP_AUTH:
        return take_auth(greeting, reply, ret_reason);
    case DM_STEP_ID:
        take_id(greeting, reply);
        return true;
    case DM_STEP_BORN:
        return take_mark(greeting, reply, ret_reason);
    case DM_STEP_KILL:
        return take_kill(greeting, reply, ret_reason);
    case DM_STEP_INFO:
        return take_info(greeting, reply, ret_reason);
    case DM_STEP_ROLE:
        return take_plain(step, reply, ret_reason) && take_role(reply, ret_reason);
    default:
        return take_plain(step, reply, ret_reason);
    }
}

/* There is one reply for each step: the session counts them. */
bool dm_greeting_take(struct dm_greeting *greeting, const redisReply *reply, char ret_reason[DM_REASON_ROOM])
{
    enum dm_greeting_step step = greeting->steps[greeting->steps_done++];

    greeting->is_denied = dm_reply_is_denial(reply);
    return !is_turned_away(reply, ret_reason) && take_step(greeting, step, reply, ret_reason);
}

/* A promotion changes the epoch, a restart the run id, a demotion the role: each makes it another server to us. */
static bool is_unchanged(const struct dm_greeting *greeting, const char *info, char *ret_reason)
{
    struct dm_server server = server_of(info);
    char role[16];

    find_line(info, "\nrole:", role, sizeof role);
    if (strcmp(role, "master") == 0 && dm_server_is_same(&server, &greeting->server))
        return true;
    snprintf(ret_reason, DM_REASON_ROOM, "the server is no longer the one it was (its role is now %.15s)", role);
    return false;
}

/* If the server gave no identity in the greeting, only its role can be checked. */
enum dm_identified dm_greeting_take_identity(const struct dm_greeting *greeting, const redisReply *reply,
                                             char ret_reason[DM_REASON_ROOM])
{
    bool is_same = false;

    if (!greeting->server.run)
        is_same = take_plain(DM_STEP_ROLE, reply, ret_reason) && take_role(reply, ret_reason);
    else if (reply->type == REDIS_REPLY_STRING)
        is_same = is_unchanged(greeting, reply->str, ret_reason);
    else
        snprintf(ret_reason, DM_REASON_ROOM, "the server does not say any more who it is: %.200s",
                 reply->type == REDIS_REPLY_ERROR ? reply->str : "INFO is not text");
    if (dm_reply_row(reply) == DM_ROW_RETRY)
        return DM_IDENTIFIED_BUSY;
    return is_same ? DM_IDENTIFIED_SAME : DM_IDENTIFIED_OTHER;
}
