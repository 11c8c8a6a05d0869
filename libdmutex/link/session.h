/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One connection to the server after another: opened when wanted, greeted, used, closed with a
 * reason, opened again after a pause.  Never blocks and knows no threads: the caller guards the session by a lock, and
 * afterwards does the work that has been noted (finished slots, news).
 */
#ifndef DM_LINK_SESSION_H
#define DM_LINK_SESSION_H

#include "base/attrs.h"
#include "link/greeter.h"
#include "link/pipe.h"
#include "link/prepare.h"
#include "link/race.h"
#include "link/retry.h"

enum dm_session_state {
    DM_SESSION_CLOSED,    /* opened again from retry.due_ns on, if wanted */
    DM_SESSION_PREPARING, /* a helper thread finds the address, or does the TLS handshake */
    DM_SESSION_CONNECTING,
    DM_SESSION_GREETING,
    DM_SESSION_READY
};

/*
 * Group commit: at most one confirmation is under way, for all commands sent before it.  When it has come, the next one
 * is requested, for all commands sent since (struct dm_belief, confirm).
 */
struct dm_kept {
    struct dm_slot *first, **end; /* answered, in order */
    bool is_under_way;
    bool is_behind; /* commands were sent after the confirmation under way */
};

/* Invariant: the state is DM_SESSION_READY or DM_SESSION_GREETING if the pipe has slots. */
struct dm_session {
    struct dm_link_options options;
    struct dm_greeter greeter;
    enum dm_session_state state;
    struct dm_pipe pipe;
    struct dm_retry retry;
    struct dm_race race; /* DM_SESSION_CONNECTING */
    /* Kept while the connection is open, for the next opening if no name server answers. */
    struct dm_addresses *addresses;
    struct dm_addresses *found;  /* from a look-up that came late, for the next opening; or NULL */
    int64_t looked_ns;           /* when the last look-up was begun */
    bool is_way_due;             /* no thread has begun to look up the name, or to call the hook */
    bool is_finding_way;         /* a thread is doing so; the session may go on without it */
    bool is_greeter_prepared;    /* that thread no longer uses the greeter */
    bool is_handshake_due;       /* no thread has taken the lent stream */
    uint64_t peer;               /* the number of the server of the last greeting; 0: none yet */
    struct dm_identify identify; /* used if the greeter can */
    int greetings;               /* how many replies of the greeting's round have not come yet */
    struct dm_kept kept;         /* replies to commands, until the server has confirmed them */
    int64_t deadline_ns;   /* of DM_SESSION_CONNECTING and DM_SESSION_GREETING, of the TLS handshake and the look-up */
    struct dm_stream lent; /* lent to the thread that does the TLS handshake, which alone uses it; fd -1: none */
    bool is_left;          /* that handshake has become useless: `reason` says why */
    /*
     * Permanently: no more bytes are sent.  Not a state, because a handler that forks may have interrupted a change of
     * state, and dm_session_forget() must be final in the child even so.
     */
    bool is_ended;
    int64_t owned_ns; /* the socket's number was last seen to be the library's; see is_socket_ours() */
    bool is_wanted, was_wanted;
    bool has_reached;       /* a server at one of `addresses`: its reason says more than another address that refuses */
    bool has_answered;      /* the server of this connection has */
    bool is_nowhere;        /* nobody knows where the server is: `reason` says why */
    bool is_near;           /* the server of this connection is on this machine */
    bool is_answer_refused; /* the last answer of all connections was: `reason` says why */
    int tellings;           /* how often a break was logged since the connection was last restored */
    char told[DM_REASON_ROOM];   /* the last time, with this reason */
    unsigned permanent_failures; /* how many times a connection turned out impossible */
    uint64_t activity;           /* grows with every reply */
    uint64_t sent, heard;        /* commands, without greetings and checks; messages: since the beginning */
    uint64_t openings;           /* how often the session was ready */
    char reason[DM_REASON_ROOM];

    /* For the caller to do and to reset. */
    struct dm_slot *finished, **finished_end; /* replies and messages, in order */
    bool must_prepare;                        /* state PREPARING: somebody must call dm_prepare() */
    bool is_state_news;                       /* threads that wait for this session must check again */
    bool is_ready_news, is_change_news;
};

void dm_session_init(struct dm_session *session, const struct dm_link_options *options,
                     const struct dm_greeter *greeter);

/* True if commands can be sent. */
static inline bool dm_session_is_ready(const struct dm_session *session)
{
    return session->state == DM_SESSION_READY && !session->is_ended;
}

/* True if commands can be sent, and the server may get them: may_send of struct dm_belief. */
bool dm_session_is_usable(const struct dm_session *session);

/* As may_believe of struct dm_belief. */
static inline bool dm_session_is_believed(const struct dm_session *session, bool is_for_any,
                                          char ret_reason[DM_REASON_ROOM])
{
    const struct dm_belief *belief = session->greeter.belief;

    return !belief || belief->may_believe(session->greeter.user, is_for_any, ret_reason);
}

/* Opens the connection if it is closed, wanted and due. */
void dm_session_open_if_due(struct dm_session *session);

/*
 * The part of the opening that may block, in a thread: under the lock the session says what to do, dm_prepare() does it
 * without the lock, and the session goes on under the lock; or no thread could be started for it.
 */
void dm_session_begin_preparing(struct dm_session *session, struct dm_prepared *ret_prepared);
void dm_session_note_greeter_prepared(struct dm_session *session);
void dm_session_go_on(struct dm_session *session, struct dm_prepared *prepared);
void dm_session_stop_preparing(struct dm_session *session);

/* Does all work that can be done now: opens, connects, writes, reads, gives up. */
void dm_session_work(struct dm_session *session);

/* False if there is nothing to poll, or if the calling thread must leave it to others: dm_stream_is_for_thread(). */
bool dm_session_is_for_thread(const struct dm_session *session);

/* When there is work to do without an event of the socket; DM_NEVER: none. */
int64_t dm_session_due_ns(const struct dm_session *session);

/* The descriptor to poll, which changes when a connect has won; -1: none.  And its events. */
int dm_session_fd(const struct dm_session *session);
short dm_session_events(const struct dm_session *session);

/* Ready: sends an identity check, if the last was sent `pause_ns` ago.  May break the connection. */
void dm_session_identify_if_due(struct dm_session *session, int64_t pause_ns);

/*
 * Ready: sends the command, after a check if one is due, and takes a slot for the reply.  If the server has not been
 * known for DM_IDENTIFY_NS, the bytes go out when the check is answered.  NULL if the connection broke before, or the
 * server may no longer get commands; a slot that has already ended if it broke after the command.
 */
struct dm_slot *dm_session_send(struct dm_session *session, const struct dm_command *command);

/* Ready, and listening: sends a command; the server's reply comes as a message. */
void dm_session_say(struct dm_session *session, const struct dm_command *command);

/* The connection is broken or useless: closes it, and finishes all slots without a reply. */
void dm_session_fail(struct dm_session *session, const char *format, ...) DM_PRINTF(2, 3);

/*
 * The server may have been replaced: fails from any state in which the session is open, or is being opened.  While a
 * thread does the TLS handshake, or prepares the greeter, it fails when that thread comes back; a handshake does so at
 * once.
 */
void dm_session_leave(struct dm_session *session, const char *reason);

/* Closes permanently; the reason alone is the sentence. */
void dm_session_end(struct dm_session *session, const char *reason);

/* Closes a connection that nobody needs now.  This is no failure, and not logged.  It opens again when it is wanted. */
void dm_session_rest(struct dm_session *session, const char *reason);

/* In a forked child: ends the copy, while the parent's connection continues.  Frees nothing, and needs no lock. */
void dm_session_forget(struct dm_session *session);

/* The reason while no failure is known. */
#define DM_SESSION_NO_ANSWER "gave no answer"

/* Writes the server's address and the failure into the session's `reason`. */
void dm_session_note_reason(struct dm_session *session, const char *format, ...) DM_PRINTF(2, 3);

/* The next finished slot, or NULL. */
struct dm_slot *dm_session_take_finished(struct dm_session *session);

#endif
