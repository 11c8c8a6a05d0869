/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One connection to the server, shared by all threads of the process.
 *
 * Threads that wait for a reply take turns to read (leader and followers): one of them, the
 * leader, sleeps in ppoll(); whoever finds bytes reads them for all, hands each reply to its slot
 * and wakes the slot's thread.  Leadership is the sleep only.  Reading and dispatch do not block
 * and run under a short lock with signals masked, so that any thread can do them: the loop thread
 * does, when nobody else has for a while.  A leader that is stopped, or leaves by its deadline,
 * stops nobody.
 *
 * The order of commands is the order of dm_conn_call() and dm_conn_post(); a reply slot belongs to
 * the connection, not to the thread, which may leave earlier.
 *
 * A connection is opened when it is first wanted and again after it broke; nobody waits for it
 * with a lock held.  It is never freed: a forked child closes its socket and forgets it, and one
 * that has ended stays, for a thread may still be about to use it.
 */
#ifndef DM_REDIS_CONN_H
#define DM_REDIS_CONN_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "redis/command.h"
#include "redis/greeting.h"
#include "redis/url.h"

struct dm_conn;
struct redisReply; /* hiredis stays below this floor */

/* Called without locks, by any thread that uses the connection. */
struct dm_conn_hooks {
    /*
     * Opens the socket of a local server.  Without may_start, under the connection's lock: never blocks.
     * With may_start, in a thread of its own: may start a server, and block.  Returns the socket, or -1 with
     * the reason; after may_start no use to wait for the server, the calls that want it fail.
     */
    int (*open_local)(struct dm_url *url, bool may_start, char ret_reason[DM_REASON_ROOM]);
    /* The connection can be used now, for the first time or again. */
    void (*on_ready)(void *user);
    /* A message of the inbox, and the server it came from; valid during the call. */
    void (*on_message)(void *user, const char *text, const struct dm_server *server);
    /* dm_conn_watch() has something new to say. */
    void (*on_change)(void *user);
    void *user;
};

/*
 * Takes a reply, or NULL when the connection broke before it came (whether the command was
 * executed is then not known).  Called once, without locks, by any thread.
 */
typedef void (*dm_reply_fn)(void *user, const struct redisReply *reply);

enum dm_conn_result {
    DM_CONN_OK,     /* answered; or, posted, in the kernel */
    DM_CONN_BROKEN, /* sent, and the connection broke before the answer */
    DM_CONN_LATE,   /* the deadline passed, sent or not */
    DM_CONN_OTHER,  /* not sent: it was written for another server than there is now */
    DM_CONN_DOWN,   /* not sent: posted, there is no connection now; called, there can be none */
    DM_CONN_NO_MEMORY /* called: not sent, the command has no bytes */
};

/* inbox: the channel to subscribe to, copied; NULL for a connection for commands.  NULL without memory or descriptors. */
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
 * Sends the command, without waiting.  DM_CONN_OK: it is on its way, and `handler` is called.  DM_CONN_DOWN: nothing was sent and nothing will be called.
 */
enum dm_conn_result dm_conn_post(struct dm_conn *conn, const struct dm_command *command, dm_reply_fn handler,
                                 void *user);

/*
 * The same, and calls nothing before it returns, so that the caller may hold the lock that handlers
 * take.  When it has given that back it says dm_conn_work(), which calls what there is to call.
 */
enum dm_conn_result dm_conn_post_quietly(struct dm_conn *conn, const struct dm_command *command, dm_reply_fn handler,
                                         void *user);

/*
 * Ends the connection for good: what it was asked and has not answered is answered by nothing, and
 * so is what it will be asked.  Calls handlers; no lock held.
 */
void dm_conn_end(struct dm_conn *conn);

/* Opens the connection if it is not, without waiting. */
void dm_conn_want(struct dm_conn *conn);

/*
 * The shortest lease of what the process holds, in ms; 0: it holds nothing.  A connection that is closed is
 * tried again accordingly.
 */
void dm_conn_note_lease(struct dm_conn *conn, unsigned lease_ms);

/* Another connection to the same server is ready: tries again soon if this one is closed. */
void dm_conn_retry_soon(struct dm_conn *conn);

/* The server turned out to be the wrong one: connect anew. */
void dm_conn_distrust(struct dm_conn *conn, const char *reason);

/*
 * The same if it is connected to another server than `server`, or to the same from before a promotion.  Nothing
 * where either does not say who it is.
 */
void dm_conn_distrust_other(struct dm_conn *conn, const struct dm_server *server, const char *reason);

/*
 * A connection for commands: asks the server whether it is still the one that has greeted, if the last time is
 * DM_LOOK_NS ago, as each command that is sent does before it.  The answer that says no closes the connection, and what was
 * sent behind the question has no answer.  Returns when the next look is due; DM_NEVER: the connection is not ready.
 * Calls nothing, as dm_conn_post_quietly().
 */
#define DM_LOOK_NS DM_NS_PER_S
int64_t dm_conn_look(struct dm_conn *conn);

bool dm_conn_is_ready(struct dm_conn *conn);

/*
 * Which server it is, or was last: the number changes when another one has come in its place, or the same with
 * what it remembered.  Calls nothing, as dm_conn_post_quietly().
 */
uint64_t dm_conn_server(struct dm_conn *conn, struct dm_server *ret_server);

/* Waits until the connection is ready.  False when the deadline has passed. */
bool dm_conn_await_ready(struct dm_conn *conn, const struct dm_deadline *deadline);

/*
 * Waits until all that was sent before is answered.  False when the deadline has passed, or there
 * is no connection.
 */
bool dm_conn_drain(struct dm_conn *conn, const struct dm_deadline *deadline);

/*
 * Which server it is, and why there is no answer, for people: what has broken the connection, or
 * that none came.
 */
void dm_conn_reason(struct dm_conn *conn, char ret_reason[DM_REASON_ROOM]);

/* For the loop thread: what to poll for (fd -1: nothing), and when there is something to do. */
struct dm_conn_watch {
    int fd;
    short events;
    int64_t due_ns;     /* CLOCK_BOOTTIME; DM_NEVER */
    bool is_attended;   /* a thread sleeps in ppoll() on it */
    uint64_t activity;  /* grows with every reply read */
    bool is_closed;     /* it broke, or was never wanted */
    bool was_wanted;    /* somebody once did */
};
void dm_conn_watch(struct dm_conn *conn, struct dm_conn_watch *ret_watch);

/*
 * The loop thread looks again at this moment at the latest.  A post that wants to be looked after
 * earlier, for its answer may never come, says so by on_change: once, not with every post.
 */
void dm_conn_note_look(struct dm_conn *conn, int64_t look_ns);

/* Does what can be done now: reads, writes, connects, gives up.  Never blocks. */
void dm_conn_work(struct dm_conn *conn);

/* Around fork(): no command is half copied; the child closes the socket and forgets it. */
void dm_conn_fork_prepare(struct dm_conn *conn);
void dm_conn_fork_parent(struct dm_conn *conn);
void dm_conn_fork_child(struct dm_conn *conn);

#endif
