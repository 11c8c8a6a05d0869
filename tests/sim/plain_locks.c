/* SPDX-License-Identifier: BSD-2-Clause */
/* The plain store's server: who holds, who waits.  Its clock is the true time; each name is a few fields and a list. */
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "hooks.h"
#include "plain_parts.h"
#include "server.h"
#include "world.h"

#define NAMES NAMES_MAX

/* An attempt of a process, with the way back to the process. */
struct attempt {
    struct plain *from;
    uint64_t thread, number;
};

/* A waiter: dead unless heard of within its lease. */
struct queued {
    struct queued *next; /* by arrival */
    struct attempt attempt;
    uint64_t arrival, request;
    uint32_t lease_ms;
    bool is_robust;
    int64_t live_until_ns;
};

enum health { WELL, OWNER_DIED, NOT_RECOVERABLE };

/* A name.  token rises with each hold; a hold ends at until_ns unless renewed. */
struct place {
    int index;
    bool is_held;
    struct attempt owner;
    bool is_dead_told; /* the holder was told of a death, and has not mended yet */
    enum dm_mark mark; /* of the hold */
    int64_t until_ns;
    uint64_t token;
    enum health health;
    struct queued *queue;
};

static struct place places[NAMES];
static uint64_t arrivals;
static int64_t grace_until_ns;

static void serve(struct place *place);

/* Each process numbers its own threads and attempts, so the process is a part of the comparison. */
static bool is_same(const struct attempt *one, const struct attempt *other)
{
    return one->from == other->from && one->thread == other->thread && one->number == other->number;
}

/* ---- holds ------------------------------------------------------------------------------- */

/* A death is remembered until a robust holder mends, or a holder that is not robust comes. */
static void end_hold(struct place *place, enum dm_end end)
{
    place->is_held = false;
    if (end == DM_END_DIED && place->health == WELL)
        place->health = OWNER_DIED;
    if (end == DM_END_NOT_RECOVERABLE)
        place->health = NOT_RECOVERABLE;
}

/*
 * The lease may have ended. Does nothing for an earlier hold, and for a lease that was extended meanwhile. By the mark
 * the end may be no death.
 */
static void expire(void *object, uint64_t token)
{
    struct place *place = object;
    bool is_death = place->mark != DM_MARK_TELL_NO_DEATH || hooks_has(STORE_FORGETS_MARKS);

    if (!place->is_held || place->token != token || world_now() < place->until_ns)
        return;
    plain_judge_expired(place->index);
    end_hold(place, is_death && !hooks_has(STORE_TELLS_NO_DEATH) ? DM_END_DIED : DM_END_UNLOCKED);
    serve(place);
}

/* The lease begins now; a client counts its certainty from the sending, which was earlier. */
static void extend(struct place *place, uint32_t lease_ms)
{
    place->until_ns = world_now() + lease_ms * MS;
    world_at(place->until_ns, expire, place, place->token);
}

static struct dm_answer owned(const struct place *place)
{
    return (struct dm_answer){ .verdict = DM_SAYS_OWNED,
                               .token = place->token,
                               .is_owner_dead = place->is_dead_told,
                               .store_us = server_now_us() };
}

/* Tokens are moments of the server's clock, so that they rise over a loss of data, too. */
static void grant(struct place *place, const struct attempt *to, uint32_t lease_ms, bool is_robust)
{
    place->is_held = true;
    place->owner = *to;
    place->mark = DM_MARK_NONE;
    place->token = server_now_token() > place->token ? server_now_token() : place->token + 1;
    place->is_dead_told = is_robust && place->health == OWNER_DIED;
    if (!is_robust)
        place->health = WELL;
    extend(place, lease_ms);
    plain_judge_granted(place->index, is_robust, place->is_dead_told);
    check_granted(place->index, to->from->process->runtime.ident.uuid, to->thread, to->number, place->is_dead_told);
}

/* In the grace of a server without data nothing is free: the holders come back. */
static bool is_free(const struct place *place)
{
    return !place->is_held && world_now() >= grace_until_ns;
}

/* False from the end of the lease on, because expire() has ended the hold by then. */
static bool is_owner(const struct place *place, const struct attempt *attempt)
{
    return place->is_held && is_same(&place->owner, attempt);
}

/* ---- the queue --------------------------------------------------------------------------- */

/*
 * Returns the pointer to the waiter, so that the caller can take the waiter out; NULL is there if the attempt does not
 * wait.
 */
static struct queued **find(struct place *place, const struct attempt *attempt)
{
    struct queued **at = &place->queue;

    while (*at && !is_same(&(*at)->attempt, attempt))
        at = &(*at)->next;
    return at;
}

/* Frees nothing: the waiter's memory is the run's, as are all objects here. */
static void leave(struct place *place, const struct attempt *attempt)
{
    struct queued **at = find(place, attempt);

    if (*at)
        *at = (*at)->next;
}

/* A dead waiter keeps no other waiter waiting; if it lives, its next poll is answered UNKNOWN. */
static void drop_dead(struct place *place)
{
    struct queued **at = &place->queue;

    while (*at) {
        if ((*at)->live_until_ns < world_now())
            *at = (*at)->next;
        else
            at = &(*at)->next;
    }
}

/* A grant names the waiter's last request, from which the waiter's certainty counts. */
static void tell(struct place *place, const struct queued *queued, enum dm_message_kind kind)
{
    plain_tell(queued->attempt.from, &(struct dm_message){ .kind = kind,
                                                           .attempt = queued->attempt.number,
                                                           .request = queued->request,
                                                           .answer = owned(place) });
}

/* Grants a free lock to the first live waiter. */
static void serve(struct place *place)
{
    struct queued *first;

    drop_dead(place);
    first = place->queue;
    if (!first || !is_free(place))
        return;
    if (place->health == NOT_RECOVERABLE) {
        for (; first; first = first->next)
            tell(place, first, DM_MESSAGE_ASK);
        return;
    }
    place->queue = first->next;
    grant(place, &first->attempt, first->lease_ms, first->is_robust);
    tell(place, first, DM_MESSAGE_GRANTED);
}

/* For the end of the grace: the name may have waiters by then, and no release comes to serve them. */
static void serve_later(void *object, uint64_t number)
{
    (void)number;
    serve(object);
}

/* The owner by a marked hold is told of the first waiter, and of a try while nobody waits. */
static void tell_owner(struct place *place)
{
    bool is_first = !place->queue || !place->queue->next || hooks_has(STORE_TELLS_EACH_TIME);

    if (place->is_held && place->mark != DM_MARK_NONE && is_first && !hooks_has(STORE_TELLS_NOBODY))
        plain_tell(place->owner.from,
                   &(struct dm_message){ .kind = DM_MESSAGE_WANTED, .attempt = place->owner.number });
}

/* A waiter comes, comes back to an old place, or is heard of again. */
static struct queued *wait_in_line(struct place *place, const struct dm_question *question,
                                   const struct attempt *attempt)
{
    struct queued **at = find(place, attempt), *queued = *at;

    if (!queued) {
        queued = world_new(sizeof *queued);
        queued->attempt = *attempt;
        queued->arrival = question->arrival ? question->arrival : ++arrivals;
        for (at = &place->queue; *at && (*at)->arrival <= queued->arrival;)
            at = &(*at)->next;
        queued->next = *at;
        *at = queued;
        tell_owner(place);
    }
    queued->request = question->request.serial;
    queued->lease_ms = question->lease_ms;
    queued->is_robust = question->is_robust;
    queued->live_until_ns = world_now() + question->lease_ms * MS;
    return queued;
}

/* Rounded up: a waiter that comes back after this time is not too early. */
static int64_t left_ms(int64_t until_ns)
{
    return until_ns > world_now() ? (until_ns - world_now() + MS - 1) / MS : 0;
}

/* The wait is for the end of the hold, or, without a hold, of the grace. */
static struct dm_answer queued_answer(const struct place *place, const struct queued *queued)
{
    struct dm_answer answer = { .verdict = DM_SAYS_QUEUED,
                                .position = 1,
                                .arrival = queued->arrival,
                                .remaining_ms = left_ms(place->is_held ? place->until_ns : grace_until_ns),
                                .store_us = server_now_us() };

    for (const struct queued *before = place->queue; before != queued; before = before->next)
        answer.position++;
    return answer;
}

/* ---- questions --------------------------------------------------------------------------- */

static struct dm_answer only(enum dm_verdict verdict)
{
    return (struct dm_answer){ .verdict = verdict };
}

/* The holder asks once more: an answer or a message was lost. */
static struct dm_answer confirm(struct place *place, const struct dm_question *question)
{
    extend(place, question->lease_ms);
    return owned(place);
}

/*
 * First match wins:
 * 1. the attempt holds: the same hold once more, for a full lease
 * 2. nobody holds, and the data cannot be recovered: told so
 * 3. free, and nobody waits before the attempt: granted
 * 4. a try: busy
 * 5. the attempt waits, in its old place if it has one
 */
static struct dm_answer acquire(struct place *place, const struct dm_question *question, const struct attempt *attempt,
                                bool may_queue)
{
    struct queued *queued;

    drop_dead(place);
    if (is_owner(place, attempt))
        return confirm(place, question);
    if (place->health == NOT_RECOVERABLE && !place->is_held)
        return only(DM_SAYS_NOT_RECOVERABLE);
    if (is_free(place) && (!place->queue || is_same(&place->queue->attempt, attempt))) {
        leave(place, attempt);
        grant(place, attempt, question->lease_ms, question->is_robust);
        return owned(place);
    }
    if (!may_queue && !place->queue)
        tell_owner(place);
    if (!may_queue)
        return (struct dm_answer){ .verdict = DM_SAYS_BUSY,
                                   .remaining_ms = left_ms(place->until_ns),
                                   .grace_ms = place->is_held ? 0 : left_ms(grace_until_ns) };
    queued = wait_in_line(place, question, attempt);
    return queued_answer(place, queued);
}

/* The heartbeat of a waiter; a poll never puts an attempt into the queue. */
static struct dm_answer poll_for(struct place *place, const struct dm_question *question, const struct attempt *attempt)
{
    if (is_owner(place, attempt))
        return confirm(place, question);
    if (!*find(place, attempt))
        return only(DM_SAYS_UNKNOWN);
    return acquire(place, question, attempt, true);
}

/* The deadline of a waiter has passed: a grant that came first stands. */
static struct dm_answer cancel(struct place *place, const struct dm_question *question, const struct attempt *attempt)
{
    if (is_owner(place, attempt))
        return confirm(place, question);
    leave(place, attempt);
    return only(DM_SAYS_DONE);
}

/*
 * Ends a hold, or a place in the queue. A holder that was told of a death and has not mended comes with
 * DM_END_NOT_RECOVERABLE, so an unlock leaves nothing to mend.
 */
static struct dm_answer release(struct place *place, const struct attempt *attempt, enum dm_end end)
{
    if (is_owner(place, attempt)) {
        end_hold(place, end);
        if (end == DM_END_UNLOCKED)
            place->health = WELL;
        serve(place);
        return only(DM_SAYS_DONE);
    }
    if (!*find(place, attempt))
        return only(DM_SAYS_NOT_OWNER);
    leave(place, attempt);
    return only(DM_SAYS_DONE);
}

/* A hold that a server without data does not know comes back with its token. */
static struct dm_answer renew(struct place *place, const struct dm_question *question, const struct attempt *attempt)
{
    struct dm_answer answer;

    if (!place->is_held && question->renew.token > place->token) {
        place->is_held = true;
        place->owner = *attempt;
        place->token = question->renew.token;
        place->is_dead_told = false;
    }
    if (!is_owner(place, attempt))
        return only(DM_SAYS_UNKNOWN);
    place->mark = question->renew.mark;
    answer = confirm(place, question);
    answer.has_waiter = place->queue != NULL;
    return answer;
}

/* The holder has mended what a death left behind. */
static struct dm_answer mend(struct place *place, const struct attempt *attempt)
{
    if (!is_owner(place, attempt))
        return only(DM_SAYS_UNKNOWN);
    place->health = WELL;
    place->is_dead_told = false;
    return only(DM_SAYS_DONE);
}

/* The holder is told, but not asked; to the next holder the end looks like a death. */
static struct dm_answer force(struct place *place)
{
    if (place->is_held)
        plain_tell(place->owner.from, &(struct dm_message){ .kind = DM_MESSAGE_LOST, .attempt = place->owner.number });
    if (place->is_held)
        end_hold(place, DM_END_DIED);
    serve(place);
    return only(DM_SAYS_DONE);
}

/* Makes a name clean again that nobody uses. */
static struct dm_answer drop(struct place *place)
{
    drop_dead(place);
    if (place->is_held || place->queue)
        return only(DM_SAYS_BUSY);
    place->health = WELL;
    return only(DM_SAYS_DONE);
}

/* Tells no names, neither of the holder nor of waiters. */
static struct dm_answer tell_all(const struct place *place, dmutex_info_t *ret_info)
{
    ret_info->struct_size = sizeof *ret_info;
    ret_info->locked = place->is_held;
    ret_info->remaining_ms = place->is_held ? left_ms(place->until_ns) : 0;
    ret_info->token = place->token;
    return only(DM_SAYS_DONE);
}

static struct dm_answer answer(struct place *place, const struct asked *item, const struct attempt *attempt,
                               struct dm_info *ret_info)
{
    const struct dm_question *question = &item->question;

    switch (question->op) {
    case DM_OP_ACQUIRE:
        return acquire(place, question, attempt, question->acquire.may_queue);
    case DM_OP_POLL:
        return poll_for(place, question, attempt);
    case DM_OP_CANCEL:
        return cancel(place, question, attempt);
    case DM_OP_RELEASE:
        return release(place, attempt, question->release.end);
    case DM_OP_RENEW:
        return renew(place, question, attempt);
    case DM_OP_CONSISTENT:
        return mend(place, attempt);
    case DM_OP_FORCE:
        return force(place);
    case DM_OP_DROP:
        return drop(place);
    case DM_OP_INFO:
        return tell_all(place, &ret_info->shown);
    default:
        return only(DM_SAYS_UNSUPPORTED);
    }
}

/* ---- for the judge ----------------------------------------------------------------------- */

static struct plain_look look_at(const struct place *place)
{
    struct plain_look look = { .is_held = place->is_held,
                               .owner = place->is_held ? place->owner.from : NULL,
                               .attempt = place->is_held ? place->owner.number : 0 };

    for (const struct queued *queued = place->queue; queued; queued = queued->next)
        look.waiters += queued->live_until_ns >= world_now();
    return look;
}

/* A process gives each of its attempts another number. */
static void check_name(const struct place *place, const struct attempt *named, const struct attempt *known)
{
    if (named->from == known->from && named->number == known->number)
        plain_judge_named(place->index, named->number, named->thread, known->thread);
}

static void check_names(const struct place *place, const struct attempt *named)
{
    if (place->is_held)
        check_name(place, named, &place->owner);
    for (const struct queued *queued = place->queue; queued; queued = queued->next)
        check_name(place, named, &queued->attempt);
}

static void answer_about_name(struct plain *from, struct asked *item)
{
    const struct attempt attempt = { from, item->question.thread, item->question.attempt };
    struct place *place = &places[plain_index(item->question.place)];
    struct plain_look look = look_at(place);

    check_names(place, &attempt);
    plain_judge_begin(place->index, &look, item, is_owner(place, &attempt));
    item->answer = answer(place, item, &attempt, &item->more.info);
    look = look_at(place);
    plain_judge_end(place->index, &look, item);
}

/* One question, at one moment of true time: nothing happens between the parts of an answer. */
void locks_answer(struct plain *from, struct asked *item)
{
    enum dm_op op = item->question.op;

    if (op == DM_OP_COND_SIGNAL || op == DM_OP_COND_DROP)
        item->answer = only(DM_SAYS_DONE); /* nobody waits on a condition of this server */
    else
        answer_about_name(from, item);
}

/* ---- beginning, and the loss of all data ------------------------------------------------- */

/*
 * The waiters are forgotten, too; their polls are answered UNKNOWN, and they come again. At the end of the grace each
 * name serves the waiters that have come by then.
 */
void locks_forget(int64_t grace_ns)
{
    memset(places, 0, sizeof places);
    plain_judge_reset();
    grace_until_ns = world_now() + grace_ns;
    for (int i = 0; i < NAMES; i++) {
        places[i].index = i;
        world_at(grace_until_ns, serve_later, &places[i], 0);
    }
}

void locks_begin(void)
{
    arrivals = 0;
    locks_forget(0);
}
