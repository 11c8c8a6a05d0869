/* SPDX-License-Identifier: BSD-2-Clause */
/* Inboxes with a listener, for the tests of the scripts. */
#include <hiredis.h>
#include <stdlib.h>

#include "scripts.h"

struct inbox {
    redisContext *context;
    struct inbox *next; /* of the open inboxes */
};

static struct inbox *inboxes;

static struct inbox *subscribe(const char *format, const char *word)
{
    struct inbox *inbox = calloc(1, sizeof *inbox);
    redisReply *reply;

    assert_non_null(inbox);
    inbox->context = redisConnectUnix(the_server->path);
    assert_true(inbox->context && !inbox->context->err);
    reply = redisCommand(inbox->context, format, word);
    assert_non_null(reply);
    freeReplyObject(reply);
    inbox->next = inboxes;
    inboxes = inbox;
    return inbox;
}

struct inbox *inbox_open(const char *uuid)
{
    return subscribe("SUBSCRIBE " INBOX "%s", uuid);
}

struct inbox *inbox_open_sharded(const char *uuid)
{
    return subscribe("SSUBSCRIBE " SHARDED_INBOX "%s", uuid);
}

struct inbox *inbox_open_channel(const char *channel)
{
    return subscribe("SUBSCRIBE %s", channel);
}

struct inbox *inbox_open_pattern(const char *pattern)
{
    return subscribe("PSUBSCRIBE %s", pattern);
}

void inbox_close(struct inbox *inbox)
{
    struct inbox **at = &inboxes;

    while (*at != inbox)
        at = &(*at)->next;
    *at = inbox->next;
    redisFree(inbox->context);
    free(inbox);
    command("PING"); /* after this the server has seen the end */
}

void inbox_close_all(void)
{
    while (inboxes)
        inbox_close(inboxes);
}

/* Reads up to the answer to a PING: earlier messages are read by then. */
const char *inbox_messages(struct inbox *inbox)
{
    redisReply *reply = redisCommand(inbox->context, "PING");
    const char *all = scripts_text("%s", "");

    while (reply && reply->elements == 3) {
        all = scripts_text("%s%s%s", all, *all ? "\n" : "", reply->element[2]->str);
        freeReplyObject(reply);
        reply = NULL;
        assert_int_equal(redisGetReply(inbox->context, (void **)&reply), REDIS_OK);
    }
    assert_non_null(reply);
    freeReplyObject(reply);
    return all;
}
