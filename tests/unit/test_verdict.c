/* SPDX-License-Identifier: BSD-2-Clause */
/* store/verdict: the errno value and the sentence of each verdict. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "store/verdict.h"

/* A store that can be asked, or not. */
static bool is_there;

static bool is_able(struct dm_store *store, const struct dm_place *place, enum dm_way way)
{
    (void)store;
    (void)place;
    assert_int_equal(way, DM_ASKS);
    return is_there;
}

static const struct dm_store_ops ops = { .is_able = is_able };
static struct dm_store store = { .ops = &ops };

/* Each verdict has its errno value; the reason is added where the verdict alone does not say enough. */
static void test_verdict_has_its_errno_value_when_it_is_a_failure(void **state)
{
    static const struct {
        enum dm_verdict verdict;
        int error;
        bool tells_reason;
    } cases[] = {
        { DM_SAYS_NOTHING, ENOLCK, true }, { DM_SAYS_AGAIN, ENOLCK, true },
        { DM_SAYS_REFUSED, ENOLCK, true }, { DM_SAYS_NO_MEMORY, EAGAIN, true },
        { DM_SAYS_BUSY, EBUSY, false },    { DM_SAYS_FULL, EAGAIN, false },
        { DM_SAYS_BOUND, EINVAL, false },  { DM_SAYS_NOT_RECOVERABLE, ENOTRECOVERABLE, false },
        { DM_SAYS_UNKNOWN, EPERM, false }, { DM_SAYS_NOT_OWNER, EPERM, false },
        { DM_SAYS_OWNED, ENOLCK, true },   { DM_SAYS_DONE, ENOLCK, true },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(dm_verdict_fail(&store, cases[i].verdict, "the reason 100 %s"), cases[i].error);
        assert_int_equal(strstr(dm_error_sentence(), "the reason 100 %s") != NULL, cases[i].tells_reason);
    }
}

/* No answer: a server that cannot be reached is distinguished from one that is slow. */
static void test_verdict_reports_a_closed_way_when_there_is_no_answer(void **state)
{
    (void)state;
    is_there = true;
    dm_verdict_fail(&store, DM_SAYS_NOTHING, "x");
    assert_non_null(strstr(dm_error_sentence(), "did not answer"));
    is_there = false;
    dm_verdict_fail(&store, DM_SAYS_NOTHING, "x");
    assert_non_null(strstr(dm_error_sentence(), "cannot be used now"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_verdict_has_its_errno_value_when_it_is_a_failure),
        cmocka_unit_test(test_verdict_reports_a_closed_way_when_there_is_no_answer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
