/* SPDX-License-Identifier: BSD-2-Clause */
#include "marks.h"

/* The operations of the stores of this run, without marks and with marks: the stores of a run are of one kind. */
static const struct dm_store_ops *unmarked;
static struct dm_store_ops marked;

/* A hold keeps its mark, as each renewal must repeat the mark. */
static struct dm_question mark(const struct dm_question *question)
{
    struct dm_question copy = *question;

    if (copy.op == DM_OP_RENEW && copy.renew.mark == DM_MARK_NONE && copy.attempt % 6 < 2)
        copy.renew.mark = copy.attempt % 6 ? DM_MARK_TELL : DM_MARK_TELL_NO_DEATH;
    return copy;
}

static struct dm_answer ask(struct dm_store *store, const struct dm_question *question,
                            const struct dm_deadline *deadline, char ret_reason[DM_REASON_ROOM])
{
    struct dm_question copy = mark(question);

    return unmarked->ask(store, &copy, deadline, ret_reason);
}

static bool submit(struct dm_store *store, const struct dm_question *questions, int count, dm_answers_fn done,
                   void *user)
{
    struct dm_question copies[DM_BATCH];

    for (int i = 0; i < count; i++)
        copies[i] = mark(&questions[i]);
    return unmarked->submit(store, copies, count, done, user);
}

void marks_put(struct dm_store *store)
{
    unmarked = store->ops;
    marked = *unmarked;
    marked.ask = ask;
    marked.submit = submit;
    store->ops = &marked;
}
