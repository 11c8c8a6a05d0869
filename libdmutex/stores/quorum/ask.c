/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests of a thread that waits for the majority.
 *
 * An acquire goes from round to round (core/quorum.h): a dash to all servers, if nobody seems to wait; else a turn in
 * the first server's queue.  Once the attempt has the first server, it keeps asking the others, for 50 to 150 ms (Q3).
 * Between two rounds it gives the servers back, and waits a short time for the answers, because a server that does not
 * know the script has done nothing.
 */
#include <stdio.h>
#include <string.h>

#include "base/minmax.h"
#include "stores/quorum/parts.h"

/* How long a name counts as crowded after another attempt was seen there. */
#define CROWD_NS (200 * DM_NS_PER_MS)

/* Q3: the shortest time, and how much is added at random. */
#define GIVE_UP_NS (50 * DM_NS_PER_MS)
#define GIVE_UP_SPAN_NS (100 * DM_NS_PER_MS)

/* How long the first server's answer is waited for although there is a majority. */
#define PATIENCE_NS (10 * DM_NS_PER_MS)

#define GIVE_BACK_MS 20

/*
 * The pause between two requests to a busy server, and between two dashes of rivals that share the servers; and how
 * much is added at random.
 */
#define PAUSE_NS DM_NS_PER_MS
#define PAUSE_SPAN_NS (2 * DM_NS_PER_MS)
#define DASHES_MOST 4

/*
 * A waiter that is not first checks the other servers later, by its position, but no more than this many times later.
 */
#define LOOK_PLACES 8

/* An acquire in progress.  Its functions are called with the store's lock held. */
struct asking {
    struct dm_quorum_store *all;
    const struct dm_question *question;
    const struct dm_deadline *deadline;
    struct dm_quorum_record *record; /* of the attempt; NULL: gone */
    char *reason;
    int64_t patient_until_ns;
    int64_t late_ns, first_late_ns; /* when silent servers become late: those of a dash, and the first one of a turn */
    int64_t give_up_ns;             /* 0: the attempt has not had the first server */
    bool is_near;                   /* only rivals, or one server, keep the attempt from a majority */
    unsigned full;                  /* the set of servers with a full queue */
    int dashes;
    uint64_t chance;
};

/* ---- giving back ------------------------------------------------------------------------- */

/* The answer; NOTHING if there is none by the deadline.  The store's lock is held, and given up while waiting. */
static struct dm_answer release(struct dm_quorum_store *all, const struct dm_question *question, int kept, bool is_all,
                                const struct dm_deadline *deadline)
{
    struct dm_answer answer = { .verdict = DM_SAYS_NOTHING };
    int64_t late_ns = dm_clock_boot_ns() + DM_QUORUM_PASS_NS;
    unsigned servers = 0, open;
    struct dm_quorum_record *record = dm_quorum_begin_leaving(all, question, kept, &servers);

    dm_assert_held(DM_RANK_QUORUM);
    while (record) {
        dm_quorum_post_releases(all, record, question, servers, NULL);
        open = dm_quorum_open_servers(record);
        if (dm_clock_boot_ns() >= late_ns)
            dm_quorum_leave_silent(&record->quorum);
        answer = dm_quorum_release_answer(record, is_all);
        if (answer.verdict != DM_SAYS_NOTHING || !open || dm_deadline_left_ns(deadline) == 0)
            break;
        dm_quorum_read(all, question->attempt, open, deadline);
        record = dm_quorum_find(all, question->attempt);
        servers = record ? dm_quorum_said_again(record) : 0;
    }
    return answer;
}

/* The release of an attempt that does not own. */
static struct dm_question release_of(const struct dm_question *question)
{
    struct dm_question release = *question;

    release.op = DM_OP_RELEASE;
    memset(&release.release, 0, sizeof release.release);
    release.release.end = DM_END_UNLOCKED;
    return release;
}

/* The end of a submitted release drops its record. */
static void drop(struct dm_quorum_store *all, uint64_t attempt)
{
    const struct dm_quorum_record *record = dm_quorum_find(all, attempt);

    if (record && !record->is_leaving)
        dm_quorum_drop_record(all, attempt);
}

/* ---- rounds ------------------------------------------------------------------------------ */

/* After the lock was given up the record may be gone. */
static void find_again(struct asking *asking)
{
    asking->record = dm_quorum_find(asking->all, asking->question->attempt);
}

static void give_back(struct asking *asking, int kept)
{
    const struct dm_question back = release_of(asking->question);
    struct dm_deadline soon = dm_deadline_in_ms(GIVE_BACK_MS);

    release(asking->all, &back, kept, true, &soon);
    find_again(asking);
}

/* A number below `span`, different each time, so that rivals do not meet again and again. */
static int64_t chance(struct asking *asking, int64_t span)
{
    asking->chance = (asking->chance ^ (uint64_t)dm_clock_boot_ns()) * UINT64_C(0x9E3779B97F4A7C15) + 1;
    return (int64_t)((asking->chance >> 33) % (uint64_t)span);
}

static void pause(struct asking *asking)
{
    struct dm_deadline until = dm_deadline_sooner(asking->deadline, PAUSE_NS + chance(asking, PAUSE_SPAN_NS));

    dm_mutex_unlock(&asking->all->lock);
    dm_self_sleep(dm_self_get(), &until);
    dm_mutex_lock(&asking->all->lock);
    find_again(asking);
}

static int choose_first(const struct asking *asking, bool is_for_queue)
{
    return dm_quorum_choose_first(asking->all, asking->question->place, is_for_queue);
}

static bool is_able(const struct asking *asking, int server, enum dm_way way)
{
    return dm_quorum_may_ask(&asking->all->children[server], asking->question->place, way);
}

static struct dm_quorum_crowd *crowd_of(const struct asking *asking)
{
    return dm_quorum_crowd_of(asking->all, asking->question->place);
}

/* True if another attempt was seen recently; not at a server that may be in its grace, in which there are no turns. */
static bool is_crowded(const struct asking *asking, int first)
{
    int64_t now_ns = dm_clock_boot_ns(), lease_ns = asking->question->lease_ms * DM_NS_PER_MS;

    return now_ns < crowd_of(asking)->until_ns && now_ns - asking->all->children[first].since_ns > lease_ns;
}

static void begin(struct asking *asking, enum dm_quorum_manner manner, int first)
{
    int64_t now_ns = dm_clock_boot_ns(), heartbeat_ns = asking->question->lease_ms * DM_NS_PER_MS / 3;

    asking->give_up_ns = 0;
    asking->patient_until_ns = now_ns + PATIENCE_NS;
    asking->late_ns = now_ns + DM_QUORUM_PASS_NS;
    asking->first_late_ns = now_ns + dm_max64(DM_QUORUM_PASS_NS, heartbeat_ns);
    asking->dashes += manner == DM_QUORUM_DASH;
    if (!asking->record)
        return;
    asking->record->is_queued = false;
    dm_quorum_begin(&asking->record->quorum, manner, asking->question->acquire.may_queue, first);
}

/*
 * A server where the lock is held, because the holder's release hands it over there.  A server that was away when the
 * holder came would give the attempt a turn at once, in vain.
 */
static int choose_busy(const struct asking *asking)
{
    int first = choose_first(asking, true);

    for (int i = 0; i < asking->all->count; i++) {
        int server = (first + i) % asking->all->count;
        const struct dm_answer *said = &asking->record->quorum.legs[server].said;

        if (said->verdict == DM_SAYS_BUSY && said->grace_ms == 0 && is_able(asking, server, DM_TELLS))
            return server;
    }
    return first;
}

/*
 * The server in whose queue the attempt is, as far as we know; -1: none, or one that cannot be asked now.
 * *ret_is_long: whether it has waited there for long.
 */
static int queue_of(struct asking *asking, bool *ret_is_long)
{
    const struct dm_quorum_record *record = asking->record;

    if (!record || !record->is_queued)
        return -1;
    *ret_is_long = dm_clock_boot_ns() - record->queued_ns >= DM_QUORUM_PASS_NS;
    if (is_able(asking, record->quorum.first, DM_ASKS))
        return record->quorum.first;
    give_back(asking, -1);
    return -1;
}

/* False without memory. */
static bool begin_first_round(struct asking *asking)
{
    bool is_long = false, may_queue = asking->question->acquire.may_queue;
    int queue = queue_of(asking, &is_long), first;

    asking->record = dm_quorum_open_record(asking->all, asking->question);
    if (!asking->record)
        return false;
    if (queue >= 0 && may_queue) {
        begin(asking, is_long ? DM_QUORUM_PASS : DM_QUORUM_CONFIRM, queue);
        return true;
    }
    first = choose_first(asking, may_queue);
    begin(asking, may_queue && is_crowded(asking, first) ? DM_QUORUM_TURN : DM_QUORUM_DASH, first);
    return true;
}

/*
 * Posts the questions of the round.  A server that cannot be asked now is asked later in the round, because a young
 * process may not have reached all of them yet.
 */
static void post_questions(struct asking *asking, int64_t now_ns)
{
    for (int i = 0; i < asking->all->count; i++) {
        enum dm_quorum_question kind = dm_quorum_ask(&asking->record->quorum, i, now_ns);

        if (kind != DM_QUORUM_NONE && is_able(asking, i, DM_ASKS))
            dm_quorum_post_acquire(asking->record, &asking->all->children[i], kind, asking->question);
    }
}

/* For a while a silent first server is not the first one of other attempts either. */
static void note_late(struct asking *asking, int64_t now_ns)
{
    struct dm_quorum *quorum = &asking->record->quorum;
    bool is_turn = quorum->manner != DM_QUORUM_DASH;

    if (now_ns < (is_turn ? asking->patient_until_ns : asking->late_ns))
        return;
    dm_quorum_mark_late(quorum, now_ns >= (is_turn ? asking->first_late_ns : asking->late_ns), now_ns);
    if (is_turn && quorum->legs[quorum->first].is_late)
        asking->all->children[quorum->first].shunned_until_ns = now_ns + DM_QUORUM_SILENT_NS;
}

/*
 * Asks until the answers have a consequence.  A thread whose requests are given up asks nothing, because its release
 * may be under way.
 */
static enum dm_quorum_step await_step(struct asking *asking)
{
    while (asking->record && !dm_self_is_given_up()) {
        struct dm_quorum *quorum = &asking->record->quorum;
        int64_t now_ns = dm_clock_boot_ns();
        enum dm_quorum_step step;

        post_questions(asking, now_ns);
        note_late(asking, now_ns);
        step = dm_quorum_step(quorum, now_ns < asking->patient_until_ns, now_ns);
        if (step != DM_QUORUM_OPEN)
            return step;
        if (dm_deadline_left_ns(asking->deadline) == 0)
            break;
        dm_quorum_read(asking->all, asking->question->attempt, dm_quorum_open_servers(asking->record),
                       asking->deadline);
        find_again(asking);
    }
    return DM_QUORUM_SILENT;
}

/* ---- consequences ------------------------------------------------------------------------ */

/* The consequences end the acquire with an answer, or go on with another round. */
enum { GO_ON = false, ENDED = true };

static bool fail(struct asking *asking, struct dm_answer answer, struct dm_answer *ret_answer)
{
    give_back(asking, -1);
    drop(asking->all, asking->question->attempt);
    *ret_answer = answer;
    return ENDED;
}

static bool fail_with(struct asking *asking, enum dm_verdict verdict, struct dm_answer *ret_answer)
{
    return fail(asking, (struct dm_answer){ .verdict = verdict }, ret_answer);
}

static void copy_refusal(const struct asking *asking)
{
    for (int i = 0; i < asking->all->count; i++) {
        const struct dm_quorum_child *child = &asking->all->children[i];

        if (child->refusal[0])
            snprintf(asking->reason, DM_REASON_ROOM, "%s", child->refusal);
    }
}

static int count_owned(const struct dm_quorum *quorum)
{
    int owned = 0;

    for (int i = 0; i < quorum->count; i++)
        owned += quorum->legs[i].from_ns != 0;
    return owned;
}

/* Rivals that each have some of the servers would all find the mutex busy: they try again, after a random pause. */
static bool is_shared_with_rivals(const struct asking *asking)
{
    return count_owned(&asking->record->quorum) > 0 && asking->dashes < DASHES_MOST &&
           dm_deadline_left_ns(asking->deadline) > 0;
}

static bool on_refused(struct asking *asking, struct dm_answer *ret_answer)
{
    struct dm_answer answer = dm_quorum_refusal(&asking->record->quorum);

    if (answer.verdict == DM_SAYS_REFUSED)
        copy_refusal(asking);
    if (answer.verdict != DM_SAYS_BUSY || !is_shared_with_rivals(asking))
        return fail(asking, answer, ret_answer);
    give_back(asking, -1);
    pause(asking);
    begin(asking, DM_QUORUM_DASH, choose_first(asking, false));
    return GO_ON;
}

/* How long until the attempt next checks the other servers, unless a heartbeat comes first. */
static int64_t look_ms(struct asking *asking, bool is_near, uint64_t position)
{
    int64_t places = is_near || position == 0 ? 1 : position < LOOK_PLACES ? (int64_t)position : LOOK_PLACES;

    return places * (DM_QUORUM_PASS_NS + chance(asking, DM_QUORUM_PASS_NS)) / DM_NS_PER_MS;
}

/*
 * The first server's answer, except for its clock and for a dead head of the queue, which a poll serves.  The first
 * check of the other servers comes soon, and so do more while the attempt might own through the others; any other check
 * comes with a heartbeat.
 */
static bool on_queued(struct asking *asking, struct dm_answer *ret_answer)
{
    struct dm_quorum_record *record = asking->record;
    struct dm_answer answer = record->quorum.legs[record->quorum.first].said;
    bool is_near = asking->is_near || count_owned(&record->quorum) > 0;
    bool is_first_look = record->quorum.manner != DM_QUORUM_PASS;
    int64_t now_ns = dm_clock_boot_ns();

    crowd_of(asking)->until_ns = now_ns + CROWD_NS;
    record->is_queued = true;
    record->queued_ns = now_ns;
    give_back(asking, record->quorum.first);
    answer.store_us = 0;
    if (is_near || is_first_look)
        answer.remaining_ms = dm_min64(answer.remaining_ms, look_ms(asking, is_near, answer.position));
    *ret_answer = answer;
    return ENDED;
}

/* A holder at the first server that has no majority: turns are taken elsewhere for a lease. */
static bool on_owned(struct asking *asking, struct dm_answer *ret_answer)
{
    struct dm_quorum_record *record = asking->record;
    struct dm_quorum_crowd *crowd = crowd_of(asking);
    int64_t now_ns = dm_clock_boot_ns();

    *ret_answer = dm_quorum_hold(&record->quorum, now_ns);
    if (record->quorum.legs[record->quorum.first].said.verdict == DM_SAYS_QUEUED) {
        crowd->passed = record->quorum.first;
        crowd->passed_until_ns = now_ns + asking->question->lease_ms * DM_NS_PER_MS;
    }
    record->owned_ns = now_ns;
    ret_answer->is_partial = dm_quorum_is_partial(asking->all, record->attempt, asking->question->place);
    if (ret_answer->verdict == DM_SAYS_OWNED)
        return ENDED;
    give_back(asking, -1); /* the thread was stopped for a while */
    begin(asking, DM_QUORUM_TURN, choose_first(asking, true));
    return GO_ON;
}

/*
 * A first server that refuses, or has no place in a queue, has no turns: all are asked, and their refusals are counted.
 * Queues are tried one server at a time, so full ones are counted over the rounds.
 */
static bool on_behind(struct asking *asking, struct dm_answer *ret_answer)
{
    const struct dm_quorum *quorum = &asking->record->quorum;
    enum dm_verdict said = quorum->legs[quorum->first].said.verdict;
    bool is_dash = said == DM_SAYS_REFUSED || said == DM_SAYS_NO_MEMORY || said == DM_SAYS_NOT_RECOVERABLE ||
                   (quorum->manner != DM_QUORUM_DASH && said != DM_SAYS_OWNED);
    int next;

    crowd_of(asking)->until_ns = dm_clock_boot_ns() + CROWD_NS;
    if (said == DM_SAYS_FULL)
        asking->full |= 1u << quorum->first;
    asking->is_near = dm_quorum_is_certain(quorum, dm_clock_boot_ns());
    if (__builtin_popcount(asking->full) > (asking->all->count - 1) / 2)
        return fail_with(asking, DM_SAYS_FULL, ret_answer);
    if (dm_deadline_left_ns(asking->deadline) == 0)
        return fail_with(asking, DM_SAYS_NOTHING, ret_answer);
    next = choose_busy(asking);
    give_back(asking, -1);
    if (asking->dashes == 0 || is_dash)
        pause(asking);
    if (is_dash)
        begin(asking, DM_QUORUM_DASH, choose_first(asking, asking->question->acquire.may_queue));
    else
        begin(asking, DM_QUORUM_TURN, next);
    return GO_ON;
}

static bool on_more(struct asking *asking, struct dm_answer *ret_answer)
{
    int64_t now_ns = dm_clock_boot_ns();

    if (!asking->give_up_ns)
        asking->give_up_ns = now_ns + GIVE_UP_NS + chance(asking, GIVE_UP_SPAN_NS);
    if (now_ns >= asking->give_up_ns || dm_deadline_left_ns(asking->deadline) == 0)
        return on_behind(asking, ret_answer);
    pause(asking);
    if (asking->record)
        dm_quorum_ask_more(&asking->record->quorum, dm_clock_boot_ns());
    return GO_ON;
}

/* A thread whose requests are given up leaves everything to its release, which is posted already. */
static bool follow(struct asking *asking, enum dm_quorum_step step, struct dm_answer *ret_answer)
{
    if (dm_self_is_given_up())
        return ENDED;
    switch (step) {
    case DM_QUORUM_OWNED:
        return on_owned(asking, ret_answer);
    case DM_QUORUM_QUEUED:
        return on_queued(asking, ret_answer);
    case DM_QUORUM_MORE:
        return on_more(asking, ret_answer);
    case DM_QUORUM_BEHIND:
        return on_behind(asking, ret_answer);
    case DM_QUORUM_REFUSED:
        return on_refused(asking, ret_answer);
    default:
        return fail_with(asking, DM_SAYS_NOTHING, ret_answer);
    }
}

/* ---- operations -------------------------------------------------------------------------- */

/* Fails without memory. */
static bool run(struct asking *asking, struct dm_answer *ret_answer)
{
    bool is_begun;

    dm_mutex_lock(&asking->all->lock);
    find_again(asking);
    is_begun = begin_first_round(asking);
    while (is_begun && !follow(asking, await_step(asking), ret_answer))
        continue;
    dm_mutex_unlock(&asking->all->lock);
    return is_begun;
}

struct dm_answer dm_quorum_acquire(struct dm_quorum_store *all, const struct dm_question *question,
                                   const struct dm_deadline *deadline, char ret_reason[DM_REASON_ROOM])
{
    struct dm_answer answer = { .verdict = DM_SAYS_NOTHING };
    struct asking asking = {
        .all = all, .question = question, .deadline = deadline, .reason = ret_reason, .chance = question->attempt
    };

    if (!dm_quorum_await_able(&all->store, question->place, DM_ASKS, deadline)) {
        if (dm_deadline_left_ns(deadline) > 0)
            answer.verdict = DM_SAYS_REFUSED; /* waiting is useless */
        dm_quorum_reason(&all->store, question->place, DM_ASKS, ret_reason);
    } else if (!run(&asking, &answer)) {
        snprintf(ret_reason, DM_REASON_ROOM, "out of memory");
    } else if (answer.verdict == DM_SAYS_NOTHING) {
        dm_quorum_reason(&all->store, question->place, DM_ASKS, ret_reason);
    }
    return answer;
}

/* An attempt that cancels gives back a grant that crosses the cancel. */
struct dm_answer dm_quorum_leave(struct dm_quorum_store *all, const struct dm_question *question,
                                 const struct dm_deadline *deadline, char ret_reason[DM_REASON_ROOM])
{
    bool is_cancel = question->op == DM_OP_CANCEL;
    const struct dm_question back = is_cancel ? release_of(question) : *question;
    struct dm_answer answer;

    dm_mutex_lock(&all->lock);
    answer = release(all, &back, -1, is_cancel, deadline);
    if (answer.verdict != DM_SAYS_NOTHING)
        drop(all, question->attempt);
    dm_mutex_unlock(&all->lock);
    if (answer.verdict == DM_SAYS_NOTHING)
        dm_quorum_reason(&all->store, question->place, DM_ASKS, ret_reason);
    else if (is_cancel)
        answer.verdict = DM_SAYS_DONE;
    return answer;
}
