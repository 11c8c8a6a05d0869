/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Operations on a name, and by its owner, which are rare: they ask one child after another, and a majority decides.
 * Each child is asked once, so we first wait for those that can be reached soon.  There are no conditions, because a
 * signal to several servers would wake several waiters.
 */
#include <stdio.h>
#include <string.h>

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

/*
 * Asks the servers that do not have the hold; later also those that want the text of the script.  Returns the servers
 * whose answers are to come.
 */
static unsigned ask_missing(struct dm_quorum_store *all, const struct dm_ask *ask, bool is_first)
{
    struct dm_quorum_record *record;
    int64_t now_ns = dm_clock_boot_ns();
    unsigned open = 0;

    dm_mutex_lock(&all->lock);
    record = dm_quorum_find(all, ask->attempt);
    for (int i = 0; record && i < all->count; i++) {
        bool must = is_first ? dm_quorum_renewal(&record->quorum, i, now_ns) == DM_QUORUM_TRY
                             : record->quorum.legs[i].said.verdict == DM_SAYS_AGAIN;

        if (must && dm_store_is_able(all->children[i].store, ask->place, DM_ASKS))
            dm_quorum_post_acquire(all, record, i, DM_QUORUM_TRY, ask, NULL, 0);
        open |= dm_quorum_is_open(&record->quorum, i) ? 1u << i : 0;
    }
    dm_mutex_unlock(&all->lock);
    return open;
}

/*
 * Servers that do not have the hold yet also know of the death, and would report it to the next owner, so they are
 * asked once more.
 */
static void join(struct dm_quorum_store *all, const struct dm_ask *ask, const struct dm_deadline *deadline)
{
    struct dm_deadline soon = dm_deadline_sooner(deadline, DM_QUORUM_JOIN_NS);
    unsigned open = ask_missing(all, ask, true);

    while (open && dm_deadline_left_ns(&soon) > 0) {
        dm_quorum_read(all, ask->attempt, open, &soon);
        open = ask_missing(all, ask, false);
    }
}

enum dm_verdict dm_quorum_consistent(struct dm_store *store, const struct dm_ask *ask,
                                     const struct dm_deadline *deadline, char ret_reason[DM_REASON_ROOM])
{
    struct dm_quorum_store *all = dm_quorum_of(store);
    struct votes votes = { 0 };

    dm_quorum_await_all(store, ask->place, deadline);
    join(all, ask, deadline);
    for (int i = 0; i < all->count; i++) {
        struct dm_deadline until = dm_quorum_short_share(all, i, votes.done, deadline);

        if (dm_store_is_able(all->children[i].store, ask->place, DM_ASKS))
            vote(&votes, dm_store_consistent(all->children[i].store, ask, &until, ret_reason));
    }
    return decide(all, &votes, ask->place, DM_SAYS_UNKNOWN, ret_reason);
}

enum dm_verdict dm_quorum_force(struct dm_store *store, const struct dm_place *place,
                                const struct dm_deadline *deadline, bool *ret_must_serve,
                                char ret_reason[DM_REASON_ROOM])
{
    struct dm_quorum_store *all = dm_quorum_of(store);
    struct votes votes = { 0 };
    bool must_serve = false, is_any = false;
    enum dm_verdict verdict;

    if (!dm_quorum_await_able(store, place, DM_ASKS, deadline))
        return decide(all, &votes, place, DM_SAYS_NOTHING, ret_reason);
    dm_quorum_await_all(store, place, deadline); /* on a server that is left out, the holder keeps the lock */
    for (int i = 0; i < all->count; i++) {
        struct dm_deadline until = dm_quorum_share(all, i, deadline);

        if (!dm_store_is_able(all->children[i].store, place, DM_ASKS))
            continue;
        vote(&votes, dm_store_force(all->children[i].store, place, &until, &must_serve, ret_reason));
        is_any = is_any || must_serve;
    }
    verdict = decide(all, &votes, place, DM_SAYS_NOTHING, ret_reason);
    if (verdict == DM_SAYS_DONE)
        *ret_must_serve = is_any;
    return verdict;
}

/* One server where the name is in use is enough for BUSY, unless a majority has dropped the name. */
enum dm_verdict dm_quorum_drop(struct dm_store *store, const struct dm_place *place, bool is_anonymous,
                               const struct dm_deadline *deadline, char ret_reason[DM_REASON_ROOM])
{
    struct dm_quorum_store *all = dm_quorum_of(store);
    struct votes votes = { 0 };
    enum dm_verdict verdict;

    if (!dm_quorum_await_able(store, place, DM_ASKS, deadline))
        return decide(all, &votes, place, DM_SAYS_BUSY, ret_reason);
    dm_quorum_await_all(store, place, deadline);
    for (int i = 0; i < all->count; i++) {
        struct dm_deadline until = dm_quorum_short_share(all, i, votes.done, deadline);

        if (dm_store_is_able(all->children[i].store, place, DM_ASKS))
            vote(&votes, dm_store_drop(all->children[i].store, place, is_anonymous, &until, ret_reason));
    }
    verdict = decide(all, &votes, place, DM_SAYS_BUSY, ret_reason);
    return verdict == DM_SAYS_NOTHING && votes.against ? DM_SAYS_BUSY : verdict;
}

/* ---- looking ----------------------------------------------------------------------------- */

enum dm_verdict dm_quorum_info(struct dm_store *store, const struct dm_ask *ask, const struct dm_deadline *deadline,
                               struct dm_info *ret_info, char ret_reason[DM_REASON_ROOM])
{
    struct dm_quorum_store *all = dm_quorum_of(store);
    struct dm_info infos[DM_QUORUM_MOST];
    const struct dm_info *answers[DM_QUORUM_MOST];
    struct votes votes = { 0 };
    enum dm_verdict verdict;

    if (!dm_quorum_await_able(store, ask->place, DM_ASKS, deadline))
        return decide(all, &votes, ask->place, DM_SAYS_NOTHING, ret_reason);
    dm_quorum_await_all(store, ask->place, deadline);
    for (int i = 0; i < all->count; i++) {
        struct dm_deadline until = dm_quorum_short_share(all, i, votes.done, deadline);

        answers[votes.done] = &infos[votes.done];
        if (dm_store_is_able(all->children[i].store, ask->place, DM_ASKS))
            vote(&votes, dm_store_info(all->children[i].store, ask, &until, &infos[votes.done], ret_reason));
    }
    verdict = decide(all, &votes, ask->place, DM_SAYS_NOTHING, ret_reason);
    if (verdict == DM_SAYS_DONE)
        *ret_info = dm_quorum_sum_up(all, answers, votes.done);
    return verdict;
}

/* ---- conditions -------------------------------------------------------------------------- */

struct dm_answer dm_quorum_cond_wait(struct dm_store *store, const struct dm_ask *ask, const struct dm_leaving *leaving,
                                     const struct dm_deadline *deadline, char ret_reason[DM_REASON_ROOM])
{
    (void)store;
    (void)ask;
    (void)leaving;
    (void)deadline;
    (void)ret_reason;
    return (struct dm_answer){ .verdict = DM_SAYS_UNSUPPORTED };
}

struct dm_answer dm_quorum_cond_cancel(struct dm_store *store, const struct dm_ask *ask,
                                       const struct dm_deadline *deadline, bool *ret_is_signalled,
                                       char ret_reason[DM_REASON_ROOM])
{
    (void)store;
    (void)ask;
    (void)deadline;
    (void)ret_is_signalled;
    (void)ret_reason;
    return (struct dm_answer){ .verdict = DM_SAYS_UNSUPPORTED };
}

struct dm_signalled dm_quorum_cond_signal(struct dm_store *store, const struct dm_signal *signal,
                                          const struct dm_deadline *deadline, char ret_reason[DM_REASON_ROOM])
{
    (void)store;
    (void)signal;
    (void)deadline;
    (void)ret_reason;
    return (struct dm_signalled){ .verdict = DM_SAYS_UNSUPPORTED };
}

/* Nobody can wait, so there is nothing to delete. */
enum dm_verdict dm_quorum_cond_drop(struct dm_store *store, const struct dm_place *condition, bool is_anonymous,
                                    const struct dm_deadline *deadline, char ret_reason[DM_REASON_ROOM])
{
    (void)store;
    (void)condition;
    (void)is_anonymous;
    (void)deadline;
    (void)ret_reason;
    return DM_SAYS_DONE;
}
