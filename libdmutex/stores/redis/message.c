/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads messages of an inbox, and passes them to the process.
 *
 *   granted ATTEMPT REQUEST TOKEN LEASE DEAD SERVER    the attempt holds since the request
 *   signalled ATTEMPT POSITION REMAINING               moved from the condition to the queue
 *   lost ATTEMPT                                       the hold was broken by force
 *   ask ATTEMPT                                        something has changed, or may have
 *
 * Any user with the right to publish may write to a channel, so nothing is believed that is not proved by the attempt's
 * number, the request's number and the server; what is not proved leads to a request at most.
 */
#include <string.h>

#include "base/log.h"
#include "stores/redis/parts.h"
#include "stores/redis/wire/reply.h"

/*
 * The numbers of a grant, lua/_offer.lua, and of a signal, lua/_condition.lua.  Each message begins with the attempt.
 */
enum { GRANTED_ATTEMPT, GRANTED_REQUEST, GRANTED_TOKEN, GRANTED_LEASE, GRANTED_DEAD, GRANTED_NUMBERS };
enum { SIGNALLED_ATTEMPT, SIGNALLED_POSITION, SIGNALLED_REMAINING_MS, SIGNALLED_NUMBERS };

/* The most numbers of any message: those of a grant. */
#define MESSAGE_NUMBERS GRANTED_NUMBERS

/* Reads "<word> <number>..." with `count` numbers.  Returns the text after the numbers; NULL: another message. */
static const char *read_words(const char *text, const char *word, int count, uint64_t ret_numbers[MESSAGE_NUMBERS])
{
    size_t length = strlen(word);

    if (strncmp(text, word, length) != 0)
        return NULL;
    text += length;
    for (int i = 0; i < count; i++) {
        if (*text++ != ' ')
            return NULL;
        length = strcspn(text, " ");
        if (!dm_reply_digits(text, length, &ret_numbers[i]))
            return NULL;
        text += length;
    }
    return text;
}

/* The same with nothing after the numbers. */
static bool is_words(const char *text, const char *word, int count, uint64_t ret_numbers[MESSAGE_NUMBERS])
{
    const char *rest = read_words(text, word, count, ret_numbers);

    return rest && *rest == '\0';
}

/* The server follows the numbers; version 0.1.0 does not give it. */
static bool is_grant(const char *text, uint64_t ret_numbers[MESSAGE_NUMBERS], uint64_t *ret_run)
{
    const char *rest = read_words(text, "granted", GRANTED_NUMBERS, ret_numbers);

    if (!rest || ret_numbers[GRANTED_TOKEN] >= DM_TOKEN_LIMIT)
        return false;
    if (*rest == '\0')
        return true;
    if (strspn(rest + 1, "0123456789abcdef") != 16 || rest[17] != '\0')
        return false;
    *ret_run = dm_server_read_run(rest + 1);
    return true;
}

/* Strict to the last byte, because others may write to the channel: anything that is not exactly ours is ignored. */
bool dm_redis_read_message(const char *text, struct dm_message *ret_message, uint64_t *ret_run)
{
    struct dm_message message = { 0 };
    uint64_t numbers[MESSAGE_NUMBERS] = { 0 }, run = 0;

    if (is_words(text, "lost", 1, numbers)) {
        message.kind = DM_MESSAGE_LOST;
    } else if (is_words(text, "ask", 1, numbers)) {
        message.kind = DM_MESSAGE_ASK;
    } else if (is_words(text, "wanted", 1, numbers)) {
        message.kind = DM_MESSAGE_WANTED;
    } else if (is_words(text, "signalled", SIGNALLED_NUMBERS, numbers)) {
        message.kind = DM_MESSAGE_SIGNALLED;
        message.answer = (struct dm_answer){ .verdict = DM_SAYS_QUEUED,
                                             .position = numbers[SIGNALLED_POSITION],
                                             .remaining_ms = dm_redis_span_of(numbers[SIGNALLED_REMAINING_MS]) };
    } else if (is_grant(text, numbers, &run)) {
        message.kind = DM_MESSAGE_GRANTED;
        message.request = numbers[GRANTED_REQUEST];
        message.answer = (struct dm_answer){ .verdict = DM_SAYS_OWNED,
                                             .token = numbers[GRANTED_TOKEN],
                                             .is_owner_dead = numbers[GRANTED_DEAD] == 1 };
    } else {
        return false;
    }
    message.attempt = numbers[0];
    *ret_message = message;
    *ret_run = run;
    return true;
}

/*
 * A grant is believed only if the inbox is connected to the server that made it.  A server passes messages on to its
 * replicas, but does not count receivers there: such a grant is a hint, like one that names no request.
 */
static bool is_hint(uint64_t run, const struct dm_server *server)
{
    return !dm_server_is_same_run(server, &(struct dm_server){ .run = run });
}

/*
 * Called by any thread that reads the inbox.  A hint keeps its attempt, which makes it ask the server: distrust loses
 * no grant, but costs a round trip.  With `wait` each grant is a hint: WAIT counts the replicas that have the writes of
 * one connection, so the attempt's own connection must write and ask.
 */
void dm_redis_hear(struct dm_redis *redis, const char *text, const struct dm_server *server)
{
    struct dm_message message;
    uint64_t run;

    if (!dm_redis_read_message(text, &message, &run)) {
        dm_log_debug("a message of an unknown kind: %.60s", text);
        return;
    }
    if (is_hint(run, server) || redis->route.url->wait)
        message.request = 0;
    redis->host.on_message(redis->host.user, &message);
}
