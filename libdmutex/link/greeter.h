/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a link knows of its server: where it is, how it is greeted, and who takes the news.  A link does not know
 * what the commands mean.
 */
#ifndef DM_LINK_GREETER_H
#define DM_LINK_GREETER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "link/address.h"
#include "link/command.h"
#include "link/identify.h"
#include "link/stream.h"

struct dm_link_options;

enum dm_located { DM_LOCATED, DM_LOCATED_LATER, DM_LOCATED_NEVER };

/*
 * Decides whether the server of a connection is still the right one.  The link calls these with the greeter's `user`,
 * under its lock; they call nothing of the link, and never block.
 */
struct dm_belief {
    /*
     * NULL, or called before each command is sent, unless it is for any server (struct dm_command, is_for_any).  False:
     * the command waits until dm_link_tell_news().
     */
    bool (*may_send)(void *user);
    /*
     * Called before each reply and message is delivered; is_for_any is that of the reply's command.  False, with the
     * reason: the link closes, and the reply counts as none.  Also called for any server at the end of a TLS handshake,
     * and before another address of the same name is tried: locate() is called then.
     */
    bool (*may_believe)(void *user, bool is_for_any, char ret_reason[DM_REASON_ROOM]);
    /*
     * NULL, or returns the command that makes the server confirm all commands sent before; bytes NULL without memory;
     * freed by free().  Replies are held back until the answer; false, with the reason: all of them count as none.
     */
    struct dm_command (*confirm)(void *user);
    bool (*take_confirm)(void *user, const struct redisReply *reply, char ret_reason[DM_REASON_ROOM]);
};

/*
 * The questions to a server: the greeting of each new connection, and a check now and then that it is still the server
 * of the greeting.  Called under the link's lock: calls nothing of the link, and never blocks.
 */
struct dm_greeter {
    /*
     * NULL, or work that may block, such as reading a file: called before a connection is opened, in a thread of its
     * own and without the link's lock.  No other function is called during it.
     */
    void (*prepare)(void *user);
    /*
     * NULL: the link's options never change.  Otherwise called at each opening: writes the server's address and names
     * into the options; the texts stay valid until the next call.  LATER: not known now; dm_link_retry_soon() says when
     * to ask again.  NEVER: waiting is useless, and the calls that want the server fail.
     */
    enum dm_located (*locate)(void *user, struct dm_link_options *options, char ret_reason[DM_REASON_ROOM]);
    const struct dm_belief *belief; /* NULL: the server is trusted as long as the connection lasts */
    /* A connection is being opened; what the greeter knows of the last one is out of date. */
    void (*begin)(void *user);
    /*
     * Returns the number of replies to the next round, and its commands, which are sent together; 0: the greeting is
     * complete.  Freed by free(); bytes NULL without memory.
     */
    int (*round)(void *user, struct dm_command *ret_round);
    /* Takes the next reply of the round.  False with the reason if the server cannot be used. */
    bool (*take)(void *user, const struct redisReply *reply, char ret_reason[DM_REASON_ROOM]);
    /*
     * The server can be used now.  Returns its number, at least 1: commands written for another number are not sent
     * (struct dm_command).
     */
    uint64_t (*ready)(void *user);
    /*
     * Returns the command that asks who the server is; bytes NULL without memory; freed by free(). take_identity takes
     * the answer, and sets the reason unless the server is the same.  Both NULL: this is never checked.
     */
    struct dm_command (*identify)(void *user);
    enum dm_identified (*take_identity)(void *user, const struct redisReply *reply, char ret_reason[DM_REASON_ROOM]);
    void *user;
};

#define DM_LINK_NAME_ROOM 108

/* Where a server is, and how long it may take. */
struct dm_link_options {
    char name[DM_LINK_NAME_ROOM]; /* of the server, for people, without secrets */
    struct dm_address address;
    struct dm_tls_options tls;
    /*
     * Opens the socket, instead of connecting to the address; or NULL.  Without may_block it is called under the link's
     * lock, and never blocks; with may_block in a thread of its own.  Returns the socket, or -1 with the reason; a
     * failure with may_block is permanent: waiting is useless, and the calls that want the server fail.  DM_OPEN_LATER,
     * with the reason: the machine lacks something that it may have again later.
     */
    int (*open)(void *user, bool may_block, char ret_reason[DM_REASON_ROOM]);
    void *open_user;
    unsigned connect_timeout_ms;
    unsigned command_timeout_ms;
    bool is_listening; /* after the greeting the server sends messages, and takes no commands */
};

/* Called without locks, by any thread that uses the link. */
struct dm_link_hooks {
    /* The link can be used now, for the first time or again. */
    void (*on_ready)(void *user);
    /* A message, and the number of the server that sent it.  The message is valid only during the call. */
    void (*on_message)(void *user, const struct redisReply *message, uint64_t peer);
    /* The result of dm_link_watch() has changed. */
    void (*on_change)(void *user);
    void *user;
};

#endif
