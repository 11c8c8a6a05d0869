/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One connection to the server with its greeting: a link that knows which server it is connected to.
 *
 * What a command says about its server (since when the server is there, its run id) holds for the server that was
 * connected when the command was written: dm_conn_server() numbers the servers, and a command for an earlier number is
 * not sent.
 */
#ifndef DM_REDIS_CONN_H
#define DM_REDIS_CONN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rank.h"
#include "link/turns.h"
#include "redis/greeting.h"
#include "store/url.h"

/* Names of link/ that the floors above use. */
#define dm_conn_result dm_link_result
#define DM_CONN_OK DM_LINK_OK
#define DM_CONN_BROKEN DM_LINK_BROKEN
#define DM_CONN_LATE DM_LINK_LATE
#define DM_CONN_OTHER DM_LINK_OTHER
#define DM_CONN_DOWN DM_LINK_DOWN
#define DM_CONN_NO_MEMORY DM_LINK_NO_MEMORY

/* Called without locks, by any thread that uses the connection. */
struct dm_conn_hooks {
    /* Opens the socket of a local server, as dm_link_options.open. */
    int (*open_local)(struct dm_url *url, bool may_start, char ret_reason[DM_REASON_ROOM]);
    /* The connection can be used now, for the first time or again. */
    void (*on_ready)(void *user);
    /* A message of the inbox, and the server that sent the message; valid during the call. */
    void (*on_message)(void *user, const char *text, const struct dm_server *server);
    /* dm_conn_watch() has something new to say. */
    void (*on_change)(void *user);
    void *user;
};

struct dm_conn {
    struct dm_url *url;
    struct dm_conn_hooks hooks;
    struct dm_link *link;
    struct dm_greeting greeting; /* the link's lock guards it */
    char channel[128];

    /* Guards all below.  Rank NODE: taken under the link's lock; nothing but LOG nests in it. */
    struct dm_mutex lock;
    struct dm_server server;
    uint64_t number;   /* see dm_conn_server(); 1: no server was there yet */
    int64_t looked_ns; /* when the connection last asked for the server's identity */
};

/*
 * inbox: the channel to subscribe to, copied; NULL for a connection for commands.  Returns NULL without memory or
 * descriptors.
 */
struct dm_conn *dm_conn_new(struct dm_url *url, const char *inbox, const struct dm_conn_hooks *hooks);

/* Undoes dm_conn_new(), for a connection that was never wanted; NULL is allowed. */
void dm_conn_free_unused(struct dm_conn *conn);

/* As the functions of link/ by these names. */
enum dm_link_result dm_conn_call(struct dm_conn *conn, const struct dm_command *command,
                                 const struct dm_deadline *deadline, struct redisReply **ret_reply);
enum dm_link_result dm_conn_post(struct dm_conn *conn, const struct dm_command *command, dm_reply_fn handler,
                                 void *user);
enum dm_link_result dm_conn_post_quietly(struct dm_conn *conn, const struct dm_command *command, dm_reply_fn handler,
                                         void *user);
void dm_conn_end(struct dm_conn *conn);
void dm_conn_want(struct dm_conn *conn);
void dm_conn_note_lease(struct dm_conn *conn, unsigned lease_ms);
void dm_conn_retry_soon(struct dm_conn *conn);
bool dm_conn_is_ready(struct dm_conn *conn);
bool dm_conn_await_ready(struct dm_conn *conn, const struct dm_deadline *deadline);
bool dm_conn_drain(struct dm_conn *conn, const struct dm_deadline *deadline);
void dm_conn_reason(struct dm_conn *conn, char ret_reason[DM_REASON_ROOM]);
void dm_conn_note_look(struct dm_conn *conn, int64_t look_ns);
void dm_conn_work(struct dm_conn *conn);
void dm_conn_fork_prepare(struct dm_conn *conn);
void dm_conn_fork_parent(struct dm_conn *conn);
void dm_conn_fork_child(struct dm_conn *conn);

struct dm_conn_watch {
    int fd;
    short events;
    int64_t due_ns;
    bool is_attended;
    uint64_t activity;
    bool is_closed;
    bool was_wanted;
};
void dm_conn_watch(struct dm_conn *conn, struct dm_conn_watch *ret_watch);

/* The server turned out to be the wrong server: connect anew. */
void dm_conn_distrust(struct dm_conn *conn, const char *reason);

/*
 * Connects anew if connected to another server than `server`, or to the same from before a promotion.  Nothing if
 * either server does not say its identity.
 */
void dm_conn_distrust_other(struct dm_conn *conn, const struct dm_server *server, const char *reason);

/*
 * A connection for commands: asks the server whether the server is still the one that greeted, if the last look is
 * DM_LOOK_NS ago, as each command does before being sent.  An answer "no" closes the connection, and requests sent
 * behind the question have no answer.  Returns when the next look is due; DM_NEVER: the connection is not ready.  Calls
 * nothing, as dm_conn_post_quietly().
 */
#define DM_LOOK_NS DM_NS_PER_S
int64_t dm_conn_look(struct dm_conn *conn);

/*
 * The server now connected, or connected last: the number changes when another server has come in its place, or the
 * same server with another birth (born_us).  Calls nothing, as dm_conn_post_quietly().
 */
uint64_t dm_conn_server(struct dm_conn *conn, struct dm_server *ret_server);

#endif
