/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The commands on a new connection before first use: our name, a check that this is the right server in the right
 * state, and the end of the connection before.
 *
 * Bytes of a closed connection may still run after the bytes of the new connection; so a connection that follows
 * another on the same server first has the old connection killed, and awaits the kill (doc/design/protocol.md).
 */
#ifndef DM_REDIS_NODE_GREETING_H
#define DM_REDIS_NODE_GREETING_H

#include <stdbool.h>
#include <stdint.h>

#include "config/login.h"
#include "config/url.h"
#include "link/command.h"
#include "link/greeter.h"
#include "stores/redis/wire/slots.h"

struct redisReply; /* hiredis stays below this floor */

#define DM_GREETING_STEPS 8

enum dm_greeting_step {
    DM_STEP_AUTH,     /* the password, and the user if there is one */
    DM_STEP_SELECT,   /* the database, if not 0 */
    DM_STEP_ID,       /* our number at the server, by which the next connection kills this one */
    DM_STEP_ROLE,     /* a master? */
    DM_STEP_INFO,     /* which server, and whether it may evict keys */
    DM_STEP_PROBE,    /* all rights that the scripts need */
    DM_STEP_BORN,     /* since when, for the grace */
    DM_STEP_KILL,     /* the connection before */
    DM_STEP_LOOK,     /* still the same server?  Of no round: see dm_greeting_look() */
    DM_STEP_SUBSCRIBE /* the inbox */
};

/* Which server has greeted. */
struct dm_server {
    uint64_t run;      /* the first 16 hexadecimal digits of the server's run id; 0: not known */
    uint64_t epoch;    /* likewise of the master_replid drawn at the server's promotion; 0: never promoted */
    uint64_t since_us; /* since when the server has its identity, by the server's clock; 0: since long, or not known */
};

/* The first 16 digits of a run id; 0 where there are fewer. */
uint64_t dm_server_read_run(const char *text);

/* The same process; and since the same promotion.  False where either is not known. */
bool dm_server_is_same(const struct dm_server *server, const struct dm_server *other);
bool dm_server_is_same_run(const struct dm_server *server, const struct dm_server *other);

/* The purpose of a connection. */
enum dm_greeting_role {
    DM_GREETS_FOR_COMMANDS,
    DM_GREETS_FOR_INBOX,
    DM_GREETS_FOR_MAP /* of a Cluster: asks any node for the slots of all nodes */
};

struct dm_greeting {
    const struct dm_url *url;
    enum dm_greeting_role role;
    struct dm_login login; /* as last read from the URL's files; empty: the URL's own */
    bool is_login_told;    /* the log has told that the files cannot be read */
    uint64_t probe;        /* random, in the names of the probe's keys, so that no other client can spoil the keys */
    const char *inbox;     /* FOR_INBOX: the channel to subscribe to; NULL: channels come later */
    bool is_clustered;     /* the server is a node of a Cluster */
    char tag[DM_SLOT_TAG_ROOM]; /* of a Cluster: of a slot that the node serves, for the mark and the probe; "": none */
    bool is_tag_under_way;      /* the node has sent the probe or the mark's script on to another node */

    enum dm_greeting_step steps[DM_GREETING_STEPS]; /* of this round, in order */
    int step_count, steps_done;
    int round;
    unsigned warned; /* a bit for each step whose refusal the log has told, over all connections */

    uint64_t config;    /* of a group of Sentinel: the epoch of its newest failover, and one; 0: none, or not told */
    uint64_t client_id; /* of this connection, 0 unknown */
    uint64_t old_client_id;
    struct dm_server server, old_server;
};

/*
 * Reads user and password again, if files have them; if the files cannot be read, the last login stays, and the log
 * tells so once.  Blocks as a read of the files; no other function is called meanwhile.
 */
void dm_greeting_read_login(struct dm_greeting *greeting);

/* A new connection begins; the last connection's data become "old". */
void dm_greeting_begin(struct dm_greeting *greeting);

/*
 * The commands of this round, to be sent together; none: the greeting is over.  bytes is NULL without memory.  To be
 * freed by free().
 */
struct dm_command dm_greeting_round(struct dm_greeting *greeting);

/* Takes the next reply.  False with the reason if the server cannot be used. */
bool dm_greeting_take(struct dm_greeting *greeting, const struct redisReply *reply, char ret_reason[DM_REASON_ROOM]);

/*
 * Is the server still the one that has greeted?  The command that asks, without waiting for the answer; bytes is NULL
 * without memory.  To be freed by free().  dm_greeting_take_look() tells the answer, with the reason unless "the same".
 */
struct dm_command dm_greeting_look(const struct dm_greeting *greeting);
enum dm_looked dm_greeting_take_look(const struct dm_greeting *greeting, const struct redisReply *reply,
                                     char ret_reason[DM_REASON_ROOM]);

#endif
