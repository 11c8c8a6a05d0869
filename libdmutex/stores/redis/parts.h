/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The lock store on a Redis or Valkey server: each operation is one script, one round trip.  lua/ and
 * doc/design/protocol.md say what the scripts promise, store/store.h what the operations promise.
 *
 *   driver.c    the table of functions; the loop thread's part
 *   route.c     the way to one server, or to the nodes of a Cluster
 *   ask.c       each operation's script, writer and reader; one question, awaited
 *   post.c      questions that nobody waits for
 *   script.c    how any script call is written, run and read
 *   attempt.c   acquire, cancel, release, renewals and polls
 *   cond.c      conditions
 *   name.c      operations on a name, for every holder
 *   view.c      names and their data, for people
 *   message.c   messages of the inbox
 */
#ifndef DM_REDIS_PARTS_H
#define DM_REDIS_PARTS_H

#include "store/store.h"
#include "stores/redis/cluster/groups.h"
#include "stores/redis/route.h"
#include "stores/redis/wire/keys.h"
#include "stores/redis/wire/scripts.h"

struct dm_redis {
    struct dm_store store; /* first: see dm_redis() */
    struct dm_host host;
    struct dm_route route;
    struct dm_groups *groups; /* the inboxes of a Cluster, else NULL */
    struct dm_naming naming;  /* of keys and inboxes, with the URL's prefix */
    bool is_cluster;          /* several nodes: scripts have another text, and each group has inboxes */
    const char *uuid;         /* of this process: part of the names of its attempts and inboxes */
    const char *label;        /* for people: process, host and program; stored with holds and waiters */
    char inbox_prefix[96];    /* of all processes' inboxes */
};

/* The dm_redis that the store is the first member of. */
static inline struct dm_redis *dm_redis(const struct dm_store *store)
{
    return (struct dm_redis *)(uintptr_t)store;
}

/*
 * Sets all that the operations need, except nodes and the table; the caller has set is_cluster.  The label begins with
 * a digit.
 */
void dm_redis_init(struct dm_redis *redis, const char *prefix, const char *uuid, const char *label);

/* ---- questions: ask.c, post.c, view.c ---------------------------------------------------- */

struct dm_answer dm_redis_ask(struct dm_store *store, const struct dm_question *question,
                              const struct dm_deadline *deadline, char ret_reason[DM_REASON_ROOM]);
bool dm_redis_submit(struct dm_store *store, const struct dm_question *questions, int count, dm_answers_fn done,
                     void *user);
enum dm_verdict dm_redis_view(struct dm_store *store, struct dm_view *view, const struct dm_deadline *deadline,
                              char ret_reason[DM_REASON_ROOM]);

/* ---- messages ---------------------------------------------------------------------------- */

/* Takes a message from a server.  No lock held. */
void dm_redis_hear(struct dm_redis *redis, const char *text, const struct dm_server *server);

/*
 * False for a message of another kind: a later version's, or nonsense.  ret_run: of the server that granted; 0: not
 * known.
 */
bool dm_redis_read_message(const char *text, struct dm_message *ret_message, uint64_t *ret_run);

/* ---- script calls ------------------------------------------------------------------------ */

/* A script: its hash, which is sent while the server knows the script, and its text. */
struct dm_script {
    const char *sha;
    const char *text;
};

/* An id or a hold: see lua/_numbers.lua. */
#define DM_IDENTITY_ROOM (DM_UUID_LENGTH + 3 * DM_ARG_DIGITS + DM_LABEL_ROOM + 6)

/* Texts of a question that its arguments borrow: who asks, perhaps with a crowd, and one more. */
struct dm_texts {
    char who[DM_IDENTITY_ROOM + 2 * DM_ARG_DIGITS * (DM_CROWD_TOLD + 1)];
    char other[DM_IDENTITY_ROOM];
};

/*
 * Write the id, "<uuid>:<thread>:<attempt>", or the hold, "<id> <lease> <mark><label>", and return the end of the text.
 * dm_redis_identify() ends the id with a NUL.
 */
void dm_redis_identify(char *to, const struct dm_store *store, uint64_t thread, uint64_t attempt);
char *dm_redis_write_id(char *to, const struct dm_store *store, uint64_t thread, uint64_t attempt);
char *dm_redis_write_hold(char *to, const struct dm_store *store, uint64_t thread, uint64_t attempt, uint32_t lease_ms,
                          enum dm_mark mark);

/*
 * EVALSHA sha n.  `arguments` follow the keys, `numbers` of them by dm_args_number().  False without memory, and then
 * there is nothing to free.
 */
bool dm_redis_begin(struct dm_args *args, struct dm_script script, int keys, int arguments, int numbers);
void dm_redis_put_keys(struct dm_args *args, const struct dm_place *keys, int count);

/* Sends the text instead of the hash. */
void dm_redis_send_text(struct dm_args *args, struct dm_script script);

/* The keys of the mutex, and of the condition that the attempt waits on. */
int dm_redis_count_keys(const struct dm_question *question);
void dm_redis_put_all_keys(struct dm_args *args, const struct dm_question *question);

/* "1" or "0". */
const char *dm_redis_flag(bool is_set);

/*
 * Runs the script whose arguments begin with EVALSHA, at the node `at`; NULL: at that of the first key.  Sends the
 * script's text if the server does not know it.  DONE with a reply that is not an error, or the meaning of the error.
 * Frees the arguments.
 */
enum dm_verdict dm_redis_run(struct dm_store *store, struct dm_node *at, struct dm_args *args, struct dm_script script,
                             const struct dm_deadline *deadline, char *ret_reason, struct redisReply **ret_reply);

/* ---- operations -------------------------------------------------------------------------- */

/* Questions to be written: several only of renewals and polls. */
struct dm_writing {
    const struct dm_store *store;
    struct dm_script script; /* of the operation */
    const struct dm_question *questions;
    int count;
    struct dm_texts *texts; /* one for each */
};

/* The answer to question `index` of a reply that is not an error. */
struct dm_reading {
    const struct redisReply *reply;
    int index;
    union dm_more *ret_more;
};

/* Write the arguments, in the order of ARGV in the script, which has names for all of them.  False without memory. */
typedef bool dm_write_fn(const struct dm_writing *writing, struct dm_args *args);
dm_write_fn dm_redis_write_acquire, dm_redis_write_cancel, dm_redis_write_release, dm_redis_write_renewals,
    dm_redis_write_polls, dm_redis_write_consistent, dm_redis_write_force, dm_redis_write_drop, dm_redis_write_info,
    dm_redis_write_cond_wait, dm_redis_write_cond_cancel, dm_redis_write_cond_signal, dm_redis_write_cond_drop;

/* Read the answer, which the caller has zeroed.  False: not an answer that we know; then it has any content. */
typedef bool dm_read_fn(const struct dm_reading *reading, struct dm_answer *ret_answer);
dm_read_fn dm_redis_read_attempt, dm_redis_read_release, dm_redis_read_renewal, dm_redis_read_poll,
    dm_redis_read_consistent, dm_redis_read_force, dm_redis_read_drop, dm_redis_read_info, dm_redis_read_cond_cancel,
    dm_redis_read_cond_signal;

struct dm_script dm_redis_script(const struct dm_store *store, enum dm_op op);

/* Calls the operation's writer.  texts: one for each question. */
bool dm_redis_write(const struct dm_store *store, const struct dm_question *questions, int count,
                    struct dm_texts *texts, struct dm_args *args);

/*
 * The answer in a reply that may be an error.  What is not an answer that we know is NOTHING for operations that are
 * repeated until the store has answered, and REFUSED for others.
 */
void dm_redis_read(enum dm_op op, const struct dm_reading *reading, struct dm_answer *ret_answer);

/* ---- submitted questions: post.c --------------------------------------------------------- */

/* One script call of a batch in a Cluster. */
struct dm_part {
    struct dm_posting *posting;
    struct dm_node *node;
    const struct dm_place *place; /* the caller's, valid until the answers */
};

/* Questions that are under way; on the heap, because stacks may be small. */
struct dm_posting {
    struct dm_store *store;
    struct dm_node *node; /* to which the request was sent */
    enum dm_op op;
    dm_answers_fn done;
    void *user;
    union dm_more *ret_more;
    int count;

    /* In a Cluster. */
    char *key;             /* a copy of the first key, as a claim may be freed before the answer; NULL: in the parts */
    struct dm_part *parts; /* of a batch, one for each question; NULL: not a batch, or not a Cluster */
    int left;              /* parts not answered yet.  Atomic */
    char *refusal;         /* a copy of the first one of any part.  Atomic */

    struct dm_answer answers[]; /* one for each question */
};

/* ---- helpers ----------------------------------------------------------------------------- */

/* Return NOTHING, or REFUSED, with the reason. */
enum dm_verdict dm_redis_no_memory(char *ret_reason);
enum dm_verdict dm_redis_nonsense(char *ret_reason);

/* "" if the reply has no text there, so that readers need not check. */
const char *dm_redis_text_at(const struct redisReply *reply, size_t index);

/*
 * Reads a label, "<pid> <host> <program>" and perhaps a crowd, as far as it has that form.  Other processes write
 * labels, so a label may be any text.
 */
void dm_redis_read_label(const char *label, uint32_t *ret_pid, char ret_host[65], char ret_program[33],
                         struct dm_crowd *ret_crowd);

/*
 * The words about a mutex with which the answers of lua/info.lua and lua/view.lua begin; each goes on with words of its
 * own.
 */
enum {
    DM_SHOWN_OWNER, /* "" if the mutex is free */
    DM_SHOWN_HOLD_COUNT,
    DM_SHOWN_REMAINING_MS,
    DM_SHOWN_TOKEN,
    DM_SHOWN_LABEL,
    DM_SHOWN_WAITERS,
    DM_SHOWN_HEALTH,
    DM_SHOWN_COUNT
};

/* Reads those words. */
void dm_redis_read_shown(const struct redisReply *reply, dmutex_info_t *ret_info, struct dm_crowd *ret_crowd);

/* 0 if the reply has no number there. */
uint64_t dm_redis_number_at(const struct redisReply *reply, size_t index);

/* A time, in any unit, cut off so that calculations in nanoseconds do not overflow. */
int64_t dm_redis_time_of(uint64_t number);
int64_t dm_redis_time_at(const struct redisReply *reply, size_t index);

/* A time span in milliseconds, likewise; in nanoseconds it can be added to a time. */
int64_t dm_redis_span_of(uint64_t ms);
int64_t dm_redis_span_at(const struct redisReply *reply, size_t index);

#endif
