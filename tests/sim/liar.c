/* SPDX-License-Identifier: BSD-2-Clause */
#include "liar.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "world.h"

/* Below the day by which a token may be ahead of the clocks. */
#define AHEAD_US (UINT64_C(20) * 3600 * 1000000)

static enum liar liar;

void liar_begin(enum liar which)
{
    liar = which;
}

bool liar_is_there(void)
{
    return liar != LIAR_IS_NONE;
}

static bool lies_now(uint32_t one_in)
{
    return chance_below(CHANCE_FAULTS, one_in) == 0;
}

static uint64_t token_at(int64_t now_us)
{
    return (uint64_t)(now_us - INT64_C(1577836800000000));
}

/* A lock that somebody else has, or a place in a queue whose turn never comes. */
static void refuse(int64_t now_us, struct bytes *reply)
{
    switch (chance_below(CHANCE_FAULTS, 4)) {
    case 0:
        bytes_print(reply, "*5\r\n$4\r\nbusy\r\n:1000\r\n:%" PRId64 "\r\n:0\r\n:0\r\n", now_us);
        break;
    case 1:
        bytes_print(reply, "*6\r\n$6\r\nqueued\r\n:1\r\n:1000\r\n:%" PRId64 "\r\n:%" PRId64 "\r\n:0\r\n", now_us,
                    now_us);
        break;
    case 2:
        bytes_print(reply, "*1\r\n$4\r\nfull\r\n");
        break;
    default:
        bytes_print(reply, "-LOADING the dataset is in memory soon\r\n");
    }
}

bool liar_answers(const char *script, int64_t now_us, struct bytes *reply)
{
    if (liar == LIAR_GRANTS && strcmp(script, "acquire") == 0)
        bytes_print(reply, "*4\r\n$5\r\nowned\r\n:%" PRIu64 "\r\n:0\r\n:%" PRId64 "\r\n", token_at(now_us), now_us);
    else if (liar == LIAR_MISLEADS && strcmp(script, "acquire") == 0 && lies_now(4))
        refuse(now_us, reply);
    else if (liar == LIAR_MISLEADS && strcmp(script, "release") == 0 && lies_now(2))
        bytes_print(reply, "$8\r\nreleased\r\n");
    counters.lies += reply->length > 0;
    return reply->length > 0;
}

/* "owned TOKEN DEAD NOW", as the usual acquire says it. */
static void raise_token(struct bytes *reply)
{
    const char *text = strstr(reply->data, "owned ");
    struct bytes raised = { 0 }, whole = { 0 };
    char *rest;
    uint64_t token;

    if (!text || reply->data[0] != '$')
        return;
    token = strtoull(text + 6, &rest, 10);
    counters.lies++;
    bytes_print(&raised, "owned %" PRIu64 "%.*s", token + AHEAD_US, (int)strcspn(rest, "\r"), rest);
    bytes_print(&whole, "$%zu\r\n%s\r\n", raised.length, raised.data);
    free(raised.data);
    free(reply->data);
    *reply = whole;
}

/* The first hold is lost, says the server. */
static void deny_hold(struct bytes *reply)
{
    char *confirmed = reply->data[0] == '*' ? strstr(reply->data, "\r\n:1\r\n") : NULL;

    if (!confirmed)
        return;
    confirmed[3] = '0';
    counters.lies++;
}

void liar_twists(const char *script, struct bytes *reply)
{
    if (liar != LIAR_MISLEADS || !reply->length)
        return;
    if (strcmp(script, "acquire") == 0)
        raise_token(reply);
    else if (strcmp(script, "renew") == 0 && lies_now(4))
        deny_hold(reply);
}

bool liar_tells(const char *script, const struct text *arguments, struct bytes *ret_message)
{
    const char *attempt = strcmp(script, "acquire") == 0 ? memrchr(arguments[0].bytes, ':', arguments[0].length) : NULL;

    if (liar != LIAR_MISLEADS || !attempt || !lies_now(2))
        return false;
    counters.lies++;
    bytes_print(ret_message, "granted %.*s 1 1000000000000000 1000 0 0",
                (int)(arguments[0].bytes + arguments[0].length - attempt - 1), attempt + 1);
    return true;
}
