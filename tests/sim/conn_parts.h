/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Declarations that the two parts of the connection share: conn.c, the library's calls; conn_come.c, events that
 * come without a call.
 */
#ifndef SIM_CONN_PARTS_H
#define SIM_CONN_PARTS_H

#include <hiredis.h>

#include "base/rank.h"
#include "link/reader.h"
#include "link/turns.h"
#include "net.h"
#include "process.h"
#include "world.h"

enum state { CLOSED, CONNECTING, GREETING, READY };

/* An awaited reply: of a thread, a handler, or the greeting. */
struct slot {
    struct slot *next;
    struct thread *caller; /* NULL: the caller has left, or there is no caller */
    dm_reply_fn handler;
    void *user;
    bool is_greeting, is_message, is_confirm, is_check;
    bool is_for_any; /* as the command's, also the next */
    const struct dm_summary_kind *summary;
    bool is_done, is_broken;
    size_t bytes;
    int64_t sent_ns;
    redisReply *reply;
    uint64_t peer; /* of a message: the number of the server that sent the message */
};

struct dm_link {
    struct process *process;
    struct dm_link_options options;
    struct dm_greeter greeter;
    struct dm_link_hooks hooks;
    int greetings; /* replies of the round of the greeting that have not come yet */
    enum state state;
    struct link *link;
    struct dm_reader reader;
    struct slot *first, **last;             /* not answered */
    struct slot *finished, **finished_last; /* slots with handlers to call */
    struct slot *kept, **kept_last;         /* answered, and not confirmed by the replicas yet */
    bool is_confirming, must_confirm;       /* a confirmation is in progress; commands were sent after it */
    struct thread *waiting[64];             /* for a ready connection */
    int waiting_count;
    size_t unanswered;
    uint64_t pushed, popped;
    struct dm_link_traffic traffic;
    bool was_ready;
    bool is_wanted, was_wanted, is_ready_news, is_change_news;
    int64_t deadline_ns, retry_ns, back_off_ns, heard_ns, planned_ns;
    struct dm_identify identify;
    bool is_stopped; /* bytes wait for the answer to a check */
    uint64_t peer;   /* the server's number */
    char reason[DM_REASON_ROOM];
};

/* ---- conn.c ------------------------------------------------------------------------------ */

struct slot *conn_push(struct dm_link *conn, size_t bytes);
struct slot *conn_pop(struct dm_link *conn);

/* reply: NULL, the connection broke. */
void conn_finish(struct dm_link *conn, struct slot *slot, redisReply *reply);
void conn_finish_later(struct dm_link *conn, struct slot *slot);

/* Group commit, as in link/session.c: a reply is kept until a confirmation sent after it has come. */
void conn_keep(struct dm_link *conn, struct slot *slot, redisReply *reply);
void conn_take_confirm(struct dm_link *conn, redisReply *reply);

/* Commands can be sent, and somebody vouches for the server. */
bool conn_is_usable(const struct dm_link *conn);

/* Wakes the threads that wait for a ready connection; the threads look again. */
void conn_wake_waiting(struct dm_link *conn);

/* Calls all handlers due; the caller holds no lock. */
void conn_leave(struct dm_link *conn);

void conn_fail(struct dm_link *conn, const char *reason);

/* ---- conn_identify.c ------------------------------------------------------------------------- */

/* Sends, or keeps for the answer to the check under way. */
void conn_send(struct dm_link *conn, const char *bytes, size_t length, bool is_for_any);

void conn_identify_if_due(struct dm_link *conn, int64_t pause_ns);
void conn_take_identity(struct dm_link *conn, redisReply *reply, int64_t sent_ns);

/* ---- conn_come.c ------------------------------------------------------------------------- */

/* Around each question to a greeter, as the library's links hold their lock. */
void conn_begin_asking(void);
void conn_end_asking(void);

void conn_open_if_due(struct dm_link *conn);

/* The number of the link's server; its port is that number and one. */
int conn_server(const struct dm_link *conn);

/* The connection's next deadline, in the time of the connection's process; the connection fails then. */
int64_t conn_due_ns(const struct dm_link *conn);
void conn_check_time(struct dm_link *conn);
void conn_plan(struct dm_link *conn);

#endif
