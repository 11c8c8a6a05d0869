/* SPDX-License-Identifier: BSD-2-Clause */
#include "check.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const finding_names[FINDINGS] = {
    [FOUND_OVERLAP] = "two certain owners",
    [FOUND_TOKEN] = "a token that is not higher",
    [FOUND_DEPTH] = "a wrong depth",
    [FOUND_RELOCK] = "a hold that changed its token",
    [FOUND_NOT_OWNER] = "success of who owned nothing",
    [FOUND_LOST] = "a loss within the promised time",
    [FOUND_STALE] = "a stale token within the promised time",
    [FOUND_RESULT] = "a wrong result",
    [FOUND_EARLY] = "a timeout that came early",
    [FOUND_UNTOLD] = "a death that the next holder is not told",
    [FOUND_UNFINISHED] = "a call that does not return",
};

/* The holds of a process by one grant of the server have numbers from 0 on, the last bits of their tokens. */
#define TOKENS_OF_A_GRANT 4096

/*
 * A hold is certain for at least this long: 0.8 of a lease of 500 ms, by clocks that are wrong by 8 %, less a little.
 */
#define CERTAIN_LEAST_NS INT64_C(300000000)

/* From the grant to the end, as seen by one thread. */
struct hold {
    uint64_t token;
    int64_t asked_ns, from_ns;
    int64_t until_ns; /* certain until then; not after from_ns: never certain */
    unsigned track;
    enum name name;
    bool is_told_death;
    bool was_killed; /* the thread was killed inside, and not in a call that may have given the hold back */
};

/* A thread's ownership of a name, derived only from the thread's own calls. */
struct own {
    struct hold *hold; /* NULL: no hold */
    unsigned depth;
    bool may_mend;     /* the hold began with EOWNERDEAD */
    bool is_told_lost; /* a lock of the recursive mutex has said EPERM, and no unlock yet */
};

struct inquiry {
    const struct history *history;
    struct verdict *verdict;
    struct hold *holds;
    size_t hold_count;
    struct own (*owns)[NAMES]; /* by track */
    bool *has_open;            /* by track: an unfinished call */
};

__attribute__((format(printf, 4, 5))) static void note(struct inquiry *inquiry, enum finding finding,
                                                       const struct op *op, const char *format, ...)
{
    struct verdict *verdict = inquiry->verdict;
    va_list words;

    if (verdict_sum(verdict) == 0) {
        verdict->name = op->name;
        verdict->at_ns = op->began_ns;
    }
    if (verdict->found[finding]++ == 0) {
        int length = snprintf(verdict->first[finding], sizeof verdict->first[finding],
                              "%d.%d %s of %s: ", inquiry->history->tracks[op->track].process,
                              inquiry->history->tracks[op->track].thread, op_name(op), mutex_kinds[op->name].name);

        va_start(words, format);
        vsnprintf(verdict->first[finding] + length, sizeof verdict->first[finding] - (size_t)length, format, words);
        va_end(words);
    }
}

long verdict_sum(const struct verdict *verdict)
{
    long sum = 0;

    for (int i = 0; i < FINDINGS; i++)
        sum += verdict->found[i];
    return sum;
}

void verdict_add(struct verdict *verdict, const struct verdict *other)
{
    for (int i = 0; i < FINDINGS; i++)
        verdict->found[i] += other->found[i];
    memcpy(verdict->highest, other->highest, sizeof verdict->highest);
    verdict->operations += other->operations;
    verdict->holds += other->holds;
    verdict->certain_holds += other->certain_holds;
    verdict->local_holds += other->local_holds;
    verdict->dead_owners += other->dead_owners;
    verdict->reported_deaths += other->reported_deaths;
    verdict->losses += other->losses;
    verdict->given_up += other->given_up;
    verdict->waits += other->waits;
    verdict->stale += other->stale;
}

static struct own *own_of(struct inquiry *inquiry, const struct op *op)
{
    return &inquiry->owns[op->track][op->name];
}

/* ---- a hold's life ----------------------------------------------------------------------- */

/* True if the token of a hold may be missing; such a hold is not compared by tokens. */
static bool is_untold(const struct inquiry *inquiry, uint64_t token)
{
    return inquiry->history->may_be_untold && token == 0;
}

/*
 * A thread that the kernel stops between the return of a lock and the questions about the hold may find the hold lost.
 * How much of the certainty a hold had that the process handed on is not known.
 */
static bool may_be_lost(const struct inquiry *inquiry, const struct op *op)
{
    bool is_handed_on = op->token % TOKENS_OF_A_GRANT > 0;

    return (op->token || is_untold(inquiry, op->token)) && !op->depth && !op->certain_ns &&
           (is_handed_on || op->told_ns - op->began_ns > CERTAIN_LEAST_NS);
}

static void begin_hold(struct inquiry *inquiry, const struct op *op, unsigned depth)
{
    struct hold *hold = &inquiry->holds[inquiry->hold_count++];

    *hold = (struct hold){ .token = op->token,
                           .asked_ns = op->began_ns,
                           .from_ns = op->ended_ns,
                           .until_ns = op->certain_ns,
                           .track = op->track,
                           .name = op->name,
                           .is_told_death = op->result == EOWNERDEAD };
    inquiry->verdict->local_holds += op->token % TOKENS_OF_A_GRANT > 0;
    *own_of(inquiry, op) = (struct own){ .hold = hold, .depth = depth, .may_mend = op->result == EOWNERDEAD };
    if (op->depth != depth && !may_be_lost(inquiry, op))
        note(inquiry, FOUND_DEPTH, op, "%u, not %u", op->depth, depth);
}

static void end_hold(struct own *own, int64_t at_ns)
{
    if (own->hold && own->hold->until_ns > at_ns)
        own->hold->until_ns = at_ns;
    *own = (struct own){ .hold = NULL };
}

/* Extends a hold if a later call reports a later end of certainty. */
static void go_on(struct own *own, const struct op *op)
{
    if (own->hold && op->token == own->hold->token && op->certain_ns > own->hold->until_ns)
        own->hold->until_ns = op->certain_ns;
}

static bool is_certain(const struct own *own, int64_t at_ns)
{
    return own->hold && own->hold->until_ns > at_ns;
}

/* ---- one call ---------------------------------------------------------------------------- */

static bool is_owning(const struct op *op)
{
    return op->result == 0 || op->result == EOWNERDEAD || (op_is_wait(op) && op->result == ETIMEDOUT);
}

/* True if the caller's object is robust. */
static bool is_robust(const struct inquiry *inquiry, const struct op *op)
{
    return mutex_kinds[op->name].is_robust && !(inquiry->history->tracks[op->track].not_robust & 1u << op->name);
}

static bool is_recursive(const struct op *op)
{
    return mutex_kinds[op->name].type == PTHREAD_MUTEX_RECURSIVE;
}

/* A recursive mutex only gets deeper until an unlock; other types start afresh once the hold was lost. */
static void judge_locked(struct inquiry *inquiry, const struct op *op)
{
    struct own *own = own_of(inquiry, op);

    if (!own->hold) {
        begin_hold(inquiry, op, 1);
    } else if (is_recursive(op) && op->token == own->hold->token && !own->is_told_lost) {
        own->depth++;
        if (op->depth != own->depth)
            note(inquiry, FOUND_DEPTH, op, "%u, not %u", op->depth, own->depth);
        go_on(own, op);
    } else {
        if (is_recursive(op) || is_certain(own, op->ended_ns))
            note(inquiry, FOUND_RELOCK, op, "token %llu while its own %llu was %s", (unsigned long long)op->token,
                 (unsigned long long)own->hold->token, is_recursive(op) ? "not unlocked" : "certain");
        end_hold(own, op->ended_ns);
        begin_hold(inquiry, op, 1);
    }
}

/*
 * Judges a refused lock of a recursive mutex that the thread has not unlocked: EPERM after a loss, no other refusal.
 * The hold stays with the thread until an unlock.
 */
static void judge_refused_deeper(struct inquiry *inquiry, const struct op *op)
{
    struct own *own = own_of(inquiry, op);

    if (op->result != EPERM)
        note(inquiry, FOUND_RESULT, op, "%s", strerrorname_np(op->result));
    else if (is_certain(own, op->ended_ns))
        note(inquiry, FOUND_LOST, op, "EPERM, and token %llu was certain", (unsigned long long)own->hold->token);
    if (op->depth && op->result == EPERM)
        note(inquiry, FOUND_DEPTH, op, "%u, not 0", op->depth);
    own->is_told_lost |= op->result == EPERM;
}

/* Judges the result of a lock call that did not get the mutex. */
static void judge_refused(struct inquiry *inquiry, const struct op *op)
{
    const struct own *own = own_of(inquiry, op);
    bool may = false;

    switch (op->result) {
    case EBUSY:
        may = op->kind == OP_TRYLOCK;
        break;
    case ETIMEDOUT:
        may = op->kind == OP_TIMEDLOCK;
        break;
    case EDEADLK:
        may = mutex_kinds[op->name].type == PTHREAD_MUTEX_ERRORCHECK && own->hold;
        break;
    case ENOLCK:
        may = op->kind == OP_TRYLOCK;
        break;
    case EAGAIN:
        may = true;
        break;
    default:
        break;
    }
    if (!may)
        note(inquiry, FOUND_RESULT, op, "%s", strerrorname_np(op->result));
}

static void judge_lock(struct inquiry *inquiry, const struct op *op)
{
    if (!is_owning(op)) {
        if (is_recursive(op) && own_of(inquiry, op)->hold)
            judge_refused_deeper(inquiry, op);
        else
            judge_refused(inquiry, op);
        return;
    }
    if (op->result == EOWNERDEAD && !is_robust(inquiry, op))
        note(inquiry, FOUND_RESULT, op, "EOWNERDEAD, and it is not robust");
    judge_locked(inquiry, op);
}

/* "Not yours": the hold must no longer have been certain.  The caller has left it in any case. */
static void judge_lost(struct inquiry *inquiry, const struct op *op)
{
    struct own *own = own_of(inquiry, op);

    if (is_certain(own, op->ended_ns))
        note(inquiry, FOUND_LOST, op, "token %llu was certain for %.3f ms more", (unsigned long long)own->hold->token,
             (double)(own->hold->until_ns - op->ended_ns) / 1e6);
    if (own->hold)
        inquiry->verdict->losses++;
    end_hold(own, op->began_ns);
}

static void judge_unlock(struct inquiry *inquiry, const struct op *op)
{
    struct own *own = own_of(inquiry, op);

    if (op->result == EPERM) {
        judge_lost(inquiry, op);
    } else if (op->result) {
        note(inquiry, FOUND_RESULT, op, "%s", strerrorname_np(op->result));
    } else if (!own->hold || own->is_told_lost) {
        note(inquiry, FOUND_NOT_OWNER, op, "0");
    } else {
        if (op->depth != own->depth - 1)
            note(inquiry, FOUND_DEPTH, op, "%u, not %u", op->depth, own->depth - 1);
        if (--own->depth == 0)
            end_hold(own, op->began_ns);
    }
}

static void judge_consistent(struct inquiry *inquiry, const struct op *op)
{
    struct own *own = own_of(inquiry, op);

    if (op->result == 0 && !own->may_mend)
        note(inquiry, FOUND_NOT_OWNER, op, "nothing was to be mended");
    if (op->result == EINVAL && is_certain(own, op->ended_ns))
        note(inquiry, FOUND_LOST, op, "EINVAL");
    else if (op->result && op->result != EINVAL && op->result != ENOLCK)
        note(inquiry, FOUND_RESULT, op, "%s", strerrorname_np(op->result));
    if (op->result == 0)
        own->may_mend = false;
    go_on(own, op);
}

/* Ends the hold at the begin of the wait, and begins a new hold at the wait's return. */
static void judge_waited(struct inquiry *inquiry, const struct op *op)
{
    struct own *own = own_of(inquiry, op);
    unsigned depth = own->depth;

    if (!own->hold)
        note(inquiry, FOUND_NOT_OWNER, op, "waited");
    else if (op->token <= own->hold->token)
        note(inquiry, FOUND_TOKEN, op, "%llu, it had %llu before", (unsigned long long)op->token,
             (unsigned long long)own->hold->token);
    end_hold(own, op->began_ns);
    begin_hold(inquiry, op, depth);
}

/*
 * Counts a loss; or the wait's request got no answer and the repetition was refused, which ends a certain hold, too.
 */
static void judge_given_up(struct inquiry *inquiry, const struct op *op)
{
    struct own *own = own_of(inquiry, op);

    inquiry->verdict->given_up += is_certain(own, op->ended_ns);
    inquiry->verdict->losses += own->hold != NULL;
    end_hold(own, op->began_ns);
}

static void judge_wait(struct inquiry *inquiry, const struct op *op)
{
    struct own *own = own_of(inquiry, op);

    inquiry->verdict->waits++;
    if (is_owning(op) && !(op->kind == OP_WAIT && op->result == ETIMEDOUT)) {
        judge_waited(inquiry, op);
    } else if (op->result == EPERM) {
        judge_given_up(inquiry, op);
    } else if (op->result == EAGAIN && op->depth) {
        go_on(own, op);
    } else {
        note(inquiry, FOUND_RESULT, op, "%s", strerrorname_np(op->result));
        end_hold(own, op->began_ns);
    }
}

static void judge_signal(struct inquiry *inquiry, const struct op *op)
{
    if (op->result && op->result != ENOLCK)
        note(inquiry, FOUND_RESULT, op, "%s", strerrorname_np(op->result));
    go_on(own_of(inquiry, op), op);
}

static void judge_touch(struct inquiry *inquiry, const struct op *op)
{
    struct own *own = own_of(inquiry, op);

    go_on(own, op);
    if (op->result == 0)
        return;
    inquiry->verdict->stale++;
    if (is_certain(own, op->ended_ns))
        note(inquiry, FOUND_STALE, op, "token %llu", (unsigned long long)own->hold->token);
}

static void judge(struct inquiry *inquiry, const struct op *op)
{
    static void (*const judges[OP_KINDS])(struct inquiry *, const struct op *) = {
        [OP_LOCK] = judge_lock,      [OP_TRYLOCK] = judge_lock,          [OP_TIMEDLOCK] = judge_lock,
        [OP_UNLOCK] = judge_unlock,  [OP_CONSISTENT] = judge_consistent, [OP_WAIT] = judge_wait,
        [OP_TIMEDWAIT] = judge_wait, [OP_SIGNAL] = judge_signal,         [OP_BROADCAST] = judge_signal,
        [OP_TOUCH] = judge_touch,
    };

    judges[op->kind](inquiry, op);
    inquiry->verdict->operations += op->kind != OP_TOUCH;
    inquiry->verdict->reported_deaths += op->result == EOWNERDEAD;
    if (op->result == ETIMEDOUT && op->left_ns > 0)
        note(inquiry, FOUND_EARLY, op, "%lld ns too soon", (long long)op->left_ns);
}

/* ---- a thread's end ---------------------------------------------------------------------- */

/* Judges an unfinished call, or a later call: only a killed thread may have an unfinished call, as the last call. */
static void judge_open(struct inquiry *inquiry, const struct op *op)
{
    const struct track *track = &inquiry->history->tracks[op->track];

    if (!track->killed_ns || inquiry->has_open[op->track])
        note(inquiry, FOUND_UNFINISHED, op, "since then");
    inquiry->has_open[op->track] = true;
    /* The call may have released the mutex. */
    if (op->kind == OP_UNLOCK || op_is_wait(op))
        end_hold(own_of(inquiry, op), op->began_ns);
}

static void end_tracks(struct inquiry *inquiry)
{
    for (unsigned i = 0; i < inquiry->history->track_count; i++) {
        int64_t killed_ns = inquiry->history->tracks[i].killed_ns;

        for (int name = 0; name < NAMES; name++) {
            struct own *own = &inquiry->owns[i][name];

            if (own->hold && killed_ns) {
                inquiry->verdict->dead_owners++;
                own->hold->was_killed = true;
                end_hold(own, killed_ns);
            }
        }
    }
}

/* ---- all holds --------------------------------------------------------------------------- */

static int compare(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int by_name_and_start(const void *a, const void *b)
{
    const struct hold *one = a, *other = b;

    if (one->name != other->name)
        return (int)one->name - (int)other->name;
    return compare(one->from_ns, other->from_ns);
}

/* Makes a record of a hold, for note(). */
static struct op op_of(const struct hold *hold)
{
    return (struct op){
        .kind = OP_LOCK, .track = (uint16_t)hold->track, .name = (uint8_t)hold->name, .began_ns = hold->from_ns
    };
}

static bool was_certain(const struct hold *hold)
{
    return hold->until_ns > hold->from_ns;
}

/* Compares the certain holds of a name: no two at a time, and tokens rise. */
static void compare_certain(struct inquiry *inquiry, const struct hold *first, const struct hold *end)
{
    const struct hold *longest = NULL;
    uint64_t highest = 0;

    for (const struct hold *hold = first; hold < end; hold++) {
        struct op op = op_of(hold);

        if (!was_certain(hold))
            continue;
        inquiry->verdict->certain_holds++;
        if (longest && longest->until_ns > hold->from_ns)
            note(inquiry, FOUND_OVERLAP, &op, "token %llu, beside token %llu of %d.%d for %.3f ms",
                 (unsigned long long)hold->token, (unsigned long long)longest->token,
                 inquiry->history->tracks[longest->track].process, inquiry->history->tracks[longest->track].thread,
                 (double)(longest->until_ns - hold->from_ns) / 1e6);
        else if (hold->token <= highest && !is_untold(inquiry, hold->token))
            note(inquiry, FOUND_TOKEN, &op, "%llu after %llu", (unsigned long long)hold->token,
                 (unsigned long long)highest);
        if (!longest || hold->until_ns > longest->until_ns)
            longest = hold;
        if (hold->token > highest)
            highest = hold->token;
    }
}

static int by_question(const void *a, const void *b)
{
    const struct hold *one = *(const struct hold *const *)a, *other = *(const struct hold *const *)b;

    return compare(one->asked_ns, other->asked_ns);
}

/* Compares all holds of a name: a request made after the answer to another request gets a higher token. */
static void compare_tokens(struct inquiry *inquiry, const struct hold *first, const struct hold *end)
{
    size_t count = (size_t)(end - first);
    const struct hold **asked = malloc((count + 1) * sizeof *asked), *answered = first;
    uint64_t before = inquiry->verdict->highest[first->name], *highest = &inquiry->verdict->highest[first->name];

    for (size_t i = 0; i < count; i++)
        asked[i] = &first[i];
    qsort(asked, count, sizeof *asked, by_question);
    for (size_t i = 0; i < count; i++) {
        for (; answered < end && answered->from_ns <= asked[i]->asked_ns; answered++)
            before = answered->token > before ? answered->token : before;
        if (asked[i]->token <= before && !is_untold(inquiry, asked[i]->token)) {
            struct op op = op_of(asked[i]);

            note(inquiry, FOUND_TOKEN, &op, "%llu, and %llu was there before it asked",
                 (unsigned long long)asked[i]->token, (unsigned long long)before);
        }
        *highest = asked[i]->token > *highest ? asked[i]->token : *highest;
    }
    free(asked);
}

static int by_token(const void *a, const void *b)
{
    const struct hold *one = *(const struct hold *const *)a, *other = *(const struct hold *const *)b;

    return (one->token > other->token) - (one->token < other->token);
}

/* True if deaths of the name can be judged: every object of the name is robust, and no server has forgotten a death. */
static bool is_each_death_told(const struct inquiry *inquiry, enum name name)
{
    const struct history *history = inquiry->history;
    bool is_robust_everywhere = mutex_kinds[name].is_robust;

    for (unsigned i = 0; i < history->track_count; i++)
        is_robust_everywhere = is_robust_everywhere && !(history->tracks[i].not_robust & 1u << name);
    return is_robust_everywhere && !history->may_forget;
}

/*
 * Compares the holds of a name in the order of their tokens: a thread that was killed inside leaves a death, which the
 * next holder must get.  A holder that was killed before its call returned is in no record, but leaves the death there.
 */
static void compare_deaths(struct inquiry *inquiry, const struct hold *first, const struct hold *end)
{
    size_t count = (size_t)(end - first);
    const struct hold **given;

    if (!is_each_death_told(inquiry, first->name))
        return;
    given = malloc((count + 1) * sizeof *given);
    for (size_t i = 0; i < count; i++)
        given[i] = &first[i];
    qsort(given, count, sizeof *given, by_token);
    /* A hold without a token has no place in the order. */
    for (size_t i = 1; i < count && !is_untold(inquiry, given[0]->token); i++) {
        if (given[i - 1]->was_killed && !given[i]->is_told_death) {
            struct op op = op_of(given[i]);

            note(inquiry, FOUND_UNTOLD, &op, "token %llu, and token %llu died inside",
                 (unsigned long long)given[i]->token, (unsigned long long)given[i - 1]->token);
        }
    }
    free(given);
}

static void compare_holds(struct inquiry *inquiry)
{
    struct hold *first = inquiry->holds, *end = inquiry->holds + inquiry->hold_count;

    qsort(first, inquiry->hold_count, sizeof *first, by_name_and_start);
    while (first < end) {
        struct hold *next = first;

        while (next < end && next->name == first->name)
            next++;
        compare_certain(inquiry, first, next);
        compare_tokens(inquiry, first, next);
        compare_deaths(inquiry, first, next);
        first = next;
    }
}

void check_history(const struct history *history, struct verdict *verdict)
{
    size_t size = history_size(history);
    struct inquiry inquiry = { .history = history, .verdict = verdict };

    inquiry.holds = calloc(size + 1, sizeof *inquiry.holds);
    inquiry.owns = calloc(history->track_count + 1, sizeof *inquiry.owns);
    inquiry.has_open = calloc(history->track_count + 1, sizeof *inquiry.has_open);
    for (size_t i = 0; i < size; i++) {
        const struct op *op = &history->ops[i];

        if (op->kind && op->ended_ns && !inquiry.has_open[op->track])
            judge(&inquiry, op);
        else if (op->kind)
            judge_open(&inquiry, op);
    }
    end_tracks(&inquiry);
    compare_holds(&inquiry);
    verdict->holds += (long)inquiry.hold_count;
    free(inquiry.holds);
    free(inquiry.owns);
    free(inquiry.has_open);
}
