/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Judges the plain store's server by requests and messages alone: the server's fields for marks and deaths are not
 * read.
 *
 * I3. A request names its attempt by the attempt's own thread.
 * I6. The holder by a marked hold is told of the first waiter, by the request that lets the waiter wait, and of a try
 *     while nobody waits; of no other.
 * I9. The end of a lease is a death, except with the mark "no death"; a robust holder is told of each death, and of
 *     nothing else.
 */
#include <inttypes.h>
#include <string.h>

#include "check.h"
#include "plain_parts.h"
#include "world.h"

static struct {
    enum dm_mark mark; /* of the hold, by its renewals */
    bool has_death;    /* the next robust holder is to be told */
} notes[NAMES_MAX];

/* The request under way. */
static struct {
    int index;
    struct plain_look before;
    int told; /* messages to the holder that another attempt waits */
} request;

void plain_judge_reset(void)
{
    memset(notes, 0, sizeof notes);
}

void plain_judge_named(int index, uint64_t attempt, uint64_t by_thread, uint64_t thread)
{
    if (by_thread != thread)
        world_break("I3: a request for x%d names attempt %" PRIu64 " of thread %" PRIu64 " by thread %" PRIu64, index,
                    attempt, thread, by_thread);
}

/* A release serves the next waiter at once, so the death is noted before. */
static void note_end(int index, const struct asked *item, bool is_owner)
{
    if (item->question.op == DM_OP_FORCE && request.before.is_held)
        notes[index].has_death = true;
    if (item->question.op == DM_OP_RELEASE && is_owner && item->question.release.end == DM_END_DIED)
        notes[index].has_death = true;
    if (item->question.op == DM_OP_RELEASE && is_owner && item->question.release.end == DM_END_UNLOCKED)
        notes[index].has_death = false;
    if (item->question.op == DM_OP_CONSISTENT && is_owner)
        notes[index].has_death = false;
}

void plain_judge_begin(int index, const struct plain_look *before, const struct asked *item, bool is_owner)
{
    request.index = index;
    request.before = *before;
    request.told = 0;
    note_end(index, item, is_owner);
}

void plain_judge_told(const struct plain *to, const struct dm_message *message)
{
    if (message->kind != DM_MESSAGE_WANTED)
        return;
    if (to != request.before.owner || message->attempt != request.before.attempt)
        world_break("I6: attempt %" PRIu64 " is told that another waits for x%d, and holds nothing", message->attempt,
                    request.index);
    request.told++;
}

static void judge_told(int index, const struct plain_look *after, const struct asked *item)
{
    bool is_wanted = after->waiters > 0 || (item->question.op == DM_OP_ACQUIRE && !item->question.acquire.may_queue &&
                                            item->answer.verdict == DM_SAYS_BUSY);
    bool is_same = request.before.is_held && after->is_held && request.before.owner == after->owner &&
                   request.before.attempt == after->attempt;
    bool is_due = is_same && notes[index].mark != DM_MARK_NONE && request.before.waiters == 0 && is_wanted;

    if (is_due && request.told == 0)
        world_break("I6: attempt %" PRIu64 " keeps x%d, and is not told that another waits", after->attempt, index);
    if (request.told > is_due)
        world_break("I6: attempt %" PRIu64 " is told once more that another waits for x%d", after->attempt, index);
}

void plain_judge_end(int index, const struct plain_look *after, const struct asked *item)
{
    judge_told(index, after, item);
    if (item->question.op == DM_OP_RENEW && item->answer.verdict == DM_SAYS_OWNED)
        notes[index].mark = item->question.renew.mark;
    if (item->question.op == DM_OP_DROP && item->answer.verdict == DM_SAYS_DONE)
        notes[index].has_death = false;
}

void plain_judge_expired(int index)
{
    if (notes[index].mark != DM_MARK_TELL_NO_DEATH)
        notes[index].has_death = true;
}

void plain_judge_granted(int index, bool is_robust, bool is_dead)
{
    if (!is_robust)
        notes[index].has_death = false;
    if (is_dead != notes[index].has_death)
        world_break("I9: x%d is granted, and %s death is told", index, is_dead ? "a" : "no");
    notes[index].mark = DM_MARK_NONE;
}
