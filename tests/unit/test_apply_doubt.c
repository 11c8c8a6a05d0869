/* SPDX-License-Identifier: BSD-2-Clause */
/* registers/apply: names whose data may be older than what has been done to them, or gone. */
#include "name_steps.h"

struct doubt {
    const char *before;
    enum dm_reg_act act;
    const char *who;
    uint64_t quiet_ms;
    enum dm_verdict verdict;
    const char *after;
};

/*
 * D1: where the data may be older than what was done, nothing is granted, D2: until the mark has been quiet for a
 * lease.  D6: then what belongs to other data leaves, and a hold that nobody has claimed is a death.
 */
static void test_nothing_is_granted_when_the_name_is_in_doubt(void **state)
{
    static const struct doubt rows[] = {
        /* in doubt */
        { "", DM_REG_ACQUIRE, "b2", LEASE_MS - 1, DM_SAYS_QUEUED, "| b2 | ; doubt" },
        { "| | ; doubt", DM_REG_ACQUIRE, "b2", LEASE_MS - 1, DM_SAYS_QUEUED, "| b2 | ; doubt" },
        { "| | ; doubt", DM_REG_TRY, "b2", LEASE_MS - 1, DM_SAYS_BUSY, "| | ; doubt" },
        { "", DM_REG_TRY, "b2", LEASE_MS - 1, DM_SAYS_BUSY, "" },
        { "A1 | | ; doubt", DM_REG_RELEASE, "A1", LEASE_MS - 1, DM_SAYS_DONE, "| | ; doubt" },
        { "A1 | C3 b2 | ; doubt", DM_REG_RELEASE, "A1", LEASE_MS - 1, DM_SAYS_DONE, "| C3 b2 | ; doubt" },
        { "A1 | C3 b2 | ; doubt", DM_REG_RELEASE, "a1", LEASE_MS - 1, DM_SAYS_NOT_OWNER, "A1 | C3 b2 | ; doubt" },
        { "A1 | C3 b2 | ; doubt", DM_REG_CANCEL, "b2", LEASE_MS - 1, DM_SAYS_DONE, "A1 | C3 | ; doubt" },
        { "| C3 b2 | ; doubt", DM_REG_SERVE, "b2", LEASE_MS - 1, DM_SAYS_QUEUED, "| C3 b2 | ; doubt" },
        { "A1 | | B2:x ; doubt", DM_REG_COND_CANCEL, "B2", 0, DM_SAYS_QUEUED, "A1 | B2 | ; doubt" },
        { "A1 | b2 | ; doubt", DM_REG_FORCE, "", 0, DM_SAYS_DONE, "| b2 | ; died doubt" },
        /* a hold of other data is not believed */
        { "A1 | | ; doubt", DM_REG_SERVE, "A1", 0, DM_SAYS_UNKNOWN, "A1 | | ; doubt" },
        { "A1r | | ; died doubt", DM_REG_CONSISTENT, "A1", 0, DM_SAYS_UNKNOWN, "A1r | | ; died doubt" },
        { "A1 | | ; doubt", DM_REG_MARK, "A1", 0, DM_SAYS_UNKNOWN, "A1 | | ; doubt" },
        { "A1 | | ; doubt", DM_REG_CANCEL, "A1", 0, DM_SAYS_DONE, "| | ; doubt" },
        /* D5: the attempt alone is not the same one */
        { "A1 | | ; doubt", DM_REG_ACQUIRE, "a1", 0, DM_SAYS_QUEUED, "A1 | a1 | ; doubt" },
        { "A1 | | ; doubt", DM_REG_SERVE, "a1", LEASE_MS, DM_SAYS_UNKNOWN, "| | ; died" },
        /* quiet */
        { "", DM_REG_ACQUIRE, "b2", LEASE_MS, DM_SAYS_OWNED, "b2 | |" },
        { "| | ; doubt", DM_REG_ACQUIRE, "b2", LEASE_MS, DM_SAYS_OWNED, "b2 | |" },
        { "| | ; doubt", DM_REG_TRY, "b2", LEASE_MS, DM_SAYS_OWNED, "b2 | |" },
        { "A1 | C3 b2r | D4:x ; doubt", DM_REG_SERVE, "b2", LEASE_MS, DM_SAYS_OWNED, "b2r | | ; died" },
        { "A1k | C3 b2r | D4:x ; doubt", DM_REG_SERVE, "b2", LEASE_MS, DM_SAYS_OWNED, "b2r | |" },
        { "A1 | C3 b2 e5 | ; doubt", DM_REG_CANCEL, "b2", LEASE_MS, DM_SAYS_OWNED, "b2 | e5 |" },
        { "A1 | C3 b2 e5 | ; doubt", DM_REG_CANCEL, "e5", LEASE_MS, DM_SAYS_DONE, "b2 | |" },
        { "| b2 | ; doubt", DM_REG_SERVE, "", LEASE_MS, DM_SAYS_UNKNOWN, "| b2 | ; doubt" }, /* of no lease */
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char shown[TEXT_ROOM];

        on(rows[i].before, rows[i].act, rows[i].who);
        step.quiet_ms = rows[i].quiet_ms;
        go();
        if (*rows[i].before == '\0' && *rows[i].after && name.identity == 0)
            name.identity = FORMER; /* in no data yet: shown alike */
        show_name(&name, shown);
        if (!is_name(&name, rows[i].after) || result.answer.verdict != rows[i].verdict)
            fail_msg("\"%s\", act %d by %s: \"%s\", verdict %d", rows[i].before, rows[i].act, rows[i].who, shown,
                     result.answer.verdict);
    }
}

/* D2: a lock needs a quiet of its lease, and of any lease that the copy shows; the answer says what lacks. */
static void test_grace_is_as_long_as_the_longest_lease_when_the_name_is_in_doubt(void **state)
{
    (void)state;
    on("| | ; doubt", DM_REG_TRY, "b2");
    step.quiet_ms = 3000;
    go();
    assert_int_equal(result.answer.grace_ms, LEASE_MS - 3000);
    on("A1 | | ; doubt", DM_REG_TRY, "b2");
    name.sessions[0].id.lease_ms = 3 * LEASE_MS;
    step.quiet_ms = LEASE_MS;
    go();
    assert_int_equal(result.answer.verdict, DM_SAYS_BUSY);
    assert_int_equal(result.answer.grace_ms, 2 * LEASE_MS);
    step.act = DM_REG_ACQUIRE;
    go();
    assert_int_equal(result.answer.remaining_ms, 3 * LEASE_MS);
    step.quiet_ms = 3 * LEASE_MS;
    go();
    assert_int_equal(result.answer.verdict, DM_SAYS_OWNED);
}

static void claim(const char *text, const char *who, uint64_t token)
{
    on(text, DM_REG_CLAIM, who);
    step.token = token;
    go();
}

/* D4: a claim takes its place over whatever the copy says, with the higher token; it settles the name. */
static void test_claim_settles_the_name_when_it_is_in_doubt(void **state)
{
    static const struct {
        const char *before, *after;
    } rows[] = {
        { "", "a1 | |" },
        { "| | ; doubt", "a1 | |" },
        { "A1 | | ; doubt", "a1 | |" },
        { "B7 | A1 c3 | ; doubt", "a1 | c3 |" },
        { "B7+x | C3 | A1:x D4:x ; doubt", "a1 | |" },
        { "A1r | c3 | ; died doubt", "a1 | c3 | ; died" },
        { "| | ; never doubt", "a1 | |" }, /* somebody has cleared it, or nobody could hold */
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        claim(rows[i].before, "a1", LAST_TOKEN + 20);
        assert_name(&name, rows[i].after);
        assert_int_equal(result.answer.verdict, DM_SAYS_OWNED);
        assert_int_equal(result.answer.token, LAST_TOKEN + 20);
        assert_int_equal(name.token, LAST_TOKEN + 20);
    }
    claim("| | ; doubt", "a1", LAST_TOKEN - 3);
    assert_int_equal(result.answer.token, LAST_TOKEN - 3);
    assert_int_equal(name.token, LAST_TOKEN);
}

/* D4: once somebody else has settled the name, a hold that it does not have is lost. */
static void test_claim_is_lost_when_the_name_is_settled(void **state)
{
    static const char *const texts[] = { "b2 | |", "| |", "b2 | a1 |" };

    (void)state;
    for (int i = 0; i < 3; i++) {
        claim(texts[i], "a1", LAST_TOKEN + 20);
        assert_int_equal(result.answer.verdict, DM_SAYS_UNKNOWN);
        assert_name(&name, texts[i]);
    }
    claim("a1 | b2 |", "a1", LAST_TOKEN); /* repeated */
    assert_int_equal(result.answer.verdict, DM_SAYS_OWNED);
    claim("| | ; doubt", "a1", 0);
    assert_int_equal(result.answer.verdict, DM_SAYS_REFUSED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_nothing_is_granted_when_the_name_is_in_doubt, empty_name, free_name),
        cmocka_unit_test_setup_teardown(test_grace_is_as_long_as_the_longest_lease_when_the_name_is_in_doubt,
                                        empty_name, free_name),
        cmocka_unit_test_setup_teardown(test_claim_settles_the_name_when_it_is_in_doubt, empty_name, free_name),
        cmocka_unit_test_setup_teardown(test_claim_is_lost_when_the_name_is_settled, empty_name, free_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
