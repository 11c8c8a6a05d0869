/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The lock store on a Redis or Valkey server: each operation is one script, one round trip.  The scripts' promises
 * stand in lua/ and in doc/design/protocol.md, the operations' promises in store/store.h.
 *
 *   driver.c         the table of operations; the way to the nodes
 *   store.c          cancel, release; how any script call is written, run and read
 *   store_acquire.c  acquire
 *   store_batch.c    polls and renewals
 *   store_cond.c     conditions
 *   store_name.c     operations on a name, for every holder
 *   store_post.c     posted requests
 *   store_view.c     names and their data, for people
 *   store_message.c  messages of the inbox
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
    bool is_cluster;          /* several nodes: scripts have another text, each group has inboxes */
    const char *uuid;         /* of this process: the first part of all attempts' names, and the name of the inbox */
    const char *label;        /* for people: process, host and program; goes into `hold` and the waiters' words */
    char inbox_prefix[96];    /* of all processes' inboxes */
    char channel[160];        /* of the only inbox, else "" */
};

/* The whole of a store of this folder. */
static inline struct dm_redis *dm_redis(const struct dm_store *store)
{
    return (struct dm_redis *)(uintptr_t)store;
}

/*
 * Sets all that the operations need, but no node and no table; is_cluster is set before.  The label begins with a
 * digit.
 */
void dm_redis_init(struct dm_redis *redis, const char *prefix, const char *uuid, const char *label);

/* ---- operations: store.c, store_batch.c, store_cond.c, store_name.c --------------------------------- */

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

/* A message came from a server.  No lock held. */
void dm_redis_hear(struct dm_redis *redis, const char *text, const struct dm_server *server);

/*
 * False for a message of another kind: a later version's, or nonsense.  ret_run: of the server that granted; 0: not
 * told.
 */
bool dm_redis_read_message(const char *text, struct dm_message *ret_message, uint64_t *ret_run);

/* ---- script calls ------------------------------------------------------------------------ */

/* A script by its hash, which is sent as long as the server knows the script, and its text. */
struct dm_script {
    const char *sha;
    const char *text;
};

/* A script of lua/ by its name, in the text for this store: the texts are constants, made by the build. */
#define SCRIPT(store, name)                                                                               \
    (dm_redis(store)->is_cluster ? (struct dm_script){ dm_sha_##name##_cluster, dm_lua_##name##_cluster } \
                                 : (struct dm_script){ dm_sha_##name, dm_lua_##name })

/* Identifies an attempt to the server, as the script of the request wants: see lua/_numbers.lua. */
struct dm_identity {
    char text[DM_UUID_LENGTH + 3 * DM_ARG_DIGITS + DM_LABEL_ROOM + 6];
};

/*
 * The id, "<uuid>:<thread>:<attempt>"; and the hold, "<id> <lease> <mark><label>", into the room of an identity: its
 * end is returned.  A request borrows the text until the arguments are formatted.
 */
void dm_redis_identify(struct dm_identity *identity, const struct dm_store *store, uint64_t thread, uint64_t attempt);
char *dm_redis_write_id(char *to, const struct dm_store *store, uint64_t thread, uint64_t attempt);
char *dm_redis_write_hold(char *to, const struct dm_store *store, uint64_t thread, uint64_t attempt, uint32_t lease_ms,
                          enum dm_mark mark);

/*
 * EVALSHA sha n.  `arguments` follow the keys, `numbers` of them by dm_args_number().  False without
 * memory, and nothing is to be freed then.
 */
bool dm_redis_begin(struct dm_args *args, struct dm_script script, int keys, int arguments, int numbers);
void dm_redis_put_keys(struct dm_args *args, const struct dm_place *keys, int count);

/* The text instead of the hash. */
void dm_redis_send_text(struct dm_args *args, struct dm_script script);

/* Of the mutex, and of the condition that the attempt waits on. */
int dm_redis_count_keys(const struct dm_ask *ask);
void dm_redis_put_all_keys(struct dm_args *args, const struct dm_ask *ask);

/* "1" or "0". */
const char *dm_redis_flag(bool is_set);

/*
 * Runs the script whose arguments begin with EVALSHA, by text if the server does not know the script.  DONE with a
 * reply that is no error, or the meaning of the error.  Frees the arguments.
 */
enum dm_verdict dm_redis_run(struct dm_store *store, struct dm_args *args, struct dm_script script,
                             const struct dm_deadline *deadline, char *ret_reason, struct redisReply **ret_reply);

/* The same at this node, whatever the keys; NULL: at the node of the first key. */
enum dm_verdict dm_redis_run_at(struct dm_store *store, struct dm_member *at, struct dm_args *args,
                                struct dm_script script, const struct dm_deadline *deadline, char *ret_reason,
                                struct redisReply **ret_reply);

/* The same for scripts that answer a number: DONE for 1, `zero` for 0. */
enum dm_verdict dm_redis_run_for_number(struct dm_store *store, struct dm_args *args, struct dm_script script,
                                        enum dm_verdict zero, const struct dm_deadline *deadline, char *ret_reason);

/* ---- posted requests: store_post.c ------------------------------------------------------- */

/*
 * Reads the answer to one question of a request; NOTHING where the reply has none of ours.  `index` counts the
 * questions of the request, from 0 on; a release has one.
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
    const struct dm_place *place; /* the caller's, there until the answers */
};

/* A posted request, from the making to the answers; in the heap, because stacks may be small. */
struct dm_posting {
    struct dm_store *store;
    struct dm_member *member; /* that the request was sent to */
    enum dm_posted_script script;
    dm_read_fn read;
    dm_answers_fn handler;
    void *user;
    int count;

    /* In a Cluster. */
    char *key; /* the first key, a copy, because the claim of a release may go before the answer; NULL: in the parts */
    struct dm_part *parts; /* of a batch, one for each question; NULL: no batch, or no Cluster */
    int left;              /* parts whose answer is to come.  Atomic */
    char *refusal;         /* the first of any part, a copy.  Atomic */

    struct dm_answer answers[]; /* one for each question */
};

/* Returns a posting for `count` questions, to be freed by dm_posting_free() unless sent; NULL without memory. */
struct dm_posting *dm_posting_new(struct dm_store *store, enum dm_posted_script script, dm_read_fn read, int count,
                                  dm_answers_fn handler, void *user);

/* Nothing for NULL. */
void dm_posting_free(struct dm_posting *posting);

/* The function of the node that posts. */
typedef enum dm_link_result dm_post_fn(struct dm_node *node, struct dm_args *args, dm_reply_fn handler, void *user);

/* True: sent, and the posting is not the caller's any more.  Frees the arguments. */
bool dm_posting_send(struct dm_posting *posting, struct dm_args *args, dm_post_fn *post);

/* Sends the part of a question.  The posting is the caller's until all parts are sent.  Frees the arguments. */
bool dm_posting_send_part(struct dm_posting *posting, int index, struct dm_args *args, dm_post_fn *post);

/*
 * `count` parts could not be sent, and are answered NOTHING.  True: the other parts are under way.  False: nothing is
 * under way, the handler is never called, and the posting is the caller's.
 */
bool dm_posting_leave_out(struct dm_posting *posting, int count);

/* NOTHING, and REFUSED, with the sentences that say so. */
enum dm_verdict dm_redis_no_memory(char *ret_reason);
enum dm_verdict dm_redis_nonsense(char *ret_reason);

/* "" where the reply has no text there, so that readers need no second look. */
const char *dm_redis_text_at(const struct redisReply *reply, size_t index);

/*
 * Reads a label, "<pid> <host> <program>" and perhaps a crowd, as far as it is one.  Other processes write labels, so a
 * label may be any text.
 */
void dm_redis_read_label(const char *label, uint32_t *ret_pid, char ret_host[65], char ret_program[33],
                         struct dm_crowd *ret_crowd);

/* The words that lua/info.lua and lua/view.lua answer about a mutex first; each goes on with words of its own. */
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

/* 0 where the reply has no number there. */
uint64_t dm_redis_number_at(const struct redisReply *reply, size_t index);

/* A time, in any unit, that can be reckoned with in nanoseconds: a larger time is cut. */
int64_t dm_redis_time_of(uint64_t number);
int64_t dm_redis_time_at(const struct redisReply *reply, size_t index);

/* A span in milliseconds, likewise; as nanoseconds it can be added to a moment. */
int64_t dm_redis_span_of(uint64_t ms);
int64_t dm_redis_span_at(const struct redisReply *reply, size_t index);

/* Reads an answer about an attempt.  False: not an answer of ours. */
bool dm_redis_read_answer(const struct redisReply *reply, struct dm_answer *ret_answer);

/* The same, REFUSED for nonsense.  Frees the reply. */
struct dm_answer dm_redis_answer_or_nonsense(struct redisReply *reply, char *ret_reason);

#endif
