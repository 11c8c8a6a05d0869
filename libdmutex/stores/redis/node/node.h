/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One server: a link for commands, a link that hears the inbox, and the server's identity.
 *
 * Both links go to one server: if the address leads to another server than before, the link that greeted last is right,
 * and the other link connects anew.  What a command says about its server (since when the server is there, its run id)
 * holds for the server that was connected when the command was written: a node writes the command, numbers the servers,
 * and writes the command again if another server has come before the sending.
 *
 * In a group of Sentinel the node's address is the address of the group's master.  The master watch says which server
 * that is, and both links are closed as soon as the master watch's word counts no more.
 *
 * A node of a Cluster has a mark and an inbox in slots that the node serves.  Its address changes only when the node is
 * used for another server, after it has served nothing for a while.
 */
#ifndef DM_REDIS_NODE_NODE_H
#define DM_REDIS_NODE_NODE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rank.h"
#include "config/url.h"
#include "link/turns.h"
#include "stores/redis/node/greeting.h"
#include "stores/redis/sentinel/master_watch.h"

struct dm_node;

/* Called without locks, by any thread that uses the node. */
struct dm_node_hooks {
    /* Opens the socket of a local server, as struct dm_host says. */
    int (*open_local)(struct dm_url *url, bool may_start, char ret_reason[DM_REASON_ROOM]);
    /* Commands can be sent now; the inbox is heard now: for the first time or again. */
    void (*on_ready)(void *user);
    void (*on_inbox)(void *user);
    /* A message of the inbox, and the server that sent the message; valid during the call. */
    void (*on_message)(void *user, const char *text, const struct dm_server *server);
    /* dm_link_watch() of a link has something new to say. */
    void (*on_change)(void *user);
    /*
     * In a Cluster; else all are NULL.  The tag of a slot that the node serves, "" if it serves none and can be used
     * all the same; false, with the reason, if it cannot be used.  Called under a link's lock.
     */
    bool (*find_tag)(void *user, bool is_lowest_under_way, char ret_tag[DM_SLOT_TAG_ROOM],
                     char ret_reason[DM_REASON_ROOM]);
    /* True if the node is believed to be a master; takes no lock. */
    bool (*is_vouched)(void *user);
    /* Another reply on the inbox: to a subscription, or that a subscription has ended. */
    void (*on_inbox_reply)(void *user, const struct redisReply *reply);
    void *user;
};

/* One of the two links, and the server that greeted on this link last. */
struct dm_node_link {
    struct dm_node *node;
    struct dm_link *link;
    struct dm_belief belief;     /* written before the link is made */
    struct dm_greeting greeting; /* the link's lock guards it */

    /*
     * The node's lock guards the rest.  The server stays the last one that greeted while the link is closed: a request
     * that waits for a connection is written for that server, and written anew if another one comes.
     */
    struct dm_server server;
    uint64_t number; /* another number: another server, or the same with another birth; 1: none was there yet */

    /* With a master watch, and in a Cluster; the link's lock guards them. */
    struct dm_master master; /* the address of this connection */
    uint64_t word;           /* the number of the master watch's word that named the address, or of the node's place */
};

struct dm_node {
    struct dm_url *url;
    struct dm_node_hooks hooks;
    char channel[128];
    struct dm_master_watch *master_watch; /* says where the server is; NULL: the URL does */
    struct dm_node_link commands, inbox;
    struct dm_mutex lock; /* Rank NODE: taken under a link's lock; nothing but LOG nests in it */

    /* In a Cluster.  Written under the fleet's lock and this one, so that either is enough to read. */
    struct dm_master place;
    uint64_t place_number; /* rises with each place.  Atomic */
};

/* channel: of the inbox, copied; "": channels come later, by dm_link_say().  False without memory or descriptors. */
bool dm_node_init(struct dm_node *node, struct dm_url *url, const char *channel, const struct dm_node_hooks *hooks);

/* Undoes dm_node_init(), for a node that was never used. */
void dm_node_clear_unused(struct dm_node *node);

/*
 * The node of a Cluster is another server from now on, with both links closed.  The fleet's lock is held.  A link that
 * another thread opens meanwhile closes by itself.
 */
void dm_node_move(struct dm_node *node, const char *host, const char *port);

/* As the functions of link/ by these names, for the commands' link. */
void dm_node_hold(struct dm_node *node);
void dm_node_let_go(struct dm_node *node);

/* As the functions of link/ by these names, for the command that the arguments make; DM_LINK_OTHER never comes. */
enum dm_link_result dm_node_call(struct dm_node *node, struct dm_args *args, const struct dm_deadline *deadline,
                                 struct redisReply **ret_reply);
enum dm_link_result dm_node_post(struct dm_node *node, struct dm_args *args, dm_reply_fn handler, void *user);
enum dm_link_result dm_node_post_quietly(struct dm_node *node, struct dm_args *args, dm_reply_fn handler, void *user);

/* Commands can be sent now. */
bool dm_node_is_ready(struct dm_node *node);

/* Why a link of the node gives no answer, as dm_link_reason(); or why no server is known. */
void dm_node_reason(struct dm_node *node, struct dm_link *link, char ret_reason[DM_REASON_ROOM]);

/* An answer to a command says that the server is the wrong server: connect anew. */
void dm_node_distrust(struct dm_node *node, const char *reason);

/*
 * Asks the server whether the server is still the one that greeted, if the last look is DM_LOOK_NS ago, as each command
 * does before being sent.  An answer "no" closes the link, and requests sent behind the question have no answer.
 * Returns when the next look is due; DM_NEVER: commands cannot be sent now.  Calls nothing, as dm_node_post_quietly().
 */
int64_t dm_node_look(struct dm_node *node);

/* The number and the identity of the server of a line, now or last.  Calls nothing. */
uint64_t dm_node_link_server(struct dm_node_link *line, struct dm_server *ret_server);

/* Ends both links for good, as dm_link_end(). */
void dm_node_end(struct dm_node *node);

/* First the links of all nodes, then all nodes; TLS is locked behind them, by the caller. */
void dm_node_fork_prepare_links(struct dm_node *node);
void dm_node_fork_prepare(struct dm_node *node);
void dm_node_fork_parent(struct dm_node *node);
void dm_node_fork_child(struct dm_node *node);

#endif
