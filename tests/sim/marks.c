/* SPDX-License-Identifier: BSD-2-Clause */
#include "marks.h"

/* The operations of the stores of this run, without marks and with marks: the stores of a run are of one kind. */
static const struct dm_store_ops *unmarked;
static struct dm_store_ops marked;

/* A hold keeps its mark, as each renewal must repeat the mark. */
static struct dm_renewal mark(const struct dm_renewal *renewal)
{
    struct dm_renewal copy = *renewal;

    if (copy.mark == DM_MARK_NONE && copy.attempt % 6 < 2)
        copy.mark = copy.attempt % 6 ? DM_MARK_TELL : DM_MARK_TELL_NO_DEATH;
    return copy;
}

static struct dm_answer renew(struct dm_store *store, const struct dm_renewal *renewal,
                              const struct dm_deadline *deadline, char ret_reason[DM_REASON_ROOM])
{
    struct dm_renewal copy = mark(renewal);

    return unmarked->renew(store, &copy, deadline, ret_reason);
}

static bool post_renew(struct dm_store *store, const struct dm_renewal *renewals, int count, dm_answers_fn handler,
                       void *user)
{
    struct dm_renewal copies[DM_BATCH];

    for (int i = 0; i < count; i++)
        copies[i] = mark(&renewals[i]);
    return unmarked->post_renew(store, copies, count, handler, user);
}

void marks_put(struct dm_store *store)
{
    unmarked = store->ops;
    marked = *unmarked;
    marked.renew = renew;
    marked.post_renew = post_renew;
    store->ops = &marked;
}
