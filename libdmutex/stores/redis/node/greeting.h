/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The commands on a new connection before its first use: our name, a check that this is the right server in the right
 * state, and the end of the previous connection.
 *
 * The server may still execute bytes of a closed connection after bytes of the new one.  So a connection that follows
 * another one to the same server first has the old one killed, and waits for that (doc/design/protocol.md).
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

struct redisReply; /* hiredis stays below this room */

#define DM_GREETING_STEPS 8

enum dm_greeting_step {
    DM_STEP_AUTH,     /* the password, and the user if there is one */
    DM_STEP_SELECT,   /* the database, if not 0 */
    DM_STEP_ID,       /* our number at the server, so that the next connection can kill this one */
    DM_STEP_ROLE,     /* is it a master? */
    DM_STEP_INFO,     /* which server it is, and whether it may evict keys */
    DM_STEP_PROBE,    /* all rights that the scripts need */
    DM_STEP_BORN,     /* since when it exists, for the grace */
    DM_STEP_KILL,     /* the previous connection */
    DM_STEP_IDENTIFY, /* is it still the same server?  In no round: see dm_greeting_identify() */
    DM_STEP_SUBSCRIBE /* the inbox */
};

/* The identity of a server, as the greeting finds it. */
struct dm_server {
    uint64_t run;      /* the first 16 hexadecimal digits of the server's run id; 0: not known */
    uint64_t epoch;    /* likewise of the master_replid drawn at its promotion; 0: never promoted */
    uint64_t since_us; /* since when it has this identity, by its own clock; 0: for a long time, or not known */
};

/* The first 16 digits of a run id; 0 where there are fewer. */
uint64_t dm_server_read_run(const char *text);

/* The same process; the same process since the same promotion.  False if either is not known. */
bool dm_server_is_same(const struct dm_server *server, const struct dm_server *other);
bool dm_server_is_same_run(const struct dm_server *server, const struct dm_server *other);

/* The purpose of a connection. */
enum dm_greeting_role {
    DM_GREETS_FOR_COMMANDS,
    DM_GREETS_FOR_INBOX,
    DM_GREETS_FOR_MAP /* in a Cluster: asks any node for the slots of all nodes */
};

struct dm_greeting {
    const struct dm_url *url;
    enum dm_greeting_role role;
    struct dm_login login;      /* as last read from the URL's files; empty: the URL's own */
    bool is_login_told;         /* the log says that the files cannot be read */
    uint64_t probe;             /* random, in the names of the probe's keys, so that no other client can spoil them */
    const char *inbox;          /* FOR_INBOX: the channel to subscribe to; NULL: channels come later */
    bool is_clustered;          /* the server is a node of a Cluster */
    char tag[DM_SLOT_TAG_ROOM]; /* in a Cluster: of a slot that the node serves, for the mark and the probe; "": none */
    bool is_tag_under_way;      /* the node has redirected the probe or the mark's script to another node */

    enum dm_greeting_step steps[DM_GREETING_STEPS]; /* of this round, in order */
    int step_count, steps_done;
    int round;
    bool is_denied;  /* the last reply asks for another login or more rights */
    unsigned warned; /* a bit for each step whose refusal has been logged, over all connections */

    uint64_t config;    /* of a group of Sentinel: the epoch of its newest failover, plus one; 0: none, or not known */
    uint64_t client_id; /* of this connection; 0: not known */
    uint64_t old_client_id;
    struct dm_server server, old_server;
};

/*
 * Reads user and password again, if they are in files; if the files cannot be read, keeps the last login, and logs that
 * once.  Blocks as reading a file does; no other function may be called during that time.
 */
void dm_greeting_read_login(struct dm_greeting *greeting);

/* Starts the greeting of a new connection; the data of the last one become "old". */
void dm_greeting_begin(struct dm_greeting *greeting);

/*
 * The commands of this round, to be sent together; none: the greeting is over.  bytes is NULL without memory, else the
 * caller frees it with free().
 */
struct dm_command dm_greeting_round(struct dm_greeting *greeting);

/* Takes the next reply.  False with the reason if the server cannot be used. */
bool dm_greeting_take(struct dm_greeting *greeting, const struct redisReply *reply, char ret_reason[DM_REASON_ROOM]);

/*
 * The command that asks whether the server is still the one of the greeting.  bytes is NULL without memory, else the
 * caller frees it with free().  dm_greeting_take_identity() reads the answer, and gives the reason unless it is the
 * same server.
 */
struct dm_command dm_greeting_identify(const struct dm_greeting *greeting);
enum dm_identified dm_greeting_take_identity(const struct dm_greeting *greeting, const struct redisReply *reply,
                                             char ret_reason[DM_REASON_ROOM]);

#endif
