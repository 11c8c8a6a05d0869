/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * redis/store_post: each posted request is answered once, in the store's words.  The node is replaced by
 * functions that note the command and give the reply that a test wants.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "link/reader.h"
#include "redis/reply.h"
#include "redis/store_parts.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- the node ---------------------------------------------------------------------------- */

static bool is_down, is_wanted;
static bool is_sent_by_text;
static char argument[160]; /* the first behind the keys of one name */
static dm_reply_fn handler;
static void *handler_user;
static const char *distrusted;

enum dm_link_result dm_node_post(struct dm_node *node, struct dm_args *args, dm_reply_fn fn, void *user)
{
    (void)node;
    if (is_down)
        return DM_LINK_DOWN;
    is_sent_by_text = strcmp(args->texts[0], "EVAL") == 0;
    snprintf(argument, sizeof argument, "%s", args->texts[3 + DM_KEY_COUNT]);
    handler = fn;
    handler_user = user;
    return DM_LINK_OK;
}

enum dm_link_result dm_node_post_quietly(struct dm_node *node, struct dm_args *args, dm_reply_fn fn, void *user)
{
    return dm_node_post(node, args, fn, user);
}

enum dm_link_result dm_node_call(struct dm_node *node, struct dm_args *args, const struct dm_deadline *deadline,
                                 struct redisReply **ret_reply)
{
    (void)node;
    (void)args;
    (void)deadline;
    (void)ret_reply;
    return DM_LINK_DOWN;
}

bool dm_node_is_ready(struct dm_node *node)
{
    (void)node;
    return true;
}

void dm_node_distrust(struct dm_node *node, const char *reason)
{
    (void)node;
    distrusted = reason ? "yes" : NULL;
}

void dm_node_want(struct dm_node *node)
{
    (void)node;
    is_wanted = true;
}

void dm_node_reason(struct dm_node *node, struct dm_link *link, char ret_reason[DM_REASON_ROOM])
{
    (void)node;
    (void)link;
    ret_reason[0] = '\0';
}

/* Gives the reply that `text` is; NULL: the connection breaks. */
static void reply_with(const char *text)
{
    struct dm_reader reader;
    redisReply *reply = NULL;

    assert_true(dm_reader_begin(&reader));
    if (text) {
        assert_true(dm_reader_feed(&reader, text, strlen(text)));
        assert_true(dm_reader_next(&reader, &reply));
        assert_non_null(reply);
    }
    handler(handler_user, reply);
    freeReplyObject(reply);
    dm_reader_end(&reader);
}

/* ---- questions --------------------------------------------------------------------------- */

static struct dm_redis redis;
static struct dm_place *keys;

/* The answers that came. */
static struct {
    int times, count;
    bool is_broken;
    struct dm_answer answers[3];
    char refusal[80];
} got;

static void take(void *user, const struct dm_answer *answers, int count, const char *refusal)
{
    assert_ptr_equal(user, &got);
    got.times++;
    got.count = count;
    got.is_broken = !answers;
    for (int i = 0; answers && i < count; i++)
        got.answers[i] = answers[i];
    snprintf(got.refusal, sizeof got.refusal, "%s", refusal ? refusal : "");
}

static bool post_release(void)
{
    const struct dm_ask ask = { .place = keys, .thread = 1, .attempt = 2, .lease_ms = 1000 };

    return dm_redis_post_release(&redis.store, &ask, DM_END_UNLOCKED, take, &got);
}

static bool post_polls(void)
{
    const struct dm_ask ask = { .place = keys, .thread = 1, .attempt = 2, .request = { 3, 4 }, .lease_ms = 1000 };
    const struct dm_ask asks[] = { ask, ask, ask };

    return dm_redis_post_poll(&redis.store, asks, COUNT(asks), take, &got);
}

static bool post_renewals(void)
{
    const struct dm_renewal renewal = { .place = keys, .thread = 1, .attempt = 2, .lease_ms = 1000 };
    const struct dm_renewal renewals[] = { renewal, renewal, renewal };

    return dm_redis_post_renew(&redis.store, renewals, COUNT(renewals), take, &got);
}

static const struct {
    bool (*post)(void);
    int count;
} posts[] = { { post_release, 1 }, { post_polls, 3 }, { post_renewals, 3 } };

static int setup(void **state)
{
    (void)state;
    memset(&redis, 0, sizeof redis);
    dm_redis_init(&redis, "dmutex", "0123456789abcdef0123456789abcdef", "1 host program");
    keys = dm_keys_new("dmutex", "g/l", 0);
    assert_non_null(keys);
    memset(&got, 0, sizeof got);
    is_down = is_wanted = false;
    distrusted = NULL;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    free(keys);
    return 0;
}

/* ---- tests ------------------------------------------------------------------------------- */

/* Each question has the answer of its place; a question without an answer in the reply is answered by nothing. */
static void test_posting_answers_each_question_when_replied(void **state)
{
    (void)state;
    assert_true(post_renewals());
    reply_with("*3\r\n:1000000\r\n:2\r\n:0\r\n");
    assert_int_equal(got.times, 1);
    assert_int_equal(got.count, 3);
    assert_int_equal(got.answers[0].verdict, DM_SAYS_OWNED);
    assert_int_equal(got.answers[1].verdict, DM_SAYS_UNKNOWN);
    assert_int_equal(got.answers[2].verdict, DM_SAYS_NOTHING);
    assert_true(post_release());
    reply_with("*2\r\n$8\r\nreleased\r\n:1\r\n");
    assert_int_equal(got.answers[0].verdict, DM_SAYS_DONE);
    assert_true(got.answers[0].is_wanted);
}

/* A renewal writes the mark between lease and label, also of the greatest numbers. */
static void test_posting_marks_the_hold_when_the_renewal_says_so(void **state)
{
#define ID "0123456789abcdef0123456789abcdef:18446744073709551615:18446744073709551615"
    static const struct {
        enum dm_mark mark;
        const char *hold;
    } cases[] = {
        { DM_MARK_NONE, ID " 3600000 1 host program" },
        { DM_MARK_TELL, ID " 3600000 + 1 host program" },
        { DM_MARK_TELL_NO_DEATH, ID " 3600000 - 1 host program" },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct dm_renewal renewal = { .place = keys,
                                            .thread = UINT64_MAX,
                                            .attempt = UINT64_MAX,
                                            .lease_ms = DM_LEASE_MAX_MS,
                                            .mark = cases[i].mark };

        assert_true(dm_redis_post_renew(&redis.store, &renewal, 1, take, &got));
        assert_string_equal(argument, cases[i].hold);
        reply_with("*2\r\n:1000000\r\n:2\r\n");
        assert_true(got.answers[0].has_waiter);
    }
}

/* "NOSCRIPT": nothing was executed.  The next post of this script sends the text, the post behind the next does not. */
static void test_posting_sends_the_text_when_the_server_does_not_know_the_script(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(posts); i++) {
        assert_true(posts[i].post());
        assert_false(is_sent_by_text);
        reply_with("-NOSCRIPT No matching script.\r\n");
        assert_int_equal(got.count, posts[i].count);
        for (int each = 0; each < got.count; each++)
            assert_int_equal(got.answers[each].verdict, DM_SAYS_AGAIN);
        assert_string_equal(got.refusal, "");
        assert_true(posts[(i + 1) % COUNT(posts)].post()); /* another script */
        assert_false(is_sent_by_text);
        reply_with(NULL);
        assert_true(posts[i].post());
        assert_true(is_sent_by_text);
        reply_with(NULL);
        assert_true(posts[i].post());
        assert_false(is_sent_by_text);
        reply_with(NULL);
    }
}

/* A person reads why the server refuses; a server that is only not ready is no refusal. */
static void test_posting_tells_the_refusal_when_a_person_must_mend(void **state)
{
    (void)state;
    assert_true(post_polls());
    reply_with("-NOPERM this user has no permissions\r\n");
    assert_string_equal(got.refusal, "NOPERM this user has no permissions");
    assert_int_equal(got.answers[2].verdict, DM_SAYS_NOTHING);
    assert_true(post_polls());
    reply_with("-LOADING Redis is loading\r\n");
    assert_string_equal(got.refusal, "");
    assert_int_equal(got.answers[2].verdict, DM_SAYS_NOTHING);
    assert_null(distrusted);
}

/* A server that became a replica: the connection ends. */
static void test_posting_leaves_the_server_when_it_is_the_wrong_one(void **state)
{
    (void)state;
    assert_true(post_release());
    reply_with("-READONLY You can't write against a read only replica.\r\n");
    assert_string_equal(distrusted, "yes");
    assert_int_equal(got.answers[0].verdict, DM_SAYS_NOTHING);
}

/* Without a reply there are no answers. */
static void test_posting_has_no_answers_when_the_connection_breaks(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(posts); i++) {
        assert_true(posts[i].post());
        reply_with(NULL);
        assert_int_equal(got.times, (int)i + 1);
        assert_true(got.is_broken);
    }
}

/* Not sent: no handler is called, and a release opens the connection. */
static void test_posting_is_refused_when_there_is_no_connection(void **state)
{
    (void)state;
    is_down = true;
    for (size_t i = 0; i < COUNT(posts); i++)
        assert_false(posts[i].post());
    assert_true(is_wanted);
    assert_int_equal(got.times, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_posting_answers_each_question_when_replied, setup, teardown),
        cmocka_unit_test_setup_teardown(test_posting_marks_the_hold_when_the_renewal_says_so, setup, teardown),
        cmocka_unit_test_setup_teardown(test_posting_sends_the_text_when_the_server_does_not_know_the_script, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_posting_tells_the_refusal_when_a_person_must_mend, setup, teardown),
        cmocka_unit_test_setup_teardown(test_posting_leaves_the_server_when_it_is_the_wrong_one, setup, teardown),
        cmocka_unit_test_setup_teardown(test_posting_has_no_answers_when_the_connection_breaks, setup, teardown),
        cmocka_unit_test_setup_teardown(test_posting_is_refused_when_there_is_no_connection, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
