/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One connection to the server, shared by all threads of the process.
 *
 * Threads that wait for a reply take turns to read (leader and followers): one thread, the leader, sleeps in ppoll();
 * any thread that finds bytes reads the bytes for all, hands each reply to its slot and wakes the slot's thread.
 * Leadership is the sleep only.  Reading and dispatch do not block and run under a short lock with signals masked, so
 * that any thread can do both: the loop thread does, when nobody else has for a while.  A leader that is stopped, or
 * leaves by its deadline, stops nobody.
 *
 * The order of commands is the order of dm_conn_call() and dm_conn_post(); a reply slot belongs to the connection, not
 * to the thread, which may leave earlier.
 *
 * A connection is opened when first wanted and again after a break; nobody waits for the connection with a lock held.
 * A connection is never freed: a forked child closes the socket and forgets the connection, and a connection that has
 * ended stays, because a thread may still be about to use the connection.
 */
#ifndef DM_REDIS_CONN_H
#define DM_REDIS_CONN_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "redis/command.h"
#include "redis/greeting.h"
#include "store/url.h"

struct dm_conn;
struct redisReply; /* hiredis stays below this floor */

/* Called without locks, by any thread that uses the connection. */
struct dm_conn_hooks {
    /*
     * Opens the socket of a local server.  Without may_start, under the connection's lock: never blocks.
     * With may_start, in a thread of its own: may start a server, and block.  Returns the socket, or -1 with the
     * reason; a failure after may_start means that waiting is useless, and the calls that want the server fail.
     */
    int (*open_local)(struct dm_url *url, bool may_start, char ret_reason[DM_REASON_ROOM]);
    /* The connection can be used now, for the first time or again. */
    void (*on_ready)(void *user);
    /* A message of the inbox, and the server that sent the message; valid during the call. */
    void (*on_message)(void *user, const char *text, const struct dm_server *server);
    /* dm_conn_watch() has something new to say. */
    void (*on_change)(void *user);
    void *user;
};

/*
 * Takes a reply, or NULL when the connection broke before the reply came (whether the command was executed is then not
 * known).  Called once, without locks, by any thread.
 */
typedef void (*dm_reply_fn)(void *user, const struct redisReply *reply);

enum dm_conn_result {
    DM_CONN_OK,       /* answered; or, posted, in the kernel */
    DM_CONN_BROKEN,   /* sent, and the connection broke before the answer */
    DM_CONN_LATE,     /* the deadline passed, sent or not */
    DM_CONN_OTHER,    /* not sent: the command was written for an earlier server */
    DM_CONN_DOWN,     /* not sent: posted, there is no connection now; called, there can be none */
    DM_CONN_NO_MEMORY /* called: not sent, the command has no bytes */
};

/*
 * inbox: the channel to subscribe to, copied; NULL for a connection for commands.  Returns NULL without memory or
 * descriptors.
 */
struct dm_conn *dm_conn_new(struct dm_url *url, const char *inbox, const struct dm_conn_hooks *hooks);

/* Undoes dm_conn_new(), for a connection that was never wanted; NULL is allowed. */
void dm_conn_free_unused(struct dm_conn *conn);

/*
 * Sends the command, once the connection is ready, and waits for the reply, which the caller frees
 * with freeReplyObject().  Blocks until the deadline at most; takes no longer than command_timeout
 * once sent.  *ret_reply is set if and only if DM_CONN_OK.
 */
enum dm_conn_result dm_conn_call(struct dm_conn *conn, const struct dm_command *command,
                                 const struct dm_deadline *deadline, struct redisReply **ret_reply);

/*
 * Sends the command, without waiting.  DM_CONN_OK: the command is on the way, and `handler` is called.  DM_CONN_DOWN:
 * nothing was sent and nothing will be called.
 */
enum dm_conn_result dm_conn_post(struct dm_conn *conn, const struct dm_command *command, dm_reply_fn handler,
                                 void *user);

/*
 * The same, and calls nothing before the return, so that the caller may hold the lock that handlers take.  After giving
 * that lock back the caller calls dm_conn_work(), which calls the handlers that are due.
 */
enum dm_conn_result dm_conn_post_quietly(struct dm_conn *conn, const struct dm_command *command, dm_reply_fn handler,
                                         void *user);

/*
 * Ends the connection for good: requests without an answer get no answer, and later requests get none either.  Calls
 * handlers; no lock held.
 */
void dm_conn_end(struct dm_conn *conn);

/* Opens the connection if closed, without waiting. */
void dm_conn_want(struct dm_conn *conn);

/*
 * The shortest lease of the process's holds, in ms; 0: no holds.  A closed connection plans tries by the lease.
 */
void dm_conn_note_lease(struct dm_conn *conn, unsigned lease_ms);

/* Another connection to the same server is ready: tries again soon if this connection is closed. */
void dm_conn_retry_soon(struct dm_conn *conn);

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

bool dm_conn_is_ready(struct dm_conn *conn);

/*
 * The server now connected, or connected last: the number changes when another server has come in its place, or the
 * same server with another birth (born_us).  Calls nothing, as dm_conn_post_quietly().
 */
uint64_t dm_conn_server(struct dm_conn *conn, struct dm_server *ret_server);

/* Waits until the connection is ready.  False when the deadline has passed. */
bool dm_conn_await_ready(struct dm_conn *conn, const struct dm_deadline *deadline);

/*
 * Waits until all requests sent before are answered.  False when the deadline has passed, or there is no connection.
 */
bool dm_conn_drain(struct dm_conn *conn, const struct dm_deadline *deadline);

/*
 * Copies an error sentence for people: the server's address, and why there is no answer (the reason of the break, or
 * that no answer came).
 */
void dm_conn_reason(struct dm_conn *conn, char ret_reason[DM_REASON_ROOM]);

/* For the loop thread: the descriptor to poll (fd -1: none), and when there is work to do. */
struct dm_conn_watch {
    int fd;
    short events;
    int64_t due_ns;    /* CLOCK_BOOTTIME; DM_NEVER */
    bool is_attended;  /* a thread sleeps in ppoll() on the descriptor */
    uint64_t activity; /* grows with every reply read */
    bool is_closed;    /* the connection broke, or was never wanted */
    bool was_wanted;   /* somebody once did */
};
void dm_conn_watch(struct dm_conn *conn, struct dm_conn_watch *ret_watch);

/*
 * The loop thread looks again at look_ns at the latest.  A post that wants an earlier look, because its answer may
 * never come, says so by on_change: once, not with every post.
 */
void dm_conn_note_look(struct dm_conn *conn, int64_t look_ns);

/* Does all work that can be done now: reads, writes, connects, gives up.  Never blocks. */
void dm_conn_work(struct dm_conn *conn);

/* Around fork(): no command is half copied; the child closes the socket and forgets the connection. */
void dm_conn_fork_prepare(struct dm_conn *conn);
void dm_conn_fork_parent(struct dm_conn *conn);
void dm_conn_fork_child(struct dm_conn *conn);

#endif
