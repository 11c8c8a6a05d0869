/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a link knows of its server: where the server is, how the server is greeted, and the code that takes the news.  A
 * link does not know what the commands mean.
 */
#ifndef DM_LINK_GREETER_H
#define DM_LINK_GREETER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "link/address.h"
#include "link/command.h"
#include "link/look.h"
#include "link/stream.h"

struct dm_link_options;

enum dm_located { DM_LOCATED, DM_LOCATED_LATER, DM_LOCATED_NEVER };

/*
 * Whether the server of a connection is still the right one.  The link asks with the greeter's `user`, under its lock;
 * the functions call nothing of the link, and never block.
 */
struct dm_belief {
    /*
     * NULL, or asked before each command is sent, unless it is for any server (struct dm_command, is_for_any).  False:
     * the command waits until dm_link_tell_news().
     */
    bool (*may_send)(void *user);
    /*
     * Asked before each reply and message; is_for_any is that of the reply's command.  False, with the reason: the link
     * closes, and the reply counts as none.  Asked for any server at the end of a handshake, too, and before another
     * address of the same name is tried: locate() is called then.
     */
    bool (*may_believe)(void *user, bool is_for_any, char ret_reason[DM_REASON_ROOM]);
    /*
     * NULL, or the command that makes the server confirm all commands sent before; bytes NULL without memory.  Freed by
     * free().  Replies are kept back until the answer: false, with the reason, lets them all count as none.
     */
    struct dm_command (*confirm)(void *user);
    bool (*take_confirm)(void *user, const struct redisReply *reply, char ret_reason[DM_REASON_ROOM]);
};

/*
 * The questions to a server: the greeting of each new connection, and a look now and then at whether the server is
 * still the server of the greeting.  Called under the link's lock: calls nothing of the link, and never blocks.
 */
struct dm_greeter {
    /*
     * NULL, or work that may block, such as reading a file: called before a connection is opened, in a thread of its
     * own and without the link's lock; no other function is called meanwhile.
     */
    void (*prepare)(void *user);
    /*
     * NULL: the link's options hold for good.  Else asked at each opening: writes the server's address and names into
     * the options, where the texts stay until the next call.  LATER: not known now; dm_link_retry_soon() tells when to
     * ask again.  NEVER: waiting is useless, and the calls that want the server fail.
     */
    enum dm_located (*locate)(void *user, struct dm_link_options *options, char ret_reason[DM_REASON_ROOM]);
    const struct dm_belief *belief; /* NULL: the server is believed for as long as the connection lasts */
    /* A connection is being opened; what the greeter knows of the connection before becomes old. */
    void (*begin)(void *user);
    /*
     * The commands of the next round, to be sent together; freed by free(), bytes NULL without memory.  Returns the
     * number of replies; 0: the greeting is over.
     */
    int (*round)(void *user, struct dm_command *ret_round);
    /* Takes the next reply of the round.  False with the reason if the server cannot be used. */
    bool (*take)(void *user, const struct redisReply *reply, char ret_reason[DM_REASON_ROOM]);
    /*
     * The server can be used now.  Returns the server's number, at least 1: commands written for another number are not
     * sent (struct dm_command).
     */
    uint64_t (*ready)(void *user);
    /*
     * The command that asks who the server is; bytes NULL without memory.  Freed by free().  take_look: with the reason
     * unless the server is the same.  Both NULL: no look is ever taken.
     */
    struct dm_command (*look)(void *user);
    enum dm_looked (*take_look)(void *user, const struct redisReply *reply, char ret_reason[DM_REASON_ROOM]);
    void *user;
};

#define DM_LINK_NAME_ROOM 108

/* Where a server is, and how long the server may take. */
struct dm_link_options {
    char name[DM_LINK_NAME_ROOM]; /* of the server, for people, without secrets */
    struct dm_address address;
    struct dm_tls_options tls;
    /*
     * Opens the socket instead of the address, or NULL.  Without may_block, under the link's lock: never blocks.  With
     * may_block, in a thread of its own.  Returns the socket, or -1 with the reason; a failure with may_block is
     * permanent: waiting is useless, and the calls that want the server fail.  DM_OPEN_LATER, with the reason: the
     * machine is short of something that it may have again.
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
    /* A message, and the number of the server that sent the message; the message is valid during the call. */
    void (*on_message)(void *user, const struct redisReply *message, uint64_t peer);
    /* dm_link_watch() has something new to say. */
    void (*on_change)(void *user);
    void *user;
};

#endif
