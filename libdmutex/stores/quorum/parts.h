/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A store on several servers that do not know each other: each operation asks the servers' stores, the children, and
 * counts their answers (core/quorum.h).
 *
 *   quorum.c  opening, the children's messages, the loop thread, fork
 *   ways.c    which children can be asked, and which one first
 *   record.c  attempts, and what their servers have said
 *   batch.c   all that is under way to the children; submitted questions
 *   ask.c     acquire, cancel, release: questions of a thread that waits for a majority
 *   name.c    operations on a name, one child after another
 *   view.c    names and their data, for people
 *
 * All children are of one kind and have the same settings, except for the address, so a place of one serves for all.
 *
 * A question is submitted to the children, and the asking thread reads the answers itself: it leads one child's
 * connection after another, by draining it.  The store's lock is never held while handlers may be called.
 */
#ifndef DM_QUORUM_PARTS_H
#define DM_QUORUM_PARTS_H

#include "base/rank.h"
#include "base/self.h"
#include "core/quorum.h"
#include "store/calls.h"

#define DM_QUORUM_CHAINS 1024
#define DM_QUORUM_CROWDS 256

struct dm_quorum_store;
struct dm_quorum_batch;

struct dm_quorum_child {
    struct dm_quorum_store *all;
    int index;
    struct dm_url *url;
    struct dm_store *store;
    int same; /* index of the child that counts for this one, being the same server; atomic; -1: this one counts */

    /* The store's lock guards the rest. */
    uint64_t run;             /* of the server that it was last connected to; 0: not known */
    int64_t grace_until_ns;   /* the server grants nothing until then */
    int64_t shunned_until_ns; /* it refuses: until then turns are taken elsewhere */
    int64_t since_ns;         /* since when the server exists, or can be asked; 0: does not matter, without a grace */
    unsigned unanswered;      /* questions */
    int64_t waiting_ns;       /* since when one of them is unanswered, about */
    int64_t unseen_until_ns;  /* it made a view wait: until then views ask the others first */
    char refusal[160];        /* the last error that people should read */
    int64_t refusal_told_ns;  /* when one was last logged; 0: never */
};

/* An attempt, and the answers of the servers. */
struct dm_quorum_record {
    struct dm_quorum_record *next;
    uint64_t attempt;
    uint64_t thread;
    bool is_robust;
    struct dm_quorum quorum;
    int64_t used_ns;
    int64_t left_ns;         /* since when the attempt leaves all servers; 0: it does not */
    int64_t owned_ns;        /* when the attempt came to own */
    bool is_queued;          /* waits at quorum.first */
    int64_t queued_ns;       /* since when, without checking the other servers */
    uint64_t news;           /* counts answers */
    struct dm_self *sleeper; /* the thread that sleeps until an answer comes; NULL: none */

    /* Of each server, the hints by messages that were acted on: how many, up to a limit, and when. */
    struct {
        uint8_t count;
        int64_t heeded_ns;
    } hints[DM_QUORUM_MOST];

    bool is_leaving; /* a submitted release is under way, whose end drops the record */
};

/* What was recently seen of the attempts at a name, by the name's number. */
struct dm_quorum_crowd {
    int64_t until_ns;        /* they wait */
    int64_t passed_until_ns; /* a holder without a majority is at this server: until then turns are taken elsewhere */
    int passed;
};

struct dm_quorum_store {
    struct dm_store store; /* first: see dm_quorum_of() */
    struct dm_host host;
    int count;
    struct dm_quorum_child children[DM_QUORUM_MOST];

    struct dm_mutex lock; /* rank QUORUM: taken after STATE; connections nest in it */
    struct dm_quorum_record *records[DM_QUORUM_CHAINS];
    size_t record_count, sweep_at;
    uint64_t rounds; /* the numbers of the newest record's rounds begin here */
    struct dm_quorum_crowd crowds[DM_QUORUM_CROWDS];
    struct dm_quorum_batch *batches; /* whose handler has not been called yet */
    bool is_drained;                 /* a thread waits until all releases are over, and none has acquired since */
    bool is_ended;                   /* in the child of a fork: no answer comes, and no record is found */
};

static inline struct dm_quorum_store *dm_quorum_of(const struct dm_store *store)
{
    return (struct dm_quorum_store *)(uintptr_t)store;
}

/* ---- the ways: ways.c ------------------------------------------------------------------- */

/* True if a majority of the children is able. */
bool dm_quorum_is_able(struct dm_store *store, const struct dm_place *place, enum dm_way way);

/* True if the child can be asked, and counts. */
static inline bool dm_quorum_may_ask(const struct dm_quorum_child *child, const struct dm_place *place, enum dm_way way)
{
    return __atomic_load_n(&child->same, __ATOMIC_RELAXED) < 0 && dm_store_is_able(child->store, place, way);
}

/* The sentence for a child that is the same server as `other`, which counts. */
void dm_quorum_explain_same(const struct dm_quorum_child *child, const struct dm_quorum_child *other,
                            char ret_reason[DM_REASON_ROOM]);

/* Opens the ways that are closed. */
void dm_quorum_want(struct dm_store *store, const struct dm_place *place, enum dm_way way);

/* Waits until dm_quorum_is_able(). */
bool dm_quorum_await_able(struct dm_store *store, const struct dm_place *place, enum dm_way way,
                          const struct dm_deadline *deadline);

/* Waits for DM_QUORUM_JOIN_NS at most until all servers can be asked, except those that cannot be reached. */
#define DM_QUORUM_JOIN_NS (200 * DM_NS_PER_MS)
void dm_quorum_await_all(struct dm_store *store, const struct dm_place *place, const struct dm_deadline *deadline);

/* The child's share of the time that is left, so that a child that is stopped leaves time for the others. */
struct dm_deadline dm_quorum_share(const struct dm_quorum_store *all, int server, const struct dm_deadline *deadline);

/* The same if a majority is enough: once that many have answered, the share of the others is short. */
struct dm_deadline dm_quorum_short_share(const struct dm_quorum_store *all, int server, int answered,
                                         const struct dm_deadline *deadline);

/* Who is missing, and why. */
bool dm_quorum_is_denied(struct dm_store *store);
void dm_quorum_reason(struct dm_store *store, const struct dm_place *place, enum dm_way way,
                      char ret_reason[DM_REASON_ROOM]);

/* The child where turns at a name are taken if all can be asked. */
int dm_quorum_home(const struct dm_quorum_store *all, const struct dm_place *place);

/* What was seen of the attempts at a name.  The store's lock is held. */
struct dm_quorum_crowd *dm_quorum_crowd_of(struct dm_quorum_store *all, const struct dm_place *place);

/*
 * After this time in a queue a waiter checks the other servers, because the holder may have no majority.  An attempt
 * that has had its turn takes no longer (Q3).
 */
#define DM_QUORUM_PASS_NS (200 * DM_NS_PER_MS)

/* How long turns are taken elsewhere after a child did not answer a request for one. */
#define DM_QUORUM_SILENT_NS (10 * DM_NS_PER_S)

/*
 * The child where turns at a name are taken now; is_for_queue: one that can also send messages.  The store's lock is
 * held.
 */
int dm_quorum_choose_first(struct dm_quorum_store *all, const struct dm_place *place, bool is_for_queue);

/* ---- records: record.c.  The store's lock is held unless said otherwise. -- */

struct dm_quorum_record *dm_quorum_find(struct dm_quorum_store *all, uint64_t attempt);

/* The attempt's record, made if there is none; NULL without memory. */
struct dm_quorum_record *dm_quorum_open_record(struct dm_quorum_store *all, const struct dm_question *question);

void dm_quorum_drop_record(struct dm_quorum_store *all, uint64_t attempt);

/* A request was sent to a child, or its answer came. */
void dm_quorum_note_sent(struct dm_quorum_child *child, int64_t now_ns);
void dm_quorum_note_answer(struct dm_quorum_child *child, const struct dm_answer *answer, const char *refusal,
                           int64_t now_ns);

/* The answer, or in `room` what dm_quorum_doubt() makes of it; NULL for NULL. */
const struct dm_answer *dm_quorum_doubted(struct dm_quorum_store *all, uint64_t attempt,
                                          enum dm_quorum_question question, const struct dm_answer *answer,
                                          struct dm_answer *room);

/* The answer to a question for a place in the queue: a server whose queue cannot be entered has no turns. */
void dm_quorum_note_queue(struct dm_quorum_child *child, const struct dm_leg *leg);

/* True if a child that can be asked does not have the attempt's hold, and no answer of it is under way. */
bool dm_quorum_is_partial(struct dm_quorum_store *all, uint64_t attempt, const struct dm_place *place);

/* An answer to the attempt was taken: wakes the thread that sleeps until one comes. */
void dm_quorum_note_news(struct dm_quorum_record *record);

/* The servers, a set of bits, whose answer to the attempt is still to come. */
unsigned dm_quorum_open_servers(const struct dm_quorum_record *record);

/* Reads answers of the servers for the attempt's thread, for a slice of time.  Gives the lock up meanwhile. */
void dm_quorum_read(struct dm_quorum_store *all, uint64_t attempt, unsigned servers,
                    const struct dm_deadline *deadline);

/* ---- questions under way: batch.c -------------------------------------------------------- */

/*
 * Submits a TRY or QUEUE of the record's present round; the answer goes into the record.  False: it could not be sent,
 * and the record knows.  The store's lock is held, here and below, unless said otherwise.
 */
bool dm_quorum_post_acquire(struct dm_quorum_record *record, struct dm_quorum_child *child,
                            enum dm_quorum_question kind, const struct dm_question *question);

/*
 * The attempt begins to leave all servers but `kept` (-1: none).  *ret_servers: those that must get the release now;
 * all for an attempt without a record, which may be anywhere.  NULL without memory.
 */
struct dm_quorum_record *dm_quorum_begin_leaving(struct dm_quorum_store *all, const struct dm_question *release,
                                                 int kept, unsigned *ret_servers);

/* Returns the servers that the release could not be sent to. `batch`: NULL if the thread reads the answers itself. */
unsigned dm_quorum_post_releases(struct dm_quorum_store *all, struct dm_quorum_record *record,
                                 const struct dm_question *release, unsigned servers, struct dm_quorum_batch *batch);

/* What the answers to the release mean; NOTHING: not known yet. */
struct dm_answer dm_quorum_release_answer(const struct dm_quorum_record *record, bool is_all);

/* The servers that have done nothing, and are asked again. */
unsigned dm_quorum_said_again(const struct dm_quorum_record *record);

/* Without the lock. */
bool dm_quorum_submit(struct dm_store *store, const struct dm_question *questions, int count, dm_answers_fn done,
                      void *user);

/* One renewal, awaited. */
struct dm_answer dm_quorum_renew(struct dm_quorum_store *all, const struct dm_question *question,
                                 const struct dm_deadline *deadline, char ret_reason[DM_REASON_ROOM]);

/* Without the lock: ends the batches that have waited long enough; called in the loop's turns. */
void dm_quorum_end_batches(struct dm_quorum_store *all);

/* The earliest time at which a batch will have waited long enough; DM_NEVER: there is none. */
int64_t dm_quorum_batches_due_ns(struct dm_quorum_store *all);

/*
 * Without the lock: ends the submitted releases that after this time only a minority of the servers has not done, so
 * that exit(), which waits for all releases, does not wait for a server that is silent or refuses.  It has more
 * patience than a call, because a process that has ended sends nothing later.
 */
#define DM_QUORUM_LEAVE_NS (500 * DM_NS_PER_MS)
void dm_quorum_end_late_releases(struct dm_quorum_store *all);

/* ---- answers about a name: view.c ------------------------------------------------------- */

/* What the children say together: the agreed owner, and the largest of the other numbers. */
struct dm_info dm_quorum_sum_up(const struct dm_quorum_store *all, const struct dm_info *const *infos, int count);

/* ---- awaited questions: ask.c, name.c, view.c -------------------------------------------- */

struct dm_answer dm_quorum_acquire(struct dm_quorum_store *all, const struct dm_question *question,
                                   const struct dm_deadline *deadline, char ret_reason[DM_REASON_ROOM]);

/* Cancel or release: the attempt leaves. */
struct dm_answer dm_quorum_leave(struct dm_quorum_store *all, const struct dm_question *question,
                                 const struct dm_deadline *deadline, char ret_reason[DM_REASON_ROOM]);

/* Consistent, force, drop, info. */
struct dm_answer dm_quorum_ask_each(struct dm_quorum_store *all, const struct dm_question *question,
                                    const struct dm_deadline *deadline, char ret_reason[DM_REASON_ROOM]);

enum dm_verdict dm_quorum_view(struct dm_store *store, struct dm_view *view, const struct dm_deadline *deadline,
                               char ret_reason[DM_REASON_ROOM]);

#endif
