/* SPDX-License-Identifier: BSD-2-Clause */
/* core/attempt on random walks: invariants that hold for all answers of the store, in any order. */
#include "attempt_clock.h"

#include <string.h>

#include "random.h"

#define STEPS 400
#define REQUESTS_MAX (STEPS + 1)

/* The walk's records beside the attempt: each request of the present serial, by number. */
static struct {
    struct dm_request sent[REQUESTS_MAX];
    uint64_t last;
    int64_t proven_ns; /* the latest moment proven by an "owned" */
    int tells;
    int steps_over; /* steps since the attempt ended for good */
    int64_t now_ns;
} walk;

static void begin_walk(void)
{
    memset(&walk, 0, sizeof walk);
    walk.now_ns = BEGINNING_NS;
    begin(100 + random_below(2000), random_below(3) ? 0 : 1 + random_below(4000));
}

static void send_some(void)
{
    struct dm_request request = dm_attempt_send_due(&attempt, walk.now_ns);

    walk.last = request.serial;
    walk.sent[walk.last] = request;
}

/* Mostly returns verdicts that keep an attempt going: refusals would end most walks at the first step. */
static enum dm_verdict random_verdict(void)
{
    static const enum dm_verdict usual[] = { DM_SAYS_OWNED,  DM_SAYS_OWNED,   DM_SAYS_OWNED,   DM_SAYS_QUEUED,
                                             DM_SAYS_QUEUED, DM_SAYS_WAITING, DM_SAYS_UNKNOWN, DM_SAYS_NOTHING };

    if (random_below(40) == 0)
        return (enum dm_verdict)random_below(DM_SAYS_DONE + 1);
    return usual[random_below(sizeof usual / sizeof usual[0])];
}

static struct dm_answer random_answer(void)
{
    return (struct dm_answer){
        .verdict = random_verdict(),
        .is_owner_dead = random_below(2),
        .is_wanted = random_below(2),
        .token = random_below(1000),
        .position = random_below(20),
        .arrival = random_below(5),
        .remaining_ms = random_below(3000),
    };
}

static struct dm_event random_event(struct dm_answer *answer)
{
    struct dm_event event = { .kind = (enum dm_event_kind)random_below(DM_EV_GIVEN_BACK + 1),
                              .request = random_below((unsigned)walk.last + 3),
                              .answer = answer };

    if (event.kind != DM_EV_ANSWER && event.kind != DM_EV_GRANTED && random_below(8))
        event.kind = DM_EV_RENEWED;
    if (event.kind == DM_EV_GRANTED)
        answer->verdict = DM_SAYS_OWNED;
    return event;
}

static bool is_proof(const struct dm_event *event)
{
    bool is_answer = event->kind == DM_EV_ANSWER || event->kind == DM_EV_GRANTED || event->kind == DM_EV_RENEWED;

    return is_answer && event->request != 0 && event->request <= walk.last && event->answer->verdict == DM_SAYS_OWNED;
}

static void note_proof(const struct dm_event *event)
{
    const struct dm_request *request = &walk.sent[event->request];
    int64_t until_ns;

    if (!is_proof(event))
        return;
    until_ns = request->sent_ns + attempt.lease_ms * DM_NS_PER_MS * 8 / 10;
    if (until_ns > walk.proven_ns)
        walk.proven_ns = until_ns;
}

/* I1: certain no longer than proven.  I4: an attempt that is over or lost never holds again. */
static void check_step(const struct dm_attempt *before, const struct dm_event *event, unsigned actions)
{
    bool was_over = before->phase == DM_OVER || before->phase == DM_LOST;
    bool says_owned =
        event->kind == DM_EV_GRANTED || (event->kind == DM_EV_ANSWER && event->answer->verdict == DM_SAYS_OWNED);

    if (dm_attempt_is_certain(&attempt, walk.now_ns))
        assert_true(walk.now_ns < walk.proven_ns);
    if (attempt.phase == DM_HELD) {
        assert_false(was_over);
        assert_true(attempt.certain_until_ns <= walk.proven_ns);
        assert_true(attempt.depth >= 1);
    }
    if (before->phase == DM_OVER)
        assert_int_equal(attempt.phase, DM_OVER);
    if (was_over && says_owned)
        assert_int_equal(actions, DM_DO_GIVE_BACK);
    if (before->phase == DM_HELD && attempt.phase != DM_HELD && attempt.phase != DM_LEAVING)
        assert_true(actions & DM_DO_GIVE_BACK);
    if (before->phase == DM_LEAVING && attempt.phase != DM_LEAVING)
        assert_true(event->kind == DM_EV_STAY || event->kind == DM_EV_GIVEN_BACK);
    if (attempt.phase == DM_WAITING)
        assert_true(before->phase == DM_ASKING || before->phase == DM_WAITING);
    if (actions & (DM_DO_RENEW | DM_DO_POLL))
        assert_true(attempt.phase == DM_HELD || dm_attempt_is_waiting(&attempt));
    if (actions & DM_DO_TELL_LOST)
        assert_int_equal(walk.tells++, 0);
}

/* Lets time pass.  Afterwards the attempt waits for a later moment, because the loop would spin otherwise. */
static void check_time(void)
{
    struct dm_event time = { .kind = DM_EV_TIME };
    struct dm_attempt before = attempt;
    unsigned actions = dm_attempt_step(&attempt, &time, walk.now_ns);

    check_step(&before, &time, actions);
    if (actions & (DM_DO_RENEW | DM_DO_POLL))
        send_some();
    assert_true(dm_attempt_next_ns(&attempt) > walk.now_ns);
}

static void step_at_random(void)
{
    struct dm_answer answer = random_answer();
    struct dm_event event = random_event(&answer);
    struct dm_attempt before = attempt;
    unsigned actions;

    if (event.kind == DM_EV_TIME)
        event.answer = NULL;
    else
        note_proof(&event);
    actions = dm_attempt_step(&attempt, &event, walk.now_ns);
    check_step(&before, &event, actions);
    if (attempt.phase == DM_HELD && random_below(2))
        attempt.is_entered = true;
    if (actions & DM_DO_NEW_SERIAL) {
        assert_int_equal(attempt.phase, DM_ASKING);
        dm_attempt_rename(&attempt, attempt.serial + 1);
        walk.last = 0;
        walk.proven_ns = 0;
    }
}

/* A hold is never certain beyond proof, and an ended attempt stays ended, for all answers of the store. */
static void test_attempt_keeps_its_promises_when_the_store_says_anything(void **state)
{
    int walks = rounds(20000);

    (void)state;
    while (walks-- > 0) {
        begin_walk();
        for (int i = 0; i < STEPS && walk.steps_over < 20; i++) {
            walk.now_ns += random_below(50) * DM_NS_PER_MS;
            if (attempt.phase == DM_ASKING)
                send_some();
            step_at_random();
            check_time();
            walk.steps_over += attempt.phase == DM_OVER || attempt.phase == DM_LOST;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_attempt_keeps_its_promises_when_the_store_says_anything),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
