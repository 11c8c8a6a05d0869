/* SPDX-License-Identifier: BSD-2-Clause */
#include "side.h"

#include <errno.h>
#include <hiredis.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "testlib.h"

struct side {
    char path[108];
    redisContext *context;
    char *text;
    char error[256];
};

/* NULL if nobody answers there. */
static redisContext *connect_to(const char *path)
{
    const struct timeval patience = { .tv_sec = 10 };
    redisContext *context = redisConnectUnixWithTimeout(path, patience);
    redisReply *reply = NULL;
    bool is_there;

    if (context && !context->err) {
        redisSetTimeout(context, (struct timeval){ .tv_sec = 30 });
        reply = redisCommand(context, "PING");
    }
    is_there = reply && reply->type == REDIS_REPLY_STATUS;
    if (reply)
        freeReplyObject(reply);
    if (is_there || !context)
        return context;
    redisFree(context);
    return NULL;
}

struct side *side_try_open(const char *path)
{
    redisContext *context = connect_to(path);
    struct side *side = context ? calloc(1, sizeof *side) : NULL;

    if (!side)
        return NULL;
    snprintf(side->path, sizeof side->path, "%s", path);
    side->context = context;
    return side;
}

void side_close(struct side *side)
{
    if (!side)
        return;
    redisFree(side->context);
    free(side->text);
    free(side);
}

/* The server may have closed the connection: hiredis still writes to it, and the signal must not reach the test. */
static redisReply *ask_without_signal(redisContext *context, const char *format, va_list arguments)
{
    const struct timespec now = { 0 };
    sigset_t pipe_signal, before;
    redisReply *reply;
    int error;

    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
    reply = redisvCommand(context, format, arguments);
    error = errno; /* for tests that check errno */
    while (sigtimedwait(&pipe_signal, NULL, &now) == SIGPIPE)
        continue;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = error;
    return reply;
}

/*
 * The reply, or NULL with the reason in side->error.  Sentinels close all connections of a server that they promote or
 * demote, so the question is repeated once on a new connection.
 */
static redisReply *ask(struct side *side, const char *format, va_list arguments)
{
    redisContext *context = NULL;
    redisReply *reply;
    va_list again;

    va_copy(again, arguments);
    reply = ask_without_signal(side->context, format, arguments);
    if (!reply)
        context = connect_to(side->path);
    if (context) {
        redisFree(side->context);
        side->context = context;
        reply = ask_without_signal(context, format, again);
    }
    va_end(again);
    if (reply && reply->type != REDIS_REPLY_ERROR)
        return reply;
    snprintf(side->error, sizeof side->error, "%s", reply ? reply->str : side->context->errstr);
    if (reply)
        freeReplyObject(reply);
    return NULL;
}

static redisReply *must_ask(struct side *side, const char *format, va_list arguments)
{
    redisReply *reply = ask(side, format, arguments);

    if (!reply)
        fail_msg("%s: %s", format, side->error);
    return reply;
}

int64_t side_int(struct side *side, const char *format, ...)
{
    redisReply *reply;
    va_list arguments;
    int64_t value;

    va_start(arguments, format);
    reply = must_ask(side, format, arguments);
    va_end(arguments);
    value = reply->type == REDIS_REPLY_INTEGER ? reply->integer : -1;
    if (reply->type == REDIS_REPLY_STRING)
        value = strtoll(reply->str, NULL, 10);
    freeReplyObject(reply);
    return value;
}

void side_write_reply(FILE *out, const redisReply *reply)
{
    switch (reply->type) {
    case REDIS_REPLY_ARRAY:
        for (size_t i = 0; i < reply->elements; i++) {
            if (i > 0)
                fputc('\n', out);
            side_write_reply(out, reply->element[i]);
        }
        break;
    case REDIS_REPLY_INTEGER:
        fprintf(out, "%lld", reply->integer);
        break;
    case REDIS_REPLY_NIL:
        break;
    default:
        fwrite(reply->str, 1, (size_t)reply->len, out);
    }
}

/* Keeps the reply as text, and frees it. */
static const char *keep(struct side *side, redisReply *reply)
{
    bool is_nil = reply->type == REDIS_REPLY_NIL;
    size_t length;
    FILE *out;

    free(side->text);
    side->text = NULL;
    out = open_memstream(&side->text, &length);
    side_write_reply(out, reply);
    fclose(out);
    freeReplyObject(reply);
    return is_nil ? NULL : side->text;
}

const char *side_text(struct side *side, const char *format, ...)
{
    redisReply *reply;
    va_list arguments;

    va_start(arguments, format);
    reply = must_ask(side, format, arguments);
    va_end(arguments);
    return keep(side, reply);
}

bool side_says(struct side *side, const char *words, const char *format, ...)
{
    redisReply *reply;
    va_list arguments;
    const char *text;

    va_start(arguments, format);
    reply = ask(side, format, arguments);
    va_end(arguments);
    text = reply ? keep(side, reply) : NULL;
    return text && strstr(text, words);
}

bool side_info_says(struct side *side, const char *words)
{
    return strstr(side_text(side, "INFO"), words) != NULL;
}

bool side_try(struct side *side, const char *format, ...)
{
    redisReply *reply;
    va_list arguments;

    va_start(arguments, format);
    reply = ask(side, format, arguments);
    va_end(arguments);
    if (reply)
        freeReplyObject(reply);
    return reply != NULL;
}

const char *side_error(const struct side *side)
{
    return side->error;
}

static int compare_keys(const void *a, const void *b)
{
    return strcmp((*(redisReply *const *)a)->str, (*(redisReply *const *)b)->str);
}

const char *side_keys(struct side *side)
{
    redisReply *reply = redisCommand(side->context, "KEYS *");

    assert_non_null(reply);
    if (reply->elements)
        qsort(reply->element, reply->elements, sizeof *reply->element, compare_keys);
    return keep(side, reply);
}

static int count_elements(redisReply *reply)
{
    int count;

    assert_non_null(reply);
    assert_int_equal(reply->type, REDIS_REPLY_ARRAY);
    count = (int)reply->elements;
    freeReplyObject(reply);
    return count;
}

int side_count_keys(struct side *side, const char *pattern)
{
    return count_elements(redisCommand(side->context, "KEYS %s", pattern));
}

bool side_has_replicas(struct side *side, const char *key, int replicas)
{
    redisReply *reply = NULL;
    bool has;

    if (side_try(side, "SET %s 1 PX 100", key))
        reply = redisCommand(side->context, "WAIT %d 1000", replicas);
    has = reply && reply->type == REDIS_REPLY_INTEGER && reply->integer >= replicas;
    freeReplyObject(reply);
    return has;
}

int side_count_channels(struct side *side)
{
    return count_elements(redisCommand(side->context, "PUBSUB CHANNELS"));
}

/* Adds up the calls in all lines "cmdstat_NAME:calls=N,..." whose name is wanted. */
static int64_t add_calls(struct side *side, bool (*is_wanted)(const char *, const char *), const char *user)
{
    const char *line = side_text(side, "INFO commandstats");
    int64_t sum = 0;

    while ((line = strstr(line, "cmdstat_"))) {
        char name[64];
        long long calls;

        if (sscanf(line, "cmdstat_%63[^:]:calls=%lld", name, &calls) == 2 && is_wanted(name, user))
            sum += calls;
        line++;
    }
    return sum;
}

static bool is_same(const char *name, const char *command)
{
    return strcasecmp(name, command) == 0;
}

/* Commands that none of our scripts calls and that no test sends over a side connection. */
static bool is_from_client(const char *name, const char *user)
{
    static const char *const sent[] = { "eval", "evalsha", "script", "ping",   "client",  "subscribe", "unsubscribe",
                                        "role", "hello",   "auth",   "select", "cluster", "ssubscribe" };

    (void)user;
    if (strcmp(name, "client|id") == 0)
        return false;
    for (size_t i = 0; i < sizeof sent / sizeof sent[0]; i++) {
        size_t length = strlen(sent[i]);

        if (strncmp(name, sent[i], length) == 0 && (name[length] == '\0' || name[length] == '|'))
            return true;
    }
    return false;
}

int64_t side_client_commands(struct side *side)
{
    return add_calls(side, is_from_client, NULL);
}

int64_t side_calls(struct side *side, const char *command)
{
    return add_calls(side, is_same, command);
}

void side_set_control(struct side *side, const char *name, int64_t ms)
{
    side_text(side, "SET control:%s 1 PX %lld", name, (long long)ms);
}

void side_set_bound(struct side *side, const char *name, int ms)
{
    side_set_control(side, name, late_stretched_ms(ms));
}

bool side_is_control_over(struct side *side, const char *name)
{
    return side_int(side, "EXISTS control:%s", name) == 0;
}

/* A control may last longer than the limit of wait_until(). */
void side_await_control(struct side *side, const char *name)
{
    int64_t left_ms = side_int(side, "PTTL control:%s", name), began_ms = wait_now_ms();

    while (!side_is_control_over(side, name)) {
        if (wait_now_ms() > began_ms + (left_ms > 0 ? left_ms : 0) + WAIT_LIMIT_MS)
            wait_fail("a control ends", __FILE__, __LINE__);
        wait_pause(began_ms);
    }
}
