/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * store/ask: one question is sent once and awaited, by submit() and sleep() alone.  The store is a few variables; the
 * answer comes while the thread sleeps, as if it had read the answer itself, or after it has left.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/self.h"
#include "store/ask.h"

/* ---- the store --------------------------------------------------------------------------- */

static bool is_open, opens;           /* the way: now, and when it is awaited */
static int submitted, refusals;       /* questions; how many more cannot be sent although the way is open */
static bool is_silent;                /* no answer comes while the thread sleeps */
static const struct dm_answer *reply; /* NULL: the connection breaks */
static const char *refusal;

/* The question under way. */
static dm_answers_fn done;
static void *done_user;
static union dm_more *more;

static bool is_able(struct dm_store *store, const struct dm_place *place, enum dm_way way)
{
    (void)store;
    (void)place;
    assert_int_equal(way, DM_ASKS);
    return is_open;
}

static bool await_able(struct dm_store *store, const struct dm_place *place, enum dm_way way,
                       const struct dm_deadline *deadline)
{
    (void)deadline;
    is_open = is_open || opens;
    return is_able(store, place, way);
}

static bool submit(struct dm_store *store, const struct dm_question *questions, int count, dm_answers_fn fn, void *user)
{
    (void)store;
    assert_int_equal(count, 1);
    if (!is_open || refusals-- > 0)
        return false;
    submitted++;
    done = fn;
    done_user = user;
    more = questions->ret_more;
    return true;
}

static void answer(void)
{
    dm_answers_fn fn = done;

    assert_non_null(fn);
    done = NULL;
    if (reply && reply->verdict == DM_SAYS_BOUND)
        snprintf(more->mutex, sizeof more->mutex, "ng/l");
    fn(done_user, reply, 1, refusal);
}

static bool sleep_reading(struct dm_store *store, const struct dm_place *place, enum dm_way way,
                          const struct dm_deadline *deadline, int cancel_state)
{
    (void)store;
    (void)place;
    assert_int_equal(way, DM_ASKS);
    if (!is_silent && done)
        answer();
    return dm_self_sleep_cancellably(dm_self_get(), deadline, cancel_state);
}

static void reason(struct dm_store *store, const struct dm_place *place, enum dm_way way,
                   char ret_reason[DM_REASON_ROOM])
{
    (void)store;
    (void)place;
    (void)way;
    snprintf(ret_reason, DM_REASON_ROOM, "the way is %s", is_open ? "open" : "closed");
}

static const struct dm_store_ops ops = {
    .is_able = is_able, .await_able = await_able, .submit = submit, .sleep = sleep_reading, .reason = reason
};
static struct dm_store store = { .ops = &ops };

static char why[DM_REASON_ROOM];

static struct dm_answer ask(enum dm_op op, int64_t ms, union dm_more *ret_more)
{
    const struct dm_question question = { .op = op, .ret_more = ret_more };
    struct dm_deadline deadline = dm_deadline_in_ms(ms);

    why[0] = '\0';
    return dm_ask_by_submit(&store, &question, &deadline, why);
}

static int setup(void **state)
{
    (void)state;
    is_open = opens = true;
    is_silent = false;
    submitted = refusals = 0;
    reply = NULL;
    refusal = NULL;
    done = NULL;
    return 0;
}

/* ---- tests ------------------------------------------------------------------------------- */

#define MINUTE_MS 60000

static void test_ask_gives_the_answer_when_it_comes(void **state)
{
    static const struct dm_answer owned = { .verdict = DM_SAYS_OWNED, .token = 7, .is_owner_dead = true };
    struct dm_answer answer;

    (void)state;
    reply = &owned;
    answer = ask(DM_OP_ACQUIRE, MINUTE_MS, NULL);
    assert_int_equal(answer.verdict, DM_SAYS_OWNED);
    assert_int_equal(answer.token, 7);
    assert_true(answer.is_owner_dead);
    assert_string_equal(why, "");
    assert_int_equal(submitted, 1);
}

/* The store writes beside the answer, where the asking thread may be gone. */
static void test_ask_gives_the_rest_of_the_answer_when_there_is_more(void **state)
{
    static const struct dm_answer bound = { .verdict = DM_SAYS_BOUND };
    union dm_more more_here;

    (void)state;
    reply = &bound;
    assert_int_equal(ask(DM_OP_COND_SIGNAL, MINUTE_MS, &more_here).verdict, DM_SAYS_BOUND);
    assert_string_equal(more_here.mutex, "ng/l");
    assert_ptr_not_equal(more, &more_here);
}

/* A question is sent once: the caller decides whether to ask again. */
static void test_ask_has_no_answer_when_the_connection_breaks(void **state)
{
    (void)state;
    assert_int_equal(ask(DM_OP_ACQUIRE, MINUTE_MS, NULL).verdict, DM_SAYS_NOTHING);
    assert_string_equal(why, "the way is open");
    assert_int_equal(submitted, 1);
}

/* The text of an error is the reason, also of a question whose refusal submit() does not tell from silence. */
static void test_ask_is_refused_when_a_person_must_read_the_error(void **state)
{
    static const struct dm_answer nothing = { .verdict = DM_SAYS_NOTHING };

    (void)state;
    reply = &nothing;
    refusal = "NOPERM";
    assert_int_equal(ask(DM_OP_RELEASE, MINUTE_MS, NULL).verdict, DM_SAYS_REFUSED);
    assert_string_equal(why, "NOPERM");
}

/* The late answer finds nobody, and frees what it was to be written into. */
static void test_ask_leaves_the_answer_alone_when_its_time_is_over(void **state)
{
    static const struct dm_answer owned = { .verdict = DM_SAYS_OWNED };

    (void)state;
    reply = &owned;
    is_silent = true;
    assert_int_equal(ask(DM_OP_ACQUIRE, 1, NULL).verdict, DM_SAYS_NOTHING);
    assert_string_equal(why, "the way is open");
    answer();
    assert_false(dm_self_take_post(dm_self_get()));
}

static void test_ask_waits_for_the_way_when_it_is_closed(void **state)
{
    static const struct dm_answer done_answer = { .verdict = DM_SAYS_DONE };

    (void)state;
    is_open = false;
    reply = &done_answer;
    assert_int_equal(ask(DM_OP_CANCEL, MINUTE_MS, NULL).verdict, DM_SAYS_DONE);
    assert_int_equal(submitted, 1);
}

/* A way that gives up before the deadline will not open; one that is late may. */
static void test_ask_tells_a_useless_wait_from_a_late_one_when_the_way_stays_closed(void **state)
{
    (void)state;
    is_open = opens = false;
    assert_int_equal(ask(DM_OP_ACQUIRE, MINUTE_MS, NULL).verdict, DM_SAYS_REFUSED);
    assert_string_equal(why, "the way is closed");
    assert_int_equal(ask(DM_OP_ACQUIRE, 0, NULL).verdict, DM_SAYS_NOTHING);
    assert_int_equal(submitted, 0);
}

/* As without memory: the way is open, and waiting for it would not end. */
static void test_ask_gives_up_when_it_cannot_be_sent_on_an_open_way(void **state)
{
    (void)state;
    refusals = 1;
    assert_int_equal(ask(DM_OP_ACQUIRE, MINUTE_MS, NULL).verdict, DM_SAYS_NOTHING);
    assert_int_equal(submitted, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_ask_gives_the_answer_when_it_comes, setup),
        cmocka_unit_test_setup(test_ask_gives_the_rest_of_the_answer_when_there_is_more, setup),
        cmocka_unit_test_setup(test_ask_has_no_answer_when_the_connection_breaks, setup),
        cmocka_unit_test_setup(test_ask_is_refused_when_a_person_must_read_the_error, setup),
        cmocka_unit_test_setup(test_ask_leaves_the_answer_alone_when_its_time_is_over, setup),
        cmocka_unit_test_setup(test_ask_waits_for_the_way_when_it_is_closed, setup),
        cmocka_unit_test_setup(test_ask_tells_a_useless_wait_from_a_late_one_when_the_way_stays_closed, setup),
        cmocka_unit_test_setup(test_ask_gives_up_when_it_cannot_be_sent_on_an_open_way, setup),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
