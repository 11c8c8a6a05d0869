/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A connection in the protocol of Redis (RESP), shared by all threads of the process.  A link knows no locks and no
 * scripts: bytes of commands go out, replies come back, in order, to the thread or the handler that awaits each.
 *
 *   tls         encrypted bytes, on request; tls_words: its sentences; tls_calls: the module in which they are
 *   stream      the socket
 *   address     the addresses of a name
 *   race        connects side by side
 *   reader      replies out of bytes, with limits
 *   pipe        each reply to its slot
 *   retry       when to open again
 *   look        when to ask who the server is, and what waits for the answer
 *   prepare     the part of an opening that may block
 *   session     opened, greeted, used, closed: one connection after another
 *   link        the lock, posts, and the handlers, which are called without the lock
 *   turns       threads that wait for replies: leader and followers
 *
 * Each file includes only files that stand before it in this list.
 *
 * The order of commands is the order of dm_link_call() and dm_link_post(); a reply slot belongs to the link, not to the
 * thread, which may leave earlier.
 *
 * A link is opened when first wanted and again after a break; nobody waits for the link with a lock held.  A link is
 * never freed: a forked child closes the socket and forgets the link, and a link that has ended stays, because a thread
 * may still be about to use the link.
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
    DM_LINK_BROKEN,   /* sent, and the connection broke before the answer */
    DM_LINK_LATE,     /* the deadline passed, sent or not */
    DM_LINK_OTHER,    /* not sent: the command was written for another server */
    DM_LINK_DOWN,     /* not sent: posted, there is no connection now; called, there can be none */
    DM_LINK_NO_MEMORY /* called: not sent, the command has no bytes */
};

/* The structs are copied.  Returns NULL without memory or descriptors. */
struct dm_link *dm_link_new(const struct dm_link_options *options, const struct dm_greeter *greeter,
                            const struct dm_link_hooks *hooks);

/* Undoes dm_link_new(), for a link that was never wanted; NULL is allowed. */
void dm_link_free_unused(struct dm_link *link);

/*
 * Sends the command, without waiting.  DM_LINK_OK: the command is on the way, and `handler` is called.  DM_LINK_DOWN
 * and DM_LINK_OTHER: nothing was sent and nothing will be called.
 */
enum dm_link_result dm_link_post(struct dm_link *link, const struct dm_command *command, dm_reply_fn handler,
                                 void *user);

/*
 * The same, and calls nothing before the return, so that the caller may hold the lock that handlers take.  After giving
 * that lock back the caller calls dm_link_work(), which calls the handlers that are due.
 */
enum dm_link_result dm_link_post_quietly(struct dm_link *link, const struct dm_command *command, dm_reply_fn handler,
                                         void *user);

/* Commands that are posted between the two go out in one write.  Quietly, as dm_link_post_quietly(). */
void dm_link_hold(struct dm_link *link);
void dm_link_let_go(struct dm_link *link);

/*
 * For a link that listens: sends the command if the link is ready, and the server's reply comes as a message.  Calls
 * nothing before the return, as dm_link_post_quietly().
 */
void dm_link_say(struct dm_link *link, const struct dm_command *command);

/* The threads in dm_link_await() look again. */
void dm_link_tell_news(struct dm_link *link);

/*
 * Ends the link for good: requests without an answer get no answer, and later requests get none either.  Calls
 * handlers; no lock held.
 */
void dm_link_end(struct dm_link *link, const char *reason);

/* Opens the connection if closed, without waiting. */
void dm_link_want(struct dm_link *link);

/* The longest pause between the tries of a closed link, in ms, or a little longer; 0: the usual one. */
void dm_link_limit_pauses(struct dm_link *link, unsigned most_ms);

/* The server can be reached, as another link has found: tries again soon if this link is closed. */
void dm_link_retry_soon(struct dm_link *link);

/* Nobody needs the link now: closes it, quietly, unless a thread prepares an opening. */
void dm_link_rest(struct dm_link *link, const char *reason);

/* The server may have been replaced: closes the link if it is open or being opened; it opens again when wanted. */
void dm_link_close(struct dm_link *link, const char *reason);

/* If the link is ready, and connected to server number `peer` (0: any): connects anew. */
void dm_link_distrust(struct dm_link *link, uint64_t peer, const char *reason);

/* The server's answer is of no use: connects anew.  The reason stays the link's until dm_link_accept_answer(). */
void dm_link_refuse_answer(struct dm_link *link, const char *reason);
void dm_link_accept_answer(struct dm_link *link);

/*
 * Takes a look at the server if the last was DM_LOOK_NS ago, as each command does twice as often before being sent.
 * Returns when the next is due; DM_NEVER: the link is not ready.  Calls nothing.
 */
int64_t dm_link_look(struct dm_link *link);

/* There is a connection, or one is being opened.  Calls nothing. */
bool dm_link_is_open(struct dm_link *link);

/* Commands can be sent, and somebody vouches for the server (struct dm_greeter).  Calls nothing. */
bool dm_link_is_ready(struct dm_link *link);

/*
 * Copies an error sentence for people: the server's address, and why there is no answer (the reason of the break, or
 * that no answer came).  Calls nothing.
 */
void dm_link_reason(struct dm_link *link, char ret_reason[DM_REASON_ROOM]);

/* Since the link was made. */
struct dm_link_traffic {
    uint64_t commands;   /* sent, but for greetings and looks */
    uint64_t messages;   /* heard */
    uint64_t reconnects; /* openings but the first */
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
    bool was_wanted;   /* somebody once did */
};
void dm_link_watch(struct dm_link *link, struct dm_link_watch *ret_watch);

/*
 * The loop thread polls the descriptor no more, because a leader does, and nothing was read since `activity`.  When the
 * last leader leaves, on_change says so.  False: there is no leader, or the link was read meanwhile.
 */
bool dm_link_leave_to_leader(struct dm_link *link, uint64_t activity);

/*
 * The loop thread comes again at turn_ns at the latest.  A post that wants an earlier turn, because its answer may
 * never come, says so by on_change: once, not with every post.
 */
void dm_link_note_turn(struct dm_link *link, int64_t turn_ns);

/* Does all work that can be done now: reads, writes, connects, gives up.  Never blocks. */
void dm_link_work(struct dm_link *link);

/* Around fork(): no command is half copied; the child closes the socket and forgets the link. */
void dm_link_fork_prepare(struct dm_link *link);
void dm_link_fork_parent(struct dm_link *link);
void dm_link_fork_child(struct dm_link *link);

#endif
