/* SPDX-License-Identifier: BSD-2-Clause */
/* registers/apply: the lock protocol of one name.  Each step is done twice, and each value passes through its bytes. */
#include "name_steps.h"
#include "store/store.h"

/* ---- the table --------------------------------------------------------------------------- */

/* The name before; the act, by whom; the verdict; the name afterwards, and what else there is to say. */
#define ROW(name_before, which, by, says, ...)                                                                   \
    {                                                                                                            \
        .before = name_before, .act = DM_REG_##which, .who = by, .verdict = DM_SAYS_##says, .after = __VA_ARGS__ \
    }

struct row {
    const char *before;
    enum dm_reg_act act;
    const char *who;
    enum dm_verdict verdict;
    const char *after;
    enum dm_end end;
    const char *dead;    /* letters of processes */
    const char *leaving; /* WAIT */
    bool is_robust, is_anonymous;
    int most;
    enum dm_reg_mark mark;
};

static void do_row(const struct row *row)
{
    struct dm_reg_session_id dead[8];
    char shown[TEXT_ROOM];

    on(row->before, row->act, row->who);
    step.end = row->end;
    step.is_robust = row->is_robust;
    step.is_anonymous = row->is_anonymous;
    step.most = row->most ? row->most : 1;
    step.mark = row->mark;
    if (row->leaving)
        step.leaving = ref_of(row->leaving);
    for (const char *letter = row->dead; letter && *letter; letter++)
        dead[step.dead_count++] = session_of_letter(*letter);
    step.dead = dead;
    if (!*row->before)
        step.quiet_ms = LEASE_MS;
    go();
    if (!is_name(&name, row->after) || result.answer.verdict != row->verdict) {
        show_name(&name, shown);
        fail_msg("\"%s\", act %d by %s: \"%s\", verdict %d", row->before, row->act, row->who, shown,
                 result.answer.verdict);
    }
}

/* All steps on all kinds of states. */
static const struct row steps[] = {
    /* acquire */
    ROW("", ACQUIRE, "a1", OWNED, "a1 | |"),
    ROW("| |", ACQUIRE, "a1", OWNED, "a1 | |"),
    ROW("a1 | |", ACQUIRE, "a1", OWNED, "a1 | |"),
    ROW("a1 | |", ACQUIRE, "b2", QUEUED, "a1 | b2 |"),
    ROW("a1 | b2 |", ACQUIRE, "b2", QUEUED, "a1 | b2 |"),
    ROW("a1 | b2 |", ACQUIRE, "c3", QUEUED, "a1 | b2 c3 |"),
    ROW("| | ; never", ACQUIRE, "a1", NOT_RECOVERABLE, "| | ; never"),
    ROW("| | ; died", ACQUIRE, "a1", OWNED, "a1r | | ; died", .is_robust = true),
    /* try */
    ROW("| |", TRY, "a1", OWNED, "a1 | |"),
    ROW("a1 | |", TRY, "b2", BUSY, "a1 | |"),
    ROW("a1 | b2 c3 |", TRY, "b2", BUSY, "a1 | c3 |"),
    ROW("| | ; never", TRY, "a1", NOT_RECOVERABLE, "| | ; never"),
    /* release */
    ROW("a1 | |", RELEASE, "a1", DONE, "| |"),
    ROW("a1 | b2 |", RELEASE, "b2", DONE, "a1 | |"),
    ROW("a1 | b2 | c3:x", RELEASE, "c3", DONE, "a1 | b2 |"),
    ROW("a1 | b2 |", RELEASE, "c3", NOT_OWNER, "a1 | b2 |"),
    ROW("a1 | b2 |", RELEASE, "b1", NOT_OWNER, "a1 | b2 |"),
    /* cancel */
    ROW("a1 | b2 |", CANCEL, "b2", DONE, "a1 | |"),
    ROW("a1 | b2 |", CANCEL, "a1", OWNED, "a1 | b2 |"),
    ROW("a1 | b2 |", CANCEL, "c3", DONE, "a1 | b2 |"),
    ROW("| | ; never", CANCEL, "c3", DONE, "| | ; never"),
    /* consistent */
    ROW("a1r | b2 | ; died", CONSISTENT, "a1", DONE, "a1r | b2 |"),
    ROW("a1r | b2 | ; died", CONSISTENT, "b2", UNKNOWN, "a1r | b2 | ; died"),
    ROW("| | ; never", CONSISTENT, "a1", UNKNOWN, "| | ; never"),
    /* force */
    ROW("a1 | |", FORCE, "a1", DONE, "| | ; died"),
    ROW("a1k | |", FORCE, "", DONE, "| | ; died"),
    ROW("a1 | b2 |", FORCE, "a1", DONE, "b2 | |"),
    ROW("a1 | b2r c3 |", FORCE, "", DONE, "b2r | c3 | ; died"),
    ROW("a1 | b2 |", FORCE, "c3", DONE, "a1 | b2 |"),
    ROW("| |", FORCE, "", DONE, "| |"),
    /* drop */
    ROW("a1 | |", DROP, "", BUSY, "a1 | |"),
    ROW("| | c3:x", DROP, "", DONE, "| | c3:x"),
    ROW("| | c3:x", DROP, "", BUSY, "| | c3:x", .is_anonymous = true),
    ROW("a1 | b2 |", DROP, "", BUSY, "a1 | b2 |", .is_anonymous = true),
    ROW("a1 | |", DROP, "", DONE, "", .is_anonymous = true, .dead = "a"),
    ROW("| | ; died", DROP, "", DONE, "| | ; died"),
    ROW("| | ; never", DROP, "", DONE, "| |"),
    ROW("| | ; never", DROP, "", DONE, "", .is_anonymous = true),
    ROW("", DROP, "", DONE, "", .is_anonymous = true),
    /* mark */
    ROW("a1 | |", MARK, "a1", OWNED, "a1t | |", .mark = DM_REG_MARK_TELL),
    ROW("a1t | |", MARK, "a1", OWNED, "a1k | |", .mark = DM_REG_MARK_TELL_NO_DEATH),
    ROW("a1k | b2 |", MARK, "a1", OWNED, "a1 | b2 |", .mark = DM_REG_MARK_NONE),
    ROW("a1 | b2 |", MARK, "b2", UNKNOWN, "a1 | b2 |", .mark = DM_REG_MARK_TELL),
    ROW("| |", ACQUIRE, "a1", OWNED, "a1t | |", .mark = DM_REG_MARK_TELL_NO_DEATH),
    ROW("b2 | |", ACQUIRE, "a1", QUEUED, "b2 | a1t |", .mark = DM_REG_MARK_TELL),
    /* wait: the attempt d4 of the thread that holds by d3 */
    ROW("d3 | |", WAIT, "d4", WAITING, "| | d4:x", .leaving = "d3"),
    ROW("d3r+y | |", WAIT, "d4", WAITING, "| | d4r:x", .leaving = "d3", .is_robust = true),
    ROW("d3 | b2 |", WAIT, "d4", WAITING, "b2 | | d4:x", .leaving = "d3"),
    ROW("b2 | | d4:x", WAIT, "d4", WAITING, "b2 | | d4:x", .leaving = "d3"),
    ROW("b2 | d4+x |", WAIT, "d4", QUEUED, "b2 | d4+x |", .leaving = "d3"),
    ROW("d4+x | |", WAIT, "d4", OWNED, "d4+x | |", .leaving = "d3"),
    ROW("b2 | d3 |", WAIT, "d4", NOT_OWNER, "b2 | d3 |", .leaving = "d3"),
    ROW("d3 | b2 | c5:y", WAIT, "d4", NOT_RECOVERABLE, "| | ; never", .leaving = "d3", .end = DM_END_NOT_RECOVERABLE),
    /* the end of a wait */
    ROW("a1 | | d4:x", COND_CANCEL, "d4", QUEUED, "a1 | d4 |"),
    ROW("| | d4:x e5:x", COND_CANCEL, "d4", OWNED, "d4 | | e5:x"),
    ROW("a1 | d4+x |", COND_CANCEL, "d4", QUEUED, "a1 | d4+x |"),
    ROW("d4+x | b2 |", COND_CANCEL, "d4", OWNED, "d4+x | b2 |"),
    ROW("a1 | | e5:x", COND_CANCEL, "d4", UNKNOWN, "a1 | | e5:x"),
    ROW("| | ; never", COND_CANCEL, "d4", NOT_RECOVERABLE, "| | ; never"),
    /* signal */
    ROW("a1 | b2 | d4:x e5:x", SIGNAL, "", DONE, "a1 | b2 d4+x | e5:x"),
    ROW("| | d4:x e5:x", SIGNAL, "", DONE, "d4+x | | e5:x"),
    ROW("a1 | | c3:y d4:x e5:x", SIGNAL, "", DONE, "a1 | d4+x | c3:y e5:x"),
    ROW("a1 | | c3:y d4:x e5:x", SIGNAL, "", DONE, "a1 | d4+x e5+x | c3:y", .most = INT_MAX),
    ROW("a1 | | c3:y", SIGNAL, "", DONE, "a1 | | c3:y"),
    ROW("| | ; never", SIGNAL, "", DONE, "| | ; never"),
    /* polls */
    ROW("a1 | b2 |", SERVE, "a1", OWNED, "a1 | b2 |"),
    ROW("a1 | b2 |", SERVE, "b2", QUEUED, "a1 | b2 |"),
    ROW("a1 | | d4:x", SERVE, "d4", WAITING, "a1 | | d4:x"),
    ROW("a1 | b2 |", SERVE, "c3", UNKNOWN, "a1 | b2 |"),
    ROW("a1 | b2 |", SERVE, "", UNKNOWN, "a1 | b2 |"),
    ROW("| | ; never", SERVE, "b2", NOT_RECOVERABLE, "| | ; never"),
    /* N1: a lock that is free goes to the head of the queue */
    ROW("a1 | b2 c3 |", RELEASE, "a1", DONE, "b2 | c3 |"),
    /* N2, C6: the dead */
    ROW("a1 | |", ACQUIRE, "b2", OWNED, "b2r | | ; died", .dead = "a", .is_robust = true),
    ROW("a1k | |", ACQUIRE, "b2", OWNED, "b2r | |", .dead = "a", .is_robust = true),
    ROW("a1 | |", TRY, "b2", OWNED, "b2 | |", .dead = "a"),
    ROW("a1 | c3r |", TRY, "b2", BUSY, "c3r | | ; died", .dead = "a"),
    ROW("a1 | b2 c3 |", TRY, "b2", OWNED, "b2 | c3 |", .dead = "a"),
    ROW("a1 | b2 c3 |", TRY, "c3", BUSY, "b2 | |", .dead = "a"),
    ROW("a1 | b2 c3 d4 |", SERVE, "d4", QUEUED, "a1 | d4 |", .dead = "bc"),
    ROW("a1 | b2 c3r d4 |", SERVE, "d4", QUEUED, "c3r | d4 | ; died", .dead = "ab"),
    ROW("a1 | | b2:x c3:x", SERVE, "c3", WAITING, "a1 | | c3:x", .dead = "b"),
    /* N12: deaths */
    ROW("a1 | b2r |", RELEASE, "a1", DONE, "b2r | | ; died", .end = DM_END_DIED),
    ROW("a1k | b2r |", RELEASE, "a1", DONE, "b2r | | ; died", .end = DM_END_DIED),
    ROW("a1r | b2r | ; died", RELEASE, "a1", DONE, "b2r | | ; died"),
    ROW("a1r | b2 | ; died", RELEASE, "a1", DONE, "b2 | |"),
    ROW("a1r | b2 | c3:x ; died", RELEASE, "a1", DONE, "| | ; never", .end = DM_END_NOT_RECOVERABLE),
    ROW("a1 | b2 |", RELEASE, "b2", DONE, "a1 | |", .end = DM_END_DIED),
    ROW("a1 | b2r |", RELEASE, "a1", DONE, "b2r | |", .dead = "a"), /* unlocked while it was certain */
    ROW("a1 | b2r |", RELEASE, "a3", NOT_OWNER, "b2r | | ; died", .dead = "a"),
    /* C2: an unlock uses the signal up */
    ROW("d4+x | b2 | e5:x", RELEASE, "d4", DONE, "b2 | | e5:x"),
    /* C3: who drops a carrier moves the next sleeper */
    ROW("d4+x | b2r | e5:x f6:x", RELEASE, "d4", DONE, "b2r | e5+x | f6:x ; died", .end = DM_END_DIED),
    ROW("d4+x | b2r | e5:x f6:x", SERVE, "b2", OWNED, "b2r | e5+x | f6:x ; died", .dead = "d", .is_robust = true),
    ROW("a1 | d4+x | e5:x f6:x", SERVE, "e5", QUEUED, "a1 | e5+x | f6:x", .dead = "d"),
    ROW("a1 | d4+x | e5:x", RELEASE, "d4", DONE, "a1 | e5+x |"),
    ROW("a1 | d4+x | e5:x", CANCEL, "d4", DONE, "a1 | e5+x |"),
    ROW("d4+x | | e5:x", FORCE, "d4", DONE, "e5+x | |"),
    ROW("a1 | d4+x c2+y | e5:x f6:y g7:x", SERVE, "g7", WAITING, "a1 | e5+x f6+y | g7:x", .dead = "cd"),
    ROW("a1 | d4+x | c2:x e5:x", SERVE, "e5", QUEUED, "a1 | e5+x |", .dead = "cd"),
    ROW("a1 | d4+x | e5:y", SERVE, "e5", WAITING, "a1 | | e5:y", .dead = "d"),
};

static void test_step_leads_to_the_next_state_when_done_once_or_twice(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
        do_row(&steps[i]);
}

/* ---- numbers ----------------------------------------------------------------------------- */

/* N11: tokens go on by ones, whatever the clock says and the process has seen. */
static void test_token_is_the_next_when_the_name_is_settled(void **state)
{
    (void)state;
    on("a1 | b2 |", DM_REG_RELEASE, "a1");
    step.seen = LAST_TOKEN + 1000;
    go();
    assert_int_equal(name.token, LAST_TOKEN + 1);
    assert_int_equal(name.entries[0].token, LAST_TOKEN + 1);
    on("| |", DM_REG_ACQUIRE, "b2");
    go();
    assert_int_equal(result.answer.token, LAST_TOKEN + 1);
}

/* N11: a name that is new or in doubt goes on above the clock, the last token, and what the process has seen. */
static void test_token_is_above_all_when_the_name_is_new_or_in_doubt(void **state)
{
    static const char *const texts[] = { "", "| | ; doubt" };
    const uint64_t now = NOW_US - DM_TOKEN_EPOCH_US;

    (void)state;
    for (int i = 0; i < 2; i++) {
        on(texts[i], DM_REG_ACQUIRE, "b2");
        step.quiet_ms = LEASE_MS;
        go();
        assert_int_equal(result.answer.token, now);
        on(texts[i], DM_REG_ACQUIRE, "b2");
        step.quiet_ms = LEASE_MS;
        step.seen = now + 5;
        go();
        assert_int_equal(result.answer.token, now + 6);
    }
    on("| | ; doubt", DM_REG_ACQUIRE, "b2");
    step.quiet_ms = LEASE_MS;
    step.clock_us = 0;
    go();
    assert_int_equal(result.answer.token, LAST_TOKEN + 1);
}

/* A name is settled before somebody gets it, too: the next holder's token is above the clock all the same. */
static void test_token_is_above_the_clock_when_the_name_was_settled_without_a_grant(void **state)
{
    (void)state;
    on("A1 | | ; doubt", DM_REG_SERVE, "b2");
    step.quiet_ms = LEASE_MS;
    go();
    assert_name(&name, "| | ; died");
    step = step_by(DM_REG_ACQUIRE, "b2");
    go();
    assert_int_equal(result.answer.token, NOW_US - DM_TOKEN_EPOCH_US);
}

/* Nobody gets a token that no other can follow; a token that is none of ours is refused. */
static void test_acquire_is_refused_when_the_tokens_are_used_up(void **state)
{
    static const enum dm_reg_act acts[] = { DM_REG_ACQUIRE, DM_REG_TRY };

    (void)state;
    for (int i = 0; i < 2; i++) {
        on("| |", acts[i], "b2");
        name.token = DM_TOKEN_LIMIT - 1;
        go();
        assert_int_equal(result.answer.verdict, DM_SAYS_REFUSED);
        assert_non_null(strstr(result.reason, "used up"));
        assert_name(&name, "| |");
        on("| |", acts[i], "b2");
        step.seen = DM_TOKEN_LIMIT - 1;
        go();
        assert_int_equal(result.answer.verdict, DM_SAYS_REFUSED);
        assert_non_null(strstr(result.reason, "none of ours"));
    }
    on("a1 | b2 |", DM_REG_RELEASE, "a1");
    name.token = DM_TOKEN_LIMIT - 1;
    go();
    assert_int_equal(result.answer.verdict, DM_SAYS_DONE); /* a release is never refused */
    assert_name(&name, "| b2 |");
}

/* N10: the queue is in the order of arrival; who comes back has its old place, and nobody gets its number again. */
static void test_waiter_has_its_old_place_when_it_comes_back(void **state)
{
    (void)state;
    on("a1 | b2 c3 |", DM_REG_ACQUIRE, "d4"); /* 20, 30 */
    step.arrival = 25;
    go();
    assert_name(&name, "a1 | b2 d4 c3 |");
    assert_int_equal(result.answer.position, 2);
    assert_int_equal(result.answer.arrival, 25);
    on("a1 | b2 c3 |", DM_REG_ACQUIRE, "d4");
    step.arrival = 20; /* another one has this number, after lost data */
    go();
    assert_name(&name, "a1 | b2 d4 c3 |");
    on("a1 | b2 c3 |", DM_REG_ACQUIRE, "d4");
    step.arrival = LAST_ARRIVAL + 70; /* of data that are lost */
    go();
    assert_name(&name, "a1 | b2 c3 d4 |");
    step = step_by(DM_REG_ACQUIRE, "e5");
    go();
    assert_int_equal(result.answer.arrival, LAST_ARRIVAL + 71);
    assert_name(&name, "a1 | b2 c3 d4 e5 |");
    on("a1 | b2 c3 |", DM_REG_ACQUIRE, "d4");
    step.arrival = UINT64_MAX; /* none of ours */
    go();
    assert_int_equal(result.answer.arrival, LAST_ARRIVAL + 1);
}

/* Position, lease of the holder, whether others wait. */
static void test_answer_says_what_the_value_shows(void **state)
{
    (void)state;
    on("a1 | b2 c3 |", DM_REG_SERVE, "c3");
    name.sessions[0].id.lease_ms = 777;
    go();
    assert_int_equal(result.answer.position, 2);
    assert_int_equal(result.answer.arrival, 30);
    assert_int_equal(result.answer.remaining_ms, 777);
    on("a1 | b2 |", DM_REG_TRY, "c3");
    go();
    assert_int_equal(result.answer.remaining_ms, LEASE_MS);
    assert_int_equal(result.answer.grace_ms, 0);
    on("a1 | b2 |", DM_REG_SERVE, "a1");
    go();
    assert_true(result.answer.has_waiter);
    on("a1 | |", DM_REG_SERVE, "a1");
    go();
    assert_false(result.answer.has_waiter);
    assert_int_equal(result.answer.token, LAST_TOKEN);
}

/* N12: each robust holder is told of a death until one mends; who is not robust is not told. */
static void test_owner_is_told_of_a_death_when_it_is_robust(void **state)
{
    (void)state;
    on("a1r | | ; died", DM_REG_SERVE, "a1");
    step.is_robust = true;
    go();
    assert_true(result.answer.is_owner_dead);
    step.is_robust = false;
    go();
    assert_false(result.answer.is_owner_dead);
    on("a1r | |", DM_REG_SERVE, "a1");
    step.is_robust = true;
    go();
    assert_false(result.answer.is_owner_dead);
}

/* ---- the last hold ------------------------------------------------------------------------ */

static void assert_last(unsigned how, const char *label, uint64_t held_ms)
{
    assert_true(name.last.is_known);
    assert_int_equal(name.last.how, how);
    assert_string_equal(name.last.label, label);
    assert_int_equal(name.last.held_ms, held_ms);
}

/* People see who had a free lock, for how long, and how that ended, until somebody holds it again. */
static void test_free_lock_remembers_its_last_hold(void **state)
{
    uint64_t since_ms;

    (void)state;
    on("a1 | |", DM_REG_RELEASE, "a1");
    since_ms = name.entries[0].since_ms;
    step.label = "7 host program";
    step.clock_us = DM_TOKEN_EPOCH_US + ((int64_t)since_ms + 1500) * 1000;
    go();
    assert_last(DM_END_UNLOCKED, "7 host program", since_ms ? 1500 : 0);
    assert_int_equal(name.last.since_ms, since_ms);
    step = step_by(DM_REG_ACQUIRE, "b2");
    go();
    assert_false(name.last.is_known);
    on("a1 | |", DM_REG_RELEASE, "a1");
    step.label = "7 host program";
    step.held_ms = 12; /* without the time for which the process kept it */
    go();
    assert_last(DM_END_UNLOCKED, "7 host program", 12);
    on("a1 | b2 |", DM_REG_RELEASE, "a1");
    go();
    assert_false(name.last.is_known); /* b2 holds */
    on("a1 | b2 |", DM_REG_RELEASE, "b2");
    go();
    assert_false(name.last.is_known);
}

/* The holder has died, or was broken: its label is that of its own session, as far as somebody has seen it. */
static void test_last_hold_tells_how_it_ended(void **state)
{
    struct dm_reg_session_id dead = session_of_letter('a');
    const char *label = "8 there other";

    (void)state;
    on("a1 | |", DM_REG_SERVE, "");
    step.dead = &dead;
    step.dead_count = 1;
    step.dead_labels = &label;
    step.label = "7 host program";
    go();
    assert_int_equal(name.last.how, DM_END_DIED);
    assert_string_equal(name.last.label, label);
    on("a1k | |", DM_REG_SERVE, "");
    step.dead = &dead;
    step.dead_count = 1;
    go();
    assert_int_equal(name.last.how, DM_END_UNLOCKED);
    assert_string_equal(name.last.label, "?");
    on("a1 | |", DM_REG_FORCE, "a1");
    step.label = label;
    go();
    assert_int_equal(name.last.how, DM_END_BROKEN);
    assert_string_equal(name.last.label, label);
}

/* As many wait as may, and no more; those who wake up come on top. */
static void test_acquire_is_full_when_ten_thousand_wait(void **state)
{
    (void)state;
    on("a1 | | d4:x", DM_REG_ACQUIRE, "b2");
    assert_int_equal(dm_reg_name_reserve(&name, 0, 0, DM_REG_QUEUE_MAX), 0);
    name.entries[DM_REG_QUEUE_MAX] = name.entries[1]; /* the sleeper */
    for (int i = 1; i < DM_REG_QUEUE_MAX; i++) {
        name.entries[i] = name.entries[0];
        name.entries[i].attempt = 1000 + (uint64_t)i;
        name.entries[i].token = 0;
        name.entries[i].arrival = 1;
    }
    name.queue_count = DM_REG_QUEUE_MAX - 1;
    apply_once(&name, &step);
    assert_int_equal(result.answer.verdict, DM_SAYS_QUEUED);
    assert_int_equal(result.answer.position, DM_REG_QUEUE_MAX);
    step = step_by(DM_REG_ACQUIRE, "c3");
    apply_once(&name, &step);
    assert_int_equal(result.answer.verdict, DM_SAYS_FULL);
    assert_false(result.is_changed);
    step = step_by(DM_REG_SIGNAL, "");
    apply_once(&name, &step);
    assert_int_equal(name.queue_count, DM_REG_QUEUE_MAX + 1);
}

/* So many sleep as may, on so many conditions as may. */
static void test_wait_is_full_when_there_are_too_many_sleepers_or_conditions(void **state)
{
    (void)state;
    on("d3 | |", DM_REG_WAIT, "d4");
    step.leaving = ref_of("d3");
    assert_int_equal(dm_reg_name_reserve(&name, 0, DM_REG_CONDITIONS_MAX, DM_REG_QUEUE_MAX), 0);
    for (int i = 0; i < DM_REG_CONDITIONS_MAX; i++)
        snprintf(name.conditions[name.condition_count++].name, DM_REG_CONDITION_ROOM, "condition%d", i);
    for (int i = 1; i <= DM_REG_CONDITIONS_MAX; i++) {
        name.entries[i] = (struct dm_reg_entry){ .attempt = 1000 + (uint64_t)i, .weight = 1, .arrival = 1 };
        name.entries[i].condition = (uint16_t)(i - 1);
    }
    name.sleeper_count = DM_REG_CONDITIONS_MAX;
    apply_once(&name, &step);
    assert_int_equal(result.answer.verdict, DM_SAYS_FULL);
    assert_false(result.is_changed);
    assert_int_equal(name.hold_count, 1);
    for (int i = 1; i <= DM_REG_QUEUE_MAX; i++) {
        assert_int_equal(dm_reg_name_reserve(&name, 0, 0, DM_REG_QUEUE_MAX), 0);
        name.entries[i] = name.entries[1];
        name.entries[i].attempt = 1000 + (uint64_t)i;
        name.entries[i].condition = 0;
    }
    name.sleeper_count = DM_REG_QUEUE_MAX;
    dm_reg_name_tidy(&name);
    step.condition = "condition0";
    apply_once(&name, &step);
    assert_int_equal(result.answer.verdict, DM_SAYS_FULL);
    assert_int_equal(name.hold_count, 1);
}

/* ---- who is told ------------------------------------------------------------------------- */

/* The notices as text: "granted b2, wanted a1". */
static void assert_told(const char *wanted)
{
    static const char *const words[] = { "granted", "signalled", "wanted", "lost", "ask" };
    char text[TEXT_ROOM] = "";

    for (int i = 0; i < result.notice_count; i++)
        add_text(text, "%s%s %c%d", i ? ", " : "", words[notices[i].news], notices[i].session.uuid[0],
                 (int)notices[i].attempt);
    assert_string_equal(text, wanted);
}

static void then_told(const char *wanted)
{
    apply_once(&name, &step);
    assert_told(wanted);
}

/* The waiter that gets the lock is told, with all that an answer would say; the caller is not told. */
static void test_waiter_is_told_when_it_is_granted(void **state)
{
    (void)state;
    on("a1 | b2r c3 |", DM_REG_RELEASE, "a1");
    step.end = DM_END_DIED;
    then_told("granted b2");
    assert_int_equal(notices[0].token, LAST_TOKEN + 1);
    assert_true(notices[0].is_owner_dead);
    assert_true(notices[0].has_waiter);
    assert_int_equal(notices[0].session.lease_ms, LEASE_MS);
    on("a1 | b2 |", DM_REG_RELEASE, "a1");
    then_told("granted b2");
    assert_false(notices[0].is_owner_dead);
    assert_false(notices[0].has_waiter);
    on("| |", DM_REG_ACQUIRE, "b2");
    then_told("");
}

/* The holder that has asked for it is told of the first waiter, and of a try. */
static void test_holder_is_told_when_the_first_waiter_comes(void **state)
{
    (void)state;
    on("a1t | |", DM_REG_ACQUIRE, "b2");
    then_told("wanted a1");
    on("a1k | |", DM_REG_TRY, "b2");
    then_told("wanted a1");
    on("a1t | b2 |", DM_REG_ACQUIRE, "c3");
    then_told("");
    on("a1t | b2 |", DM_REG_TRY, "c3");
    then_told("");
    on("a1 | |", DM_REG_ACQUIRE, "b2");
    then_told("");
    on("a1t | | d4:x", DM_REG_COND_CANCEL, "d4");
    then_told("wanted a1");
    on("a1t | | d4:x", DM_REG_SIGNAL, "");
    then_told("wanted a1, signalled d4");
}

/* A sleeper learns that it stands in line now, unless it has the lock. */
static void test_sleeper_is_told_when_it_is_signalled(void **state)
{
    (void)state;
    on("a1 | b2 | d4:x e5:x", DM_REG_SIGNAL, "");
    step.most = 2;
    then_told("signalled d4, signalled e5");
    assert_int_equal(notices[0].position, 2);
    assert_int_equal(notices[1].position, 3);
    on("| | d4:x e5:x", DM_REG_SIGNAL, "");
    step.most = 2;
    then_told("granted d4, signalled e5");
}

/* A broken holder, and those who can never have the lock. */
static void test_others_are_told_when_a_lock_is_broken_or_lost_for_ever(void **state)
{
    (void)state;
    on("a1 | b2 |", DM_REG_FORCE, "a1");
    then_told("lost a1, granted b2");
    on("a1 | b2 c3 | d4:x", DM_REG_RELEASE, "a1");
    step.end = DM_END_NOT_RECOVERABLE;
    then_told("ask b2, ask c3, ask d4");
}

/* Notices without room are lost; the step is done all the same. */
static void test_notice_is_lost_when_there_is_no_room(void **state)
{
    (void)state;
    on("a1 | b2 |", DM_REG_RELEASE, "a1");
    result = (struct dm_reg_result){ 0 };
    dm_reg_apply(&name, &step, &result);
    assert_int_equal(result.notice_count, 0);
    assert_int_equal(name.hold_count, 1);
}

/* ---- what the process owes and knows ------------------------------------------------------ */

/* N5: what the process owes is done before its next step, in the same swap; so a handoff passes nobody. */
static void test_owed_releases_are_done_when_the_next_step_comes(void **state)
{
    struct dm_reg_owed owed[] = { { .ref = ref_of("a1") }, { .ref = ref_of("a2") }, { .ref = ref_of("a3") } };

    (void)state;
    on("a1 | b2 a2 | a3:x", DM_REG_ACQUIRE, "a4");
    step.owed = owed;
    step.owed_count = 3;
    go();
    assert_name(&name, "b2 | a4 |");
    owed[0].end = DM_END_DIED;
    on("a1 | b2r |", DM_REG_TRY, "a4");
    step.owed = owed;
    step.owed_count = 1;
    go();
    assert_name(&name, "b2r | | ; died");
    on("a1 | |", DM_REG_TRY, "a4");
    step.owed = owed;
    step.owed_count = 1;
    go();
    assert_int_equal(result.answer.verdict, DM_SAYS_OWNED);
    owed[0].end = DM_END_NOT_RECOVERABLE;
    on("a1 | b2 |", DM_REG_ACQUIRE, "a4");
    step.owed = owed;
    step.owed_count = 1;
    go();
    assert_name(&name, "| | ; never");
    assert_int_equal(result.answer.verdict, DM_SAYS_NOT_RECOVERABLE);
}

/* N7: own references that the process does not know are removed by the first write or poll that sees them. */
static void test_own_attempts_are_removed_when_the_process_does_not_know_them(void **state)
{
    static const uint64_t known[] = { 2, 4 };

    (void)state;
    on("a1 | b1 a2 a3 | a4:x a5:x", DM_REG_SERVE, "a2");
    step.known = known;
    step.known_count = 2;
    go();
    assert_name(&name, "b1 | a2 | a4:x");
    on("a3 | b1 | a5:x", DM_REG_SERVE, "a2"); /* not told what the process knows */
    go();
    assert_name(&name, "a3 | b1 | a5:x");
    on("A3 | b1 | A5:x ; doubt", DM_REG_SERVE, "a2"); /* another session is not asked about */
    step.known = known;
    step.known_count = 2;
    go();
    assert_name(&name, "A3 | b1 | A5:x ; doubt");
    on("a3 | | b1:x", DM_REG_WAIT, "a2"); /* the hold that a wait gives back is known */
    step.leaving = ref_of("a3");
    step.known = known;
    step.known_count = 1;
    go();
    assert_name(&name, "| | b1:x a2:x");
}

/* S8, D4: nobody refers to a session that may not exist, that belongs to other data, or that is dead. */
static void test_reference_is_not_written_when_the_session_is_not_of_these_data(void **state)
{
    static const enum dm_reg_act acts[] = { DM_REG_ACQUIRE, DM_REG_TRY, DM_REG_CLAIM, DM_REG_WAIT };

    (void)state;
    for (int i = 0; i < 4; i++) {
        on("d3 | |", acts[i], "b2");
        step.token = 1;
        step.leaving = ref_of("d3");
        step.me.session.serial = 0;
        go();
        assert_int_equal(result.answer.verdict, DM_SAYS_AGAIN);
        assert_name(&name, "d3 | |");
        step.me = ref_of("B2");
        go();
        assert_int_equal(result.answer.verdict, DM_SAYS_AGAIN);
        assert_name(&name, "d3 | |");
        step.me = ref_of("b2");
        step.dead = &step.me.session;
        step.dead_count = 1;
        go();
        assert_int_equal(result.answer.verdict, DM_SAYS_AGAIN);
        assert_name(&name, "d3 | |");
        step.dead_count = 0;
    }
}

/* N6: only the key of an anonymous mutex is deleted, by its drop. */
static void test_key_is_deleted_when_an_anonymous_name_is_dropped(void **state)
{
    (void)state;
    on("| |", DM_REG_DROP, "");
    apply_once(&name, &step);
    assert_false(result.is_deleted || result.is_changed);
    step.is_anonymous = true;
    apply_once(&name, &step);
    assert_true(result.is_deleted && result.is_changed);
}

/* A name that holds, remembers or lets sleep anything is not idle. */
static void test_name_is_idle_when_nothing_is_in_it(void **state)
{
    static const char *const busy[] = { "a1 | |", "| | b2:x", "| | ; died", "| | ; never" };

    (void)state;
    for (int i = 0; i < 4; i++) {
        on(busy[i], DM_REG_SERVE, "");
        assert_false(dm_reg_is_idle(&name));
    }
    on("| |", DM_REG_SERVE, "");
    assert_true(dm_reg_is_idle(&name));
}

/* A force breaks the holder that it names, and leaves a gap in the tokens. */
static void test_token_has_a_gap_when_a_lock_was_broken(void **state)
{
    (void)state;
    on("a1 | b2 |", DM_REG_FORCE, "a1");
    go();
    assert_int_equal(name.entries[0].token, LAST_TOKEN + 2);
}

/* ---- conditions -------------------------------------------------------------------------- */

/* C4: the value decides between signal and deadline. */
static void test_cond_cancel_tells_a_signal_when_one_came_first(void **state)
{
    static const struct {
        const char *text;
        bool is_signalled;
    } cases[] = { { "a1 | | d4:x", false }, { "a1 | d4+x |", true }, { "d4+x | |", true }, { "a1 | d4 |", false } };

    (void)state;
    for (int i = 0; i < 4; i++) {
        on(cases[i].text, DM_REG_COND_CANCEL, "d4");
        go();
        assert_int_equal(result.is_signalled, cases[i].is_signalled);
    }
}

/* C2: a broadcast means those that sleep at its first try, and may take several steps. */
static void test_broadcast_means_those_that_sleep_when_it_begins(void **state)
{
    uint64_t upto;

    (void)state;
    on("a1 | | c3:x d4:x e5:y f6:x", DM_REG_SIGNAL, "");
    step.most = 2;
    apply_once(&name, &step);
    assert_true(result.has_left);
    assert_name(&name, "a1 | c3+x d4+x | e5:y f6:x");
    upto = result.upto;
    assert_int_equal(upto, name.entries[4].arrival);
    step = step_by(DM_REG_WAIT, "a2");
    step.leaving = ref_of("a1");
    apply_once(&name, &step);
    step = step_by(DM_REG_SIGNAL, "");
    step.most = 2;
    step.upto = upto;
    apply_once(&name, &step);
    assert_false(result.has_left);
    assert_name(&name, "c3+x | d4+x f6+x | e5:y a2:x");
}

/*
 * The first try was lost, and the sleeper that it would have woken times out before the repetition.  The signal then
 * wakes another that slept at the first try, but none that came later.
 */
static void test_repeated_signal_wakes_another_when_its_sleeper_has_timed_out(void **state)
{
    uint64_t upto;

    (void)state;
    on("a1 | | d4:x e5:x", DM_REG_SIGNAL, "");
    apply_once(&name, &step);
    upto = result.upto;
    on("a1 | | d4:x e5:x", DM_REG_COND_CANCEL, "d4");
    apply_once(&name, &step);
    step = step_by(DM_REG_SIGNAL, "");
    step.most = 1;
    step.upto = upto;
    apply_once(&name, &step);
    assert_name(&name, "a1 | d4 e5+x |");

    on("a1 | | f6:x", DM_REG_SIGNAL, "");
    step.upto = name.entries[1].arrival - 1;
    apply_once(&name, &step);
    assert_false(result.is_changed);
}

/* A condition has a name that can be a key. */
static void test_condition_is_refused_when_its_name_is_no_key(void **state)
{
    char long_name[DM_REG_KEY_MAX + 2] = "";
    const char *const wrong[] = { "", "with blank", long_name };

    (void)state;
    memset(long_name, 'x', sizeof long_name - 1);
    for (int i = 0; i < 3; i++) {
        on("d3 | |", DM_REG_WAIT, "d4");
        step.leaving = ref_of("d3");
        step.condition = wrong[i];
        apply_once(&name, &step);
        assert_int_equal(result.answer.verdict, DM_SAYS_REFUSED);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_step_leads_to_the_next_state_when_done_once_or_twice, empty_name,
                                        free_name),
        cmocka_unit_test_setup_teardown(test_token_is_the_next_when_the_name_is_settled, empty_name, free_name),
        cmocka_unit_test_setup_teardown(test_token_is_above_all_when_the_name_is_new_or_in_doubt, empty_name,
                                        free_name),
        cmocka_unit_test_setup_teardown(test_token_is_above_the_clock_when_the_name_was_settled_without_a_grant,
                                        empty_name, free_name),
        cmocka_unit_test_setup_teardown(test_acquire_is_refused_when_the_tokens_are_used_up, empty_name, free_name),
        cmocka_unit_test_setup_teardown(test_waiter_has_its_old_place_when_it_comes_back, empty_name, free_name),
        cmocka_unit_test_setup_teardown(test_answer_says_what_the_value_shows, empty_name, free_name),
        cmocka_unit_test_setup_teardown(test_owner_is_told_of_a_death_when_it_is_robust, empty_name, free_name),
        cmocka_unit_test_setup_teardown(test_free_lock_remembers_its_last_hold, empty_name, free_name),
        cmocka_unit_test_setup_teardown(test_last_hold_tells_how_it_ended, empty_name, free_name),
        cmocka_unit_test_setup_teardown(test_acquire_is_full_when_ten_thousand_wait, empty_name, free_name),
        cmocka_unit_test_setup_teardown(test_wait_is_full_when_there_are_too_many_sleepers_or_conditions, empty_name,
                                        free_name),
        cmocka_unit_test_setup_teardown(test_waiter_is_told_when_it_is_granted, empty_name, free_name),
        cmocka_unit_test_setup_teardown(test_holder_is_told_when_the_first_waiter_comes, empty_name, free_name),
        cmocka_unit_test_setup_teardown(test_sleeper_is_told_when_it_is_signalled, empty_name, free_name),
        cmocka_unit_test_setup_teardown(test_others_are_told_when_a_lock_is_broken_or_lost_for_ever, empty_name,
                                        free_name),
        cmocka_unit_test_setup_teardown(test_notice_is_lost_when_there_is_no_room, empty_name, free_name),
        cmocka_unit_test_setup_teardown(test_owed_releases_are_done_when_the_next_step_comes, empty_name, free_name),
        cmocka_unit_test_setup_teardown(test_own_attempts_are_removed_when_the_process_does_not_know_them, empty_name,
                                        free_name),
        cmocka_unit_test_setup_teardown(test_reference_is_not_written_when_the_session_is_not_of_these_data, empty_name,
                                        free_name),
        cmocka_unit_test_setup_teardown(test_key_is_deleted_when_an_anonymous_name_is_dropped, empty_name, free_name),
        cmocka_unit_test_setup_teardown(test_name_is_idle_when_nothing_is_in_it, empty_name, free_name),
        cmocka_unit_test_setup_teardown(test_token_has_a_gap_when_a_lock_was_broken, empty_name, free_name),
        cmocka_unit_test_setup_teardown(test_cond_cancel_tells_a_signal_when_one_came_first, empty_name, free_name),
        cmocka_unit_test_setup_teardown(test_broadcast_means_those_that_sleep_when_it_begins, empty_name, free_name),
        cmocka_unit_test_setup_teardown(test_repeated_signal_wakes_another_when_its_sleeper_has_timed_out, empty_name,
                                        free_name),
        cmocka_unit_test_setup_teardown(test_condition_is_refused_when_its_name_is_no_key, empty_name, free_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
