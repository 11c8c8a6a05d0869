/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Operations on a name, and by its owner, which are rare: they ask one child after another, and a majority decides.
 * Each child is asked once, so we first wait for those that can be reached soon.  There are no conditions, because a
 * signal to several servers would wake several waiters.
 */
#include <stdio.h>
#include <string.h>

#include "base/attrs.h"
#include "stores/quorum/parts.h"

/* How many children have said so. */
struct votes {
    int done, against, refused;
};

static void vote(struct votes *votes, enum dm_verdict verdict)
{
    votes->done += verdict == DM_SAYS_DONE;
    votes->against += verdict == DM_SAYS_UNKNOWN || verdict == DM_SAYS_BUSY;
    votes->refused += verdict == DM_SAYS_REFUSED;
}

/* `against`: the verdict for the caller if a majority cannot be had because of such votes. */
static enum dm_verdict decide(struct dm_quorum_store *all, const struct votes *votes, const struct dm_place *place,
                              enum dm_verdict against, char ret_reason[DM_REASON_ROOM])
{
    int majority = all->count / 2 + 1;

    if (votes->done >= majority)
        return DM_SAYS_DONE;
    if (votes->against > all->count - majority)
        return against;
    if (votes->refused > all->count - majority)
        return DM_SAYS_REFUSED;
    dm_quorum_reason(&all->store, place, DM_ASKS, ret_reason);
    return DM_SAYS_NOTHING;
}

static struct dm_question try_of(const struct dm_question *question)
{
    struct dm_question try = *question;

    try.op = DM_OP_ACQUIRE;
    memset(&try.acquire, 0, sizeof try.acquire);
    return try;
}

/*
 * Asks the servers that do not have the hold; later also those that want the text of the script.  Returns the servers
 * whose answers are to come.
 */
static unsigned ask_missing(struct dm_quorum_store *all, const struct dm_question *try, bool is_first)
{
    struct dm_quorum_record *record = dm_quorum_find(all, try->attempt);
    int64_t now_ns = dm_clock_boot_ns();

    dm_assert_held(DM_RANK_QUORUM);
    for (int i = 0; record && i < all->count; i++) {
        bool must = is_first ? dm_quorum_renewal(&record->quorum, i, now_ns) == DM_QUORUM_TRY
                             : record->quorum.legs[i].said.verdict == DM_SAYS_AGAIN;

        if (must && dm_quorum_may_ask(&all->children[i], try->place, DM_ASKS))
            dm_quorum_post_acquire(record, &all->children[i], DM_QUORUM_TRY, try);
    }
    return record ? dm_quorum_open_servers(record) : 0;
}

/*
 * Servers that do not have the hold yet also know of the death, and would report it to the next owner, so they are
 * asked once more.
 */
static DM_OWN_FRAME void join(struct dm_quorum_store *all, const struct dm_question *question,
                              const struct dm_deadline *deadline)
{
    const struct dm_question try = try_of(question);
    struct dm_deadline soon = dm_deadline_sooner(deadline, DM_QUORUM_JOIN_NS);
    unsigned open;

    dm_mutex_lock(&all->lock);
    open = ask_missing(all, &try, true);
    while (open && dm_deadline_left_ns(&soon) > 0) {
        dm_quorum_read(all, try.attempt, open, &soon);
        open = ask_missing(all, &try, false);
    }
    dm_mutex_unlock(&all->lock);
}

/*
 * How a majority decides about each operation:
 *
 *   consistent   the servers that do not have the hold yet join it first
 *   force        every server is asked with patience: on one that is left out, the holder keeps the lock
 *   drop         one server where the name is in use is enough for BUSY, unless a majority has dropped the name
 *   info         the answers are summed up
 */
static enum dm_verdict against_of(enum dm_op op)
{
    if (op == DM_OP_CONSISTENT)
        return DM_SAYS_UNKNOWN;
    return op == DM_OP_DROP ? DM_SAYS_BUSY : DM_SAYS_NOTHING;
}

/* Answers of servers, side by side. */
struct answers {
    struct votes votes;
    bool is_wanted;                     /* by any server */
    union dm_more more[DM_QUORUM_MOST]; /* of those that are done */
};

static DM_OWN_FRAME void ask_child(struct dm_quorum_child *child, const struct dm_question *question,
                                   struct answers *answers, const struct dm_deadline *deadline, char *ret_reason)
{
    struct dm_question one = *question;
    struct dm_answer answer;

    if (!dm_quorum_may_ask(child, question->place, DM_ASKS))
        return;
    one.ret_more = &answers->more[answers->votes.done];
    answer = dm_store_ask(child->store, &one, deadline, ret_reason);
    vote(&answers->votes, answer.verdict);
    answers->is_wanted = answers->is_wanted || answer.is_wanted;
}

static void sum_up(const struct dm_quorum_store *all, const struct answers *answers, struct dm_info *ret_info)
{
    const struct dm_info *infos[DM_QUORUM_MOST];

    for (int i = 0; i < answers->votes.done; i++)
        infos[i] = &answers->more[i].info;
    *ret_info = dm_quorum_sum_up(all, infos, answers->votes.done);
}

struct dm_answer dm_quorum_ask_each(struct dm_quorum_store *all, const struct dm_question *question,
                                    const struct dm_deadline *deadline, char ret_reason[DM_REASON_ROOM])
{
    enum dm_op op = question->op;
    struct answers answers = { 0 };
    struct dm_answer answer = { .verdict = DM_SAYS_NOTHING };

    if (op == DM_OP_CONSISTENT || dm_quorum_await_able(&all->store, question->place, DM_ASKS, deadline)) {
        dm_quorum_await_all(&all->store, question->place, deadline);
        if (op == DM_OP_CONSISTENT)
            join(all, question, deadline);
        for (int i = 0; i < all->count; i++) {
            struct dm_deadline until = op == DM_OP_FORCE ? dm_quorum_share(all, i, deadline)
                                                         : dm_quorum_short_share(all, i, answers.votes.done, deadline);

            ask_child(&all->children[i], question, &answers, &until, ret_reason);
        }
    }
    answer.verdict = decide(all, &answers.votes, question->place, against_of(op), ret_reason);
    if (op == DM_OP_DROP && answer.verdict == DM_SAYS_NOTHING && answers.votes.against)
        answer.verdict = DM_SAYS_BUSY;
    answer.is_wanted = answer.verdict == DM_SAYS_DONE && answers.is_wanted;
    if (op == DM_OP_INFO && answer.verdict == DM_SAYS_DONE)
        sum_up(all, &answers, &question->ret_more->info);
    return answer;
}
