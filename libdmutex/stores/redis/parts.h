/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The lock store on a Redis or Valkey server: each operation is one script, one round trip.  lua/ and
 * doc/design/protocol.md say what the scripts promise, store/store.h what the operations promise.
 *
 *   driver.c    the table of operations; the way to the nodes
 *   script.c    how any script call is written, run and read
 *   acquire.c   acquire
 *   release.c   cancel, release
 *   batch.c     polls and renewals
 *   cond.c      conditions
 *   name.c      operations on a name, for every holder
 *   post.c      posted requests
 *   view.c      names and their data, for people
 *   message.c   messages of the inbox
 */
#ifndef DM_REDIS_PARTS_H
#define DM_REDIS_PARTS_H

#include "store/store.h"
#include "stores/redis/cluster/fleet.h"
#include "stores/redis/cluster/groups.h"
#include "stores/redis/wire/keys.h"
#include "stores/redis/wire/scripts.h"

struct dm_redis {
    struct dm_store store; /* first: see dm_redis() */
    struct dm_host host;
    struct dm_fleet fleet;
    struct dm_groups *groups; /* the inboxes of a Cluster, else NULL */
    struct dm_naming naming;  /* of keys and inboxes, with the URL's prefix */
    bool is_cluster;          /* several nodes: scripts have another text, and each group has inboxes */
    const char *uuid;         /* of this process: part of the names of its attempts and inboxes */
    const char *label;        /* for people: process, host and program; stored with holds and waiters */
    char inbox_prefix[96];    /* of all processes' inboxes */
    char channel[160];        /* of the only inbox, else "" */
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

/* ---- operations --------------------------------- */

struct dm_answer dm_redis_acquire(struct dm_store *store, const struct dm_ask *ask, bool may_queue,
                                  const struct dm_owed *owed, int owed_count, const struct dm_deadline *deadline,
                                  char ret_reason[DM_REASON_ROOM]);
struct dm_answer dm_redis_cancel(struct dm_store *store, const struct dm_ask *ask, const struct dm_deadline *deadline,
                                 char ret_reason[DM_REASON_ROOM]);
struct dm_answer dm_redis_release(struct dm_store *store, const struct dm_ask *ask, enum dm_end end,
                                  const struct dm_deadline *deadline, char ret_reason[DM_REASON_ROOM]);
struct dm_answer dm_redis_renew(struct dm_store *store, const struct dm_renewal *renewal,
                                const struct dm_deadline *deadline, char ret_reason[DM_REASON_ROOM]);
bool dm_redis_post_acquire(struct dm_store *store, const struct dm_ask *ask, bool may_queue, const struct dm_owed *owed,
                           int owed_count, dm_answers_fn handler, void *user);
bool dm_redis_post_release(struct dm_store *store, const struct dm_ask *ask, enum dm_end end, dm_answers_fn handler,
                           void *user);
bool dm_redis_post_poll(struct dm_store *store, const struct dm_ask *asks, int count, dm_answers_fn handler,
                        void *user);
bool dm_redis_post_renew(struct dm_store *store, const struct dm_renewal *renewals, int count, dm_answers_fn handler,
                         void *user);
enum dm_verdict dm_redis_consistent(struct dm_store *store, const struct dm_ask *ask,
                                    const struct dm_deadline *deadline, char ret_reason[DM_REASON_ROOM]);
enum dm_verdict dm_redis_force(struct dm_store *store, const struct dm_place *place, const struct dm_deadline *deadline,
                               bool *ret_must_serve, char ret_reason[DM_REASON_ROOM]);
enum dm_verdict dm_redis_drop(struct dm_store *store, const struct dm_place *place, bool is_anonymous,
                              const struct dm_deadline *deadline, char ret_reason[DM_REASON_ROOM]);
enum dm_verdict dm_redis_info(struct dm_store *store, const struct dm_ask *ask, const struct dm_deadline *deadline,
                              struct dm_info *ret_info, char ret_reason[DM_REASON_ROOM]);
enum dm_verdict dm_redis_view(struct dm_store *store, struct dm_view *view, const struct dm_deadline *deadline,
                              char ret_reason[DM_REASON_ROOM]);
struct dm_answer dm_redis_cond_wait(struct dm_store *store, const struct dm_ask *ask, const struct dm_leaving *leaving,
                                    const struct dm_deadline *deadline, char ret_reason[DM_REASON_ROOM]);
struct dm_answer dm_redis_cond_cancel(struct dm_store *store, const struct dm_ask *ask,
                                      const struct dm_deadline *deadline, bool *ret_is_signalled,
                                      char ret_reason[DM_REASON_ROOM]);
struct dm_signalled dm_redis_cond_signal(struct dm_store *store, const struct dm_signal *signal,
                                         const struct dm_deadline *deadline, char ret_reason[DM_REASON_ROOM]);
enum dm_verdict dm_redis_cond_drop(struct dm_store *store, const struct dm_place *condition, bool is_anonymous,
                                   const struct dm_deadline *deadline, char ret_reason[DM_REASON_ROOM]);

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

/* A script of lua/ by its name, in the form for this store.  The texts are constants, made by the build. */
#define SCRIPT(store, name)                                                                               \
    (dm_redis(store)->is_cluster ? (struct dm_script){ dm_sha_##name##_cluster, dm_lua_##name##_cluster } \
                                 : (struct dm_script){ dm_sha_##name, dm_lua_##name })

/* Identifies an attempt to the server, in the form that the script of the request expects: see lua/_numbers.lua. */
struct dm_identity {
    char text[DM_UUID_LENGTH + 3 * DM_ARG_DIGITS + DM_LABEL_ROOM + 6];
};

/*
 * Write the id, "<uuid>:<thread>:<attempt>", or the hold, "<id> <lease> <mark><label>", into the room of an identity;
 * the writers return the end of the text.  A request borrows the text until its arguments are formatted.
 */
void dm_redis_identify(struct dm_identity *identity, const struct dm_store *store, uint64_t thread, uint64_t attempt);
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
int dm_redis_count_keys(const struct dm_ask *ask);
void dm_redis_put_all_keys(struct dm_args *args, const struct dm_ask *ask);

/* "1" or "0". */
const char *dm_redis_flag(bool is_set);

/*
 * Runs the script whose arguments begin with EVALSHA; sends its text if the server does not know it.  DONE with a reply
 * that is not an error, or the meaning of the error.  Frees the arguments.
 */
enum dm_verdict dm_redis_run(struct dm_store *store, struct dm_args *args, struct dm_script script,
                             const struct dm_deadline *deadline, char *ret_reason, struct redisReply **ret_reply);

/* The same at this node, whatever the keys are; NULL: at the node of the first key. */
enum dm_verdict dm_redis_run_at(struct dm_store *store, struct dm_member *at, struct dm_args *args,
                                struct dm_script script, const struct dm_deadline *deadline, char *ret_reason,
                                struct redisReply **ret_reply);

/* The same for scripts that return a number: DONE for 1, `zero` for 0. */
enum dm_verdict dm_redis_run_for_number(struct dm_store *store, struct dm_args *args, struct dm_script script,
                                        enum dm_verdict zero, const struct dm_deadline *deadline, char *ret_reason);

/* ---- posted requests: post.c ------------------------------------------------------- */

/*
 * Reads the answer to one question of a request; NOTHING if the reply has none that we know.  `index` counts the
 * questions of the request from 0; a release has one.
 */
typedef struct dm_answer (*dm_read_fn)(const struct redisReply *reply, int index);

struct dm_answer dm_redis_read_acquire(const struct redisReply *reply, int index);
struct dm_answer dm_redis_read_release(const struct redisReply *reply, int index);
struct dm_answer dm_redis_read_poll(const struct redisReply *reply, int index);
struct dm_answer dm_redis_read_renew(const struct redisReply *reply, int index);

/* One script call of a batch in a Cluster. */
struct dm_part {
    struct dm_posting *posting;
    struct dm_member *member;
    const struct dm_place *place; /* the caller's, valid until the answers */
};

/* A posted request, until it is answered; on the heap, because stacks may be small. */
struct dm_posting {
    struct dm_store *store;
    struct dm_member *member; /* to which the request was sent */
    enum dm_posted_script script;
    dm_read_fn read;
    dm_answers_fn handler;
    void *user;
    int count;

    /* In a Cluster. */
    char *key;             /* a copy of the first key, as a claim may be freed before the answer; NULL: in the parts */
    struct dm_part *parts; /* of a batch, one for each question; NULL: not a batch, or not a Cluster */
    int left;              /* parts not answered yet.  Atomic */
    char *refusal;         /* a copy of the first one of any part.  Atomic */

    struct dm_answer answers[]; /* one for each question */
};

/*
 * Makes a posting for `count` questions; unless it is sent, the caller frees it with dm_posting_free().  NULL without
 * memory.
 */
struct dm_posting *dm_posting_new(struct dm_store *store, enum dm_posted_script script, dm_read_fn read, int count,
                                  dm_answers_fn handler, void *user);

/* Does nothing for NULL. */
void dm_posting_free(struct dm_posting *posting);

/* A function of the node that posts. */
typedef enum dm_link_result dm_post_fn(struct dm_node *node, struct dm_args *args, dm_reply_fn handler, void *user);

/* True: sent, and the posting no longer belongs to the caller.  Frees the arguments. */
bool dm_posting_send(struct dm_posting *posting, struct dm_args *args, dm_post_fn *post);

/* Sends the part of a question.  The posting belongs to the caller until all parts are sent.  Frees the arguments. */
bool dm_posting_send_part(struct dm_posting *posting, int index, struct dm_args *args, dm_post_fn *post);

/*
 * `count` parts could not be sent, and are answered NOTHING.  True: the other parts are under way.  False: nothing is
 * under way, the handler is never called, and the posting still belongs to the caller.
 */
bool dm_posting_leave_out(struct dm_posting *posting, int count);

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

/* Reads an answer about an attempt.  False: not an answer that we know. */
bool dm_redis_read_answer(const struct redisReply *reply, struct dm_answer *ret_answer);

/* The same, REFUSED for nonsense.  Frees the reply. */
struct dm_answer dm_redis_answer_or_nonsense(struct redisReply *reply, char *ret_reason);

#endif
