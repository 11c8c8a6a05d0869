/* SPDX-License-Identifier: BSD-2-Clause */
/* core/hold on random walks: the invariants, with random events, answers and sendings in any order. */
#include "hold_clock.h"

#include <string.h>

#include "random.h"

#define STEPS 400
#define REQUESTS_MAX (2 * STEPS + 2)

/*
 * What the walk records besides the hold: the requests of the current serial, by number, and the consequences to check.
 */
static struct {
    struct dm_request sent[REQUESTS_MAX];
    uint64_t last;
    int64_t proven_ns; /* the latest moment that an "owned" proves */
    int64_t needed_ns; /* until when a pending release must be wanted */
    int64_t now_ns;
    int losses, tells; /* of an entered hold */
    bool is_answered;  /* the last release was confirmed */
    int steps_over;    /* steps since the attempt was over */
} walk;

static void begin_walk(void)
{
    memset(&walk, 0, sizeof walk);
    walk.now_ns = BEGINNING_NS;
    begin(100 + random_below(2000), random_below(3) ? 0 : 1 + random_below(4000));
}

/* ---- events ------------------------------------------------------------------------------ */

/* Mostly answers that keep an attempt going: a refusal would end most walks at their first step. */
static enum dm_verdict random_verdict(void)
{
    static const enum dm_verdict usual[] = { DM_SAYS_OWNED,   DM_SAYS_OWNED,   DM_SAYS_OWNED,   DM_SAYS_QUEUED,
                                             DM_SAYS_QUEUED,  DM_SAYS_WAITING, DM_SAYS_UNKNOWN, DM_SAYS_NOTHING,
                                             DM_SAYS_NOTHING, DM_SAYS_AGAIN };

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
        .has_waiter = random_below(2),
        .token = random_below(1000),
        .position = random_below(20),
        .arrival = random_below(5),
        .remaining_ms = random_below(3000),
    };
}

/* An event of the thread, where the thread can make the event; else an answer. */
static enum dm_event_kind random_thread_event(void)
{
    switch (random_below(12)) {
    case 0:
        return hold.phase < DM_RETURNING || !hold.is_entered ? DM_EV_GIVEN_BACK : DM_EV_TIME;
    case 1:
        return hold.phase == DM_HELD && hold.is_entered ? DM_EV_LEAVE : DM_EV_POLLED;
    case 2:
        return random_below(10) ? DM_EV_RENEWED : DM_EV_THREAD_ENDS;
    case 3:
        return random_below(10) ? DM_EV_GRANTED : DM_EV_PROCESS_ENDS;
    case 4:
    case 5:
        return DM_EV_STAY;
    case 6:
        return hold.phase > DM_LEAVING ? DM_EV_CLOSED : DM_EV_TIME;
    default:
        return hold.phase == DM_HELD && !hold.is_entered ? DM_EV_ENTERED : DM_EV_MENDED;
    }
}

static struct dm_event random_event(struct dm_answer *answer)
{
    static const enum dm_event_kind usual[] = { DM_EV_ANSWER,     DM_EV_ANSWER,   DM_EV_POLLED,  DM_EV_RENEWED,
                                                DM_EV_RENEWED,    DM_EV_RELEASED, DM_EV_GRANTED, DM_EV_SIGNALLED,
                                                DM_EV_TOLD_LOST,  DM_EV_WANTED,   DM_EV_WANTED,  DM_EV_CONNECTED,
                                                DM_EV_SUBSCRIBED, DM_EV_TOLD_ASK };
    struct dm_event event = { .request = random_below((unsigned)walk.last + 3),
                              .answer = answer,
                              .server = random_below(2),
                              .end = (enum dm_end)random_below(3) };

    event.kind = random_below(3) ? usual[random_below(sizeof usual / sizeof usual[0])] : random_thread_event();
    if (event.kind == DM_EV_GRANTED)
        answer->verdict = DM_SAYS_OWNED;
    if (event.kind == DM_EV_RELEASED)
        answer->verdict = random_below(2) ? DM_SAYS_NOTHING : random_below(2) ? DM_SAYS_DONE : DM_SAYS_NOT_OWNER;
    if (event.kind == DM_EV_TOLD_LOST && random_below(4))
        event.kind = DM_EV_TOLD_ASK;
    if (event.kind > DM_EV_SIGNALLED)
        event.answer = NULL;
    return event;
}

/* ---- invariants -------------------------------------------------------------------------- */

static bool is_proof(const struct dm_event *event)
{
    bool is_answer = event->kind == DM_EV_ANSWER || event->kind == DM_EV_POLLED || event->kind == DM_EV_GRANTED ||
                     event->kind == DM_EV_RENEWED;

    return is_answer && event->request != 0 && event->request <= walk.last && event->answer->verdict == DM_SAYS_OWNED;
}

static void note_proof(const struct dm_event *event)
{
    int64_t until_ns;

    if (!is_proof(event))
        return;
    until_ns = walk.sent[event->request].sent_ns + hold.lease_ms * DM_NS_PER_MS * 8 / 10;
    if (until_ns > walk.proven_ns)
        walk.proven_ns = until_ns;
}

/* I1: certain no longer than proven. */
static void check_certainty(void)
{
    if (dm_hold_is_certain(&hold, walk.now_ns))
        assert_true(walk.now_ns < walk.proven_ns);
    if (hold.phase == DM_HELD) {
        assert_true(hold.certain_until_ns <= walk.proven_ns);
        assert_true(hold.depth >= 1);
    }
}

/* I4: a lost attempt never holds again, and an attempt that the thread gave back only returns and ends. */
static void check_phases(const struct dm_hold *before, const struct dm_event *event)
{
    if (before->phase >= DM_LOST)
        assert_true(hold.phase >= DM_LOST);
    if (before->phase >= DM_RETURNING)
        assert_true(hold.phase >= DM_RETURNING);
    if (before->phase == DM_LEAVING && hold.phase == DM_HELD)
        assert_int_equal(event->kind, DM_EV_STAY);
    if (hold.phase == DM_WAITING)
        assert_true(before->phase == DM_ASKING || before->phase == DM_WAITING);
    assert_int_equal(hold.phase == DM_RETURNING, hold.phase >= DM_RETURNING && hold.back.is_pending);
}

/* A hold begins unwanted; later only the store's word "somebody waits" makes the hold wanted. */
static void check_wanted(const struct dm_hold *before, const struct dm_event *event)
{
    bool is_told = event->kind == DM_EV_WANTED || (event->kind == DM_EV_RENEWED && event->answer->has_waiter);

    if (hold.phase < DM_HELD || (before->phase < DM_HELD && hold.phase == DM_HELD))
        assert_false(hold.is_wanted);
    if (hold.is_wanted && !before->is_wanted)
        assert_true(is_told && hold.phase == DM_HELD);
}

/* From the giving back on a release is pending, until the store confirms or the lease of any request has ended. */
static void check_release(const struct dm_hold *before, const struct dm_event *event)
{
    bool has_begun = !before->back.is_pending && hold.back.is_pending;
    bool is_confirmed = event->kind == DM_EV_RELEASED &&
                        (event->answer->verdict == DM_SAYS_DONE || event->answer->verdict == DM_SAYS_NOT_OWNER);

    if (has_begun || (before->is_asked && !hold.is_asked))
        walk.needed_ns = walk.now_ns + hold.lease_ms * DM_NS_PER_MS;
    if (hold.is_entered)
        walk.needed_ns = walk.sent[walk.last].sent_ns + hold.lease_ms * DM_NS_PER_MS;
    if (before->back.is_pending && !hold.back.is_pending && !is_confirmed)
        assert_true(walk.now_ns >= walk.needed_ns);
    if (before->phase == DM_HELD && hold.phase > DM_LEAVING)
        assert_true(hold.back.is_pending);
    if (hold.back.is_pending && (hold.is_asked || hold.is_untold))
        assert_int_equal(dm_hold_due_ns(&hold, DM_WANTS_RELEASE), DM_NEVER);
}

/* The loss of an entered hold must be reported, once, and before the release. */
static void check_telling(const struct dm_hold *before)
{
    if (before->phase == DM_HELD && before->is_entered && hold.phase == DM_LOST)
        walk.losses++;
    if (!before->is_untold && hold.is_untold)
        walk.tells++;
    assert_true(walk.tells <= 1);
    assert_true(walk.losses <= walk.tells);
    if (hold.is_untold)
        assert_int_equal(dm_hold_wants(&hold, walk.now_ns), DM_WANTS_TELL);
}

static unsigned do_step(const struct dm_event *event)
{
    struct dm_hold before = hold;
    unsigned actions = dm_hold_step(&hold, event, walk.now_ns);

    check_certainty();
    check_phases(&before, event);
    check_release(&before, event);
    check_telling(&before);
    check_wanted(&before, event);
    if (actions & DM_DO_WAKE)
        assert_true(hold.is_attended);
    return actions;
}

/* ---- a walk ------------------------------------------------------------------------------ */

static void send_some(enum dm_want want)
{
    struct dm_request request = dm_hold_send(&hold, want, walk.now_ns);

    if (want == DM_WANTS_RELEASE)
        return;
    walk.last = request.serial;
    walk.sent[walk.last] = request;
}

/* Does all that is wanted: afterwards the hold waits for a later moment, or the loop would spin. */
static void do_wanted(void)
{
    enum dm_want want;

    while ((want = dm_hold_wants(&hold, walk.now_ns)) != DM_WANTS_NOTHING) {
        if (want == DM_WANTS_TELL)
            do_step(&(struct dm_event){ .kind = DM_EV_TOLD });
        else if (want == DM_WANTS_TIME)
            do_step(&(struct dm_event){ .kind = DM_EV_TIME });
        else
            send_some(want);
    }
    assert_true(next_ns() > walk.now_ns);
}

static void step_at_random(void)
{
    struct dm_answer answer = random_answer();
    struct dm_event event = random_event(&answer);
    unsigned actions;

    note_proof(&event);
    actions = do_step(&event);
    if (actions & DM_DO_NEW_SERIAL) {
        assert_int_equal(hold.phase, DM_ASKING);
        dm_hold_rename(&hold, hold.serial + 1);
        walk.last = 0;
        walk.proven_ns = 0;
    }
    do_step(&(struct dm_event){ .kind = DM_EV_TIME });
}

/* Whatever the store and the thread say, the invariants hold, and in the end the record goes. */
static void test_hold_keeps_its_promises_when_the_store_says_anything(void **state)
{
    int walks = rounds(20000);

    (void)state;
    while (walks-- > 0) {
        begin_walk();
        for (int i = 0; i < STEPS && walk.steps_over < 20; i++) {
            walk.now_ns += random_below(50) * DM_NS_PER_MS;
            if (random_below(4))
                do_wanted();
            step_at_random();
            walk.steps_over += hold.phase == DM_OVER;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hold_keeps_its_promises_when_the_store_says_anything),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
