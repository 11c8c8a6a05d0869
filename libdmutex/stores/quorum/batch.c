/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Posted renewals and polls.  A batch goes to the children in parts: for renewals a part to each child, with the holds
 * that are certain there, and a try for each other hold (Q5); for polls a part to each child where attempts wait.
 *
 * A batch ends when a majority has confirmed each of its holds, when all answers are there, or after a twentieth of the
 * shortest lease, because a stopped child must not delay the others.  Then the handler is called, and later answers
 * only go into the records.
 */
#include <stdlib.h>
#include <string.h>

#include "stores/quorum/parts.h"

#define WAIT_LEAST_NS (50 * DM_NS_PER_MS)

/* How long the last answers to a lock are waited for before its token is decided. */
#define SETTLE_NS (10 * DM_NS_PER_MS)

/* An attempt in a batch. */
struct item {
    uint64_t attempt; /* 0: a name whose waiters are to be served */
    uint64_t round;
    const struct dm_place *place; /* pinned until the handler is called */
    uint64_t token;               /* of a renewal */
    int confirmed;                /* by how many children */
    bool has_waiter;
    bool must_ask; /* the attempt's thread must ask the store */
    struct dm_answer polled;
};

struct dm_quorum_batch {
    struct dm_quorum_store *all;
    struct dm_quorum_batch *next; /* of all->batches */
    bool is_polls;
    bool is_over;    /* the handler was called, or is being called */
    bool is_awaited; /* a thread waits for it and checks it; there is no handler */
    int parts;       /* under way; one more while the batch is being posted, waited for, or delivered */
    unsigned asked;  /* the children that have had a part, a set of bits */
    int64_t due_ns;
    dm_answers_fn handler;
    void *user;
    int count;
    struct dm_answer *answers;
    struct item items[];
};

/* The part of a batch for one child. */
struct part {
    struct dm_quorum_batch *batch;
    struct dm_quorum_child *child;
    enum dm_quorum_question kind; /* NONE: polls */
    int64_t sent_ns;
    int count;
    uint8_t index[DM_BATCH]; /* of the items */
};

/* ---- the end of a batch ------------------------------------------------------------------ */

static void free_batch(struct dm_quorum_batch *batch)
{
    free(batch->answers);
    free(batch);
}

/* True if every hold is confirmed by a majority, or no more answers will come. */
static bool is_decided(const struct dm_quorum_batch *batch)
{
    int majority = batch->all->count / 2 + 1;

    if (batch->parts == batch->is_awaited)
        return true;
    for (int i = 0; i < batch->count; i++) {
        if (batch->is_polls || batch->items[i].confirmed < majority)
            return false;
    }
    return true;
}

static void unlist(struct dm_quorum_batch *batch)
{
    struct dm_quorum_batch **at = &batch->all->batches;

    while (*at != batch)
        at = &(*at)->next;
    *at = batch->next;
}

/*
 * The server where the attempt waits is not believed for long: it may be silent, or be held by an attempt that has no
 * majority.  So a waiter checks the others as often as it polls.
 */
static bool must_look(struct dm_quorum_store *all, const struct item *item, int64_t now_ns)
{
    const struct dm_quorum_record *record = dm_quorum_find(all, item->attempt);

    return record && record->is_queued && now_ns - record->queued_ns >= DM_QUORUM_PASS_NS &&
           item->polled.verdict != DM_SAYS_UNKNOWN;
}

/* A poll never makes the attempt own: at most it has the first server, and its thread asks the others. */
static struct dm_answer poll_answer(struct dm_quorum_store *all, struct item *item, int64_t now_ns)
{
    struct dm_answer answer = item->polled;

    if (answer.verdict == DM_SAYS_OWNED || answer.verdict == DM_SAYS_NOT_RECOVERABLE || must_look(all, item, now_ns))
        item->must_ask = true;
    if (item->must_ask)
        answer = (struct dm_answer){ .verdict = DM_SAYS_NOTHING };
    answer.store_us = 0;
    return answer;
}

static struct dm_answer renewal_answer(struct dm_quorum_batch *batch, const struct item *item, int64_t now_ns)
{
    const struct dm_quorum_record *record = dm_quorum_find(batch->all, item->attempt);
    struct dm_answer answer = { .verdict = DM_SAYS_NOTHING };

    if (record)
        answer = dm_quorum_hold(&record->quorum, now_ns);
    answer.is_partial = dm_quorum_is_partial(batch->all, item->attempt, item->place);
    answer.has_waiter = item->has_waiter;
    return answer;
}

/*
 * The poll's answer was "not known".  The record stays while a thread asks or gives back, and if the attempt has come
 * to own since the poll was sent.
 */
static void drop_record(struct dm_quorum_store *all, const struct item *item)
{
    const struct dm_quorum_record *record = dm_quorum_find(all, item->attempt);

    if (record && record->quorum.round == item->round && !record->quorum.is_owned &&
        !dm_quorum_is_open(&record->quorum, -1))
        dm_quorum_drop_record(all, item->attempt);
}

/* From now on the batch belongs to the caller, who calls tell() next, without the lock. */
static void end(struct dm_quorum_batch *batch)
{
    int64_t now_ns = dm_clock_boot_ns();

    dm_assert_held(DM_RANK_QUORUM);
    batch->is_over = true;
    batch->parts++;
    unlist(batch);
    for (int i = 0; i < batch->count; i++) {
        struct item *item = &batch->items[i];

        batch->answers[i] =
            batch->is_polls ? poll_answer(batch->all, item, now_ns) : renewal_answer(batch, item, now_ns);
        if (batch->is_polls && item->polled.verdict == DM_SAYS_UNKNOWN)
            drop_record(batch->all, item);
    }
}

/* A grant without a request and a token is a hint: it makes a waiting attempt ask. */
static void hint(struct dm_quorum_store *all, uint64_t attempt)
{
    const struct dm_message message = { .kind = DM_MESSAGE_GRANTED,
                                        .attempt = attempt,
                                        .answer = { .verdict = DM_SAYS_OWNED } };

    all->host.on_message(all->host.user, &message);
}

static void leave(struct dm_quorum_batch *batch)
{
    struct dm_quorum_store *all = batch->all;
    bool is_last;

    dm_mutex_lock(&all->lock);
    is_last = --batch->parts == 0;
    dm_mutex_unlock(&all->lock);
    if (is_last)
        free_batch(batch);
}

/* Called after end(). */
static void tell(struct dm_quorum_batch *batch)
{
    batch->handler(batch->user, batch->answers, batch->count, NULL);
    for (int i = 0; i < batch->count; i++) {
        if (batch->items[i].must_ask)
            hint(batch->all, batch->items[i].attempt);
    }
    leave(batch);
}

static bool is_due(const struct dm_quorum_batch *batch, int64_t now_ns)
{
    return !batch->is_awaited && (batch->due_ns <= now_ns || is_decided(batch));
}

void dm_quorum_end_batches(struct dm_quorum_store *all)
{
    struct dm_quorum_batch *batch;

    do {
        int64_t now_ns = dm_clock_boot_ns();

        dm_mutex_lock(&all->lock);
        batch = all->batches;
        while (batch && !is_due(batch, now_ns))
            batch = batch->next;
        if (batch)
            end(batch);
        dm_mutex_unlock(&all->lock);
        if (batch)
            tell(batch);
    } while (batch);
}

int64_t dm_quorum_batches_due_ns(struct dm_quorum_store *all)
{
    int64_t due_ns = DM_NEVER;

    dm_mutex_lock(&all->lock);
    for (const struct dm_quorum_batch *batch = all->batches; batch; batch = batch->next)
        due_ns = !batch->is_awaited && batch->due_ns < due_ns ? batch->due_ns : due_ns;
    dm_mutex_unlock(&all->lock);
    return due_ns;
}

/* ---- answers ----------------------------------------------------------------------------- */

static void take(struct part *part, struct item *item, const struct dm_answer *answer)
{
    struct dm_quorum_record *record = dm_quorum_find(part->batch->all, item->attempt);
    struct dm_answer renewed;

    if (part->kind == DM_QUORUM_NONE) {
        if (answer)
            item->polled = *answer;
        return;
    }
    if (!record || record->quorum.round != item->round)
        return;
    if (answer && part->kind == DM_QUORUM_RENEW) {
        renewed = *answer;
        renewed.token = item->token;
        answer = &renewed;
    }
    dm_quorum_take(&record->quorum, part->child->index, part->kind, part->sent_ns, answer);
    if (answer && answer->verdict == DM_SAYS_OWNED) {
        item->confirmed++;
        item->has_waiter = item->has_waiter || answer->has_waiter;
    }
    dm_quorum_note_news(record);
}

/* A dm_answers_fn. */
static void part_answered(void *user, const struct dm_answer *answers, int count, const char *refusal)
{
    struct part *part = user;
    struct dm_quorum_batch *batch = part->batch;
    struct dm_quorum_store *all = batch->all;
    const struct dm_answer *answer = NULL;
    struct dm_answer said;
    bool is_last, is_end;

    (void)count; /* the part's */
    dm_mutex_lock(&all->lock);
    for (int i = 0; i < part->count; i++) {
        struct item *item = &batch->items[part->index[i]];

        answer = dm_quorum_doubted(all, item->attempt, part->kind, answers ? &answers[i] : NULL, &said);
        take(part, item, answer);
    }
    dm_quorum_note_answer(part->child, part->kind == DM_QUORUM_TRY ? answer : NULL, refusal, dm_clock_boot_ns());
    is_last = --batch->parts == 0;
    is_end = !batch->is_over && !batch->is_awaited && is_decided(batch);
    if (is_end)
        end(batch);
    dm_mutex_unlock(&all->lock);
    if (is_end)
        tell(batch);
    else if (is_last && batch->is_over)
        free_batch(batch);
    free(part);
}

/* ---- posting ----------------------------------------------------------------------------- */

static struct dm_quorum_batch *new_batch(struct dm_quorum_store *all, int count, bool is_polls, uint32_t lease_ms,
                                         dm_answers_fn handler, void *user)
{
    struct dm_quorum_batch *batch = calloc(1, sizeof *batch + (size_t)count * sizeof batch->items[0]);
    int64_t wait_ns = lease_ms * DM_NS_PER_MS / 20;

    if (!batch)
        return NULL;
    batch->answers = calloc((size_t)count, sizeof *batch->answers);
    if (!batch->answers) {
        free(batch);
        return NULL;
    }
    batch->all = all;
    batch->count = count;
    batch->is_polls = is_polls;
    batch->parts = 1;
    batch->due_ns = dm_clock_boot_ns() + (wait_ns > WAIT_LEAST_NS ? wait_ns : WAIT_LEAST_NS);
    batch->handler = handler;
    batch->user = user;
    batch->next = all->batches;
    all->batches = batch;
    return batch;
}

static struct part *new_part(struct dm_quorum_batch *batch, struct dm_quorum_child *child, enum dm_quorum_question kind)
{
    struct part *part = calloc(1, sizeof *part);

    if (!part)
        return NULL;
    part->batch = batch;
    part->child = child;
    part->kind = kind;
    part->sent_ns = dm_clock_boot_ns();
    return part;
}

static void note_posted(struct part *part, bool is_posted)
{
    if (!is_posted) {
        free(part);
        return;
    }
    part->batch->parts++;
    part->batch->asked |= 1u << part->child->index;
    dm_quorum_note_sent(part->child, part->sent_ns);
}

/*
 * A hold that is not certain at the server is asked for as a thread would ask; the server's token must not become
 * lower.
 */
static void post_try(struct dm_quorum_batch *batch, int index, struct dm_quorum_child *child,
                     const struct dm_question *renewal, struct dm_quorum_record *record)
{
    struct part *part = new_part(batch, child, DM_QUORUM_TRY);
    const struct dm_question try = { .op = DM_OP_ACQUIRE,
                                     .place = renewal->place,
                                     .thread = renewal->thread,
                                     .attempt = renewal->attempt,
                                     .request = renewal->request,
                                     .lease_ms = renewal->lease_ms,
                                     .is_robust = record->is_robust,
                                     .seen = batch->items[index].token - 1 };
    bool is_posted, was_touched = record->quorum.legs[child->index].is_touched;

    if (!part)
        return;
    part->index[0] = (uint8_t)index;
    part->count = 1;
    dm_quorum_send(&record->quorum, child->index, DM_QUORUM_TRY);
    is_posted = dm_store_submit(child->store, &try, 1, part_answered, part);
    if (!is_posted) {
        dm_quorum_take(&record->quorum, child->index, DM_QUORUM_TRY, 0, NULL);
        record->quorum.legs[child->index].is_touched = was_touched;
    }
    note_posted(part, is_posted);
}

static void post_renewals_to(struct dm_quorum_batch *batch, struct dm_quorum_child *child,
                             const struct dm_question *renewals, struct dm_question *room)
{
    struct part *part = new_part(batch, child, DM_QUORUM_RENEW);

    for (int i = 0; i < batch->count; i++) {
        struct dm_quorum_record *record = dm_quorum_find(batch->all, renewals[i].attempt);

        if (!record)
            continue;
        if (dm_quorum_renewal(&record->quorum, child->index, dm_clock_boot_ns()) == DM_QUORUM_TRY) {
            post_try(batch, i, child, &renewals[i], record);
        } else if (part) {
            room[part->count] = renewals[i];
            room[part->count].renew.is_part = true;
            room[part->count].renew.token = batch->items[i].token;
            part->index[part->count++] = (uint8_t)i;
        }
    }
    if (part)
        note_posted(part, part->count && dm_store_submit(child->store, room, part->count, part_answered, part));
}

static struct dm_quorum_batch *post_renewals(struct dm_quorum_store *all, const struct dm_question *renewals, int count,
                                             dm_answers_fn handler, void *user)
{
    struct dm_question *room = calloc((size_t)count, sizeof *room);
    uint32_t lease_ms = DM_LEASE_MAX_MS;
    struct dm_quorum_batch *batch;

    for (int i = 0; i < count; i++)
        lease_ms = renewals[i].lease_ms < lease_ms ? renewals[i].lease_ms : lease_ms;
    dm_mutex_lock(&all->lock);
    batch = room ? new_batch(all, count, false, lease_ms, handler, user) : NULL;
    for (int i = 0; batch && i < count; i++) {
        struct dm_quorum_record *record = dm_quorum_find(all, renewals[i].attempt);

        batch->items[i].attempt = renewals[i].attempt;
        batch->items[i].place = renewals[i].place;
        if (record) {
            dm_quorum_settle_token(&record->quorum, dm_clock_boot_ns());
            batch->items[i].token = dm_quorum_token(&record->quorum);
            batch->items[i].round = record->quorum.round;
            record->used_ns = dm_clock_boot_ns();
        }
    }
    for (int i = 0; batch && i < all->count; i++)
        post_renewals_to(batch, &all->children[i], renewals, room);
    if (batch && handler)
        batch->parts--; /* a batch without parts is decided, and ends in dm_quorum_end_batches() */
    if (batch)
        batch->is_awaited = !handler;
    dm_mutex_unlock(&all->lock);
    free(room);
    return batch;
}

/* Posts the parts under the store's lock, so that no answer is counted before all parts are on their way. */
bool dm_quorum_submit_renewals(struct dm_quorum_store *all, const struct dm_question *renewals, int count,
                               dm_answers_fn done, void *user)
{
    return post_renewals(all, renewals, count, done, user) != NULL;
}

/* ---- one renewal, awaited ---------------------------------------------------------------- */

/*
 * OWNED only if a majority has confirmed this renewal, and has the token: a try leaves a lower token on a server that
 * had the hold before, until the next renewal.
 */
static struct dm_answer confirmed_answer(struct dm_quorum_batch *batch)
{
    struct dm_answer answer = renewal_answer(batch, &batch->items[0], dm_clock_boot_ns());
    bool is_confirmed = batch->items[0].confirmed > batch->all->count / 2;

    if (answer.verdict == DM_SAYS_OWNED && (!is_confirmed || answer.is_token_soft))
        answer.verdict = DM_SAYS_NOTHING;
    return answer;
}

/*
 * A child that could not be asked at first, as in a young process, is asked as soon as possible, because the others may
 * not be a majority.
 */
static void ask_late(struct dm_quorum_batch *batch, const struct dm_question *renewal)
{
    struct dm_quorum_store *all = batch->all;
    struct dm_question room;

    dm_mutex_lock(&all->lock);
    for (int i = 0; i < all->count; i++) {
        if (!(batch->asked & 1u << i) && dm_store_is_able(all->children[i].store, renewal->place, DM_ASKS))
            post_renewals_to(batch, &all->children[i], renewal, &room);
    }
    dm_mutex_unlock(&all->lock);
}

/* True at the end, with the answer. */
static bool is_confirmed(struct dm_quorum_batch *batch, const struct dm_deadline *deadline,
                         struct dm_answer *ret_answer)
{
    struct dm_quorum_store *all = batch->all;
    bool is_end;

    dm_mutex_lock(&all->lock);
    is_end = is_decided(batch) || !dm_quorum_find(all, batch->items[0].attempt) || dm_deadline_left_ns(deadline) == 0;
    if (is_end) {
        *ret_answer = confirmed_answer(batch);
        batch->is_over = true;
        unlist(batch);
    }
    dm_mutex_unlock(&all->lock);
    return is_end;
}

/*
 * The lock needed only a majority; the token is better decided with the answers of all servers (Q6), which are there or
 * on their way.
 */
static void await_all_answers(struct dm_quorum_store *all, uint64_t attempt, const struct dm_deadline *deadline)
{
    struct dm_deadline soon = dm_deadline_sooner(deadline, SETTLE_NS);
    unsigned open;

    do {
        const struct dm_quorum_record *record;

        dm_mutex_lock(&all->lock);
        record = dm_quorum_find(all, attempt);
        open = 0;
        for (int i = 0; record && !record->quorum.token && i < all->count; i++)
            open |= dm_quorum_is_open(&record->quorum, i) ? 1u << i : 0;
        dm_mutex_unlock(&all->lock);
        if (open)
            dm_quorum_read(all, attempt, open, &soon);
    } while (open && dm_deadline_left_ns(&soon) > 0);
}

struct dm_answer dm_quorum_renew(struct dm_quorum_store *all, const struct dm_question *renewal,
                                 const struct dm_deadline *deadline, char ret_reason[DM_REASON_ROOM])
{
    struct dm_answer answer = { .verdict = DM_SAYS_NOTHING };
    struct dm_quorum_batch *batch;

    await_all_answers(all, renewal->attempt, deadline);
    batch = post_renewals(all, renewal, 1, NULL, NULL);
    if (batch) {
        while (!is_confirmed(batch, deadline, &answer)) {
            dm_quorum_read(all, renewal->attempt, (1u << all->count) - 1, deadline);
            ask_late(batch, renewal);
        }
        leave(batch);
    }
    if (answer.verdict == DM_SAYS_NOTHING)
        dm_quorum_reason(&all->store, renewal->place, DM_ASKS, ret_reason);
    return answer;
}

/* ---- polls ------------------------------------------------------------------------------- */

/* The server where the attempt waits; for a name to be served, the one where turns are taken. */
static int server_of(struct dm_quorum_store *all, const struct dm_question *poll)
{
    const struct dm_quorum_record *record = dm_quorum_find(all, poll->attempt);

    return record ? record->quorum.first : dm_quorum_choose_first(all, poll->place, true);
}

static void post_polls_to(struct dm_quorum_batch *batch, struct dm_quorum_child *child, const struct dm_question *polls,
                          const uint8_t *servers, struct dm_question *room)
{
    struct part *part = new_part(batch, child, DM_QUORUM_NONE);
    bool is_posted;

    for (int i = 0; part && i < batch->count; i++) {
        if (servers[i] != child->index)
            continue;
        room[part->count] = polls[i];
        part->index[part->count++] = (uint8_t)i;
    }
    if (!part)
        return;
    is_posted = part->count && dm_store_submit(child->store, room, part->count, part_answered, part);
    for (int i = 0; !is_posted && i < part->count; i++)
        batch->items[part->index[i]].must_ask = polls[part->index[i]].attempt != 0;
    note_posted(part, is_posted);
}

bool dm_quorum_submit_polls(struct dm_quorum_store *all, const struct dm_question *polls, int count, dm_answers_fn done,
                            void *user)
{
    struct dm_question *room = calloc((size_t)count, sizeof *room);
    struct dm_quorum_batch *batch;
    uint8_t servers[DM_BATCH];

    dm_mutex_lock(&all->lock);
    batch = room ? new_batch(all, count, true, DM_LEASE_DEFAULT_MS, done, user) : NULL;
    for (int i = 0; batch && i < count; i++) {
        struct dm_quorum_record *record = dm_quorum_find(all, polls[i].attempt);

        batch->items[i].attempt = polls[i].attempt;
        servers[i] = (uint8_t)server_of(all, &polls[i]);
        if (record) {
            batch->items[i].round = record->quorum.round;
            record->used_ns = dm_clock_boot_ns();
        }
    }
    for (int i = 0; batch && i < all->count; i++)
        post_polls_to(batch, &all->children[i], polls, servers, room);
    if (batch)
        batch->parts--;
    dm_mutex_unlock(&all->lock);
    free(room);
    return batch != NULL;
}
