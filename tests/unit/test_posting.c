/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stores/redis/post: each posted request is answered once, in the store's words.  The node is replaced by
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

#include "../lib/one_node.h"
#include "link/reader.h"
#include "stores/redis/parts.h"
#include "stores/redis/wire/reply.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- the node ---------------------------------------------------------------------------- */

#define SENT_MAX 4

static int room;            /* for commands: the link is down afterwards */
static const char *at_once; /* the reply to each command as it is sent */
static bool is_sent_by_text;
static char argument[160]; /* the first after the keys */
static char manner[32];    /* the fifth: an acquire tries, queues, or brings its place back */
static const char *distrusted;

/* The commands without a reply, in the order of sending. */
static struct sent {
    dm_reply_fn handler;
    void *user;
    char script[64];                  /* the first line of a text, or the hash */
    char keys[DM_KEY_COUNT + 1][160]; /* and the argument after them */
} sent[SENT_MAX];
static int sent_count;

static void reply_with(const char *text);

enum dm_link_result dm_node_post(struct dm_node *node, struct dm_args *args, dm_reply_fn fn, void *user)
{
    struct sent *last = &sent[sent_count];
    char keys_text[DM_ARG_DIGITS];
    int first;

    (void)node;
    if (room == 0)
        return DM_LINK_DOWN;
    room -= room > 0;
    assert_true(sent_count++ < SENT_MAX);
    is_sent_by_text = strcmp(args->texts[0], "EVAL") == 0;
    snprintf(keys_text, sizeof keys_text, "%.*s", (int)args->lengths[2], args->texts[2]);
    first = 3 + atoi(keys_text);
    snprintf(argument, sizeof argument, "%s", args->texts[first]);
    if (first + 4 < args->count)
        snprintf(manner, sizeof manner, "%.*s", (int)args->lengths[first + 4], args->texts[first + 4]);
    last->handler = fn;
    last->user = user;
    snprintf(last->script, sizeof last->script, "%s", args->texts[1]);
    for (int i = 0; i < DM_KEY_COUNT + 1 && i + 3 < args->count; i++)
        snprintf(last->keys[i], sizeof last->keys[i], "%.*s", (int)args->lengths[i + 3], args->texts[i + 3]);
    if (at_once)
        reply_with(at_once);
    return DM_LINK_OK;
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

void dm_node_reason(struct dm_node *node, struct dm_link *link, char ret_reason[DM_REASON_ROOM])
{
    (void)node;
    (void)link;
    ret_reason[0] = '\0';
}

/* Gives the oldest command the reply that `text` is; NULL: the connection breaks. */
static void reply_with(const char *text)
{
    struct sent first = sent[0];
    struct dm_reader reader;
    redisReply *reply = NULL;

    assert_true(dm_reader_begin(&reader));
    if (text) {
        assert_true(dm_reader_feed(&reader, text, strlen(text)));
        assert_true(dm_reader_next(&reader, &reply));
        assert_non_null(reply);
    }
    assert_true(sent_count-- > 0);
    memmove(sent, sent + 1, sizeof sent - sizeof sent[0]);
    first.handler(first.user, reply);
    dm_reply_free(reply);
    dm_reader_end(&reader);
}

/* ---- questions --------------------------------------------------------------------------- */

static struct dm_redis redis;
static struct dm_place *keys, *others; /* of two groups */

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
    const struct dm_question release = {
        .op = DM_OP_RELEASE, .place = keys, .thread = 1, .attempt = 2, .lease_ms = 1000
    };

    return dm_redis_submit(&redis.store, &release, 1, take, &got);
}

static bool post_acquire(uint64_t arrival, bool may_queue)
{
    const struct dm_question acquire = { .op = DM_OP_ACQUIRE,
                                         .place = keys,
                                         .thread = 1,
                                         .attempt = 2,
                                         .lease_ms = 1000,
                                         .arrival = arrival,
                                         .acquire = { .may_queue = may_queue } };

    return dm_redis_submit(&redis.store, &acquire, 1, take, &got);
}

static bool post_polls(void)
{
    const struct dm_question poll = {
        .op = DM_OP_POLL, .place = keys, .thread = 1, .attempt = 2, .request = { 3, 4 }, .lease_ms = 1000
    };
    struct dm_question polls[] = { poll, poll, poll };

    polls[1].place = others;

    return dm_redis_submit(&redis.store, polls, COUNT(polls), take, &got);
}

static bool post_renewals(void)
{
    const struct dm_question renewal = {
        .op = DM_OP_RENEW, .place = keys, .thread = 1, .attempt = 2, .lease_ms = 1000
    };
    struct dm_question renewals[] = { renewal, renewal, renewal };

    renewals[1].place = others;

    return dm_redis_submit(&redis.store, renewals, COUNT(renewals), take, &got);
}

static const struct {
    bool (*post)(void);
    int count;
} posts[] = { { post_release, 1 }, { post_polls, 3 }, { post_renewals, 3 } };

static int begin(bool is_cluster)
{
    memset(&redis, 0, sizeof redis);
    redis.is_cluster = is_cluster;
    is_sending_on = is_cluster;
    redis.route = one_node_route(is_cluster);
    memset(the_node->is_unknown, 0, sizeof the_node->is_unknown);
    dm_redis_init(&redis, "dmutex", "0123456789abcdef0123456789abcdef", "1 host program");
    keys = dm_keys_new(&redis.naming, "g/l", 0);
    others = dm_keys_new(&redis.naming, "h/m", 0);
    assert_true(keys && others);
    memset(&got, 0, sizeof got);
    memset(&redirected, 0, sizeof redirected);
    room = -1;
    at_once = NULL;
    sent_count = 0;
    distrusted = NULL;
    return 0;
}

static int setup(void **state)
{
    (void)state;
    return begin(false);
}

static int setup_cluster(void **state)
{
    (void)state;
    return begin(true);
}

static int teardown(void **state)
{
    (void)state;
    free(keys);
    free(others);
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
static void test_posting_reports_the_birth_when_it_renews(void **state)
{
    (void)state;
    since_us = 77;
    assert_true(post_renewals());
    reply_with("*4\r\n:5\r\n:1\r\n:0\r\n:2\r\n");
    assert_int_equal(got.answers[0].since_us, 77);
    assert_int_equal(got.answers[1].since_us, 77);
    assert_int_equal(got.answers[1].store_us, 5);
    assert_true(post_renewals());
    reply_with("*5\r\n:900\r\n:1\r\n:0\r\n:2\r\n:800\r\n"); /* its data were deleted since */
    assert_int_equal(got.answers[1].since_us, 800);
    since_us = 0;
}

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
        const struct dm_question renewal = { .op = DM_OP_RENEW,
                                             .place = keys,
                                             .thread = UINT64_MAX,
                                             .attempt = UINT64_MAX,
                                             .lease_ms = DM_LEASE_MAX_MS,
                                             .renew = { .mark = cases[i].mark } };

        assert_true(dm_redis_submit(&redis.store, &renewal, 1, take, &got));
        assert_string_equal(argument, cases[i].hold);
        reply_with("*2\r\n:1000000\r\n:2\r\n");
        assert_true(got.answers[0].has_waiter);
    }
}

/* "NOSCRIPT": nothing was executed.  The next post of this script sends the text, the one after that does not. */
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
static void test_posting_reports_the_refusal_when_a_person_must_act(void **state)
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

/* Not sent: no handler is called, and the loop thread opens the connection. */
static void test_posting_is_refused_when_there_is_no_connection(void **state)
{
    (void)state;
    room = 0;
    the_node->is_wished = false;
    for (size_t i = 0; i < COUNT(posts); i++)
        assert_false(posts[i].post());
    assert_true(the_node->is_wished);
    assert_int_equal(got.times, 0);
}

/* ---- a Cluster --------------------------------------------------------------------------- */

/* One script call for each name, in the text for a Cluster, with the inbox of the name's group; one call back. */
static void test_posting_asks_for_each_name_when_there_is_a_cluster(void **state)
{
    (void)state;
    assert_true(post_polls());
    assert_int_equal(sent_count, 3);
    for (int i = 0; i < 3; i++) {
        assert_string_equal(sent[i].script, dm_sha_poll_cluster);
        assert_string_equal(sent[i].keys[DM_KEY_WAITER], i == 1 ? "dmutex:{h}:waiter:m" : "dmutex:{g}:waiter:l");
        assert_string_equal(sent[i].keys[DM_KEY_COUNT], i == 1 ? "dmutex:{h}:inbox:" : "dmutex:{g}:inbox:");
    }
    reply_with("*2\r\n:1000000\r\n*2\r\n$7\r\nunknown\r\n:0\r\n");
    reply_with("*2\r\n:1000000\r\n*3\r\n$5\r\nowned\r\n:7\r\n:0\r\n");
    assert_int_equal(got.times, 0);
    reply_with("*2\r\n:1000000\r\n*1\r\n$7\r\nwaiting\r\n");
    assert_int_equal(got.times, 1);
    assert_int_equal(got.count, 3);
    assert_int_equal(got.answers[0].verdict, DM_SAYS_UNKNOWN);
    assert_int_equal(got.answers[1].verdict, DM_SAYS_OWNED);
    assert_int_equal(got.answers[1].token, 7);
    assert_int_equal(got.answers[2].verdict, DM_SAYS_WAITING);
    assert_true(post_renewals());
    assert_string_equal(sent[1].script, dm_sha_renew_cluster);
    assert_string_equal(sent[1].keys[DM_KEY_STATE], "dmutex:{h}:state:m");
    for (int i = 0; i < 3; i++)
        reply_with(i == 1 ? "*2\r\n:1000000\r\n:0\r\n" : "*2\r\n:1000000\r\n:1\r\n");
    assert_int_equal(got.times, 2);
    assert_int_equal(got.answers[0].verdict, DM_SAYS_OWNED);
    assert_int_equal(got.answers[1].verdict, DM_SAYS_UNKNOWN);
    assert_int_equal(got.answers[2].verdict, DM_SAYS_OWNED);
}

/* The connection breaks after the first reply: the other names have no answer. */
static void test_posting_keeps_the_answers_of_a_row_when_the_connection_breaks(void **state)
{
    (void)state;
    assert_true(post_renewals());
    reply_with("*2\r\n:1000000\r\n:1\r\n");
    reply_with(NULL);
    reply_with(NULL);
    assert_int_equal(got.times, 1);
    assert_int_equal(got.answers[0].verdict, DM_SAYS_OWNED);
    assert_int_equal(got.answers[1].verdict, DM_SAYS_NOTHING);
    assert_int_equal(got.answers[2].verdict, DM_SAYS_NOTHING);
}

/* The connection breaks in the middle of the sending: the names that were not sent have no answer. */
static void test_posting_answers_a_row_when_a_part_cannot_be_sent(void **state)
{
    (void)state;
    room = 2;
    assert_true(post_renewals());
    assert_int_equal(sent_count, 2);
    reply_with("*2\r\n:1000000\r\n:1\r\n");
    assert_int_equal(got.times, 0);
    reply_with("*2\r\n:1000000\r\n:2\r\n");
    assert_int_equal(got.times, 1);
    assert_int_equal(got.count, 3);
    assert_true(got.answers[1].has_waiter);
    assert_int_equal(got.answers[2].verdict, DM_SAYS_NOTHING);
}

/* The same, and all that was sent is answered before the sending ends: as if nothing was sent, and no handler. */
static void test_posting_is_refused_when_all_sent_parts_are_answered_already(void **state)
{
    (void)state;
    room = 2;
    at_once = "*2\r\n:1000000\r\n:1\r\n";
    assert_false(post_renewals());
    assert_int_equal(got.times, 0);
    assert_false(post_polls()); /* no room for any */
    assert_int_equal(got.times, 0);
}

/* A slot that moves is no fault of the server, and no refusal; the other names have their answers. */
static void test_posting_is_redirected_when_the_slot_is_elsewhere(void **state)
{
    static const struct {
        const char *error;
        enum dm_verdict verdict;
    } cases[] = {
        { "MOVED 14 127.0.0.1:7001", DM_SAYS_AGAIN },
        { "ASK 14 127.0.0.1:7001", DM_SAYS_AGAIN },
        { "TRYAGAIN Multiple keys request during rehashing of slot", DM_SAYS_NOTHING },
        { "CLUSTERDOWN Hash slot not served", DM_SAYS_NOTHING },
    };
    char reply[80];

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        snprintf(reply, sizeof reply, "-%s\r\n", cases[i].error);
        assert_true(post_renewals());
        reply_with("*2\r\n:1000000\r\n:1\r\n");
        reply_with(reply);
        assert_string_equal(redirected.key, "dmutex:{h}:lock:m");
        assert_string_equal(redirected.error, cases[i].error);
        reply_with("*2\r\n:1000000\r\n:1\r\n");
        assert_int_equal(got.answers[0].verdict, DM_SAYS_OWNED);
        assert_int_equal(got.answers[1].verdict, cases[i].verdict);
        assert_int_equal(got.answers[2].verdict, DM_SAYS_OWNED);
        assert_true(post_release());
        reply_with(reply);
        assert_string_equal(redirected.key, "dmutex:{g}:lock:l");
        assert_int_equal(got.answers[0].verdict, cases[i].verdict);
        assert_int_equal(redirected.times, 2 * (i + 1));
        assert_string_equal(got.refusal, "");
    }
    assert_null(distrusted);
}

/* Only the first name is sent with the text, and the first refusal in a row is reported. */
static void test_posting_sends_one_text_and_reports_one_refusal_when_there_are_many_parts(void **state)
{
    (void)state;
    assert_true(post_polls());
    for (int i = 0; i < 3; i++)
        reply_with("-NOSCRIPT No matching script.\r\n");
    for (int i = 0; i < 3; i++)
        assert_int_equal(got.answers[i].verdict, DM_SAYS_AGAIN);
    assert_true(post_polls());
    assert_memory_equal(sent[0].script, dm_lua_poll_cluster, 20);
    assert_string_equal(sent[1].script, dm_sha_poll_cluster);
    assert_string_equal(sent[2].script, dm_sha_poll_cluster);
    reply_with("*2\r\n:1000000\r\n*1\r\n$7\r\nwaiting\r\n");
    reply_with("-NOPERM the first\r\n");
    reply_with("-NOPERM the second\r\n");
    assert_string_equal(got.refusal, "NOPERM the first");
    assert_int_equal(got.answers[0].verdict, DM_SAYS_WAITING);
    assert_int_equal(got.answers[2].verdict, DM_SAYS_NOTHING);
}

/* A waiter that cannot hear, because its inbox is currently gone, only tries: in the queue it would miss its grant. */
static void test_an_attempt_that_may_not_queue_brings_no_place_back(void **state)
{
    (void)state;
    assert_true(post_acquire(0, true));
    assert_string_equal(manner, "queue");
    assert_true(post_acquire(77, true));
    assert_string_equal(manner, "77");
    assert_true(post_acquire(77, false));
    assert_string_equal(manner, "try");
    for (int i = 0; i < 3; i++)
        reply_with(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_an_attempt_that_may_not_queue_brings_no_place_back, setup, teardown),
        cmocka_unit_test_setup_teardown(test_posting_answers_each_question_when_replied, setup, teardown),
        cmocka_unit_test_setup_teardown(test_posting_reports_the_birth_when_it_renews, setup, teardown),
        cmocka_unit_test_setup_teardown(test_posting_marks_the_hold_when_the_renewal_says_so, setup, teardown),
        cmocka_unit_test_setup_teardown(test_posting_sends_the_text_when_the_server_does_not_know_the_script, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_posting_reports_the_refusal_when_a_person_must_act, setup, teardown),
        cmocka_unit_test_setup_teardown(test_posting_leaves_the_server_when_it_is_the_wrong_one, setup, teardown),
        cmocka_unit_test_setup_teardown(test_posting_has_no_answers_when_the_connection_breaks, setup, teardown),
        cmocka_unit_test_setup_teardown(test_posting_is_refused_when_there_is_no_connection, setup, teardown),
        cmocka_unit_test_setup_teardown(test_posting_asks_for_each_name_when_there_is_a_cluster, setup_cluster,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_posting_keeps_the_answers_of_a_row_when_the_connection_breaks,
                                        setup_cluster, teardown),
        cmocka_unit_test_setup_teardown(test_posting_answers_a_row_when_a_part_cannot_be_sent, setup_cluster, teardown),
        cmocka_unit_test_setup_teardown(test_posting_is_refused_when_all_sent_parts_are_answered_already, setup_cluster,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_posting_is_redirected_when_the_slot_is_elsewhere, setup_cluster, teardown),
        cmocka_unit_test_setup_teardown(test_posting_sends_one_text_and_reports_one_refusal_when_there_are_many_parts,
                                        setup_cluster, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
