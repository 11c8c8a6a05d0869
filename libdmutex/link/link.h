/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A connection in the protocol of Redis (RESP), shared by all threads of the process.  A link knows nothing of locks
 * and scripts: commands go out as bytes, and replies come back in order, each to the thread or handler that waits for
 * it.
 *
 *   tls         encrypted bytes, on request; tls_words: its sentences; tls_calls: the module in which they are
 *   stream      the socket
 *   address     the addresses of a name
 *   race        connects to several addresses in parallel
 *   dial        opens a stream in a thread of its own
 *   reader      makes replies of bytes, with limits
 *   pipe        each reply to its slot
 *   retry       when to open again
 *   identify    when to ask who the server is, and what waits for the answer
 *   prepare     the part of opening a connection that may block
 *   session     one connection after another: opened, greeted, used, closed
 *   link        the lock, posts, and the handlers, which are called without the lock
 *   turns       threads that wait for replies: leader and followers
 *
 * Each file includes only files that come before it in this list.
 *
 * Commands are sent in the order of dm_link_call() and dm_link_post().  A reply slot belongs to the link, not to the
 * thread, which may leave before the reply.
 *
 * A link is opened when it is first wanted, and again after a break; nobody waits for it with a lock held.  A link is
 * never freed: a forked child closes the socket and forgets the link, and a link that has ended stays, because a thread
 * may be about to use it.
 */
#ifndef DM_LINK_LINK_H
#define DM_LINK_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "link/greeter.h"

struct dm_link;

enum dm_link_result {
    DM_LINK_OK,       /* answered; or, posted, in the kernel */
    DM_LINK_BROKEN,   /* sent, but the connection broke before the answer */
    DM_LINK_LATE,     /* the deadline passed, sent or not */
    DM_LINK_OTHER,    /* not sent: the command was written for another server */
    DM_LINK_DOWN,     /* not sent: for a post, there is no connection now; for a call, there can be none */
    DM_LINK_NO_MEMORY /* for a call: not sent, because the command has no bytes */
};

/* Copies the structures.  Returns NULL without memory or descriptors. */
struct dm_link *dm_link_new(const struct dm_link_options *options, const struct dm_greeter *greeter,
                            const struct dm_link_hooks *hooks);

/* Undoes dm_link_new(), for a link that was never wanted; NULL is allowed. */
void dm_link_free_unused(struct dm_link *link);

/*
 * Sends the command, without waiting.  DM_LINK_OK: the command is on the way, and `handler` will be called.
 * DM_LINK_DOWN and DM_LINK_OTHER: nothing was sent, and nothing will be called.
 */
enum dm_link_result dm_link_post(struct dm_link *link, const struct dm_command *command, dm_reply_fn handler,
                                 void *user);

/*
 * The same, but calls nothing itself, so that the caller may hold a lock that handlers take.  After giving that lock
 * back it calls dm_link_work(), which calls the handlers that are due.
 */
enum dm_link_result dm_link_post_quietly(struct dm_link *link, const struct dm_command *command, dm_reply_fn handler,
                                         void *user);

/* Commands that are posted between these two calls go out in one write.  Call nothing, as dm_link_post_quietly(). */
void dm_link_hold(struct dm_link *link);
void dm_link_let_go(struct dm_link *link);

/*
 * For a link that listens: sends the command if the link is ready; the server's reply comes as a message.  Calls
 * nothing, as dm_link_post_quietly().
 */
void dm_link_say(struct dm_link *link, const struct dm_command *command);

/* Makes the threads in dm_link_await() check again. */
void dm_link_tell_news(struct dm_link *link);

/*
 * Ends the link permanently: neither pending nor later requests get an answer.  Calls handlers; the caller holds no
 * lock.
 */
void dm_link_end(struct dm_link *link, const char *reason);

/* Begins to open the connection if it is closed, without waiting. */
void dm_link_want(struct dm_link *link);

/* Limits the pause between attempts to open a closed link to about this many ms; 0: the usual limit. */
void dm_link_limit_pauses(struct dm_link *link, unsigned most_ms);

/* Another link has found that the server can be reached: if this link is closed, it tries again soon. */
void dm_link_retry_soon(struct dm_link *link);

/* Nobody needs the link now: closes it, without a log message, unless a thread is preparing to open it. */
void dm_link_rest(struct dm_link *link, const char *reason);

/*
 * The server may have been replaced: closes the link if it is open or being opened.  It opens again when it is wanted.
 */
void dm_link_close(struct dm_link *link, const char *reason);

/* If the link is ready, and connected to server number `peer` (0: any), reconnects. */
void dm_link_distrust(struct dm_link *link, uint64_t peer, const char *reason);

/* The server's answer is useless: reconnects.  The reason stays the link's until dm_link_accept_answer(). */
void dm_link_refuse_answer(struct dm_link *link, const char *reason);
void dm_link_accept_answer(struct dm_link *link);

/*
 * Checks the server (link/identify.h) if the last check was DM_IDENTIFY_NS ago; each command does so twice as often
 * before it is sent.  Returns when the next check is due; DM_NEVER: the link is not ready.  Calls nothing.
 */
int64_t dm_link_identify(struct dm_link *link);

/* True if there is a connection, or one is being opened.  Calls nothing. */
bool dm_link_is_open(struct dm_link *link);

/* True if commands can be sent, and the server may get them (may_send() of struct dm_belief).  Calls nothing. */
bool dm_link_is_ready(struct dm_link *link);

/*
 * Writes a sentence for people: the server's address, and why there is no answer (why the connection broke, or that no
 * answer came).  Calls nothing.
 */
void dm_link_reason(struct dm_link *link, char ret_reason[DM_REASON_ROOM]);

/* Since the link was made. */
struct dm_link_traffic {
    uint64_t commands;   /* sent, without greetings and checks */
    uint64_t messages;   /* heard */
    uint64_t reconnects; /* all openings after the first */
};

/* Calls nothing. */
void dm_link_count(struct dm_link *link, struct dm_link_traffic *ret_traffic);

/* For the loop thread: the descriptor to poll (fd -1: none), and when there is work to do. */
struct dm_link_watch {
    int fd;
    short events;
    int64_t due_ns;    /* CLOCK_BOOTTIME; DM_NEVER */
    bool is_attended;  /* a leader sleeps in ppoll() on the descriptor, or spins */
    uint64_t activity; /* grows with every reply read */
    bool is_closed;    /* the connection broke, or was never wanted */
    bool was_wanted;   /* false: never wanted */
};
void dm_link_watch(struct dm_link *link, struct dm_link_watch *ret_watch);

/*
 * The loop thread stops polling the descriptor, because a leader does, and nothing was read since `activity`. on_change
 * is called when the last leader leaves.  False: there is no leader, or the link has been read since.
 */
bool dm_link_leave_to_leader(struct dm_link *link, uint64_t activity);

/*
 * The loop thread will come again at turn_ns at the latest.  If a post needs an earlier turn, because its answer may
 * never come, on_change is called: once, not for every post.
 */
void dm_link_note_turn(struct dm_link *link, int64_t turn_ns);

/* Does all work that can be done now: reads, writes, connects, gives up.  Never blocks. */
void dm_link_work(struct dm_link *link);

/* For fork(): no command is half copied then; the child closes the socket and forgets the link. */
void dm_link_fork_prepare(struct dm_link *link);
void dm_link_fork_parent(struct dm_link *link);
void dm_link_fork_child(struct dm_link *link);

#endif
