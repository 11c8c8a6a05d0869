/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records of attempts.  An answer finds its record by the attempt's number, so that a record may be freed while
 * requests are under way; an answer to an attempt without a record, or to a request of an earlier round, is ignored.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "stores/quorum/parts.h"

/* A child that has not answered for this long is waited for last. */
#define SLOW_NS (10 * DM_NS_PER_MS)

/* How long a thread reads for one child, and how long it sleeps while another thread reads. */
#define SLICE_NS (5 * DM_NS_PER_MS)
#define NAP_MS 1

/* How long turns are taken at another server after a refusal. */
#define SHUN_NS DM_NS_PER_S

/* A server's refusals are not logged more often than this. */
#define REFUSAL_PAUSE_NS (60 * DM_NS_PER_S)

/* A record that was not used for this many leases no longer has a claim. */
#define IDLE_LEASES 10
#define SWEEP_LEAST 1024

/* More rounds than any record has. */
#define ROUNDS (UINT64_C(1) << 32)

/* ---- records ----------------------------------------------------------------------------- */

static struct dm_quorum_record **chain_of(struct dm_quorum_store *all, uint64_t attempt)
{
    return &all->records[attempt % DM_QUORUM_CHAINS];
}

struct dm_quorum_record *dm_quorum_find(struct dm_quorum_store *all, uint64_t attempt)
{
    struct dm_quorum_record *record = *chain_of(all, attempt);

    dm_assert_held(DM_RANK_QUORUM);
    while (record && record->attempt != attempt)
        record = record->next;
    return all->is_ended ? NULL : record;
}

static void drop_at(struct dm_quorum_store *all, struct dm_quorum_record **at)
{
    struct dm_quorum_record *record = *at;

    *at = record->next;
    all->record_count--;
    free(record);
}

void dm_quorum_drop_record(struct dm_quorum_store *all, uint64_t attempt)
{
    struct dm_quorum_record **at = chain_of(all, attempt);

    dm_assert_held(DM_RANK_QUORUM);
    while (*at && (*at)->attempt != attempt)
        at = &(*at)->next;
    if (*at)
        drop_at(all, at);
}

static bool is_abandoned(const struct dm_quorum_record *record, int64_t now_ns)
{
    return !record->sleeper && !record->is_leaving &&
           now_ns - record->used_ns > IDLE_LEASES * (record->quorum.lease_ms * DM_NS_PER_MS + DM_NS_PER_S);
}

/* Frees records of claims that a thread has abandoned, as a test does, without telling the store. */
static void sweep(struct dm_quorum_store *all, int64_t now_ns)
{
    for (int i = 0; i < DM_QUORUM_CHAINS; i++) {
        struct dm_quorum_record **at = &all->records[i];

        while (*at) {
            if (is_abandoned(*at, now_ns))
                drop_at(all, at);
            else
                at = &(*at)->next;
        }
    }
    all->sweep_at = 2 * all->record_count + SWEEP_LEAST;
}

struct dm_quorum_record *dm_quorum_open_record(struct dm_quorum_store *all, const struct dm_question *question)
{
    struct dm_quorum_record *record = dm_quorum_find(all, question->attempt);
    int64_t now_ns = dm_clock_boot_ns();

    dm_assert_held(DM_RANK_QUORUM);
    if (!record) {
        if (all->record_count >= all->sweep_at)
            sweep(all, now_ns);
        record = calloc(1, sizeof *record);
        if (!record)
            return NULL;
        all->rounds += ROUNDS;
        dm_quorum_init(&record->quorum, all->count, question->lease_ms, all->rounds);
        record->attempt = question->attempt;
        record->thread = question->thread;
        record->is_robust = question->is_robust;
        record->next = *chain_of(all, question->attempt);
        *chain_of(all, question->attempt) = record;
        all->record_count++;
    }
    record->used_ns = now_ns;
    return record;
}

unsigned dm_quorum_open_servers(const struct dm_quorum_record *record)
{
    unsigned open = 0;

    dm_assert_held(DM_RANK_QUORUM);
    for (int i = 0; i < record->quorum.count; i++)
        open |= dm_quorum_is_open(&record->quorum, i) ? 1u << i : 0;
    return open;
}

/* ---- children ---------------------------------------------------------------------------- */

void dm_quorum_note_sent(struct dm_quorum_child *child, int64_t now_ns)
{
    dm_assert_held(DM_RANK_QUORUM);
    if (child->unanswered++ == 0)
        child->waiting_ns = now_ns;
}

/* A call reports a refusal only if no majority is left, so what a minority refuses is logged. */
static void note_refusal(struct dm_quorum_child *child, const char *refusal, int64_t now_ns)
{
    snprintf(child->refusal, sizeof child->refusal, "%s", refusal);
    if (child->refusal_told_ns && now_ns - child->refusal_told_ns < REFUSAL_PAUSE_NS)
        return;
    child->refusal_told_ns = now_ns;
    dm_log_warn("a server of the quorum refuses requests, %s: %.200s",
                dm_url_place(child->url->host, child->url->port).text, refusal);
}

/* Answers come in the order of the questions, so the other ones have waited less than this one. */
void dm_quorum_note_answer(struct dm_quorum_child *child, const struct dm_answer *answer, const char *refusal,
                           int64_t now_ns)
{
    dm_assert_held(DM_RANK_QUORUM);
    child->unanswered--;
    child->waiting_ns = now_ns;
    if (refusal)
        note_refusal(child, refusal, now_ns);
    if (!answer)
        return;
    if (answer->since_us && answer->store_us > answer->since_us)
        child->since_ns = now_ns - (answer->store_us - answer->since_us) * DM_NS_PER_US;
    if (answer->grace_ms > 0)
        child->grace_until_ns = now_ns + answer->grace_ms * DM_NS_PER_MS;
    if (answer->verdict == DM_SAYS_REFUSED || answer->verdict == DM_SAYS_NO_MEMORY ||
        answer->verdict == DM_SAYS_NOT_RECOVERABLE)
        child->shunned_until_ns = now_ns + SHUN_NS;
}

void dm_quorum_note_queue(struct dm_quorum_child *child, const struct dm_leg *leg)
{
    bool has_turns = leg->is_open || leg->said.verdict == DM_SAYS_OWNED || leg->said.verdict == DM_SAYS_QUEUED ||
                     leg->said.verdict == DM_SAYS_AGAIN;

    dm_assert_held(DM_RANK_QUORUM);
    if (!has_turns)
        child->shunned_until_ns =
            dm_clock_boot_ns() + (leg->said.verdict == DM_SAYS_NOTHING ? DM_QUORUM_SILENT_NS : SHUN_NS);
}

const struct dm_answer *dm_quorum_doubted(struct dm_quorum_store *all, uint64_t attempt,
                                          enum dm_quorum_question question, const struct dm_answer *answer,
                                          struct dm_answer *room)
{
    const struct dm_quorum_record *record = dm_quorum_find(all, attempt);

    dm_assert_held(DM_RANK_QUORUM);
    if (!answer || !record)
        return answer;
    *room = *answer;
    dm_quorum_doubt(&record->quorum, question, room);
    return room;
}

/* True if an answer of the child is overdue: then others are waited for first. */
static bool is_slow(const struct dm_quorum_child *child, int64_t now_ns)
{
    dm_assert_held(DM_RANK_QUORUM);
    return child->unanswered && now_ns - child->waiting_ns > SLOW_NS;
}

bool dm_quorum_is_partial(struct dm_quorum_store *all, uint64_t attempt, const struct dm_place *place)
{
    const struct dm_quorum_record *record = dm_quorum_find(all, attempt);
    int64_t now_ns = dm_clock_boot_ns();
    bool is_partial = false;

    dm_assert_held(DM_RANK_QUORUM);
    for (int i = 0; record && i < all->count; i++)
        is_partial = is_partial ||
                     (dm_quorum_renewal(&record->quorum, i, now_ns) == DM_QUORUM_TRY &&
                      !dm_quorum_is_open(&record->quorum, i) && dm_quorum_may_ask(&all->children[i], place, DM_ASKS));
    return is_partial;
}

void dm_quorum_note_news(struct dm_quorum_record *record)
{
    dm_assert_held(DM_RANK_QUORUM);
    record->news++;
    if (record->sleeper)
        dm_self_wake(record->sleeper);
}

/* ---- reading ----------------------------------------------------------------------------- */

/* One of the servers that will answer soon, if possible the first one; -1: the attempt has no record. */
static int choose(struct dm_quorum_store *all, uint64_t attempt, unsigned servers, uint64_t *ret_news)
{
    const struct dm_quorum_record *record = dm_quorum_find(all, attempt);
    int64_t now_ns = dm_clock_boot_ns();
    int chosen = -1;
    bool is_quick = false;

    for (int i = 0; record && i < all->count; i++) {
        int server = (record->quorum.first + i) % all->count;

        if (!(servers & 1u << server) || is_quick)
            continue;
        is_quick = !is_slow(&all->children[server], now_ns);
        if (is_quick || chosen < 0)
            chosen = server;
    }
    *ret_news = record ? record->news : 0;
    return chosen;
}

/* Another thread may have read the answer without having called the handler yet. */
static void nap_without_news(struct dm_quorum_store *all, uint64_t attempt, uint64_t news)
{
    struct dm_quorum_record *record = dm_quorum_find(all, attempt);
    struct dm_deadline until = dm_deadline_in_ms(NAP_MS);

    if (!record || record->news != news)
        return;
    record->sleeper = dm_self_get();
    dm_mutex_unlock(&all->lock);
    dm_self_sleep(dm_self_get(), &until);
    dm_mutex_lock(&all->lock);
    record = dm_quorum_find(all, attempt);
    if (record)
        record->sleeper = NULL;
}

/*
 * The thread leads the connection of one server for a slice; after that the answers of the others are there, or the
 * loop thread reads them.
 */
void dm_quorum_read(struct dm_quorum_store *all, uint64_t attempt, unsigned servers, const struct dm_deadline *deadline)
{
    struct dm_deadline slice = dm_deadline_sooner(deadline, SLICE_NS);
    uint64_t news;
    int chosen = choose(all, attempt, servers, &news);

    dm_assert_held(DM_RANK_QUORUM);
    if (chosen < 0)
        return;
    dm_mutex_unlock(&all->lock);
    dm_store_drain(all->children[chosen].store, &slice);
    for (int i = 0; i < all->count; i++) {
        if (i != chosen && servers & 1u << i)
            dm_store_work(all->children[i].store);
    }
    dm_mutex_lock(&all->lock);
    nap_without_news(all, attempt, news);
}
