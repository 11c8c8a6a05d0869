/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The wall between the process and a lock store.  process/ and api/ know a store only by this header.  A store is a
 * table of functions, and knows the process only by struct dm_host. stores/redis/ is one store, tests/sim/plain.c
 * another.
 *
 * A question (struct dm_question) is asked in one of two ways: ask() waits for the answer, submit() does not.  The rest
 * of the table is about the way to the servers.
 *
 * 1. A function with a deadline blocks until then at most; the calling thread holds no lock.  The verdict is
 *    DM_SAYS_NOTHING if no usable answer came; ret_reason, which the caller sets to "" beforehand, says why.
 *
 * 2. Any other function never blocks.
 *
 * 3. Handlers and the functions of struct dm_host are called without locks, by any thread inside a function of the
 *    store.  One that is described as "quietly" calls none of them.
 *
 * 4. Questions of one process about one name are executed in the order of sending.
 *
 * 5. A store never reports a grant that the server did not give; no server is trusted.
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
 * where GROUP is a blank and the key of any mutex of the group (n without the leaf).  There is no blank after the
 * letter.
 */
#define DM_MUTEX_KEY_ROOM (DMUTEX_NAME_MAX_NP + 2)

/* The store's record of a name: one block of memory, made by dm_store_place() and freed by free(). */
struct dm_place;

/* ---- questions --------------------------------------------------------------------------- */

/*
 * Threads that wait for an attempt of their own process.  The store knows only the attempt; each renewal and poll
 * reports these threads to it, for people to see.
 */
#define DM_CROWD_TOLD 4
struct dm_crowd {
    unsigned count, told;
    struct {
        uint64_t thread;
        int64_t waited_ms;
    } first[DM_CROWD_TOLD]; /* `told` of them */
};

/* A release that the store has not confirmed. */
struct dm_owed {
    uint64_t thread;
    uint64_t attempt;
    enum dm_end end;
};

/*
 * A mark that a process sets on its hold if it keeps the lease after an unlock, or passes the lock between its threads.
 * The store sends DM_MESSAGE_WANTED for a marked hold when the queue gets its first waiter.
 */
enum dm_mark {
    DM_MARK_NONE,
    DM_MARK_TELL,         /* send the message; the end of the lease is a death */
    DM_MARK_TELL_NO_DEATH /* the same, but the end of the lease is no death: perhaps no thread was inside */
};

/* The hold that a wait on a condition gives back. */
struct dm_leaving {
    uint64_t thread;  /* the thread that acquired the hold: another thread of the process may wait now */
    uint64_t attempt; /* of the same name as the attempt that waits */
    enum dm_end end;
    const char *mutex; /* the bound mutex: its key in the registry */
};

/* The most waiters that one question signals. */
#define DM_SIGNAL_MOST 256

/* What a question asks for, and which verdicts its answer may have. */
enum dm_op {
    /*
     * Takes a free lock, or waits in its queue.  The releases in `owed` are executed first.  OWNED, BUSY, QUEUED, FULL,
     * NOT_RECOVERABLE, NO_MEMORY, REFUSED or NOTHING.
     */
    DM_OP_ACQUIRE,
    /* Leaves the queue, unless the attempt owns.  OWNED, DONE (the attempt no longer waits), REFUSED or NOTHING. */
    DM_OP_CANCEL,
    /*
     * Gives a hold back, or leaves the queue.  DONE, with is_wanted if a poll must serve the remaining waiters;
     * NOT_OWNER: the attempt neither owned nor waited;
     * AGAIN, REFUSED, NO_MEMORY or NOTHING: to be sent again.
     */
    DM_OP_RELEASE,
    /*
     * Confirms a hold.  OWNED, with has_waiter; UNKNOWN (lost) or NOTHING; awaited, also REFUSED.  Each renewal repeats
     * the mark: the newest one counts.
     */
    DM_OP_RENEW,
    /* The heartbeat of a waiter; attempt 0: serves the waiters of a free lock.  As ACQUIRE; UNKNOWN: does not wait. */
    DM_OP_POLL,
    /* Declares the data consistent again.  DONE; UNKNOWN: no longer the owner; REFUSED or NOTHING. */
    DM_OP_CONSISTENT,
    /* Breaks anybody's hold.  DONE, with is_wanted if a poll must serve the remaining waiters; REFUSED or NOTHING. */
    DM_OP_FORCE,
    /* Deletes all data of an anonymous mutex, or resets those of a name.  DONE, BUSY, REFUSED or NOTHING. */
    DM_OP_DROP,
    /* Reads the data of a name into ret_more->info.  attempt: one that waits, or 0.  DONE, REFUSED or NOTHING. */
    DM_OP_INFO,
    /*
     * Gives a hold back and waits on the condition.  WAITING, or OWNED or QUEUED if repeated; NOT_OWNER, BOUND, FULL,
     * NO_MEMORY, REFUSED: nothing has changed; NOT_RECOVERABLE: the hold is given back, and nobody waits; NOTHING: not
     * known.
     */
    DM_OP_COND_WAIT,
    /*
     * Moves the attempt from the condition to the queue.  OWNED, QUEUED, UNKNOWN or NOT_RECOVERABLE, with is_signalled
     * if a signal came first; REFUSED or NOTHING.
     */
    DM_OP_COND_CANCEL,
    /*
     * Moves waiters from the condition to the queue.  DONE, with is_wanted if a poll must serve the mutex's remaining
     * waiters, and with has_left if some are still to be signalled, up to ret_more->upto; BOUND: repeat with the mutex
     * of ret_more; REFUSED or NOTHING.
     */
    DM_OP_COND_SIGNAL,
    /* Deletes an anonymous condition, or only checks whether anybody waits.  DONE, BUSY, REFUSED or NOTHING. */
    DM_OP_COND_DROP,
    DM_OPS
};

/* The data about a name. */
struct dm_info {
    dmutex_info_t shown; /* with the store's token */
    int64_t held_ms;     /* locked: since the grant */
    unsigned crowd;      /* how many of shown.waiters are in the owner's process */
    uint64_t position;   /* of the attempt that asks: 1 is the head; 0: not waiting */
    int64_t grace_ms;    /* for how long the store grants nothing of its own accord */
};

/* Room for what an answer has beside struct dm_answer. */
union dm_more {
    struct dm_info info;           /* INFO, DONE */
    uint64_t upto;                 /* COND_SIGNAL, DONE: the newest of the waiters to signal */
    char mutex[DM_MUTEX_KEY_ROOM]; /* COND_SIGNAL, BOUND: its key in the registry */
};

/* One question.  An operation reads the common part as far as it applies, and a part of its own. */
struct dm_question {
    enum dm_op op;
    uint32_t lease_ms;
    const struct dm_place *place;     /* of the mutex; NULL: a signal that does not know it, or COND_DROP */
    const struct dm_place *condition; /* on which the attempt waits, waited, or may wait in an older copy of the data;
                                         the condition itself of a signal and of COND_DROP; NULL: none */
    uint64_t thread;
    uint64_t attempt;
    struct dm_request request;
    uint64_t seen;                /* the highest token of this name that the process knows */
    uint64_t arrival;             /* the place in the queue to return to; 0: none */
    const struct dm_crowd *crowd; /* of a poll or renewal: the caller's, valid until it is sent; NULL: nobody */
    bool is_robust;
    bool is_contested; /* a release will probably have to tell a waiter */
    union {
        struct {
            bool may_queue;
            int owed_count;
            const struct dm_owed *owed;
        } acquire;
        struct {
            enum dm_end end;
            int64_t held_ms; /* how long the hold lasted, for people */
        } release;
        struct {
            unsigned depth;
            enum dm_mark mark;
            uint64_t token;
            bool is_awaited; /* a thread sleeps until the answer: a store that renews many holds at once does so now */
            bool is_part; /* of a quorum: the server adopts a higher token, but takes the lock from no other attempt */
        } renew;
        struct dm_leaving leave;
        struct {
            const char *mutex; /* the key of the bound mutex in the registry; "" if not known */
            uint64_t upto;     /* only this waiter and older ones; 0: all that wait now */
            int most;          /* DM_SIGNAL_MOST at most */
        } signal;
        bool is_anonymous; /* DROP, COND_DROP */
    };
    union dm_more *ret_more; /* INFO, COND_SIGNAL: the caller's, valid until the answer; untouched without one */
};

/* ---- views, for people ------------------------------------------------------------------- */

struct dm_seen_waiter {
    char owner[33]; /* the uuid of the process */
    uint64_t thread;
    uint32_t pid;
    char host[65], program[33];
    uint32_t lease_ms;
    int64_t waited_ms; /* since the waiter joined the queue or the condition */
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

/* The store's data about one mutex or condition.  Other processes wrote the texts, which may be any bytes. */
struct dm_seen {
    const char *key;   /* as in this process, see above */
    const char *fault; /* why the data are not the library's; nothing below is set then.  NULL: they are */
    struct dm_info info;
    uint32_t lease_ms;                    /* of the holder */
    struct dm_last last;                  /* of a free mutex */
    bool is_kept;                         /* held, but perhaps with no thread inside: the process keeps the lease */
    const char *mutex;                    /* of a condition: the key of the bound mutex; "" if not known */
    const struct dm_seen_waiter *waiters; /* the first of the queue, in order */
    int waiter_count;                     /* how many these are; info.shown.waiters counts all */
};

/* Valid during the call. */
typedef void (*dm_seen_fn)(void *user, const struct dm_seen *seen);

/* What a view reports. */
struct dm_view {
    const char *key;             /* this mutex or condition; NULL: all names that the store has */
    const char *group;           /* without key: only names in the group of the mutex with this key; NULL: all names */
    uint64_t cursor;             /* without key: 0 begins; set by the call, to 0 after the last name */
    void *row;                   /* the store's state between calls; NULL before the first call */
    void (*free_row)(void *row); /* set together with row: frees it after the last call */
    int waiters;                 /* how many to report of each name; at most DM_SEEN_WAITERS */
    dm_seen_fn handler;
    void *user;
};

#define DM_SEEN_WAITERS 100

/*
 * Takes the answers to submitted questions, in their order. answers NULL: no reply came, and it is not known whether
 * the questions were executed. refusal: the text of an error that a person should read, or NULL.
 */
typedef void (*dm_answers_fn)(void *user, const struct dm_answer *answers, int count, const char *refusal);

enum dm_message_kind {
    DM_MESSAGE_GRANTED,
    DM_MESSAGE_SIGNALLED,
    DM_MESSAGE_LOST,
    DM_MESSAGE_ASK,
    DM_MESSAGE_WANTED /* to the owner of a marked hold: another attempt waits */
};

/* A message from the store about an attempt. */
struct dm_message {
    enum dm_message_kind kind;
    uint64_t attempt;
    uint64_t request;        /* GRANTED: the request that the grant answers; 0: a hint, the attempt must ask */
    struct dm_answer answer; /* GRANTED, SIGNALLED */
};

/* ---- the way to the store ---------------------------------------------------------------- */

enum dm_way {
    DM_ASKS, /* requests have answers */
    DM_TELLS /* messages arrive, so a waiter may ask for a place in the queue */
};

/* Which server answers now. */
struct dm_origin {
    uint64_t number; /* changes when another server, or other data, takes the place of the old one */
    uint64_t run;    /* of the server's process; 0: not known */
    uint64_t epoch;  /* of the server's data, drawn at the last promotion; 0: never promoted */
};

/* Counts since the store was opened. */
struct dm_traffic {
    uint64_t commands;   /* requests sent, without those that a store needs for its connections */
    uint64_t messages;   /* received, including unknown ones */
    uint64_t reconnects; /* connections reopened after a break */
};

/* The process, as a store calls it. */
struct dm_host {
    void *user;
    /* Requests have answers, for the first time or again: renew, poll, send releases. */
    void (*on_ready)(void *user);
    /* Messages arrive, for the first time or again: some may have been missed, so all waiters poll. */
    void (*on_inbox)(void *user);
    /* Valid during the call. */
    void (*on_message)(void *user, const struct dm_message *message);
    /* The result of dm_store_watch() has changed. */
    void (*on_change)(void *user);
    /*
     * True if the process has claims, for which a broken connection must be reopened. *ret_lease_ms, unless it is NULL:
     * the shortest lease of its holds.
     */
    bool (*is_in_need)(void *user, unsigned *ret_lease_ms);
    /*
     * Opens the socket of a local server.  Without may_start, it is called under a lock of the store and never blocks.
     * With may_start, in a thread of its own: may start a server, and block.  Returns the socket, or -1 with the
     * reason; a failure after may_start means that waiting is useless, and the calls that want the server fail.
     */
    int (*open_local)(struct dm_url *url, bool may_start, char ret_reason[DM_REASON_ROOM]);
};

/* ---- the table --------------------------------------------------------------------------- */

struct dm_store {
    const struct dm_store_ops *ops;
    bool has_free_renewals; /* they cost no request, so any number may be under way */
};

/* Called through the functions of store/calls.h. */
struct dm_store_ops {
    /* ---- names ---- */

    /* NULL without memory. */
    struct dm_place *(*place)(struct dm_store *store, const char *key);

    /*
     * The lane of a place, a number below DM_LANES: questions about places of one lane go to one server, and may be
     * submitted together.  May change from call to call.  Quietly.
     */
    unsigned (*lane)(struct dm_store *store, const struct dm_place *place);

    /* A number made from the name, the same in all processes.  Quietly. */
    uint32_t (*spread)(struct dm_store *store, const struct dm_place *place);

    /* ---- questions ---- */

    /*
     * Asks one question, and waits for the answer.  Every operation but POLL.  dm_ask_by_submit() of store/ask.h does
     * for a store without a shorter way.
     */
    struct dm_answer (*ask)(struct dm_store *store, const struct dm_question *question,
                            const struct dm_deadline *deadline, char ret_reason[DM_REASON_ROOM]);

    /*
     * Sends questions of one operation, without waiting.  True: the questions are on the way, and `done` will be called
     * once.  False: nothing was sent, and `done` is never called; the loop thread opens the way while the process has
     * claims.  RENEW and POLL: 1 to DM_BATCH questions of one lane; any other operation: one question.
     *
     * Quietly, so that the caller may hold the lock under which it chose the contents; after it has given the lock back
     * it calls dm_store_work(), unless the loop's next turn is soon enough.  AGAIN: nothing was executed, and the
     * caller chooses the contents again, because a release may have been sent in between.
     *
     * The process submits RELEASE, RENEW and POLL; a quorum submits ACQUIRE to its parts, too, and dm_ask_by_submit()
     * whatever it is asked.
     */
    bool (*submit)(struct dm_store *store, const struct dm_question *questions, int count, dm_answers_fn done,
                   void *user);

    /*
     * Only for the programs of tools/: reports one name, or some of the names that the store has: mutexes, and
     * conditions that are waited on.  Changes nothing.  During a series of calls, a name that comes or goes may be
     * missed, and a name may be reported twice.  May need rights that locking does not need.  DONE, REFUSED or NOTHING;
     * even after the last two the handler may have been called for some names.
     */
    enum dm_verdict (*view)(struct dm_store *store, struct dm_view *view, const struct dm_deadline *deadline,
                            char ret_reason[DM_REASON_ROOM]);

    /* ---- the way ---- */

    /*
     * The ways to a place: a store may have several servers, and a place is on one of them.  Place NULL: any, if the
     * caller has none.
     */
    /* Quietly. */
    bool (*is_able)(struct dm_store *store, const struct dm_place *place, enum dm_way way);
    /* Begins to open the way.  Called by the loop thread. */
    void (*want)(struct dm_store *store, const struct dm_place *place, enum dm_way way);
    /* Opens the way, and waits.  False when the deadline has passed. */
    bool (*await_able)(struct dm_store *store, const struct dm_place *place, enum dm_way way,
                       const struct dm_deadline *deadline);
    /*
     * Sleeps like dm_self_sleep_cancellably().  The store may read in the meantime what comes by this way, so that a
     * message or answer for this thread wakes no other.  May return false early.
     */
    bool (*sleep)(struct dm_store *store, const struct dm_place *place, enum dm_way way,
                  const struct dm_deadline *deadline, int cancel_state);
    /* Writes a sentence for people: where the store is, and why there is no answer.  Quietly. */
    void (*reason)(struct dm_store *store, const struct dm_place *place, enum dm_way way,
                   char ret_reason[DM_REASON_ROOM]);
    /* As dm_store_is_denied().  NULL: the store cannot tell. */
    bool (*is_denied)(struct dm_store *store);
    /* Quietly. */
    struct dm_origin (*origin)(struct dm_store *store, const struct dm_place *place);
    /* Quietly. */
    void (*count)(struct dm_store *store, struct dm_traffic *ret_traffic);

    /*
     * Loads in the calling thread the libraries that the store needs, and that its own threads load otherwise: if the
     * caller is in a constructor that dlopen() runs, those would wait for it.  Waits for the dlopen() of other threads.
     * False if the thread's stack is too small.
     */
    bool (*load)(struct dm_store *store);

    /* ---- the loop thread ---- */

    /* Calls the handlers that are due.  Never blocks. */
    void (*work)(struct dm_store *store);

    /*
     * For waiters, which send nothing for a long time: asks now and then whether the server is still the same.  Returns
     * when the next check is due; DM_NEVER: none is.  Quietly.
     */
    int64_t (*look)(struct dm_store *store);

    /*
     * For the loop thread: what to wait for, when it will check again at the latest, and what to do when it wakes up.
     */
    void (*watch)(struct dm_store *store, struct dm_watch *watch);
    void (*note_look)(struct dm_store *store, int64_t look_ns);
    void (*turn)(struct dm_store *store);

    /* ---- the end ---- */

    /* Waits until each request sent before has its answer or can no longer get one, or until the deadline. */
    void (*drain)(struct dm_store *store, const struct dm_deadline *deadline);
    /* The process ends, and holds nothing: deletes what else it has there, until the deadline.  NULL: nothing. */
    void (*leave)(struct dm_store *store, const struct dm_deadline *deadline);
    /* Closes all connections permanently: neither pending nor later requests get an answer. */
    void (*end)(struct dm_store *store);
    /* For fork(): in the parent no request is half written; the child closes the sockets and forgets the store. */
    void (*fork_prepare)(struct dm_store *store, enum dm_fork_stage stage);
    void (*fork_parent)(struct dm_store *store, enum dm_fork_stage stage);
    void (*fork_child)(struct dm_store *store);
    /* Frees a store that was never used; a used store is never freed, because a thread may still be about to use it. */
    void (*free_unused)(struct dm_store *store);
};

#endif
