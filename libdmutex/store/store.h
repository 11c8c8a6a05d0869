/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The wall between the process and a lock store.  process/ and api/ know a store by this header alone; a store is a
 * table of operations, and knows the process by struct dm_host alone.  stores/redis/ is one store, tests/sim/plain.c
 * another.
 *
 * 1. An operation with a deadline blocks until then at most; the calling thread holds no lock.  The verdict is
 *    DM_SAYS_NOTHING if no usable answer came; ret_reason, which the caller sets to "" beforehand, says why.
 * 2. An operation named post never blocks.  True: the request is on the way, and the handler is called once. 3.
 * Handlers and the functions of struct dm_host are called without locks, by any thread inside an operation, except
 *    by an operation that says "quietly".
 * 4. Requests of one process about one name are executed in the order of sending. 5. A store never takes an answer for
 * a grant that the server did not give; no server is trusted.
 */
#ifndef DM_STORE_STORE_H
#define DM_STORE_STORE_H

#include "base/clock.h"
#include "base/ident.h"
#include "base/rank.h"
#include "config/url.h"
#include "core/answer.h"
#include "core/hold.h"
#include "dmutex/types.h"
#include "store/watch.h"

#define DM_BATCH 100
#define DM_LANES 256

/*
 * Names have keys in this process (process/claims/registry.h):
 *
 *      n NAME          of a mutex              c NAME              of a condition
 *      a ID            anonymous mutex         d ID GROUP          anonymous condition
 *
 * where GROUP is a blank and the key of any mutex of the group (n without the leaf), and each letter is followed by its
 * word at once.
 */
#define DM_MUTEX_KEY_ROOM (DMUTEX_NAME_MAX_NP + 2)

/* The store's record of a name.  One block of memory, made by dm_store_place(), to be freed by free(). */
struct dm_place;

/* ---- questions --------------------------------------------------------------------------- */

/*
 * Threads of a process that wait behind an attempt of the same process.  The store knows the attempt alone, and is told
 * of them with each renewal and poll, for people.
 */
#define DM_CROWD_TOLD 4
struct dm_crowd {
    unsigned count, told;
    struct {
        uint64_t thread;
        int64_t waited_ms;
    } first[DM_CROWD_TOLD]; /* `told` of them */
};

/* One request about one attempt. */
struct dm_ask {
    const struct dm_place *place;
    const struct dm_place *condition; /* that the attempt waits on, or was signalled from; NULL: none */
    uint64_t thread;
    uint64_t attempt;
    struct dm_request request;
    uint32_t lease_ms;
    bool is_robust;
    uint64_t seen;                /* the highest token of this name that the process knows of */
    uint64_t arrival;             /* the place in the queue to come back to, 0 none */
    int64_t held_ms;              /* of a release: for how long the hold has lasted, for people */
    bool is_contested;            /* of a release: a waiter is to be told, probably */
    const struct dm_crowd *crowd; /* of a poll: borrowed until the request is sent; NULL: nobody */
};

/* A release that the store has not confirmed. */
struct dm_owed {
    uint64_t thread;
    uint64_t attempt;
    enum dm_end end;
};

/*
 * A mark that a process puts on its own hold: the process keeps the lease after an unlock, or hands the lock on inside.
 * The store sends DM_MESSAGE_WANTED for a marked hold when the queue has its first waiter.
 */
enum dm_mark {
    DM_MARK_NONE,
    DM_MARK_TELL,         /* tell; the end of the lease is a death */
    DM_MARK_TELL_NO_DEATH /* tell; at the end of the lease perhaps no thread was inside: no death */
};

/* The newest renewal of a hold decides the mark: each renewal repeats the mark. */
struct dm_renewal {
    const struct dm_place *place;
    const struct dm_place *condition; /* where an older copy may have the attempt wait; NULL: none */
    uint64_t thread;
    uint64_t attempt;
    struct dm_request request;
    uint32_t lease_ms;
    unsigned depth;
    uint64_t token;
    enum dm_mark mark;
    const struct dm_crowd *crowd; /* borrowed until the request is sent; NULL: nobody */
    bool is_part; /* of a quorum: the server takes a higher token over, and no hold of another attempt */
};

/* The hold that a wait on a condition gives back. */
struct dm_leaving {
    uint64_t thread;  /* the thread that asked for the hold: another thread of the process may wait now */
    uint64_t attempt; /* of the same name as the attempt that waits */
    enum dm_end end;
    const char *mutex; /* the bound mutex: the key in the registry */
};

/* The most waiters that one request signals. */
#define DM_SIGNAL_MOST 256

/* The condition and mutex of a signal. */
struct dm_signal {
    const struct dm_place *condition;
    const struct dm_place *place; /* of the bound mutex; NULL: not known */
    const char *mutex;            /* the mutex's key in the registry; "" if not known */
    int most;                     /* DM_SIGNAL_MOST at most */
    uint64_t upto;                /* newer waiters are not meant; 0: all waiting now */
};

/* ---- answers, beside struct dm_answer ---------------------------------------------------- */

struct dm_signalled {
    enum dm_verdict verdict; /* DONE; BOUND: again with the mutex of `mutex`; REFUSED or NOTHING */
    uint64_t upto;           /* DONE: the newest waiter meant */
    bool has_left;           /* DONE: more of the meant waiters are to be signalled */
    bool must_serve;         /* DONE: waiters of the mutex are left that a poll must serve */
    char mutex[DM_MUTEX_KEY_ROOM];
};

/* The store's data about a name. */
struct dm_info {
    dmutex_info_t shown; /* with the store's token */
    int64_t held_ms;     /* locked: since the grant */
    unsigned crowd;      /* of shown.waiters, those that wait in the owner's process */
    uint64_t position;   /* of the attempt that asks, 1 is the head; 0: not waiting */
    int64_t grace_ms;    /* for how long the store grants nothing of its own accord */
};

/* ---- views, for people ------------------------------------------------------------------- */

struct dm_seen_waiter {
    char owner[33]; /* the uuid of the process */
    uint64_t thread;
    uint32_t pid;
    char host[65], program[33];
    uint32_t lease_ms;
    int64_t waited_ms; /* since the waiter came into the queue, or to the condition */
    int64_t silent_ms; /* since the store last heard of the waiter */
};

/* The last hold of a free mutex, as far as the store remembers it. */
enum { DM_END_BROKEN = DM_END_NOT_RECOVERABLE + 1 };
struct dm_last {
    bool is_known; /* else nothing below is set */
    uint64_t thread;
    uint32_t pid;
    char host[65], program[33];
    int64_t from_us; /* by the store's clock, since 1970 */
    int64_t held_ms;
    int64_t ago_ms; /* since its end */
    unsigned how;   /* an enum dm_end, or DM_END_BROKEN */
};

/* The store's data about one mutex or condition.  All texts are any bytes, as other processes wrote them. */
struct dm_seen {
    const char *key;   /* as in this process, see above */
    const char *fault; /* the data are not the library's, for this reason; nothing below is set then.  NULL: none */
    struct dm_info info;
    uint32_t lease_ms;                    /* of the holder */
    struct dm_last last;                  /* of a free mutex */
    bool is_kept;                         /* held, and perhaps no thread is inside: the process keeps the lease */
    const char *mutex;                    /* of a condition: the key of the bound mutex; "" if not known */
    const struct dm_seen_waiter *waiters; /* the first of the queue, in order */
    int waiter_count;                     /* of those; info.shown.waiters counts all */
};

/* Valid during the call. */
typedef void (*dm_seen_fn)(void *user, const struct dm_seen *seen);

/* What a view is to tell. */
struct dm_view {
    const char *key;   /* this mutex or condition; NULL: names that the store has */
    const char *group; /* without key: only names of the group of this mutex, by the mutex's key; NULL: all names */
    uint64_t cursor;   /* without key: 0 begins; set by the call, to 0 behind the last name */
    void *row;         /* the store's own, of a row of calls; NULL before the first */
    void (*free_row)(void *row); /* set with row: frees it, after the last call */
    int waiters;                 /* of each name at most so many are told; DM_SEEN_WAITERS at most */
    dm_seen_fn handler;
    void *user;
};

#define DM_SEEN_WAITERS 100

/*
 * Takes the answers to a posted request, one for each question, in the order of the questions.  answers NULL: no reply
 * came, and whether the request was executed is not known.  refusal: an error's text if a person should read the text,
 * else NULL.
 */
typedef void (*dm_answers_fn)(void *user, const struct dm_answer *answers, int count, const char *refusal);

enum dm_message_kind {
    DM_MESSAGE_GRANTED,
    DM_MESSAGE_SIGNALLED,
    DM_MESSAGE_LOST,
    DM_MESSAGE_ASK,
    DM_MESSAGE_WANTED /* to the owner by a marked hold: another attempt waits */
};

/* A message of the store about an attempt. */
struct dm_message {
    enum dm_message_kind kind;
    uint64_t attempt;
    uint64_t request;        /* GRANTED: the request that the grant answers; 0: a hint, the attempt must ask */
    struct dm_answer answer; /* GRANTED, SIGNALLED */
};

/* ---- the way to the store ---------------------------------------------------------------- */

enum dm_way {
    DM_ASKS, /* requests have answers */
    DM_TELLS /* messages arrive: a waiter may ask for a place in the queue */
};

/* Which server answers now. */
struct dm_origin {
    uint64_t number; /* another number: another server, or other data, came in the place of the former */
    uint64_t run;    /* of the server's process; 0: not known */
    uint64_t epoch;  /* of the server's data, drawn at the last promotion; 0: never promoted */
};

/* Counts since the store was opened. */
struct dm_traffic {
    uint64_t commands;   /* requests that were sent; what a store does for its connections is left out */
    uint64_t messages;   /* that have arrived, known or not */
    uint64_t reconnects; /* ways that were opened again behind a break */
};

/* The process, as a store calls it. */
struct dm_host {
    void *user;
    /* The store can be asked, for the first time or again: renew, poll, send releases. */
    void (*on_ready)(void *user);
    /* The store tells, for the first time or again: messages may have been missed, so all waiters poll. */
    void (*on_inbox)(void *user);
    /* Valid during the call. */
    void (*on_message)(void *user, const struct dm_message *message);
    /* dm_store_watch() has something new to say. */
    void (*on_change)(void *user);
    /* True if the process has claims, for which a way that broke is opened again; the shortest lease of its holds. */
    bool (*is_in_need)(void *user, unsigned *ret_lease_ms);
    /*
     * Opens the socket of a local server.  Without may_start, under a lock of the store: never blocks.  With may_start,
     * in a thread of its own: may start a server, and block.  Returns the socket, or -1 with the reason; a failure
     * after may_start means that waiting is useless, and the calls that want the server fail.
     */
    int (*open_local)(struct dm_url *url, bool may_start, char ret_reason[DM_REASON_ROOM]);
};

/* ---- the operations ---------------------------------------------------------------------- */

struct dm_store {
    const struct dm_store_ops *ops;
};

/* Called by the functions of store/calls.h. */
struct dm_store_ops {
    /* NULL without memory. */
    struct dm_place *(*place)(struct dm_store *store, const char *key);

    /*
     * Requests about places of one lane, a number below DM_LANES, go to one server and may go in one batch.  May change
     * from call to call.  Quietly.
     */
    unsigned (*lane)(struct dm_store *store, const struct dm_place *place);
    /* A number of the name, the same in all processes.  NULL: as post_acquire. */
    uint32_t (*spread)(const struct dm_place *place);

    /*
     * The ways of a place: a store may have several servers, and a place is on one of them.  NULL: of any place, where
     * the caller has none.
     */
    /* Quietly. */
    bool (*is_able)(struct dm_store *store, const struct dm_place *place, enum dm_way way);
    /* Begins to open the way.  By the loop thread. */
    void (*want)(struct dm_store *store, const struct dm_place *place, enum dm_way way);
    /* Opens the way, and waits.  False when the deadline has passed. */
    bool (*await_able)(struct dm_store *store, const struct dm_place *place, enum dm_way way,
                       const struct dm_deadline *deadline);
    /*
     * Sleeps as dm_self_sleep_cancellably(); a store may read messages meanwhile, so that a message for this thread
     * wakes no other thread.  May return false early.
     */
    bool (*sleep)(struct dm_store *store, const struct dm_place *place, const struct dm_deadline *deadline,
                  int cancel_state);
    /* Copies an error sentence for people: where the store is, and why there is no answer.  Quietly. */
    void (*reason)(struct dm_store *store, const struct dm_place *place, enum dm_way way,
                   char ret_reason[DM_REASON_ROOM]);
    /* Quietly. */
    struct dm_origin (*origin)(struct dm_store *store, const struct dm_place *place);
    /* Quietly. */
    void (*count)(struct dm_store *store, struct dm_traffic *ret_traffic);

    /* OWNED, BUSY, QUEUED, FULL, NOT_RECOVERABLE, NO_MEMORY, REFUSED or NOTHING.  `owed` goes first. */
    struct dm_answer (*acquire)(struct dm_store *store, const struct dm_ask *ask, bool may_queue,
                                const struct dm_owed *owed, int owed_count, const struct dm_deadline *deadline,
                                char ret_reason[DM_REASON_ROOM]);
    /* OWNED or DONE (the attempt waits no longer), REFUSED or NOTHING. */
    struct dm_answer (*cancel)(struct dm_store *store, const struct dm_ask *ask, const struct dm_deadline *deadline,
                               char ret_reason[DM_REASON_ROOM]);
    /*
     * DONE, and is_wanted: waiters are left that a poll must serve; NOT_OWNER: the attempt neither owned nor waited;
     * AGAIN, REFUSED, NO_MEMORY or NOTHING: to be sent again.
     */
    struct dm_answer (*release)(struct dm_store *store, const struct dm_ask *ask, enum dm_end end,
                                const struct dm_deadline *deadline, char ret_reason[DM_REASON_ROOM]);
    /* OWNED, and has_waiter; UNKNOWN (lost), REFUSED or NOTHING. */
    struct dm_answer (*renew)(struct dm_store *store, const struct dm_renewal *renewal,
                              const struct dm_deadline *deadline, char ret_reason[DM_REASON_ROOM]);
    /* DONE; UNKNOWN: not the owner any more; REFUSED or NOTHING. */
    enum dm_verdict (*consistent)(struct dm_store *store, const struct dm_ask *ask, const struct dm_deadline *deadline,
                                  char ret_reason[DM_REASON_ROOM]);
    /* DONE, and whether waiters are left that a poll must serve; REFUSED or NOTHING. */
    enum dm_verdict (*force)(struct dm_store *store, const struct dm_place *place, const struct dm_deadline *deadline,
                             bool *ret_must_serve, char ret_reason[DM_REASON_ROOM]);
    /* Deletes all of an anonymous mutex, or makes a name clean again.  DONE, BUSY, REFUSED, NOTHING. */
    enum dm_verdict (*drop)(struct dm_store *store, const struct dm_place *place, bool is_anonymous,
                            const struct dm_deadline *deadline, char ret_reason[DM_REASON_ROOM]);
    /* `ask`: the attempt that waits, or with attempt 0 none.  DONE, REFUSED or NOTHING. */
    enum dm_verdict (*info)(struct dm_store *store, const struct dm_ask *ask, const struct dm_deadline *deadline,
                            struct dm_info *ret_info, char ret_reason[DM_REASON_ROOM]);

    /*
     * For the programs of tools/ alone: tells one name, or some of the names that the store has, mutexes and conditions
     * that are waited on.  Changes nothing.  A name that comes or goes during a row of calls may be missing, and a
     * name may be told twice.  Rights may be needed that locking does not need.  DONE, REFUSED or NOTHING, after which
     * the handler may have been called for some names.
     */
    enum dm_verdict (*view)(struct dm_store *store, struct dm_view *view, const struct dm_deadline *deadline,
                            char ret_reason[DM_REASON_ROOM]);

    /*
     * WAITING, or when repeated OWNED or QUEUED; NOT_OWNER, BOUND, FULL, NO_MEMORY, REFUSED: nothing is changed;
     * NOT_RECOVERABLE: the hold is given back, nobody waits; NOTHING: not known.
     */
    struct dm_answer (*cond_wait)(struct dm_store *store, const struct dm_ask *ask, const struct dm_leaving *leaving,
                                  const struct dm_deadline *deadline, char ret_reason[DM_REASON_ROOM]);
    /* OWNED, QUEUED, UNKNOWN or NOT_RECOVERABLE, and whether a signal came first; REFUSED or NOTHING. */
    struct dm_answer (*cond_cancel)(struct dm_store *store, const struct dm_ask *ask,
                                    const struct dm_deadline *deadline, bool *ret_is_signalled,
                                    char ret_reason[DM_REASON_ROOM]);
    struct dm_signalled (*cond_signal)(struct dm_store *store, const struct dm_signal *signal,
                                       const struct dm_deadline *deadline, char ret_reason[DM_REASON_ROOM]);
    /* Deletes an anonymous condition, or only looks whether anybody waits.  DONE, BUSY, REFUSED, NOTHING. */
    enum dm_verdict (*cond_drop)(struct dm_store *store, const struct dm_place *condition, bool is_anonymous,
                                 const struct dm_deadline *deadline, char ret_reason[DM_REASON_ROOM]);

    /* Opens the way if the request cannot be sent now. */
    bool (*post_release)(struct dm_store *store, const struct dm_ask *ask, enum dm_end end, dm_answers_fn handler,
                         void *user);
    /*
     * At most DM_BATCH each, of one lane, quietly, so that the caller may hold the lock under which the contents were
     * chosen; dm_store_work() follows after the caller has given the lock back.  AGAIN: the caller chooses the contents
     * anew, because a release may have been sent meanwhile.  A renewal is answered OWNED, UNKNOWN (lost), AGAIN or
     * NOTHING.
     */
    bool (*post_poll)(struct dm_store *store, const struct dm_ask *asks, int count, dm_answers_fn handler, void *user);
    bool (*post_renew)(struct dm_store *store, const struct dm_renewal *renewals, int count, dm_answers_fn handler,
                       void *user);
    /*
     * As acquire, one question, quietly; AGAIN as for post_poll.  For a store that is a part of a quorum: NULL in other
     * stores.
     */
    bool (*post_acquire)(struct dm_store *store, const struct dm_ask *ask, bool may_queue, const struct dm_owed *owed,
                         int owed_count, dm_answers_fn handler, void *user);
    /* Calls the handlers that are due.  Never blocks. */
    void (*work)(struct dm_store *store);

    /*
     * For waiters, which send nothing for long: asks now and then whether the server is still the same.  Returns when
     * the next look is due; DM_NEVER: no look is.  Quietly.
     */
    int64_t (*look)(struct dm_store *store);

    /* The loop thread: what to wait for; when it looks again at the latest; and what to do when it wakes. */
    void (*watch)(struct dm_store *store, struct dm_watch *watch);
    void (*note_look)(struct dm_store *store, int64_t look_ns);
    void (*turn)(struct dm_store *store);

    /* Waits until all requests sent before are answered, or have no way to the store any more, or the deadline. */
    void (*drain)(struct dm_store *store, const struct dm_deadline *deadline);
    /* Ends the ways for good: requests without an answer get no answer, and later requests get none either. */
    void (*end)(struct dm_store *store);
    /* Around fork(): no request is half written; the child closes the sockets and forgets the store. */
    void (*fork_prepare)(struct dm_store *store, enum dm_fork_stage stage);
    void (*fork_parent)(struct dm_store *store, enum dm_fork_stage stage);
    void (*fork_child)(struct dm_store *store);
    /* Frees a store that was never used; a used store is never freed, because a thread may still be about to use it. */
    void (*free_unused)(struct dm_store *store);
};

#endif
