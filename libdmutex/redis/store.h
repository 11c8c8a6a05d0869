/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The lock store on a Redis or Valkey server: each function is one script, one round trip.  The scripts' promises stand
 * in lua/ and in doc/design/protocol.md.
 *
 * Functions with a deadline block until then at most, and any thread that holds no lock may call these functions; the
 * verdict is DM_SAYS_NOTHING when no usable answer came, with the reason for people, which the caller sets to ""
 * beforehand.
 * Functions named post never block.  Each returns true if the request is on the way; the handler is called once then,
 * without locks, by any thread.
 */
#ifndef DM_REDIS_STORE_H
#define DM_REDIS_STORE_H

#include "base/ident.h"
#include "core/answer.h"
#include "core/attempt.h"
#include "dmutex/types.h"
#include "redis/conn.h"
#include "redis/keys.h"

#define DM_BATCH 100

/* For a mutex's key in the registry (runtime/registry.h), as a condition's record keeps the key. */
#define DM_MUTEX_KEY_ROOM (DMUTEX_NAME_MAX_NP + 2)

/* The scripts that are posted. */
enum dm_posted_script { DM_POSTS_RELEASE, DM_POSTS_POLL, DM_POSTS_RENEW, DM_POSTED_SCRIPTS };

struct dm_store {
    struct dm_conn *conn;
    const char *uuid;
    const char *label;
    char inbox_prefix[96];              /* of all processes' inboxes */
    bool is_unknown[DM_POSTED_SCRIPTS]; /* the server said so: the next post sends the text.  Atomic, a hint */
};

/*
 * Takes the answers to a posted request, one for each question, in the order of the questions.  answers NULL: the
 * connection broke before the reply, and whether the request was executed is not known.  refusal: the error's text if a
 * person should read the text, else NULL.
 */
typedef void (*dm_answers_fn)(void *user, const struct dm_answer *answers, int count, const char *refusal);

void dm_store_init(struct dm_store *store, struct dm_conn *conn, const char *prefix, const char *uuid,
                   const char *label);

/* One request about one attempt. */
struct dm_ask {
    const struct dm_keys *keys;
    const struct dm_keys *condition; /* of the condition that the attempt waits on, or was signalled from; NULL: none */
    uint64_t thread;
    uint64_t attempt;
    struct dm_request request;
    uint32_t lease_ms;
    bool is_robust;
    uint64_t seen;    /* the highest token of this name that the process knows of */
    uint64_t arrival; /* the place in the queue to come back to, 0 none */
};

/* How a hold ends. */
enum dm_end { DM_END_UNLOCKED, DM_END_DIED, DM_END_NOT_RECOVERABLE };

/* A release that the store has not confirmed. */
struct dm_owed {
    uint64_t thread;
    uint64_t attempt;
    enum dm_end end;
};

struct dm_renewal {
    const struct dm_keys *keys;
    uint64_t thread;
    uint64_t attempt;
    struct dm_request request;
    uint32_t lease_ms;
    unsigned depth;
    uint64_t token;
};

/* OWNED, BUSY, QUEUED, FULL, NOT_RECOVERABLE, NO_MEMORY, REFUSED or NOTHING.  `owed` goes first. */
struct dm_answer dm_store_acquire(struct dm_store *store, const struct dm_ask *ask, bool may_queue,
                                  const struct dm_owed *owed, int owed_count, const struct dm_deadline *deadline,
                                  char ret_reason[DM_REASON_ROOM]);

/* OWNED or DONE (the attempt waits no longer), REFUSED or NOTHING. */
struct dm_answer dm_store_cancel(struct dm_store *store, const struct dm_ask *ask, const struct dm_deadline *deadline,
                                 char ret_reason[DM_REASON_ROOM]);

/*
 * DONE, and is_wanted: waiters are left that a poll must serve; NOT_OWNER: the attempt neither owned nor waited; AGAIN,
 * REFUSED, NO_MEMORY or NOTHING: to be sent again.
 */
struct dm_answer dm_store_release(struct dm_store *store, const struct dm_ask *ask, enum dm_end end,
                                  const struct dm_deadline *deadline, char ret_reason[DM_REASON_ROOM]);
bool dm_store_post_release(struct dm_store *store, const struct dm_ask *ask, enum dm_end end, dm_answers_fn handler,
                           void *user);

/*
 * At most DM_BATCH each.  Posted quietly, so that the caller may hold the lock under which the caller chose the
 * contents; dm_conn_work() follows after the caller has given the lock back.  AGAIN: the caller chooses the contents
 * anew, because a release may have been sent meanwhile.
 */
bool dm_store_post_poll(struct dm_store *store, const struct dm_ask *asks, int count, dm_answers_fn handler,
                        void *user);

/* The answers are OWNED, UNKNOWN (lost), AGAIN or NOTHING. */
bool dm_store_post_renew(struct dm_store *store, const struct dm_renewal *renewals, int count, dm_answers_fn handler,
                         void *user);

/* One renewal, awaited. */
struct dm_answer dm_store_renew(struct dm_store *store, const struct dm_renewal *renewal,
                                const struct dm_deadline *deadline, char ret_reason[DM_REASON_ROOM]);

/* DONE; UNKNOWN: not the owner any more; REFUSED or NOTHING. */
enum dm_verdict dm_store_consistent(struct dm_store *store, const struct dm_ask *ask,
                                    const struct dm_deadline *deadline, char ret_reason[DM_REASON_ROOM]);

/* DONE, and whether waiters are left that a poll must serve; REFUSED or NOTHING. */
enum dm_verdict dm_store_force(struct dm_store *store, const struct dm_keys *keys, const struct dm_deadline *deadline,
                               bool *ret_must_serve, char ret_reason[DM_REASON_ROOM]);

/* Deletes all of an anonymous mutex, or makes a name clean again.  DONE, BUSY, REFUSED, NOTHING. */
enum dm_verdict dm_store_drop(struct dm_store *store, const struct dm_keys *keys, bool is_anonymous,
                              const struct dm_deadline *deadline, char ret_reason[DM_REASON_ROOM]);

/* The store's data about a name. */
struct dm_info {
    dmutex_info_t shown; /* with the store's token */
    int64_t held_ms;     /* locked: since the grant */
    uint64_t position;   /* of the attempt that asks, 1 is the head; 0: not waiting */
    int64_t grace_ms;    /* for how long the store grants nothing of its own accord */
};

/* `ask`: the attempt that waits, or with attempt 0 none.  DONE, REFUSED or NOTHING. */
enum dm_verdict dm_store_info(struct dm_store *store, const struct dm_ask *ask, const struct dm_deadline *deadline,
                              struct dm_info *ret_info, char ret_reason[DM_REASON_ROOM]);

/* ---- conditions: store_cond.c ------------------------------------------------------------ */

/* The hold that a wait gives back. */
struct dm_leaving {
    uint64_t attempt; /* of the same thread and name as the attempt that waits */
    enum dm_end end;
    const char *mutex; /* the bound mutex: the key in the registry */
};

/*
 * WAITING, or when repeated OWNED or QUEUED; NOT_OWNER, BOUND, FULL, NO_MEMORY, REFUSED: nothing is
 * changed; NOT_RECOVERABLE: the hold is given back, nobody waits; NOTHING: not known.
 */
struct dm_answer dm_store_cond_wait(struct dm_store *store, const struct dm_ask *ask, const struct dm_leaving *leaving,
                                    const struct dm_deadline *deadline, char ret_reason[DM_REASON_ROOM]);

/* OWNED, QUEUED, UNKNOWN or NOT_RECOVERABLE, and whether a signal came first; REFUSED or NOTHING. */
struct dm_answer dm_store_cond_cancel(struct dm_store *store, const struct dm_ask *ask,
                                      const struct dm_deadline *deadline, bool *ret_is_signalled,
                                      char ret_reason[DM_REASON_ROOM]);

/* The condition and mutex of a signal. */
struct dm_signal {
    const struct dm_keys *condition;
    const struct dm_keys *keys; /* of the bound mutex; NULL: not known */
    const char *mutex;          /* the mutex's key in the registry; "" if not known */
    int most;
    uint64_t upto; /* newer waiters are not meant; 0: all waiting now */
};

struct dm_signalled {
    enum dm_verdict verdict; /* DONE; BOUND: again with the mutex of `mutex`; REFUSED or NOTHING */
    uint64_t upto;           /* DONE: the newest waiter meant */
    bool has_left;           /* DONE: more of the meant waiters are to be signalled */
    bool must_serve;         /* DONE: waiters of the mutex are left that a poll must serve */
    char mutex[DM_MUTEX_KEY_ROOM];
};

struct dm_signalled dm_store_cond_signal(struct dm_store *store, const struct dm_signal *signal,
                                         const struct dm_deadline *deadline, char ret_reason[DM_REASON_ROOM]);

/* Deletes an anonymous condition, or only looks whether anybody waits.  DONE, BUSY, REFUSED, NOTHING. */
enum dm_verdict dm_store_cond_drop(struct dm_store *store, const struct dm_keys *condition, bool is_anonymous,
                                   const struct dm_deadline *deadline, char ret_reason[DM_REASON_ROOM]);

/* A message of the inbox. */
enum dm_message_kind { DM_MESSAGE_GRANTED, DM_MESSAGE_SIGNALLED, DM_MESSAGE_LOST, DM_MESSAGE_ASK };

struct dm_message {
    enum dm_message_kind kind;
    uint64_t attempt;
    uint64_t request;        /* GRANTED */
    uint64_t run;            /* GRANTED: of the server that granted, see struct dm_server; 0: not told */
    struct dm_answer answer; /* GRANTED, SIGNALLED */
};

/* False for a message of another kind: a later version's, or nonsense. */
bool dm_store_read_message(const char *text, struct dm_message *ret_message);

#endif
