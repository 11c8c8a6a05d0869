/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/quorum.h"

#include <string.h>

#include "base/units.h"
#include "core/hold.h"

/* A server that does not know a script is sent its text, so once is enough unless it restarts in between. */
#define AGAINS_MOST 3

void dm_quorum_init(struct dm_quorum *quorum, int count, uint32_t lease_ms, uint64_t round)
{
    memset(quorum, 0, sizeof *quorum);
    quorum->count = count;
    quorum->lease_ms = lease_ms;
    quorum->round = round;
}

static int majority_of(const struct dm_quorum *quorum)
{
    return quorum->count / 2 + 1;
}

/* The highest value that at least `rank` of the values reach.  False if there are fewer values. */
static bool find_ranked(const int64_t *values, int count, int rank, int64_t *ret_value)
{
    bool is_found = false;

    for (int i = 0; i < count; i++) {
        int reached = 0;

        for (int j = 0; j < count; j++)
            reached += values[j] >= values[i];
        if (reached >= rank && (!is_found || values[i] > *ret_value)) {
            *ret_value = values[i];
            is_found = true;
        }
    }
    return is_found;
}

/* ---- certainty --------------------------------------------------------------------------- */

static bool is_leg_certain(const struct dm_quorum *quorum, int server, int64_t now_ns)
{
    const struct dm_leg *leg = &quorum->legs[server];

    return leg->from_ns && now_ns < leg->from_ns + quorum->lease_ms * DM_NS_PER_MS * 8 / 10;
}

static int count_certain(const struct dm_quorum *quorum, int64_t now_ns)
{
    int count = 0;

    for (int i = 0; i < quorum->count; i++)
        count += is_leg_certain(quorum, i, now_ns);
    return count;
}

/* The K-th latest is the latest moment that K servers have reached. */
int64_t dm_quorum_from_ns(const struct dm_quorum *quorum)
{
    int64_t moments[DM_QUORUM_MOST] = { 0 }, from_ns = 0;

    for (int i = 0; i < quorum->count; i++)
        moments[i] = quorum->legs[i].from_ns;
    find_ranked(moments, quorum->count, majority_of(quorum), &from_ns);
    return from_ns;
}

bool dm_quorum_is_certain(const struct dm_quorum *quorum, int64_t now_ns)
{
    return count_certain(quorum, now_ns) >= majority_of(quorum);
}

bool dm_quorum_may_be_certain(const struct dm_quorum *quorum, int64_t owned_ns, int64_t now_ns)
{
    int count = count_certain(quorum, now_ns);

    for (int i = 0; i < quorum->count; i++) {
        const struct dm_leg *leg = &quorum->legs[i];

        count += !is_leg_certain(quorum, i, now_ns) && leg->is_open && leg->lost_ns < owned_ns;
    }
    return count >= majority_of(quorum);
}

/* ---- tokens ------------------------------------------------------------------------------ */

/* A clock that K servers have reached, so that K - 1 servers together cannot set it forward. */
static bool find_clock(const struct dm_quorum *quorum, int64_t *ret_ahead_us)
{
    int64_t clocks[DM_QUORUM_MOST] = { 0 };
    int count = 0;

    for (int i = 0; i < quorum->count; i++) {
        if (quorum->legs[i].has_clock)
            clocks[count++] = quorum->legs[i].ahead_us;
    }
    return find_ranked(clocks, count, majority_of(quorum), ret_ahead_us);
}

/* Servers make tokens from their clocks.  A grant counts even if its token is not believed. */
static bool is_token_believed(const struct dm_quorum *quorum, uint64_t token, int64_t now_ns)
{
    int64_t ahead_us;

    return find_clock(quorum, &ahead_us) &&
           (int64_t)token <= now_ns / DM_NS_PER_US + ahead_us - DM_TOKEN_EPOCH_US + DM_QUORUM_AHEAD_US;
}

/*
 * A token that was handed out before was on K servers, which have given only higher ones since.  Of m servers that own
 * now, at most count - K are not among those K, so m - count + K have given this hold a higher token; that is m - K +
 * 1, because count is 2 K - 1.  If the token of that rank is not believed, there is none: a lower one may have been
 * handed out.
 */
void dm_quorum_settle_token(struct dm_quorum *quorum, int64_t now_ns)
{
    int64_t tokens[DM_QUORUM_MOST] = { 0 }, token;
    int majority = majority_of(quorum), certain = 0;

    for (int i = 0; i < quorum->count; i++) {
        if (is_leg_certain(quorum, i, now_ns))
            tokens[certain++] = (int64_t)quorum->legs[i].token;
    }
    if (!quorum->token && certain >= majority && find_ranked(tokens, certain, certain - majority + 1, &token) &&
        is_token_believed(quorum, (uint64_t)token, now_ns))
        quorum->token = (uint64_t)token;
}

uint64_t dm_quorum_token(const struct dm_quorum *quorum)
{
    uint64_t lowest = UINT64_MAX;

    if (quorum->token)
        return quorum->token;
    for (int i = 0; i < quorum->count; i++) {
        const struct dm_leg *leg = &quorum->legs[i];

        if (leg->from_ns && leg->token && leg->token < lowest)
            lowest = leg->token;
    }
    return lowest == UINT64_MAX ? 1 : lowest;
}

/* A server that has forgotten the hold has also forgotten the token. */
static bool is_token_soft(const struct dm_quorum *quorum, int64_t now_ns)
{
    int firm = 0;

    for (int i = 0; i < quorum->count; i++) {
        const struct dm_leg *leg = &quorum->legs[i];

        firm += leg->from_ns && leg->token >= quorum->token && is_token_believed(quorum, leg->token, now_ns);
    }
    return !quorum->token || firm < majority_of(quorum);
}

/* ---- asking ------------------------------------------------------------------------------ */

static void forget_round(struct dm_quorum *quorum)
{
    quorum->round++;
    for (int i = 0; i < quorum->count; i++) {
        struct dm_leg *leg = &quorum->legs[i];

        leg->is_asked = leg->is_open = leg->is_late = false;
        leg->agains = 0;
        leg->said = (struct dm_answer){ .verdict = DM_SAYS_NOTHING };
    }
}

void dm_quorum_begin(struct dm_quorum *quorum, enum dm_quorum_manner manner, bool may_queue, int first)
{
    forget_round(quorum);
    quorum->is_owned = false; /* an earlier round's majority came too late, and others may have held since */
    quorum->token = 0;
    for (int i = 0; i < quorum->count; i++)
        quorum->legs[i].had_hold = false;
    quorum->manner = manner;
    quorum->may_queue = may_queue;
    quorum->first = first;
}

enum dm_quorum_question dm_quorum_ask(const struct dm_quorum *quorum, int server, int64_t now_ns)
{
    bool is_first = server == quorum->first;

    if (quorum->legs[server].is_asked)
        return DM_QUORUM_NONE;
    switch (quorum->manner) {
    case DM_QUORUM_TURN:
        return is_first ? DM_QUORUM_QUEUE : DM_QUORUM_NONE;
    case DM_QUORUM_CONFIRM:
    case DM_QUORUM_PASS:
        if (is_first)
            return DM_QUORUM_QUEUE;
        break;
    case DM_QUORUM_DASH:
        break;
    }
    return is_leg_certain(quorum, server, now_ns) ? DM_QUORUM_NONE : DM_QUORUM_TRY;
}

enum dm_quorum_question dm_quorum_renewal(const struct dm_quorum *quorum, int server, int64_t now_ns)
{
    return is_leg_certain(quorum, server, now_ns) ? DM_QUORUM_RENEW : DM_QUORUM_TRY;
}

/* Renewals of a hold may overlap, and are not counted as open: only the questions of the attempt's own thread are. */
void dm_quorum_send(struct dm_quorum *quorum, int server, enum dm_quorum_question question)
{
    struct dm_leg *leg = &quorum->legs[server];

    leg->is_touched = true;
    if (question == DM_QUORUM_RENEW)
        return;
    leg->is_asked = leg->is_open = true;
    leg->is_late = false;
    leg->said = (struct dm_answer){ .verdict = DM_SAYS_NOTHING };
}

/* The server has the attempt as its owner; after a renewal, also the token that it carried. */
static void note_owned(struct dm_leg *leg, enum dm_quorum_question question, int64_t sent_ns,
                       const struct dm_answer *answer)
{
    if (sent_ns <= leg->lost_ns)
        return;
    if (sent_ns > leg->from_ns)
        leg->from_ns = sent_ns;
    if (question != DM_QUORUM_RENEW) {
        leg->token = answer->token;
        leg->is_owner_dead = answer->is_owner_dead;
    } else if (leg->token < answer->token) {
        leg->token = answer->token;
    }
}

static void note_clock(struct dm_leg *leg, int64_t sent_ns, int64_t store_us)
{
    leg->ahead_us = store_us - sent_ns / DM_NS_PER_US;
    leg->has_clock = true;
}

/* An answer older than the server's start is from its predecessor. */
void dm_quorum_doubt(const struct dm_quorum *quorum, enum dm_quorum_question question, struct dm_answer *answer)
{
    int64_t age_ms = (answer->store_us - answer->since_us) / 1000, left_ms = quorum->lease_ms - age_ms;
    bool is_renewal = question == DM_QUORUM_RENEW;

    if (!answer->since_us || age_ms < 0 || left_ms <= 0)
        return;
    if (is_renewal && answer->verdict == DM_SAYS_UNKNOWN)
        answer->grace_ms = left_ms;
    if (!is_renewal && answer->verdict == DM_SAYS_OWNED)
        *answer = (struct dm_answer){ .verdict = DM_SAYS_BUSY, .remaining_ms = left_ms, .grace_ms = left_ms };
}

/* The server has forgotten the hold, but grants nothing before its certainty is over, even if its clock is faster. */
static bool is_harmless(const struct dm_quorum *quorum, const struct dm_leg *leg, int64_t sent_ns, int64_t grace_ms)
{
    int64_t certain_ns = quorum->lease_ms * DM_NS_PER_MS * 8 / 10;

    return leg->from_ns + certain_ns <= sent_ns + grace_ms * DM_NS_PER_MS * 8 / 10;
}

/* AGAIN: the server has done nothing, and is asked again; after several times, that counts as no answer. */
void dm_quorum_take(struct dm_quorum *quorum, int server, enum dm_quorum_question question, int64_t sent_ns,
                    const struct dm_answer *answer)
{
    struct dm_leg *leg = &quorum->legs[server];

    if (question != DM_QUORUM_RENEW) {
        bool is_again = answer && answer->verdict == DM_SAYS_AGAIN;

        leg->is_open = leg->is_late = false;
        leg->is_asked = !is_again || leg->agains++ == AGAINS_MOST;
        if (answer && !(is_again && leg->is_asked))
            leg->said = *answer;
    }
    if (!answer || answer->verdict == DM_SAYS_NOTHING || answer->verdict == DM_SAYS_AGAIN)
        return;
    if (answer->store_us)
        note_clock(leg, sent_ns, answer->store_us);
    if (question == DM_QUORUM_RELEASE && (answer->verdict == DM_SAYS_DONE || answer->verdict == DM_SAYS_NOT_OWNER))
        leg->is_touched = false;
    if (question != DM_QUORUM_RELEASE && answer->verdict == DM_SAYS_OWNED)
        note_owned(leg, question, sent_ns, answer);
    else if (question == DM_QUORUM_RENEW && answer->grace_ms && is_harmless(quorum, leg, sent_ns, answer->grace_ms))
        leg->token = 0;
    else
        dm_quorum_lose(quorum, server, sent_ns);
}

void dm_quorum_lose(struct dm_quorum *quorum, int server, int64_t now_ns)
{
    struct dm_leg *leg = &quorum->legs[server];

    if (now_ns > leg->lost_ns)
        leg->lost_ns = now_ns;
    if (leg->from_ns <= leg->lost_ns)
        leg->from_ns = 0;
}

void dm_quorum_ask_more(struct dm_quorum *quorum, int64_t now_ns)
{
    for (int i = 0; i < quorum->count; i++) {
        struct dm_leg *leg = &quorum->legs[i];

        if (i != quorum->first && !leg->is_open && !is_leg_certain(quorum, i, now_ns))
            leg->is_asked = false;
    }
    quorum->manner = DM_QUORUM_CONFIRM;
}

/* ---- the consequence --------------------------------------------------------------------- */

static int count_said(const struct dm_quorum *quorum, enum dm_verdict verdict)
{
    int count = 0;

    for (int i = 0; i < quorum->count; i++)
        count += quorum->legs[i].said.verdict == verdict;
    return count;
}

/* How many servers can keep the others from a majority. */
static int hindrance(const struct dm_quorum *quorum)
{
    return quorum->count - majority_of(quorum) + 1;
}

bool dm_quorum_is_open(const struct dm_quorum *quorum, int server)
{
    bool is_open = false;

    for (int i = 0; i < quorum->count; i++)
        is_open = is_open || ((server < 0 || server == i) && quorum->legs[i].is_open);
    return is_open;
}

/* If too few servers agree on one refusal, the answer is BUSY, with the longest remaining time and grace. */
struct dm_answer dm_quorum_refusal(const struct dm_quorum *quorum)
{
    static const enum dm_verdict refusals[] = { DM_SAYS_NOT_RECOVERABLE, DM_SAYS_REFUSED, DM_SAYS_NO_MEMORY };
    struct dm_answer busy = { .verdict = DM_SAYS_BUSY };

    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        if (count_said(quorum, refusals[i]) >= hindrance(quorum))
            return (struct dm_answer){ .verdict = refusals[i] };
    }
    for (int i = 0; i < quorum->count; i++) {
        const struct dm_answer *said = &quorum->legs[i].said;

        if (said->remaining_ms > busy.remaining_ms)
            busy.remaining_ms = said->remaining_ms;
        if (said->grace_ms > busy.grace_ms)
            busy.grace_ms = said->grace_ms;
    }
    return busy;
}

static bool is_refused(const struct dm_quorum *quorum)
{
    return dm_quorum_refusal(quorum).verdict != DM_SAYS_BUSY;
}

static enum dm_quorum_step own(struct dm_quorum *quorum)
{
    quorum->is_owned = true;
    return DM_QUORUM_OWNED;
}

/* How many servers have not answered, and will not. */
static int count_silent(const struct dm_quorum *quorum, int64_t now_ns)
{
    int silent = 0;

    for (int i = 0; i < quorum->count; i++)
        silent += !quorum->legs[i].is_open && quorum->legs[i].said.verdict == DM_SAYS_NOTHING &&
                  !is_leg_certain(quorum, i, now_ns);
    return silent;
}

static int count_open(const struct dm_quorum *quorum)
{
    int open = 0;

    for (int i = 0; i < quorum->count; i++)
        open += quorum->legs[i].is_open && !quorum->legs[i].is_late;
    return open;
}

void dm_quorum_mark_late(struct dm_quorum *quorum, bool is_first, int64_t now_ns)
{
    bool is_turn = quorum->manner != DM_QUORUM_DASH, is_decided;
    int answered = 0;

    for (int i = 0; i < quorum->count; i++)
        answered += is_leg_certain(quorum, i, now_ns) || quorum->legs[i].said.verdict != DM_SAYS_NOTHING;
    is_decided = answered >= majority_of(quorum);
    for (int i = 0; i < quorum->count; i++) {
        struct dm_leg *leg = &quorum->legs[i];

        leg->is_late = leg->is_open && (i == quorum->first ? is_first && (is_turn || is_decided) : is_decided);
    }
}

/*
 * Others seem to wait at the first server: another attempt has had its turn there, and owns it.  A server in its grace
 * grants nothing to anybody, so it has no turns.
 */
static bool has_turn_of_another(const struct dm_quorum *quorum)
{
    const struct dm_answer *said = &quorum->legs[quorum->first].said;

    return quorum->may_queue && said->verdict == DM_SAYS_BUSY && said->grace_ms == 0;
}

static enum dm_quorum_step step_dash(struct dm_quorum *quorum, bool is_patient, int64_t now_ns)
{
    int certain = count_certain(quorum, now_ns), open = count_open(quorum);

    if (certain >= majority_of(quorum)) {
        if (quorum->may_queue && is_patient && quorum->legs[quorum->first].is_open)
            return DM_QUORUM_OPEN;
        return has_turn_of_another(quorum) ? DM_QUORUM_BEHIND : own(quorum);
    }
    if (is_refused(quorum))
        return DM_QUORUM_REFUSED;
    if (open && certain + open >= majority_of(quorum))
        return DM_QUORUM_OPEN;
    if (count_silent(quorum, now_ns) >= hindrance(quorum))
        return DM_QUORUM_SILENT;
    return quorum->may_queue ? DM_QUORUM_BEHIND : DM_QUORUM_REFUSED;
}

/* Goes by the first server's answer: the attempt waits there, or has that server and asks the others. */
static enum dm_quorum_step step_turn(struct dm_quorum *quorum, bool is_patient, int64_t now_ns)
{
    const struct dm_leg *first = &quorum->legs[quorum->first];
    bool is_majority = dm_quorum_is_certain(quorum, now_ns);

    if (first->is_open && (is_patient || !is_majority) && !first->is_late)
        return DM_QUORUM_OPEN;
    if (first->said.verdict == DM_SAYS_QUEUED && quorum->manner != DM_QUORUM_PASS)
        return DM_QUORUM_QUEUED;
    if (is_majority)
        return own(quorum);
    if (first->said.verdict == DM_SAYS_QUEUED)
        return is_patient && count_open(quorum) ? DM_QUORUM_OPEN : DM_QUORUM_QUEUED;
    if (is_refused(quorum))
        return DM_QUORUM_REFUSED;
    if (!is_leg_certain(quorum, quorum->first, now_ns))
        return first->said.verdict == DM_SAYS_NOTHING && !first->is_late ? DM_QUORUM_SILENT : DM_QUORUM_BEHIND;
    return count_open(quorum) ? DM_QUORUM_OPEN : DM_QUORUM_MORE;
}

enum dm_quorum_step dm_quorum_step(struct dm_quorum *quorum, bool is_patient, int64_t now_ns)
{
    return quorum->manner == DM_QUORUM_DASH ? step_dash(quorum, is_patient, now_ns)
                                            : step_turn(quorum, is_patient, now_ns);
}

/* Without a certain majority, a server has given the lock away, or time has run out. */
struct dm_answer dm_quorum_hold(const struct dm_quorum *quorum, int64_t now_ns)
{
    struct dm_answer answer = { .verdict = DM_SAYS_UNKNOWN };

    if (!dm_quorum_is_certain(quorum, now_ns))
        return answer;
    answer.verdict = DM_SAYS_OWNED;
    answer.token = dm_quorum_token(quorum);
    answer.is_token_soft = is_token_soft(quorum, now_ns);
    answer.from_ns = dm_quorum_from_ns(quorum);
    for (int i = 0; i < quorum->count; i++)
        answer.is_owner_dead = answer.is_owner_dead || (quorum->legs[i].from_ns && quorum->legs[i].is_owner_dead);
    return answer;
}

/* ---- giving back ------------------------------------------------------------------------- */

/* From here on the servers may end the hold at any moment. */
void dm_quorum_begin_release(struct dm_quorum *quorum, int kept)
{
    forget_round(quorum);
    for (int i = 0; i < quorum->count; i++) {
        struct dm_leg *leg = &quorum->legs[i];

        leg->had_hold = leg->had_hold || leg->from_ns;
        if (i != kept)
            leg->from_ns = 0;
    }
}

/* How many servers no longer have the attempt: of those that had the hold, or of all if none had. */
static int count_lost(const struct dm_quorum *quorum)
{
    int lost = 0;

    for (int i = 0; i < quorum->count; i++)
        lost += quorum->legs[i].had_hold && quorum->legs[i].said.verdict == DM_SAYS_NOT_OWNER;
    for (int i = 0; i < quorum->count; i++) {
        if (quorum->legs[i].had_hold)
            return lost;
    }
    return count_said(quorum, DM_SAYS_NOT_OWNER);
}

/* Asked to release, and neither has done it nor wants to be asked again. */
static bool is_behind(const struct dm_leg *leg)
{
    enum dm_verdict verdict = leg->said.verdict;

    return leg->is_open ||
           (leg->is_asked && verdict != DM_SAYS_DONE && verdict != DM_SAYS_NOT_OWNER && verdict != DM_SAYS_AGAIN);
}

void dm_quorum_leave_silent(struct dm_quorum *quorum)
{
    int behind = 0;

    for (int i = 0; i < quorum->count; i++)
        behind += is_behind(&quorum->legs[i]);
    for (int i = 0; i < quorum->count; i++)
        quorum->legs[i].is_late = is_behind(&quorum->legs[i]) && behind <= quorum->count - majority_of(quorum);
}

/*
 * NOT_OWNER if a majority has lost the attempt, or no server had it.  If there is a majority for neither result and no
 * other server can decide, one server that had the attempt is enough for DONE: the others may have missed a renewal or
 * forgotten the hold.
 */
enum dm_verdict dm_quorum_released(const struct dm_quorum *quorum, bool is_all)
{
    int done = count_said(quorum, DM_SAYS_DONE), gone = count_said(quorum, DM_SAYS_NOT_OWNER), asked = 0, enough;
    int majority = majority_of(quorum);

    for (int i = 0; i < quorum->count; i++)
        asked +=
            (quorum->legs[i].is_asked && !quorum->legs[i].is_late) || quorum->legs[i].said.verdict == DM_SAYS_AGAIN;
    enough = is_all || asked < majority ? asked : majority;
    if (done + gone < enough)
        return DM_SAYS_NOTHING;
    if (count_lost(quorum) >= majority)
        return DM_SAYS_NOT_OWNER;
    if (gone && done < majority && count_open(quorum))
        return DM_SAYS_NOTHING;
    return done || !asked ? DM_SAYS_DONE : DM_SAYS_NOT_OWNER;
}
