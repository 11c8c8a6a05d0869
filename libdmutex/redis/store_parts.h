/* SPDX-License-Identifier: BSD-2-Clause */
/* Parts that the files of the store share: how a script call is written, run, posted and read. */
#ifndef DM_REDIS_STORE_PARTS_H
#define DM_REDIS_STORE_PARTS_H

#include "redis/scripts.h"
#include "redis/store.h"

struct dm_script {
    const char *sha;
    const char *text;
};

#define SCRIPT(name) ((struct dm_script){ dm_sha_##name, dm_lua_##name })

/* Identifies an attempt to the server: see lua/_own.lua. */
struct dm_identity {
    char owner[DM_UUID_LENGTH + DM_ARG_DIGITS + 1];                    /* <uuid>:<thread> */
    char id[DM_UUID_LENGTH + 2 * DM_ARG_DIGITS + 2];                   /* <owner>:<attempt> */
    char hold[DM_UUID_LENGTH + 3 * DM_ARG_DIGITS + DM_LABEL_ROOM + 4]; /* <id> <lease> <label> */
};

void dm_store_identify(struct dm_identity *identity, const struct dm_store *store, uint64_t thread, uint64_t attempt,
                       uint32_t lease_ms);

/* EVALSHA sha n, or EVAL text n.  `arguments` follow the keys, `numbers` of them by dm_args_number(). */
bool dm_store_begin(struct dm_args *args, struct dm_script script, bool by_text, int keys, int arguments, int numbers);
void dm_store_put_keys(struct dm_args *args, const struct dm_keys *keys, int count);

/* Of the mutex, and of the condition that the attempt waits on. */
int dm_store_count_keys(const struct dm_ask *ask);
void dm_store_put_all_keys(struct dm_args *args, const struct dm_ask *ask);

const char *dm_store_flag(bool is_set);

/*
 * Runs the script whose arguments begin with EVALSHA, by text if the server does not know the script.  DONE with a
 * reply that is no error, or the meaning of the error.  Frees the arguments.
 */
enum dm_verdict dm_store_run(struct dm_store *store, struct dm_args *args, struct dm_script script,
                             const struct dm_deadline *deadline, char *ret_reason, struct redisReply **ret_reply);

/* The same for scripts that answer a number: DONE for 1, `zero` for 0. */
enum dm_verdict dm_store_run_for_number(struct dm_store *store, struct dm_args *args, struct dm_script script,
                                        enum dm_verdict zero, const struct dm_deadline *deadline, char *ret_reason);

/* ---- posted requests: store_post.c ------------------------------------------------------- */

/* Reads the answer to one question of a request; NOTHING where the reply has none of ours. */
typedef struct dm_answer (*dm_read_fn)(const struct redisReply *reply, int index);

struct dm_answer dm_store_read_release(const struct redisReply *reply, int index);
struct dm_answer dm_store_read_poll(const struct redisReply *reply, int index);
struct dm_answer dm_store_read_renew(const struct redisReply *reply, int index);

/* A posted request, from the making to the answers; in the heap, because stacks may be small. */
struct dm_posting {
    struct dm_store *store;
    enum dm_posted_script script;
    bool is_by_text; /* an earlier reply said that the server does not know the script */
    dm_read_fn read;
    dm_answers_fn handler;
    void *user;
    int count;
    struct dm_answer answers[]; /* one for each question */
};

/* Returns a posting for `count` questions, to be freed by free() unless sent; NULL without memory. */
struct dm_posting *dm_posting_new(struct dm_store *store, enum dm_posted_script script, int count,
                                  dm_answers_fn handler, void *user);

/* The function of the connection that posts. */
typedef enum dm_conn_result dm_post_fn(struct dm_conn *conn, const struct dm_command *command, dm_reply_fn handler,
                                       void *user);

/* True: sent, and the posting is not the caller's any more.  Frees the arguments. */
bool dm_posting_send(struct dm_posting *posting, struct dm_args *args, dm_post_fn *post);

/* Writes the command for the server that is there now. */
struct dm_command dm_store_format(struct dm_store *store, struct dm_args *args);

enum dm_verdict dm_store_no_memory(char *ret_reason);
enum dm_verdict dm_store_nonsense(char *ret_reason);

/* 0 where the reply has no number there. */
uint64_t dm_store_number_at(const struct redisReply *reply, size_t index);

/* A time, in any unit, that can be reckoned with in nanoseconds: a larger time is cut. */
int64_t dm_store_time_of(uint64_t number);
int64_t dm_store_time_at(const struct redisReply *reply, size_t index);

/* Reads an answer about an attempt.  False: not an answer of ours. */
bool dm_store_read_answer(const struct redisReply *reply, struct dm_answer *ret_answer);

/* The same, REFUSED for nonsense.  Frees the reply. */
struct dm_answer dm_store_answer_or_nonsense(struct redisReply *reply, char *ret_reason);

#endif
