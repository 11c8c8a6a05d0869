/* SPDX-License-Identifier: BSD-2-Clause */
/* registers/apply: locks that several hold at once, each a part of the capacity. */
#include "name_steps.h"

static void on_shared(const char *text, enum dm_reg_act act, const char *who, uint32_t weight)
{
    on(text, act, who);
    name.kind = step.kind = DM_REG_SEMAPHORE;
    name.capacity = step.capacity = 3;
    step.weight = weight;
}

/* N1: while the head of the queue fits, it holds; nobody passes it. */
static void test_head_holds_while_it_fits_when_a_lock_is_shared(void **state)
{
    static const struct {
        const char *before;
        enum dm_reg_act act;
        const char *who;
        uint32_t weight;
        enum dm_verdict verdict;
        const char *after;
    } rows[] = {
        { "a1 | |", DM_REG_ACQUIRE, "b2", 1, DM_SAYS_OWNED, "a1 b2 | |" },
        { "a1 b2 | |", DM_REG_ACQUIRE, "c3", 3, DM_SAYS_QUEUED, "a1 b2 | c3w3 |" },
        { "a1 b2 | c3w3 |", DM_REG_ACQUIRE, "d4", 1, DM_SAYS_QUEUED, "a1 b2 | c3w3 d4 |" },
        { "a1 b2 | c3w3 |", DM_REG_TRY, "d4", 1, DM_SAYS_BUSY, "a1 b2 | c3w3 |" },
        { "a1 b2 | |", DM_REG_TRY, "d4", 1, DM_SAYS_OWNED, "a1 b2 d4 | |" },
        { "a1 b2 | |", DM_REG_TRY, "d4", 2, DM_SAYS_BUSY, "a1 b2 | |" },
        { "a1 b2 | c3w3 d4 |", DM_REG_RELEASE, "a1", 0, DM_SAYS_DONE, "b2 | c3w3 d4 |" },
        { "b2 | c3w3 d4 |", DM_REG_RELEASE, "b2", 0, DM_SAYS_DONE, "c3w3 | d4 |" },
        { "c3w3 | d4 e5 f6w3 g7 |", DM_REG_RELEASE, "c3", 0, DM_SAYS_DONE, "d4 e5 | f6w3 g7 |" },
        { "a1 b2 | c3w3 d4 |", DM_REG_CANCEL, "c3", 0, DM_SAYS_DONE, "a1 b2 d4 | |" },
        { "a1 | |", DM_REG_ACQUIRE, "b2", 4, DM_SAYS_REFUSED, "a1 | |" },
        { "a1 | |", DM_REG_ACQUIRE, "b2", 0, DM_SAYS_REFUSED, "a1 | |" },
        { "a1 b2 | c3w3 |", DM_REG_FORCE, "a1", 0, DM_SAYS_DONE, "b2 | c3w3 |" },
        { "a1 b2 | c3w3r |", DM_REG_FORCE, "", 0, DM_SAYS_DONE, "c3w3r | |" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        on_shared(rows[i].before, rows[i].act, rows[i].who, rows[i].weight);
        go();
        assert_name(&name, rows[i].after);
        assert_int_equal(result.answer.verdict, rows[i].verdict);
    }
}

/* Each hold dies alone and frees its part; only the death of one that had the whole is told. */
static void test_death_is_noted_when_the_holder_had_the_whole(void **state)
{
    struct dm_reg_session_id dead = session_of_letter('a');

    (void)state;
    on_shared("a1 b2 | c3r |", DM_REG_SERVE, "c3", 0);
    name.entries[1].weight = 2;
    step.dead = &dead;
    step.dead_count = 1;
    go();
    assert_name(&name, "b2w2 c3r | |");
    on_shared("a1w3 | c3r |", DM_REG_SERVE, "c3", 0);
    step.dead = &dead;
    step.dead_count = 1;
    go();
    assert_name(&name, "c3r | | ; died");
    on_shared("c3 | | ; died", DM_REG_CONSISTENT, "c3", 0); /* a reader does not mend, and does not hide the death */
    go();
    assert_int_equal(result.answer.verdict, DM_SAYS_UNKNOWN);
    on_shared("| | ; died", DM_REG_ACQUIRE, "c3", 1);
    go();
    assert_name(&name, "c3 | | ; died");
    on_shared("c3r | | ; died", DM_REG_RELEASE, "c3", 1);
    step.end = DM_END_NOT_RECOVERABLE;
    go();
    assert_name(&name, "| | ; died");
}

/* D4: with a part, others may be certain, too: a claim leaves the doubt, and holds of other data that fit. */
static void test_claim_leaves_the_doubt_when_it_has_a_part(void **state)
{
    (void)state;
    on_shared("A1 B2 | C3 d4 | ; doubt", DM_REG_CLAIM, "a1", 1);
    step.token = LAST_TOKEN;
    go();
    assert_name(&name, "B2 a1 | C3 d4 | ; doubt");
    step.me = ref_of("b2");
    go();
    assert_name(&name, "a1 b2 | C3 d4 | ; doubt");
    on_shared("C3w3 | | ; doubt", DM_REG_CLAIM, "a1", 1); /* it had ended before the claim's hold began */
    step.token = LAST_TOKEN;
    go();
    assert_name(&name, "a1 | | ; doubt");
    step.me = ref_of("b2");
    step.weight = 3; /* both cannot be certain */
    go();
    assert_int_equal(result.answer.verdict, DM_SAYS_UNKNOWN);
    step.me = ref_of("a1");
    step.act = DM_REG_RELEASE;
    go();
    assert_int_equal(result.answer.verdict, DM_SAYS_DONE);
    assert_name(&name, "| | ; doubt");
}

/* A name has one kind and one capacity, which its first use has chosen. */
static void test_step_is_refused_when_the_name_has_another_capacity(void **state)
{
    (void)state;
    on_shared("a1 | |", DM_REG_ACQUIRE, "b2", 1);
    step.capacity = 4;
    go();
    assert_int_equal(result.answer.verdict, DM_SAYS_REFUSED);
    assert_non_null(strstr(result.reason, "another"));
    step.capacity = 3;
    step.kind = DM_REG_RWLOCK;
    go();
    assert_int_equal(result.answer.verdict, DM_SAYS_REFUSED);
    step.act = DM_REG_FORCE; /* tools take it as it is */
    step.capacity = 0;
    step.me = ref_of("a1");
    go();
    assert_int_equal(result.answer.verdict, DM_SAYS_DONE);
    on("", DM_REG_ACQUIRE, "b2");
    step.kind = DM_REG_RWLOCK;
    step.capacity = step.weight = DM_REG_RWLOCK_CAPACITY;
    step.quiet_ms = LEASE_MS;
    go();
    assert_int_equal(name.kind, DM_REG_RWLOCK);
    assert_int_equal(name.capacity, DM_REG_RWLOCK_CAPACITY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_head_holds_while_it_fits_when_a_lock_is_shared, empty_name, free_name),
        cmocka_unit_test_setup_teardown(test_death_is_noted_when_the_holder_had_the_whole, empty_name, free_name),
        cmocka_unit_test_setup_teardown(test_claim_leaves_the_doubt_when_it_has_a_part, empty_name, free_name),
        cmocka_unit_test_setup_teardown(test_step_is_refused_when_the_name_has_another_capacity, empty_name, free_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
