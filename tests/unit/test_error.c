/* SPDX-License-Identifier: BSD-2-Clause */
/* base/error: the table of failures, and the sentence that each failure leaves with the thread. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../lib/range.h"
#include "base/error.h"

static const struct {
    enum dm_failure failure;
    int number;
    const char *sentence;
} table[] = {
#define X(code, number, sentence) { DM_FAIL_##code, number, sentence },
#include "base/error.def"
#undef X
};

/* A thread without a failure has an empty sentence. */
static void test_error_says_nothing_when_nothing_failed(void **state)
{
    (void)state;
    assert_string_equal(dm_error_sentence(), "");
}

/* Each failure has an errno value from the list of allowed values, never EINTR. */
static void test_error_returns_its_number_when_noted(void **state)
{
    static const int allowed[] = { EINVAL, EBUSY,  EDEADLK, EPERM,   EAGAIN,     ENOMEM,         ETIMEDOUT,
                                   ENOLCK, ENOENT, ERANGE,  ENOTSUP, EOWNERDEAD, ENOTRECOVERABLE };

    (void)state;
    assert_int_equal(DM_COUNT(table), DM_FAIL_COUNT);
    for (size_t i = 0; i < DM_COUNT(table); i++) {
        bool is_allowed = false;

        assert_int_equal(dm_fail(table[i].failure, NULL), table[i].number);
        for (size_t j = 0; j < DM_COUNT(allowed); j++)
            is_allowed = is_allowed || table[i].number == allowed[j];
        assert_true(is_allowed);
    }
}

/* A detail from outside is one printable line. */
static void test_error_cleans_its_detail_when_it_came_from_outside(void **state)
{
    (void)state;
    dm_fail(DM_FAIL_REFUSED, "ERR %s", "two\nlines, \x1b[31mred");
    assert_non_null(strstr(dm_error_sentence(), "ERR two?lines, ?[31mred"));
}

/* Each failure leaves a sentence: some words, no full stop, no line end, room for a detail. */
static void test_error_leaves_its_sentence_when_noted(void **state)
{
    (void)state;
    for (size_t i = 0; i < DM_COUNT(table); i++) {
        const char *sentence = table[i].sentence;

        dm_fail(table[i].failure, NULL);
        assert_string_equal(dm_error_sentence(), sentence);
        assert_non_null(strchr(sentence, ' '));
        assert_null(strpbrk(sentence, "\n\r\t"));
        assert_int_not_equal(sentence[strlen(sentence) - 1], '.');
        assert_within(strlen(sentence), 10, DM_SENTENCE_ROOM / 2);
    }
}

/* A detail follows the sentence. */
static void test_error_adds_the_detail_when_given(void **state)
{
    (void)state;
    assert_int_equal(dm_fail(DM_FAIL_BUSY, "by %s %d", "thread", 7), EBUSY);
    assert_string_equal(dm_error_sentence(), "The mutex is owned by another thread: by thread 7");
    assert_true(dm_error_is(DM_FAIL_BUSY) && !dm_error_is(DM_FAIL_GRACE));
}

/* A detail of any length is cut, not written past the room. */
static void test_error_cuts_the_detail_when_too_long(void **state)
{
    char detail[2 * DM_SENTENCE_ROOM];

    (void)state;
    memset(detail, 'x', sizeof detail - 1);
    detail[sizeof detail - 1] = '\0';
    for (size_t i = 0; i < DM_COUNT(table); i++) {
        dm_fail(table[i].failure, "%s", detail);
        assert_int_equal(strlen(dm_error_sentence()), DM_SENTENCE_ROOM - 1);
    }
}

/* A failure leaves errno unchanged, because errno belongs to the caller. */
static void test_error_keeps_errno_when_noted(void **state)
{
    (void)state;
    errno = EXDEV;
    dm_fail(DM_FAIL_LOST, "%s", "a detail");
    assert_int_equal(errno, EXDEV);
}

static void *fail_elsewhere(void *user)
{
    *(bool *)user = dm_error_sentence()[0] == '\0';
    dm_fail(DM_FAIL_DEPTH, NULL);
    return NULL;
}

/* A failure changes only the sentence of the thread that fails. */
static void test_error_leaves_other_threads_alone_when_noted(void **state)
{
    pthread_t thread;
    bool was_empty = false;

    (void)state;
    dm_fail(DM_FAIL_LOST, NULL);
    assert_int_equal(pthread_create(&thread, NULL, fail_elsewhere, &was_empty), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(was_empty);
    assert_string_equal(dm_error_sentence(), table[DM_FAIL_LOST].sentence);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_error_says_nothing_when_nothing_failed),
        cmocka_unit_test(test_error_returns_its_number_when_noted),
        cmocka_unit_test(test_error_leaves_its_sentence_when_noted),
        cmocka_unit_test(test_error_cleans_its_detail_when_it_came_from_outside),
        cmocka_unit_test(test_error_adds_the_detail_when_given),
        cmocka_unit_test(test_error_cuts_the_detail_when_too_long),
        cmocka_unit_test(test_error_keeps_errno_when_noted),
        cmocka_unit_test(test_error_leaves_other_threads_alone_when_noted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
