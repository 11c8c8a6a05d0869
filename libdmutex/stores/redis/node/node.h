/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One server: a link for commands, a link for the inbox, and the server's identity.
 *
 * Both links go to one server: if the address leads to another server than before, the link with the latest greeting
 * is right, and the other one reconnects.  What a command says about its server (since when it exists, its run id)
 * holds for the server that was connected when the command was written.  So the node itself writes commands and numbers
 * the servers, and writes a command again if another server has come before it is sent.
 *
 * In a group of Sentinel the node's address is that of the group's master.  The master watch says which server that is,
 * and both links are closed as soon as its word no longer counts.
 *
 * A node of a Cluster has a mark and an inbox in slots that it serves.  Its address changes only when it is used for
 * another server, after it has served nothing for a while.
 */
#ifndef DM_REDIS_NODE_NODE_H
#define DM_REDIS_NODE_NODE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rank.h"
#include "config/url.h"
#include "link/turns.h"
#include "store/store.h"
#include "stores/redis/node/greeting.h"
#include "stores/redis/sentinel/master_watch.h"

struct dm_node;

/* Called without locks, by any thread that uses the node. */
struct dm_node_hooks {
    /* Opens the socket of a local server, as struct dm_host says. */
    int (*open_local)(struct dm_url *url, bool may_start, char ret_reason[DM_REASON_ROOM]);
    /* Commands can be sent now; messages of the inbox arrive now: for the first time or again. */
    void (*on_ready)(void *user);
    void (*on_inbox)(void *user);
    /* A message of the inbox, and the server that sent it; valid during the call. */
    void (*on_message)(void *user, const char *text, const struct dm_server *server);
    /* The result of dm_link_watch() for a link may have changed. */
    void (*on_change)(void *user);
    /*
     * In a Cluster; else this and the following are NULL.  The tag of a slot that the node serves, "" if it serves none
     * but can be used; false, with the reason, if it cannot be used.  Called under a link's lock.
     */
    bool (*find_tag)(void *user, bool is_lowest_under_way, char ret_tag[DM_SLOT_TAG_ROOM],
                     char ret_reason[DM_REASON_ROOM]);
    /* True if the node can be believed to be a master.  Takes no lock. */
    bool (*is_vouched)(void *user);
    /* Another reply on the inbox: to a subscription, or at the end of one. */
    void (*on_inbox_reply)(void *user, const struct redisReply *reply);
    void *user;
};

/* A link, as the loop thread last saw it. */
struct dm_watched {
    uint64_t activity; /* by other threads, when the loop went to sleep */
    bool is_ticking;   /* others read; the loop checks every TICK_NS */
};

/* One of the two links, and the server of its last greeting. */
struct dm_node_link {
    struct dm_node *node;
    struct dm_link *link;
    struct dm_belief belief;     /* written before the link is made */
    struct dm_greeting greeting; /* the link's lock guards it */

    /*
     * The node's lock guards the rest.  While the link is closed, the server stays that of the last greeting: a
     * request that waits for a connection is written for it, and written again if another one comes.
     */
    struct dm_server server;
    uint64_t number; /* changes with the server, or with its birth; 1: there was none yet */

    bool is_denied; /* since the last good greeting the server has asked for another login or more rights.  Atomic */

    /* With a master watch, and in a Cluster.  The link's lock guards them. */
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

    /* In a Cluster.  Written under both the cluster's lock and this one, so that either is enough to read. */
    struct dm_master place;
    uint64_t place_number; /* rises with each place.  Atomic */

    /* The notes of the store above. */
    unsigned index;          /* among the servers of the store */
    bool is_unknown[DM_OPS]; /* the next post of the operation sends the script's text: the server asked for it, or is
                                new.  Atomic, a hint */
    bool is_wished;          /* a request wanted the commands' link, and could not use it.  Atomic */
    struct dm_watched commands_seen, inbox_seen; /* the loop thread's */
};

/* channel: of the inbox, copied; "": channels come later, by dm_link_say().  False if memory or descriptors run out. */
bool dm_node_init(struct dm_node *node, struct dm_url *url, const char *channel, const struct dm_node_hooks *hooks);

/* Undoes dm_node_init(), for a node that was never used. */
void dm_node_clear_unused(struct dm_node *node);

/*
 * From now on the node of a Cluster is another server; closes both links.  The cluster's lock is held.  A link that
 * another thread is just opening closes by itself.
 */
void dm_node_move(struct dm_node *node, const char *host, const char *port);

/* As the functions of link/ with these names, for the link of the commands. */
void dm_node_hold(struct dm_node *node);
void dm_node_let_go(struct dm_node *node);

/*
 * As dm_link_call() and dm_link_post_quietly(), for the command made of the arguments.  Never DM_LINK_OTHER.
 */
enum dm_link_result dm_node_call(struct dm_node *node, struct dm_args *args, const struct dm_deadline *deadline,
                                 struct redisReply **ret_reply);
enum dm_link_result dm_node_post(struct dm_node *node, struct dm_args *args, dm_reply_fn handler, void *user);

/* The answer to a command asks for another login or more rights. */
static inline void dm_node_note_denial(struct dm_node *node)
{
    __atomic_store_n(&node->commands.is_denied, true, __ATOMIC_RELAXED);
}

/* True if the server, or a sentinel, has asked for another login or more rights, and has not been content since. */
bool dm_node_is_denied(struct dm_node *node);

/* A request could not be posted: the loop thread opens the link of the commands.  Takes no lock, calls no hooks. */
static inline void dm_node_wish(struct dm_node *node)
{
    __atomic_store_n(&node->is_wished, true, __ATOMIC_RELAXED);
}

/* Commands can be sent now. */
bool dm_node_is_ready(struct dm_node *node);

/* Why a link of the node gets no answer, as dm_link_reason(); or why no server is known. */
void dm_node_reason(struct dm_node *node, struct dm_link *link, char ret_reason[DM_REASON_ROOM]);

/* An answer to a command shows that this is the wrong server: reconnects. */
void dm_node_distrust(struct dm_node *node, const char *reason);

/*
 * Checks that the server is still that of the greeting, if the last check was DM_IDENTIFY_NS ago; each command does the
 * same before it is sent.  An answer "no" closes the link, and requests sent after the check get no answer.  Returns
 * when the next check is due; DM_NEVER: commands cannot be sent now.  Calls no hooks, like dm_node_post().
 */
int64_t dm_node_identify(struct dm_node *node);

/* The number and the identity of a link's present or last server.  Calls no hooks. */
uint64_t dm_node_link_server(struct dm_node_link *link, struct dm_server *ret_server);

/* Ends both links, which never open again, as dm_link_end(). */
void dm_node_end(struct dm_node *node);

/* The links of all nodes come first, then all nodes; then the caller locks TLS. */
void dm_node_fork_prepare_links(struct dm_node *node);
void dm_node_fork_prepare(struct dm_node *node);
void dm_node_fork_parent(struct dm_node *node);
void dm_node_fork_child(struct dm_node *node);

#endif
