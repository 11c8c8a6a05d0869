/* SPDX-License-Identifier: BSD-2-Clause */
#include "stores/redis/sentinel/sentinel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "stores/redis/wire/reply.h"
#include "stores/redis/wire/tls_of.h"

/* How often within `switch` a sentinel's messages count. */
#define HEEDED_IN_SWITCH 4

static const char moved[] = "another sentinel stands in its place";

/* ---- the greeting ------------------------------------------------------------------------ */

/*
 * The address that the link is opened to; a certificate is made out to it, unless the URL gives another name.  The
 * first time without a lock, because nobody else has the link yet.
 */
static enum dm_located locate(void *user, struct dm_link_options *options, char ret_reason[DM_REASON_ROOM])
{
    struct dm_sentinel_greeting *greeting = user;
    const struct dm_sentinel *sentinel = greeting->sentinel;

    (void)ret_reason;
    greeting->move = __atomic_load_n(&sentinel->moves, __ATOMIC_ACQUIRE);
    memcpy(greeting->host, sentinel->host, sizeof greeting->host);
    memcpy(greeting->port, sentinel->port, sizeof greeting->port);
    options->address = (struct dm_address){ .host = greeting->host, .port = greeting->port };
    if (!sentinel->url->servername)
        options->tls.name = greeting->host;
    snprintf(options->name, sizeof options->name, "the sentinel %.90s",
             dm_url_place(greeting->host, greeting->port).text);
    return DM_LOCATED;
}

/* A link that dm_sentinel_move() closes right after its greeting finds out here. */
static bool is_at_place(void *user, bool is_for_any, char ret_reason[DM_REASON_ROOM])
{
    const struct dm_sentinel_greeting *greeting = user;

    (void)is_for_any;
    dm_assert_held(DM_RANK_CONN);
    if (greeting->move == __atomic_load_n(&greeting->sentinel->moves, __ATOMIC_ACQUIRE))
        return true;
    snprintf(ret_reason, DM_REASON_ROOM, "%s", moved);
    return false;
}

static void begin(void *user)
{
    struct dm_sentinel_greeting *greeting = user;

    dm_assert_held(DM_RANK_CONN);
    greeting->steps = greeting->round = 0;
}

static bool has_login(const struct dm_sentinel_greeting *greeting)
{
    return greeting->sentinel->url->sentinel_password != NULL;
}

/* Frees `args`.  False without memory. */
static bool append(struct dm_command *all, struct dm_args *args)
{
    struct dm_command one = dm_args_format(args);
    char *bytes = one.bytes ? realloc(all->bytes, all->length + one.length + 1) : NULL;

    if (bytes) {
        memcpy(bytes + all->length, one.bytes, one.length + 1);
        all->bytes = bytes;
        all->length += one.length;
    }
    dm_command_free(&one);
    dm_args_free(args);
    return bytes != NULL;
}

static bool append_login(const struct dm_url *url, struct dm_command *all)
{
    struct dm_args args;

    if (dm_args_init(&args, 3, 0) < 0)
        return false;
    dm_args_text(&args, "AUTH");
    if (url->sentinel_user)
        dm_args_text(&args, url->sentinel_user);
    dm_args_text(&args, url->sentinel_password);
    return append(all, &args);
}

static bool append_words(struct dm_command *all, const char *first, const char *second)
{
    struct dm_args args;

    if (dm_args_init(&args, 2, 0) < 0)
        return false;
    dm_args_text(&args, first);
    dm_args_text(&args, second);
    return append(all, &args);
}

/* One round: the login, and the sentinel's id or the subscription. */
static int next_round(void *user, struct dm_command *ret_round)
{
    struct dm_sentinel_greeting *greeting = user;
    struct dm_command all = { 0 };
    bool is_whole = true;

    dm_assert_held(DM_RANK_CONN);
    if (greeting->round++ > 0)
        return 0;
    if (has_login(greeting))
        is_whole = append_login(greeting->sentinel->url, &all);
    is_whole = is_whole && (greeting->is_ear ? append_words(&all, "SUBSCRIBE", "+switch-master")
                                             : append_words(&all, "SENTINEL", "MYID"));
    if (!is_whole) {
        free(all.bytes);
        all.bytes = NULL;
    }
    *ret_round = all;
    return 1 + has_login(greeting);
}

/* The text of an error, after a hint if the usual mistake is known. */
static bool complain(const redisReply *reply, char ret_reason[DM_REASON_ROOM])
{
    const char *text = reply->type == REDIS_REPLY_ERROR ? reply->str : "an answer of unknown shape";
    const char *hint = "";

    if (strncmp(text, "ERR unknown command", 19) == 0)
        hint = "is not a sentinel: a server with data is listed as a sentinel: ";
    else if (strncmp(text, "NOPERM", 6) == 0)
        hint = "give the sentinels' user the rights that dmutex acl prints: ";
    else if (strncmp(text, "NOAUTH", 6) == 0)
        hint = "give the sentinels' login by sentinel_user and sentinel_password_file: ";
    snprintf(ret_reason, DM_REASON_ROOM, "%s%.100s", hint, text);
    return false;
}

static bool complain_of_login(const redisReply *reply, char ret_reason[DM_REASON_ROOM])
{
    const char *code = dm_reply_refusal(reply);

    snprintf(ret_reason, DM_REASON_ROOM, "the sentinels' login is refused: %s: %s", code,
             strcmp(code, "ERR") == 0 ? "has this sentinel no password, or another name for AUTH?"
                                      : "correct sentinel_user and sentinel_password_file");
    return false;
}

/* Only digits distinguish sentinels, so nothing else is an id. */
static bool is_id(const char *text)
{
    return strlen(text) == DM_SENTINEL_ID - 1 && strspn(text, "0123456789abcdef") == DM_SENTINEL_ID - 1;
}

static void set_denied(struct dm_sentinel *sentinel, bool is_denied)
{
    __atomic_store_n(&sentinel->is_denied, is_denied, __ATOMIC_RELAXED);
}

static bool take(void *user, const redisReply *reply, char ret_reason[DM_REASON_ROOM])
{
    struct dm_sentinel_greeting *greeting = user;
    bool is_login = has_login(greeting) && greeting->steps++ == 0;

    dm_assert_held(DM_RANK_CONN);
    if (reply->type == REDIS_REPLY_ERROR)
        set_denied(greeting->sentinel, is_login || dm_reply_is_denial(reply));
    if (reply->type == REDIS_REPLY_ERROR)
        return is_login ? complain_of_login(reply, ret_reason) : complain(reply, ret_reason);
    if (is_login || greeting->is_ear)
        return true;
    if (reply->type != REDIS_REPLY_STRING || !is_id(reply->str))
        return complain(reply, ret_reason);
    snprintf(greeting->sentinel->id, DM_SENTINEL_ID, "%s", reply->str);
    return true;
}

/* All have the same number: sentinels are distinguished by their ids, and no command is written for a certain one. */
static uint64_t ready(void *user)
{
    (void)user;
    return 1;
}

/* ---- the hooks of the links -------------------------------------------------------------- */

static void asks_ready(void *user)
{
    struct dm_sentinel *sentinel = user;

    sentinel->hooks->on_ready(sentinel->hooks->user, sentinel, sentinel->id);
}

/* The subscription to switches is open: one may have been missed before. */
static void hears_ready(void *user)
{
    const struct dm_sentinel *sentinel = user;

    sentinel->hooks->on_switch(sentinel->hooks->user);
}

/* "NAME ADDRESS PORT ADDRESS PORT": the master's name, where it was, and where it is. */
static bool is_of_our_group(const struct dm_sentinel *sentinel, const redisReply *message)
{
    const redisReply *text = message->type == REDIS_REPLY_ARRAY && message->elements == 3 ? message->element[2] : NULL;
    size_t length = strlen(sentinel->url->master);

    return text && text->type == REDIS_REPLY_STRING && (size_t)text->len > length &&
           memcmp(text->str, sentinel->url->master, length) == 0 && text->str[length] == ' ';
}

/*
 * The message is only a reason to ask, and each sentinel's messages count only now and then: one that reports endless
 * switches must not make all processes ask all sentinels endlessly.
 */
static void take_message(void *user, const redisReply *reply, uint64_t peer)
{
    struct dm_sentinel *sentinel = user;
    int64_t now_ns = dm_clock_boot_ns();

    (void)peer;
    if (!is_of_our_group(sentinel, reply) || now_ns < sentinel->heed_ns)
        return;
    sentinel->heed_ns = now_ns + sentinel->url->switch_ms * (DM_NS_PER_MS / HEEDED_IN_SWITCH);
    sentinel->hooks->on_switch(sentinel->hooks->user);
}

static void note_change(void *user)
{
    const struct dm_sentinel *sentinel = user;

    sentinel->hooks->on_change(sentinel->hooks->user);
}

/* ---- start and end ------------------------------------------------------------------- */

/* A sentinel must answer within the time for which an answer counts. */
static unsigned timeout_of(const struct dm_url *url, unsigned timeout_ms)
{
    return timeout_ms < url->switch_ms / 2 ? timeout_ms : url->switch_ms / 2;
}

static struct dm_link *open_link(struct dm_sentinel *sentinel, struct dm_sentinel_greeting *greeting,
                                 void (*on_ready)(void *user))
{
    const struct dm_url *url = sentinel->url;
    struct dm_link_options options = {
        .tls = dm_redis_tls_of(url),
        .connect_timeout_ms = timeout_of(url, url->connect_timeout_ms),
        .command_timeout_ms = timeout_of(url, url->command_timeout_ms),
        .is_listening = greeting->is_ear,
    };
    static const struct dm_belief belief = { .may_believe = is_at_place };
    const struct dm_greeter greeter = {
        .locate = locate,
        .belief = &belief,
        .begin = begin,
        .round = next_round,
        .take = take,
        .ready = ready,
        .user = greeting,
    };
    char unused[DM_REASON_ROOM];
    const struct dm_link_hooks hooks = {
        .on_ready = on_ready, .on_message = take_message, .on_change = note_change, .user = sentinel
    };

    locate(greeting, &options, unused);
    return dm_link_new(&options, &greeter, &hooks);
}

static void note_place(struct dm_sentinel *sentinel, const char *host, const char *port)
{
    snprintf(sentinel->host, sizeof sentinel->host, "%s", host);
    snprintf(sentinel->port, sizeof sentinel->port, "%s", port);
}

struct dm_sentinel *dm_sentinel_new(const struct dm_url *url, int index, const char *host, const char *port,
                                    const struct dm_sentinel_hooks *hooks)
{
    struct dm_sentinel *sentinel = calloc(1, sizeof *sentinel);

    if (!sentinel)
        return NULL;
    *sentinel = (struct dm_sentinel){ .url = url, .hooks = hooks, .index = index };
    note_place(sentinel, host, port);
    sentinel->asks_greeting = (struct dm_sentinel_greeting){ .sentinel = sentinel };
    sentinel->hears_greeting = (struct dm_sentinel_greeting){ .sentinel = sentinel, .is_ear = true };
    sentinel->asks = open_link(sentinel, &sentinel->asks_greeting, asks_ready);
    sentinel->hears = open_link(sentinel, &sentinel->hears_greeting, hears_ready);
    if (sentinel->asks && sentinel->hears)
        return sentinel;
    dm_sentinel_free_unused(sentinel);
    return NULL;
}

void dm_sentinel_free_unused(struct dm_sentinel *sentinel)
{
    if (!sentinel)
        return;
    dm_link_free_unused(sentinel->asks);
    dm_link_free_unused(sentinel->hears);
    free(sentinel);
}

/*
 * A request under way gets no answer; a name look-up or greeting under way fails, because it was for the old address.
 */
void dm_sentinel_move(struct dm_sentinel *sentinel, const char *host, const char *port)
{
    note_place(sentinel, host, port);
    __atomic_add_fetch(&sentinel->moves, 1, __ATOMIC_RELEASE);
    sentinel->id[0] = '\0';
    sentinel->epoch = 0;
    dm_link_close(sentinel->asks, moved);
    dm_link_close(sentinel->hears, moved);
}

void dm_sentinel_reason(struct dm_sentinel *sentinel, char ret_reason[DM_REASON_ROOM])
{
    dm_link_reason(sentinel->asks, ret_reason);
}

/* ---- questions --------------------------------------------------------------------------- */

/* A request under way. */
struct question {
    struct dm_sentinel *sentinel;
    int64_t sent_ns;
};

static bool is_host(const redisReply *text)
{
    return text->type == REDIS_REPLY_STRING && dm_reply_is_host(text->str, (size_t)text->len);
}

static bool is_port(const char *digits)
{
    uint64_t port;

    return strlen(digits) < DM_SENTINEL_PORT && dm_reply_digits(digits, strlen(digits), &port) && port >= 1 &&
           port <= 65535;
}

/* Nil means that the sentinel knows no master of that name.  False: nonsense. */
static bool read_master(const redisReply *reply, struct dm_master *ret_master)
{
    *ret_master = (struct dm_master){ .host = "" };
    if (reply->type == REDIS_REPLY_NIL)
        return true;
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 || !is_host(reply->element[0]) ||
        reply->element[1]->type != REDIS_REPLY_STRING || !is_port(reply->element[1]->str))
        return false;
    snprintf(ret_master->host, sizeof ret_master->host, "%s", reply->element[0]->str);
    snprintf(ret_master->port, sizeof ret_master->port, "%s", reply->element[1]->str);
    return true;
}

/* A dm_reply_fn. */
static void take_master(void *user, const redisReply *reply)
{
    struct question *question = user;
    struct dm_sentinel *sentinel = question->sentinel;
    struct dm_master master;
    char reason[DM_REASON_ROOM] = "does not say who the master is: is this a sentinel?";

    if (reply)
        set_denied(sentinel, dm_reply_is_denial(reply));
    if (reply && read_master(reply, &master)) {
        dm_link_accept_answer(sentinel->asks);
        master.epoch = sentinel->epoch;
        sentinel->hooks->on_master(sentinel->hooks->user, sentinel, &master, question->sent_ns);
    } else if (reply) {
        if (reply->type == REDIS_REPLY_ERROR)
            complain(reply, reason);
        dm_link_refuse_answer(sentinel->asks, reason);
    }
    free(question);
}

/* The value after the key in a list of keys and values. */
static const char *value_of(const redisReply *pairs, const char *key)
{
    for (size_t i = 0; pairs->type == REDIS_REPLY_ARRAY && i + 1 < pairs->elements; i += 2) {
        if (pairs->element[i]->type == REDIS_REPLY_STRING && strcmp(pairs->element[i]->str, key) == 0 &&
            pairs->element[i + 1]->type == REDIS_REPLY_STRING)
            return pairs->element[i + 1]->str;
    }
    return NULL;
}

/* a dm_reply_fn; without the right to ask there is no epoch */
static void take_epoch(void *user, const redisReply *reply)
{
    struct dm_sentinel *sentinel = user;
    const char *digits = reply ? value_of(reply, "config-epoch") : NULL;
    uint64_t epoch;

    sentinel->epoch = digits && dm_reply_digits(digits, strlen(digits), &epoch) ? epoch + 1 : 0;
}

static bool read_other(const redisReply *pairs, struct dm_other *ret_other)
{
    *ret_other = (struct dm_other){ value_of(pairs, "runid"), value_of(pairs, "ip"), value_of(pairs, "port") };
    return ret_other->id && is_id(ret_other->id) && ret_other->host &&
           dm_reply_is_host(ret_other->host, strlen(ret_other->host)) && ret_other->port && is_port(ret_other->port);
}

#define OTHERS_MOST 64 /* a longer list is nonsense */

/* A dm_reply_fn. */
static void take_others(void *user, const redisReply *reply)
{
    struct dm_sentinel *sentinel = user;
    struct dm_other others[OTHERS_MOST];
    int count = 0;

    if (!reply || reply->type != REDIS_REPLY_ARRAY || reply->elements > OTHERS_MOST)
        return;
    for (size_t i = 0; i < reply->elements; i++)
        count += read_other(reply->element[i], &others[count]);
    sentinel->hooks->on_others(sentinel->hooks->user, sentinel, others, count);
}

/* SENTINEL `word` <the group's name>.  True: the handler is called once. */
static bool post(struct dm_sentinel *sentinel, const char *word, dm_reply_fn handler, void *user)
{
    struct dm_args args;
    struct dm_command command;
    enum dm_link_result result;

    if (dm_args_init(&args, 3, 0) < 0)
        return false;
    dm_args_text(&args, "SENTINEL");
    dm_args_text(&args, word);
    dm_args_text(&args, sentinel->url->master);
    command = dm_args_format(&args);
    result = dm_link_post(sentinel->asks, &command, handler, user);
    dm_command_free(&command);
    dm_args_free(&args);
    return result == DM_LINK_OK;
}

/*
 * Asks for the others first: the answers come in this order, and a single sentinel must not be taken for the majority
 * because no other is known yet.  Then asks for the epoch, which belongs to the address that follows it: a sentinel
 * executes both commands in one turn.
 */
void dm_sentinel_ask(struct dm_sentinel *sentinel, bool with_others)
{
    struct question *question;

    dm_link_want(sentinel->hears);
    dm_link_want(sentinel->asks);
    if (with_others && !post(sentinel, "sentinels", take_others, sentinel))
        return;
    if (!post(sentinel, "master", take_epoch, sentinel))
        return;
    question = malloc(sizeof *question);
    if (!question)
        return;
    *question = (struct question){ sentinel, dm_clock_boot_ns() };
    if (!post(sentinel, "get-master-addr-by-name", take_master, question))
        free(question);
}

/* ---- the loop thread --------------------------------------------------------------------- */

static void watch_link(struct dm_link *link, struct dm_watch *watch)
{
    struct dm_link_watch now;

    dm_link_watch(link, &now);
    dm_watch_poll(watch, now.fd, now.events);
    dm_watch_until(watch, now.due_ns);
}

void dm_sentinel_watch(struct dm_sentinel *sentinel, struct dm_watch *watch)
{
    watch_link(sentinel->asks, watch);
    watch_link(sentinel->hears, watch);
}

void dm_sentinel_turn(struct dm_sentinel *sentinel)
{
    dm_link_work(sentinel->asks);
    dm_link_work(sentinel->hears);
}

void dm_sentinel_end(struct dm_sentinel *sentinel)
{
    dm_link_end(sentinel->asks, "the store has ended");
    dm_link_end(sentinel->hears, "the store has ended");
}

void dm_sentinel_fork_prepare(struct dm_sentinel *sentinel)
{
    dm_link_fork_prepare(sentinel->asks);
    dm_link_fork_prepare(sentinel->hears);
}

void dm_sentinel_fork_parent(struct dm_sentinel *sentinel)
{
    dm_link_fork_parent(sentinel->hears);
    dm_link_fork_parent(sentinel->asks);
}

void dm_sentinel_fork_child(struct dm_sentinel *sentinel)
{
    dm_link_fork_child(sentinel->hears);
    dm_link_fork_child(sentinel->asks);
}
