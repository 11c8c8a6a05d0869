/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inside of a connection, for the files conn*.c alone:
 *
 *   conn.c       life of a connection, and the work that is possible at any moment without blocking
 *   conn_open.c  how a connection comes to be ready: address, socket, greeting
 *   conn_io.c    bytes out, bytes in, and the end
 *   conn_look.c  whether the server is still the one that has greeted
 *   conn_slot.c  replies to their slots; the lock
 *   conn_call.c  threads that wait for replies: leader and followers
 *
 * Every function here wants the lock held, except dm_conn_enter().
 */
#ifndef DM_REDIS_CONN_PARTS_H
#define DM_REDIS_CONN_PARTS_H

#include <hiredis.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/attrs.h"
#include "base/rank.h"
#include "base/self.h"
#include "redis/conn.h"
#include "redis/reply.h"
#include "redis/socket.h"

/* Where a reply goes: to a thread that waits, to a handler, or, with neither, nowhere. */
struct dm_slot {
    struct dm_slot *next;
    struct dm_call *call;
    dm_reply_fn handler;
    void *user;
    redisReply *reply;       /* set once the slot is on the finished list */
    struct dm_server server; /* of a message: the server that sent the message */
    int64_t sent_ns;
    bool is_greeting, is_look, is_message;
};

/* A thread in dm_conn_call(); on the thread's stack, in conn->calls during the call. */
struct dm_call {
    struct dm_call *next, **link;
    struct dm_self *self;
    struct dm_slot *slot; /* once sent */
    redisReply *reply;
    enum dm_conn_result result;
    bool is_done;
    bool is_asleep;    /* as a follower */
    unsigned hopeless; /* the connection's, when the call began */
    uint64_t drains;   /* waits until so many slots were answered; 0: for another event */
};

enum dm_conn_state {
    DM_CONN_CLOSED,    /* opened again from retry_ns on, if wanted */
    DM_CONN_PREPARING, /* a thread of its own finds the address */
    DM_CONN_CONNECTING,
    DM_CONN_GREETING,
    DM_CONN_READY,
    DM_CONN_ENDED /* for good, see dm_conn_end() */
};

/* Bytes read at once.  Not on a caller's stack, which may be as small as PTHREAD_STACK_MIN. */
#define DM_CONN_READ_ROOM (16 * 1024)

/* The reason that dm_conn_reason() gives while no failure is known. */
#define DM_NO_ANSWER "gave no answer"

/*
 * lock guards all below.  Rank CONN: nothing but LOG nests in lock.
 * Invariant: slots are in the order of the bytes sent; every command sent and not answered has a slot.  state is
 * DM_CONN_READY or DM_CONN_GREETING if there are slots.
 */
struct dm_conn {
    struct dm_mutex lock;
    struct dm_url *url;
    struct dm_conn_hooks hooks;
    struct dm_greeting greeting;
    char channel[128];

    uint64_t server_number; /* see dm_conn_server(); 1: none was there yet */
    struct dm_server server;
    int64_t looked_ns; /* when the connection last asked for the server's identity */

    enum dm_conn_state state;
    bool is_wanted, was_wanted;
    unsigned hopeless;             /* how many times a connection turned out impossible */
    int64_t retry_ns;              /* DM_CONN_CLOSED */
    int64_t deadline_ns;           /* DM_CONN_CONNECTING, DM_CONN_GREETING */
    unsigned failures;             /* since the connection was last of use, for a second */
    bool is_told;                  /* the log has told the break, and not yet the return */
    int64_t ready_ns;              /* when the state last became DM_CONN_READY */
    int64_t failed_ns, retry_part; /* last failure; thousandths of the limit of the pause behind the failure */
    unsigned lease_ms;             /* see dm_conn_note_lease() */
    char reason[DM_REASON_ROOM];
    struct dm_addresses *addresses;

    int fd;
    redisReader *reader;
    struct dm_reply_budget budget; /* of the reply that `reader` is in */
    char in[DM_CONN_READ_ROOM];    /* bytes between the socket and the reader */
    char *out;                     /* bytes that the kernel did not take yet */
    size_t out_length;
    struct dm_slot *first, *last;
    uint64_t pushed, popped; /* slots ever: how far replies have come */
    struct dm_slot *spare;
    uint64_t activity;
    int64_t look_ns; /* see dm_conn_note_look() */

    struct dm_call *leader;
    int leader_bell; /* an eventfd beside the socket in the leader's ppoll() */
    struct dm_call *calls;
    unsigned asleep, draining; /* calls with is_asleep, with drains: a reply to one of thousands walks past none */
    unsigned glances_missed, glances_left_out; /* see conn_call.c */

    struct dm_slot *finished, **finished_end; /* handlers to be called without the lock */
    bool is_ready_news, is_change_news;
};

/* conn.c */
bool dm_conn_is_for_server(const struct dm_conn *conn, const struct dm_command *command);

/* conn_slot.c */
void dm_conn_enter(struct dm_conn *conn);
/* Unlocks, then calls the handlers of slots that have finished meanwhile. */
void dm_conn_leave(struct dm_conn *conn);
/* True if dm_conn_leave() has handlers to call: then no thread may sleep before the calls. */
bool dm_conn_has_news(const struct dm_conn *conn);

struct dm_slot *dm_conn_take_slot(struct dm_conn *conn);
void dm_conn_spare_slot(struct dm_conn *conn, struct dm_slot *slot);
void dm_conn_push_slot(struct dm_conn *conn, struct dm_slot *slot);
struct dm_slot *dm_conn_pop_slot(struct dm_conn *conn);
/* Hands a reply, or NULL, to the slot's thread or handler. */
void dm_conn_finish(struct dm_conn *conn, struct dm_slot *slot, redisReply *reply);
void dm_conn_finish_later(struct dm_conn *conn, struct dm_slot *slot, redisReply *reply);
void dm_conn_note_sleep(struct dm_conn *conn, struct dm_call *call, bool is_asleep);
void dm_conn_wake(struct dm_conn *conn, struct dm_call *call);
void dm_conn_wake_all(struct dm_conn *conn);

/* conn_io.c */
/* The connection is broken or useless: closes the connection and answers all its slots with nothing. */
void dm_conn_fail(struct dm_conn *conn, const char *format, ...) DM_PRINTF(2, 3);
/* Sets the reason that dm_conn_reason() gives from now on, behind the server's address. */
void dm_conn_note_reason(struct dm_conn *conn, const char *format, ...) DM_PRINTF(2, 3);
/* Closes the connection, answers all slots with nothing, and wakes all waiting threads. */
void dm_conn_shut(struct dm_conn *conn, enum dm_conn_state state);
bool dm_conn_write(struct dm_conn *conn, const char *bytes, size_t length);
void dm_conn_flush(struct dm_conn *conn);
/* Sets retry_ns by the known failures and leases. */
void dm_conn_plan_retry(struct dm_conn *conn);
/* Sends on an open connection and takes a slot for the reply; NULL if the connection broke. */
struct dm_slot *dm_conn_send(struct dm_conn *conn, const char *bytes, size_t length);
void dm_conn_read(struct dm_conn *conn);

/* conn_open.c */
void dm_conn_open_if_due(struct dm_conn *conn);
/* The next round of the greeting, or ready. */
void dm_conn_greet(struct dm_conn *conn);

/* conn_look.c */
/* Before a command is sent.  May break the connection. */
void dm_conn_look_if_due(struct dm_conn *conn);
void dm_conn_take_look(struct dm_conn *conn, redisReply *reply);

/* conn.c */
int64_t dm_conn_due_ns(const struct dm_conn *conn);
short dm_conn_wanted_events(const struct dm_conn *conn);
void dm_conn_do_work(struct dm_conn *conn);
/* Closes the bell of a connection that has ended, once no thread can sleep on the bell. */
void dm_conn_free_bell(struct dm_conn *conn);

#endif
