/* SPDX-License-Identifier: BSD-2-Clause */
/* The operations: what each sends, and how its answer is read.  One question, awaited. */
#include "stores/redis/parts.h"
#include "stores/redis/wire/reply.h"

/* A script of lua/, for one server and for a node of a Cluster.  The texts are constants, made by the build. */
/* clang-format off */
#define SCRIPTS(name) { { dm_sha_##name, dm_lua_##name }, { dm_sha_##name##_cluster, dm_lua_##name##_cluster } }
/* clang-format on */

static const struct operation {
    struct dm_script scripts[2];
    dm_write_fn *write;
    dm_read_fn *read;
    bool is_repeated; /* until the store has answered: what is no answer is asked again */
} operations[DM_OPS] = {
    [DM_OP_ACQUIRE] = { SCRIPTS(acquire), dm_redis_write_acquire, dm_redis_read_attempt, false },
    [DM_OP_CANCEL] = { SCRIPTS(cancel), dm_redis_write_cancel, dm_redis_read_attempt, false },
    [DM_OP_RELEASE] = { SCRIPTS(release), dm_redis_write_release, dm_redis_read_release, true },
    [DM_OP_RENEW] = { SCRIPTS(renew), dm_redis_write_renewals, dm_redis_read_renewal, true },
    [DM_OP_POLL] = { SCRIPTS(poll), dm_redis_write_polls, dm_redis_read_poll, true },
    [DM_OP_CONSISTENT] = { SCRIPTS(consistent), dm_redis_write_consistent, dm_redis_read_consistent, false },
    [DM_OP_FORCE] = { SCRIPTS(force), dm_redis_write_force, dm_redis_read_force, false },
    [DM_OP_DROP] = { SCRIPTS(drop), dm_redis_write_drop, dm_redis_read_drop, false },
    [DM_OP_INFO] = { SCRIPTS(info), dm_redis_write_info, dm_redis_read_info, false },
    [DM_OP_COND_WAIT] = { SCRIPTS(cond_wait), dm_redis_write_cond_wait, dm_redis_read_attempt, false },
    [DM_OP_COND_CANCEL] = { SCRIPTS(cond_cancel), dm_redis_write_cond_cancel, dm_redis_read_cond_cancel, false },
    [DM_OP_COND_SIGNAL] = { SCRIPTS(cond_signal), dm_redis_write_cond_signal, dm_redis_read_cond_signal, false },
    [DM_OP_COND_DROP] = { SCRIPTS(cond_drop), dm_redis_write_cond_drop, dm_redis_read_drop, false },
};

struct dm_script dm_redis_script(const struct dm_store *store, enum dm_op op)
{
    return operations[op].scripts[dm_redis(store)->is_cluster];
}

bool dm_redis_write(const struct dm_store *store, const struct dm_question *questions, int count,
                    struct dm_texts *texts, struct dm_args *args)
{
    enum dm_op op = questions->op;

    return operations[op].write(&(struct dm_writing){ store, dm_redis_script(store, op), questions, count, texts },
                                args);
}

/* The verdict of what is not an answer. */
static enum dm_verdict verdict_of(enum dm_op op, enum dm_error_row row)
{
    if (operations[op].is_repeated)
        return DM_SAYS_NOTHING;
    if (row == DM_ROW_NO_MEMORY)
        return DM_SAYS_NO_MEMORY;
    return row == DM_ROW_REFUSED || row == DM_ROW_NONE ? DM_SAYS_REFUSED : DM_SAYS_NOTHING;
}

void dm_redis_read(enum dm_op op, const struct dm_reading *reading, struct dm_answer *ret_answer)
{
    enum dm_error_row row = dm_reply_row(reading->reply);

    *ret_answer = (struct dm_answer){ .verdict = DM_SAYS_NOTHING };
    if (row != DM_ROW_NONE || !operations[op].read(reading, ret_answer))
        *ret_answer = (struct dm_answer){ .verdict = verdict_of(op, row) };
}

/* The arguments borrow the texts until dm_redis_run() has formatted them, so the texts stand on this stack. */
struct dm_answer dm_redis_ask(struct dm_store *store, const struct dm_question *question,
                              const struct dm_deadline *deadline, char ret_reason[DM_REASON_ROOM])
{
    struct dm_answer answer;
    struct dm_texts texts;
    struct dm_args args;
    redisReply *reply = NULL;
    enum dm_verdict verdict;

    if (!dm_redis_write(store, question, 1, &texts, &args))
        return (struct dm_answer){ .verdict = dm_redis_no_memory(ret_reason) };
    verdict = dm_redis_run(store, NULL, &args, dm_redis_script(store, question->op), deadline, ret_reason, &reply);
    if (verdict != DM_SAYS_DONE)
        return (struct dm_answer){ .verdict = verdict };
    dm_redis_read(question->op, &(struct dm_reading){ reply, 0, question->ret_more }, &answer);
    if (answer.verdict == DM_SAYS_REFUSED)
        dm_redis_nonsense(ret_reason);
    dm_reply_free(reply);
    return answer;
}
