/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A connection for questions to a server that the library might refuse: logs in, and nothing else.  The library's own
 * greeting ends at the first fault; doctor is to name all faults.
 */
#ifndef DM_TOOLS_PROBE_H
#define DM_TOOLS_PROBE_H

#include <hiredis.h>
#include <stdbool.h>

#include "base/text.h"
#include "config/url.h"
#include "link/reader.h" /* dm_reply_free() */

struct probe;

/* The URL stays the caller's, for as long as the probe is used; a probe is never freed.  NULL without memory. */
struct probe *probe_new(struct dm_url *url);

/* The same, but subscribes the channel, by SUBSCRIBE or SSUBSCRIBE, and hears messages instead of asking. */
struct probe *probe_new_inbox(struct dm_url *url, const char *command, const char *channel);

/* Before probe_connect(): the channel is of a slot, on a node of a Cluster. */
void probe_hear_slot(struct probe *probe);

/* What keeps a probe from asking. */
enum probe_obstacle {
    PROBE_WAY,      /* there is no connection, or no answer */
    PROBE_LOGIN,    /* the server refuses the user or the password, or wants a login */
    PROBE_DATABASE, /* the server does not let the user select the database */
    PROBE_CHANNEL   /* the server does not let the user subscribe */
};

/* Connects, logs in and waits for an answer, for command_timeout at most each.  False with the reason. */
bool probe_connect(struct probe *probe, char ret_reason[DM_REASON_ROOM]);

/* After a failure of probe_connect(); and the server's error that refuses a database or a channel. */
enum probe_obstacle probe_obstacle(const struct probe *probe);
const char *probe_refusal(const struct probe *probe);

/*
 * Asks a command, words up to NULL, and waits for the reply, which the caller frees.  An error of the server is a
 * reply, too.  NULL with the reason: there was no reply.
 */
redisReply *probe_ask(struct probe *probe, const char *const *words, char ret_reason[DM_REASON_ROOM]);

/* True if a message came, of those that the probe hears; waits for command_timeout at most. */
bool probe_hears(struct probe *probe);

#endif
