/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All that is under way to the children: questions about one attempt, and batches.
 *
 * A batch is what the process submits: renewals, polls or a release.  It goes to the children in parts: for renewals a
 * part to each child, with the holds that are certain there, and a try for each other hold (Q5); for polls a part to
 * each child where attempts wait; for a release a part to each child that may have the attempt.
 *
 * A batch ends when a majority has confirmed each of its holds, or the release; when all answers are there; or, unless
 * it is a release, after a twentieth of the shortest lease, because a stopped child must not delay the others.  Then
 * the handler is called, and later answers only go into the records.
 *
 * Parts are submitted under the store's lock, so that no answer is counted before all parts are on their way.
 */
#include <stdlib.h>
#include <string.h>

#include "base/bug.h"
#include "base/minmax.h"
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
    enum dm_op op;                /* RENEW, POLL or RELEASE */
    bool is_over;                 /* the handler was called, or is being called */
    bool is_awaited;              /* a thread waits for it and checks it; there is no handler */
    int parts;                    /* under way; one more while the batch is being posted, waited for, or delivered */
    unsigned asked;               /* the children that have had a part, a set of bits */
    int64_t begun_ns, due_ns;
    dm_answers_fn done;
    void *user;
    int count;
    struct dm_answer *answers;
    struct item items[];
};

/* Questions of one kind that are under way to one child. */
struct part {
    struct dm_quorum_child *child;
    struct dm_quorum_batch *batch; /* NULL: the question of a thread that reads the answers itself */
    enum dm_quorum_question kind;  /* NONE: polls */
    int64_t sent_ns;
    int count;
    struct {
        uint64_t attempt, round;
        int item; /* of the batch */
    } of[];
};

/* ---- the end of a batch ------------------------------------------------------------------ */

static void free_batch(struct dm_quorum_batch *batch)
{
    free(batch->answers);
    free(batch);
}

/* The attempt that a release is about, unless another round has begun; NULL: none. */
static struct dm_quorum_record *leaving_of(const struct dm_quorum_batch *batch)
{
    struct dm_quorum_record *record = dm_quorum_find(batch->all, batch->items[0].attempt);

    return record && record->quorum.round == batch->items[0].round ? record : NULL;
}

/* True if every hold, or the release, is confirmed by a majority, or no more answers will come. */
static bool is_decided(const struct dm_quorum_batch *batch)
{
    const struct dm_quorum_record *record = batch->op == DM_OP_RELEASE ? leaving_of(batch) : NULL;
    int majority = batch->all->count / 2 + 1;

    if (batch->parts == batch->is_awaited)
        return true;
    if (batch->op != DM_OP_RENEW)
        return record && dm_quorum_released(&record->quorum, false) != DM_SAYS_NOTHING;
    for (int i = 0; i < batch->count; i++) {
        if (batch->items[i].confirmed < majority)
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

struct dm_answer dm_quorum_release_answer(const struct dm_quorum_record *record, bool is_all)
{
    struct dm_answer answer = { .verdict = dm_quorum_released(&record->quorum, is_all) };

    dm_assert_held(DM_RANK_QUORUM);
    for (int i = 0; i < record->quorum.count; i++)
        answer.is_wanted = answer.is_wanted || record->quorum.legs[i].said.is_wanted;
    return answer;
}

/* AGAIN if a server needs the text of the script: the caller sends again.  A record that is not needed is dropped. */
static struct dm_answer release_answer(struct dm_quorum_batch *batch)
{
    struct dm_quorum_record *record = leaving_of(batch);
    struct dm_answer answer = { .verdict = DM_SAYS_NOTHING };

    if (!record)
        return answer;
    if (batch->all->is_drained && record->left_ns + DM_QUORUM_LEAVE_NS < dm_clock_boot_ns())
        dm_quorum_leave_silent(&record->quorum);
    answer = dm_quorum_release_answer(record, false);
    record->is_leaving = false;
    if (answer.verdict != DM_SAYS_NOTHING)
        dm_quorum_drop_record(batch->all, record->attempt);
    else if (dm_quorum_said_again(record))
        answer.verdict = DM_SAYS_AGAIN;
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

        if (batch->op == DM_OP_RELEASE)
            batch->answers[i] = release_answer(batch);
        else if (batch->op == DM_OP_RENEW)
            batch->answers[i] = renewal_answer(batch, item, now_ns);
        else
            batch->answers[i] = poll_answer(batch->all, item, now_ns);
        if (item->polled.verdict == DM_SAYS_UNKNOWN)
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

/* Called after end(), without the lock. */
static void tell(struct dm_quorum_batch *batch)
{
    struct dm_quorum_store *all = batch->all;
    bool is_last;

    batch->done(batch->user, batch->answers, batch->count, NULL);
    for (int i = 0; i < batch->count; i++) {
        if (batch->items[i].must_ask)
            hint(all, batch->items[i].attempt);
    }
    dm_mutex_lock(&all->lock);
    is_last = --batch->parts == 0;
    dm_mutex_unlock(&all->lock);
    if (is_last)
        free_batch(batch);
}

static bool is_due(const struct dm_quorum_batch *batch, int64_t now_ns)
{
    return !batch->is_awaited && (batch->due_ns <= now_ns || is_decided(batch));
}

/* The same for a release, whose silent servers are left. */
static bool is_late(const struct dm_quorum_batch *batch, int64_t now_ns)
{
    struct dm_quorum_record *record = batch->op == DM_OP_RELEASE ? leaving_of(batch) : NULL;

    if (record && batch->begun_ns + DM_QUORUM_LEAVE_NS < now_ns)
        dm_quorum_leave_silent(&record->quorum);
    return is_due(batch, now_ns);
}

static void end_batches(struct dm_quorum_store *all, bool (*is_over)(const struct dm_quorum_batch *, int64_t))
{
    struct dm_quorum_batch *batch;

    do {
        int64_t now_ns = dm_clock_boot_ns();

        dm_mutex_lock(&all->lock);
        batch = all->batches;
        while (batch && !is_over(batch, now_ns))
            batch = batch->next;
        if (batch)
            end(batch);
        dm_mutex_unlock(&all->lock);
        if (batch)
            tell(batch);
    } while (batch);
}

void dm_quorum_end_batches(struct dm_quorum_store *all)
{
    end_batches(all, is_due);
}

void dm_quorum_end_late_releases(struct dm_quorum_store *all)
{
    end_batches(all, is_late);
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

static void take(struct part *part, int index, const struct dm_answer *answer)
{
    struct dm_quorum_record *record = dm_quorum_find(part->child->all, part->of[index].attempt);
    struct item *item = part->batch ? &part->batch->items[part->of[index].item] : NULL;
    struct dm_answer renewed;

    if (part->kind == DM_QUORUM_NONE) {
        if (answer)
            item->polled = *answer;
        return;
    }
    if (!record || record->quorum.round != part->of[index].round)
        return;
    if (answer && part->kind == DM_QUORUM_RENEW) {
        renewed = *answer;
        renewed.token = item->token;
        answer = &renewed;
    }
    dm_quorum_take(&record->quorum, part->child->index, part->kind, part->sent_ns, answer);
    if (part->kind == DM_QUORUM_QUEUE)
        dm_quorum_note_queue(part->child, &record->quorum.legs[part->child->index]);
    if (item && answer && answer->verdict == DM_SAYS_OWNED) {
        item->confirmed++;
        item->has_waiter = item->has_waiter || answer->has_waiter;
    }
    dm_quorum_note_news(record);
}

/* True if the caller must call tell(); frees a batch that is over, and had no other part. */
static bool leave_part(struct dm_quorum_batch *batch)
{
    bool is_last = --batch->parts == 0, is_end = !batch->is_over && !batch->is_awaited && is_decided(batch);

    dm_assert_held(DM_RANK_QUORUM);
    if (is_end)
        end(batch);
    else if (is_last && batch->is_over)
        free_batch(batch);
    return is_end;
}

/*
 * A dm_answers_fn.  A server says about itself in the answer to one question only.  The question may have been sent
 * before it was known that this server counts as another child's: then the answer does not.
 */
static void part_answered(void *user, const struct dm_answer *answers, int count, const char *refusal)
{
    struct part *part = user;
    struct dm_quorum_store *all = part->child->all;
    bool is_about_server = part->kind != DM_QUORUM_NONE && part->kind != DM_QUORUM_RENEW;
    const struct dm_answer *answer = NULL;
    struct dm_answer said;
    bool is_counted, is_end;

    (void)count; /* the part's */
    dm_mutex_lock(&all->lock);
    is_counted = answers && part->child->same < 0;
    for (int i = 0; i < part->count; i++) {
        answer = dm_quorum_doubted(all, part->of[i].attempt, part->kind, is_counted ? &answers[i] : NULL, &said);
        take(part, i, answer);
    }
    dm_quorum_note_answer(part->child, is_about_server ? answer : NULL, refusal, dm_clock_boot_ns());
    is_end = part->batch && leave_part(part->batch);
    dm_mutex_unlock(&all->lock);
    if (is_end)
        tell(part->batch);
    free(part);
}

/* ---- one attempt ------------------------------------------------------------------------- */

/* Room for `most` questions; NULL without memory. */
static struct part *new_part(struct dm_quorum_child *child, enum dm_quorum_question kind, int most,
                             struct dm_quorum_batch *batch)
{
    struct part *part = calloc(1, sizeof *part + (size_t)most * sizeof part->of[0]);

    if (!part)
        return NULL;
    part->child = child;
    part->batch = batch;
    part->kind = kind;
    part->sent_ns = dm_clock_boot_ns();
    return part;
}

static void add(struct part *part, const struct dm_quorum_record *record, uint64_t attempt, int item)
{
    part->of[part->count].attempt = attempt;
    part->of[part->count].round = record ? record->quorum.round : 0;
    part->of[part->count++].item = item;
}

/* False: not sent, and the part is freed.  NULL is allowed. */
static bool submit(struct part *part, const struct dm_question *questions)
{
    if (!part || part->count == 0 || part->child->same >= 0 ||
        !dm_store_submit(part->child->store, questions, part->count, part_answered, part)) {
        free(part);
        return false;
    }
    dm_quorum_note_sent(part->child, part->sent_ns);
    if (part->batch) {
        part->batch->parts++;
        part->batch->asked |= 1u << part->child->index;
    }
    return true;
}

/* A server that a release could not reach may still have the attempt; what else was not sent has changed nothing. */
static bool post(struct dm_quorum_record *record, struct dm_quorum_child *child, enum dm_quorum_question kind,
                 const struct dm_question *question, struct dm_quorum_batch *batch, int item)
{
    struct part *part = new_part(child, kind, 1, batch);
    bool was_touched = record->quorum.legs[child->index].is_touched;

    dm_assert_held(DM_RANK_QUORUM);
    if (part)
        add(part, record, record->attempt, item);
    dm_quorum_send(&record->quorum, child->index, kind);
    if (submit(part, question))
        return true;
    dm_quorum_take(&record->quorum, child->index, kind, 0, NULL);
    if (kind != DM_QUORUM_RELEASE)
        record->quorum.legs[child->index].is_touched = was_touched;
    return false;
}

/* A child that joins a hold must give a token at least as high as the hold's (Q6). */
bool dm_quorum_post_acquire(struct dm_quorum_record *record, struct dm_quorum_child *child,
                            enum dm_quorum_question kind, const struct dm_question *question)
{
    struct dm_question part = *question;

    child->all->is_drained = false;
    record->left_ns = 0;
    part.acquire.may_queue = kind == DM_QUORUM_QUEUE;
    if (record->quorum.token > part.seen)
        part.seen = record->quorum.token - 1;
    return post(record, child, kind, &part, NULL, 0);
}

/* ---- releases ---------------------------------------------------------------------------- */

unsigned dm_quorum_said_again(const struct dm_quorum_record *record)
{
    unsigned again = 0;

    dm_assert_held(DM_RANK_QUORUM);
    for (int i = 0; i < record->quorum.count; i++)
        again |= record->quorum.legs[i].said.verdict == DM_SAYS_AGAIN ? 1u << i : 0;
    return again;
}

struct dm_quorum_record *dm_quorum_begin_leaving(struct dm_quorum_store *all, const struct dm_question *release,
                                                 int kept, unsigned *ret_servers)
{
    bool is_known = dm_quorum_find(all, release->attempt) != NULL;
    struct dm_quorum_record *record = dm_quorum_open_record(all, release);

    dm_assert_held(DM_RANK_QUORUM);
    if (!record)
        return NULL;
    dm_quorum_begin_release(&record->quorum, kept);
    if (kept < 0 && !record->left_ns)
        record->left_ns = dm_clock_boot_ns();
    *ret_servers = 0;
    for (int i = 0; i < all->count; i++)
        *ret_servers |= i != kept && (!is_known || record->quorum.legs[i].is_touched) ? 1u << i : 0;
    return record;
}

/*
 * The home comes last: the release there grants to the next owner, whose requests would find the others busy if they
 * arrived there before the releases.
 */
unsigned dm_quorum_post_releases(struct dm_quorum_store *all, struct dm_quorum_record *record,
                                 const struct dm_question *release, unsigned servers, struct dm_quorum_batch *batch)
{
    int home = dm_quorum_home(all, release->place);
    unsigned unsent = 0;

    for (int i = 1; i <= all->count; i++) {
        int server = (home + i) % all->count;

        if (servers & 1u << server && !post(record, &all->children[server], DM_QUORUM_RELEASE, release, batch, 0))
            unsent |= 1u << server;
    }
    return unsent;
}

/* ---- batches ----------------------------------------------------------------------------- */

static struct dm_quorum_batch *new_batch(struct dm_quorum_store *all, enum dm_op op, int count, dm_answers_fn done,
                                         void *user)
{
    struct dm_quorum_batch *batch = calloc(1, sizeof *batch + (size_t)count * sizeof batch->items[0]);

    if (!batch)
        return NULL;
    batch->answers = calloc((size_t)count, sizeof *batch->answers);
    if (!batch->answers) {
        free(batch);
        return NULL;
    }
    batch->all = all;
    batch->op = op;
    batch->count = count;
    batch->parts = 1;
    batch->begun_ns = dm_clock_boot_ns();
    batch->due_ns = DM_NEVER;
    batch->done = done;
    batch->user = user;
    batch->next = all->batches;
    all->batches = batch;
    return batch;
}

/* A batch without parts is decided, and ends in dm_quorum_end_batches(): in the loop's next turn. */
static void end_posting(struct dm_quorum_batch *batch)
{
    if (--batch->parts == 0)
        batch->due_ns = batch->begun_ns;
}

/* Such a part waits for no longer than this. */
static int64_t due_ns(const struct dm_quorum_batch *batch, uint32_t lease_ms)
{
    return batch->begun_ns + dm_max64(lease_ms * DM_NS_PER_MS / 20, WAIT_LEAST_NS);
}

/* False if there is a server to be told, and none could be. */
static bool submit_release(struct dm_quorum_store *all, const struct dm_question *release, dm_answers_fn done,
                           void *user)
{
    unsigned servers = 0;
    struct dm_quorum_record *record = dm_quorum_begin_leaving(all, release, -1, &servers);
    struct dm_quorum_batch *batch = record ? new_batch(all, DM_OP_RELEASE, 1, done, user) : NULL;

    if (!batch)
        return false;
    batch->items[0].attempt = release->attempt;
    batch->items[0].round = record->quorum.round;
    record->is_leaving = servers == 0 || dm_quorum_post_releases(all, record, release, servers, batch) != servers;
    end_posting(batch);
    if (record->is_leaving)
        return true;
    unlist(batch);
    free_batch(batch);
    return false;
}

/*
 * A hold that is not certain at the server is asked for as a thread would ask; the server's token must not become
 * lower.
 */
static void post_try(struct dm_quorum_batch *batch, int index, struct dm_quorum_child *child,
                     const struct dm_question *renewal, struct dm_quorum_record *record)
{
    const struct dm_question try = { .op = DM_OP_ACQUIRE,
                                     .place = renewal->place,
                                     .thread = renewal->thread,
                                     .attempt = renewal->attempt,
                                     .request = renewal->request,
                                     .lease_ms = renewal->lease_ms,
                                     .is_robust = record->is_robust,
                                     .seen = batch->items[index].token - 1 };

    post(record, child, DM_QUORUM_TRY, &try, batch, index);
}

static void post_renewals_to(struct dm_quorum_batch *batch, struct dm_quorum_child *child,
                             const struct dm_question *renewals, struct dm_question *room)
{
    struct part *part = new_part(child, DM_QUORUM_RENEW, batch->count, batch);

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
            add(part, record, renewals[i].attempt, i);
        }
    }
    submit(part, room);
}

static struct dm_quorum_batch *post_renewals(struct dm_quorum_store *all, const struct dm_question *renewals, int count,
                                             dm_answers_fn done, void *user)
{
    struct dm_question *room = calloc((size_t)count, sizeof *room);
    struct dm_quorum_batch *batch = room ? new_batch(all, DM_OP_RENEW, count, done, user) : NULL;

    for (int i = 0; batch && i < count; i++) {
        struct dm_quorum_record *record = dm_quorum_find(all, renewals[i].attempt);

        batch->items[i].attempt = renewals[i].attempt;
        batch->items[i].place = renewals[i].place;
        batch->due_ns = dm_min64(batch->due_ns, due_ns(batch, renewals[i].lease_ms));
        if (record) {
            dm_quorum_settle_token(&record->quorum, dm_clock_boot_ns());
            batch->items[i].token = dm_quorum_token(&record->quorum);
            batch->items[i].round = record->quorum.round;
            record->used_ns = dm_clock_boot_ns();
        }
    }
    for (int i = 0; batch && i < all->count; i++)
        post_renewals_to(batch, &all->children[i], renewals, room);
    if (batch)
        batch->is_awaited = !done;
    if (batch && done)
        end_posting(batch);
    free(room);
    return batch;
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

    for (int i = 0; i < all->count; i++) {
        if (!(batch->asked & 1u << i) && dm_quorum_may_ask(&all->children[i], renewal->place, DM_ASKS))
            post_renewals_to(batch, &all->children[i], renewal, &room);
    }
}

/*
 * The lock needed only a majority; the token is better decided with the answers of all servers (Q6), which are there or
 * on their way.
 */
static void await_all_answers(struct dm_quorum_store *all, uint64_t attempt, const struct dm_deadline *deadline)
{
    struct dm_deadline soon = dm_deadline_sooner(deadline, SETTLE_NS);
    const struct dm_quorum_record *record = dm_quorum_find(all, attempt);

    while (record && !record->quorum.token && dm_quorum_open_servers(record) && dm_deadline_left_ns(&soon) > 0) {
        dm_quorum_read(all, attempt, dm_quorum_open_servers(record), &soon);
        record = dm_quorum_find(all, attempt);
    }
}

static struct dm_answer renew(struct dm_quorum_store *all, const struct dm_question *renewal,
                              const struct dm_deadline *deadline)
{
    struct dm_answer answer = { .verdict = DM_SAYS_NOTHING };
    struct dm_quorum_batch *batch;

    await_all_answers(all, renewal->attempt, deadline);
    batch = post_renewals(all, renewal, 1, NULL, NULL);
    if (!batch)
        return answer;
    while (!is_decided(batch) && dm_quorum_find(all, renewal->attempt) && dm_deadline_left_ns(deadline) > 0) {
        dm_quorum_read(all, renewal->attempt, (1u << all->count) - 1, deadline);
        ask_late(batch, renewal);
    }
    answer = confirmed_answer(batch);
    batch->is_over = true;
    unlist(batch);
    leave_part(batch);
    return answer;
}

struct dm_answer dm_quorum_renew(struct dm_quorum_store *all, const struct dm_question *renewal,
                                 const struct dm_deadline *deadline, char ret_reason[DM_REASON_ROOM])
{
    struct dm_answer answer;

    dm_mutex_lock(&all->lock);
    answer = renew(all, renewal, deadline);
    dm_mutex_unlock(&all->lock);
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
    struct part *part = new_part(child, DM_QUORUM_NONE, batch->count, batch);

    for (int i = 0; part && i < batch->count; i++) {
        if (servers[i] != child->index)
            continue;
        room[part->count] = polls[i];
        add(part, NULL, polls[i].attempt, i);
    }
    if (submit(part, room))
        return;
    for (int i = 0; i < batch->count; i++) {
        if (servers[i] == child->index)
            batch->items[i].must_ask = polls[i].attempt != 0;
    }
}

static bool submit_polls(struct dm_quorum_store *all, const struct dm_question *polls, int count, dm_answers_fn done,
                         void *user)
{
    struct dm_question *room = calloc((size_t)count, sizeof *room);
    struct dm_quorum_batch *batch = room ? new_batch(all, DM_OP_POLL, count, done, user) : NULL;
    uint8_t servers[DM_BATCH];

    if (batch)
        batch->due_ns = due_ns(batch, DM_LEASE_DEFAULT_MS);
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
        end_posting(batch);
    free(room);
    return batch != NULL;
}

bool dm_quorum_submit(struct dm_store *store, const struct dm_question *questions, int count, dm_answers_fn done,
                      void *user)
{
    struct dm_quorum_store *all = dm_quorum_of(store);

    bool is_submitted;

    DM_BUG(questions->op != DM_OP_RELEASE && questions->op != DM_OP_RENEW && questions->op != DM_OP_POLL);
    dm_mutex_lock(&all->lock);
    if (questions->op == DM_OP_RELEASE)
        is_submitted = submit_release(all, questions, done, user);
    else if (questions->op == DM_OP_RENEW)
        is_submitted = post_renewals(all, questions, count, done, user) != NULL;
    else
        is_submitted = submit_polls(all, questions, count, done, user);
    dm_mutex_unlock(&all->lock);
    return is_submitted;
}
