/* SPDX-License-Identifier: BSD-2-Clause */
#include "store/ask.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/self.h"
#include "store/calls.h"

/*
 * Who frees the record: the thread that sees ANSWERED, or the handler that finds LEFT.  While ANSWERING, the handler
 * wakes the thread, which therefore stays until ANSWERED: nothing may post to a thread that has returned.
 */
enum state { WAITING, ANSWERING, ANSWERED, LEFT };

/* A question under way. */
struct asked {
    enum state state; /* atomic */
    struct dm_self *self;
    struct dm_answer answer;
    union dm_more more;
    char refusal[DM_REASON_ROOM];
};

static bool change(struct asked *asked, enum state from, enum state to)
{
    return __atomic_compare_exchange_n(&asked->state, &from, to, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

/* A dm_answers_fn. */
static void answered(void *user, const struct dm_answer *answers, int count, const char *refusal)
{
    struct asked *asked = user;

    (void)count; /* 1 */
    if (!change(asked, WAITING, ANSWERING)) {
        free(asked);
        return;
    }
    if (answers)
        asked->answer = *answers;
    if (refusal && asked->answer.verdict == DM_SAYS_NOTHING)
        asked->answer.verdict = DM_SAYS_REFUSED;
    snprintf(asked->refusal, sizeof asked->refusal, "%s", refusal ? refusal : "");
    dm_self_wake(asked->self);
    __atomic_store_n(&asked->state, ANSWERED, __ATOMIC_RELEASE);
}

/*
 * A question that has been given up is not sent: the thread that gave it up sends a release next.  REFUSED: waiting for
 * the way is useless.
 */
static enum dm_verdict submit(struct dm_store *store, const struct dm_question *question, struct asked *asked,
                              const struct dm_deadline *deadline)
{
    for (;;) {
        bool is_able;

        if (dm_self_is_given_up() && question->op != DM_OP_RELEASE)
            return DM_SAYS_NOTHING;
        if (dm_store_submit(store, question, 1, answered, asked))
            return DM_SAYS_DONE;
        is_able = dm_store_is_able(store, question->place, DM_ASKS);
        if (is_able || !dm_store_await_able(store, question->place, DM_ASKS, deadline))
            return is_able || dm_deadline_left_ns(deadline) == 0 ? DM_SAYS_NOTHING : DM_SAYS_REFUSED;
    }
}

/* False when the deadline has passed; then the record is the handler's. */
static bool await(struct dm_store *store, const struct dm_place *place, struct asked *asked,
                  const struct dm_deadline *deadline)
{
    while (__atomic_load_n(&asked->state, __ATOMIC_ACQUIRE) != ANSWERED) {
        if (dm_deadline_left_ns(deadline) == 0 && change(asked, WAITING, LEFT))
            return false;
        if (__atomic_load_n(&asked->state, __ATOMIC_ACQUIRE) == WAITING)
            dm_store_sleep(store, place, DM_ASKS, deadline, PTHREAD_CANCEL_DISABLE);
        else
            sched_yield();
    }
    return true;
}

struct dm_answer dm_ask_by_submit(struct dm_store *store, const struct dm_question *question,
                                  const struct dm_deadline *deadline, char ret_reason[DM_REASON_ROOM])
{
    struct asked *asked = calloc(1, sizeof *asked);
    struct dm_answer answer = { .verdict = DM_SAYS_NOTHING };
    struct dm_question sent = *question;

    if (!asked) {
        snprintf(ret_reason, DM_REASON_ROOM, "out of memory");
        return answer;
    }
    asked->self = dm_self_get();
    sent.ret_more = &asked->more;
    answer.verdict = submit(store, &sent, asked, deadline);
    if (answer.verdict == DM_SAYS_DONE) {
        answer.verdict = DM_SAYS_NOTHING;
        if (!await(store, question->place, asked, deadline)) {
            dm_store_reason(store, question->place, DM_ASKS, ret_reason);
            return answer;
        }
        answer = asked->answer;
        if (asked->refusal[0])
            snprintf(ret_reason, DM_REASON_ROOM, "%s", asked->refusal);
        if (question->ret_more && (answer.verdict == DM_SAYS_DONE || answer.verdict == DM_SAYS_BOUND))
            *question->ret_more = asked->more;
    }
    if (answer.verdict == DM_SAYS_NOTHING || (answer.verdict == DM_SAYS_REFUSED && !ret_reason[0]))
        dm_store_reason(store, question->place, DM_ASKS, ret_reason);
    free(asked);
    return answer;
}
