/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A connection for asking a server that the library might refuse: it only logs in.  The library's own greeting ends at
 * the first fault, but doctor has to name all of them.
 */
#ifndef DM_TOOLS_PROBE_H
#define DM_TOOLS_PROBE_H

#include <hiredis.h>
#include <stdbool.h>

#include "base/text.h"
#include "config/url.h"
#include "link/reader.h" /* dm_reply_free() */

struct probe;

/* The caller keeps the URL alive as long as the probe is used; a probe is never freed.  NULL without memory. */
struct probe *probe_new(struct dm_url *url);

/* A probe that subscribes to the channel, with SUBSCRIBE or SSUBSCRIBE, and receives messages instead of asking. */
struct probe *probe_new_inbox(struct dm_url *url, const char *command, const char *channel);

/* Before probe_connect(): the channel belongs to a slot, on a node of a Cluster. */
void probe_hear_slot(struct probe *probe);

/* What keeps a probe from asking. */
enum probe_obstacle {
    PROBE_WAY,      /* no connection, or no answer */
    PROBE_LOGIN,    /* the server refuses the user or the password, or wants a login */
    PROBE_DATABASE, /* the server does not let the user select the database */
    PROBE_CHANNEL   /* the server does not let the user subscribe */
};

/* Connects, logs in and waits for an answer, each for at most command_timeout.  False with the reason. */
bool probe_connect(struct probe *probe, char ret_reason[DM_REASON_ROOM]);

/* Why probe_connect() failed; and the server's error if it refused a database or a channel. */
enum probe_obstacle probe_obstacle(const struct probe *probe);
const char *probe_refusal(const struct probe *probe);

/*
 * Sends a command, NULL at its end, and waits for the reply, which the caller frees.  An error of the server is a
 * reply, too.  NULL with the reason if no reply came.
 */
redisReply *probe_ask(struct probe *probe, const char *const *words, char ret_reason[DM_REASON_ROOM]);

/* True if a message came on the probe's channel within command_timeout. */
bool probe_hears(struct probe *probe);

#endif
