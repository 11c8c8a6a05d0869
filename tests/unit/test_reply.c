/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stores/redis/wire/reply, and the readers of replies and messages in stores/redis: no byte of a server is
 * trusted, and only an exact answer of the library's scripts is a grant.
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
#include "random.h"
#include "stores/redis/parts.h"
#include "stores/redis/wire/reply.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Reads the reply from the bytes; NULL: no reply, or refused. */
static redisReply *read_bytes(const char *bytes, size_t length)
{
    struct dm_reader reader;
    redisReply *reply;

    assert_true(dm_reader_begin(&reader));
    if (!dm_reader_feed(&reader, bytes, length) || !dm_reader_next(&reader, &reply))
        reply = NULL;
    dm_reader_end(&reader);
    return reply;
}

static redisReply *read_text(const char *text)
{
    redisReply *reply = read_bytes(text, strlen(text));

    assert_non_null(reply);
    return reply;
}

/* The answer to a question of the operation. */
static struct dm_answer read_one(enum dm_op op, const redisReply *reply, int index)
{
    struct dm_answer answer;

    dm_redis_read(op, &(struct dm_reading){ .reply = reply, .index = index }, &answer);
    return answer;
}

/* ---- errors ------------------------------------------------------------------------------ */

/* Each error of the server has a row in the table; an unknown error is a refusal. */
static void test_reply_has_its_row_when_it_is_an_error(void **state)
{
    static const struct {
        const char *error;
        enum dm_error_row row;
    } cases[] = {
        { "-NOSCRIPT No matching script\r\n", DM_ROW_SCRIPT },
        { "-LOADING Redis is loading\r\n", DM_ROW_RETRY },
        { "-BUSY Redis is busy\r\n", DM_ROW_RETRY },
        { "-TRYAGAIN x\r\n", DM_ROW_RETRY },
        { "-CLUSTERDOWN x\r\n", DM_ROW_RETRY },
        { "-NOREPLICAS x\r\n", DM_ROW_RETRY },
        { "-MASTERDOWN x\r\n", DM_ROW_REDISCOVER },
        { "-READONLY You can't write\r\n", DM_ROW_REDISCOVER },
        { "-OOM command not allowed\r\n", DM_ROW_NO_MEMORY },
        { "-NOPERM x\r\n", DM_ROW_REFUSED },
        { "-WRONGTYPE x\r\n", DM_ROW_REFUSED },
        { "-ERR unknown command\r\n", DM_ROW_REFUSED },
        { "-BUSYKEY x\r\n", DM_ROW_REFUSED },
        { "-\r\n", DM_ROW_REFUSED },
        { "-OOM\r\n", DM_ROW_NO_MEMORY },
        { "+NOSCRIPT\r\n", DM_ROW_NONE },
        { ":1\r\n", DM_ROW_NONE },
        { "$-1\r\n", DM_ROW_NONE },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        redisReply *reply = read_text(cases[i].error);

        assert_int_equal(dm_reply_row(reply), cases[i].row);
        dm_reply_free(reply);
    }
}

/* ---- numbers and words ------------------------------------------------------------------- */

/* A number is an integer that is not negative, or the digits of such an integer, and nothing else. */
static void test_reply_number_is_read_when_it_is_one(void **state)
{
    static const char text[] = "*11\r\n:0\r\n:9007199254740992\r\n:-1\r\n$1\r\n7\r\n$0\r\n\r\n"
                               "$2\r\n-7\r\n$2\r\n7x\r\n$20\r\n99999999999999999999\r\n$-1\r\n*0\r\n+5\r\n";
    static const struct {
        bool is_number;
        uint64_t number;
    } expected[] = { { true, 0 },  { true, UINT64_C(9007199254740992) },
                     { false, 0 }, { true, 7 },
                     { false, 0 }, { false, 0 },
                     { false, 0 }, { false, 0 },
                     { false, 0 }, { false, 0 },
                     { false, 0 }, { false, 0 } };
    redisReply *reply = read_text(text);

    (void)state;
    for (size_t i = 0; i < COUNT(expected); i++) {
        uint64_t number = 1234;

        assert_int_equal(dm_reply_number(reply, i, &number), expected[i].is_number);
        assert_int_equal(number, expected[i].is_number ? expected[i].number : 1234);
    }
    dm_reply_free(reply);
}

/* One text has its words and numbers between spaces. */
static void test_reply_has_words_when_it_is_a_text(void **state)
{
    redisReply *reply = read_text("$19\r\nqueued 12 007x -1 5\r\n");
    uint64_t number = 1234;

    (void)state;
    assert_true(dm_reply_is(reply, "queued"));
    assert_false(dm_reply_is(reply, "queue"));
    assert_false(dm_reply_is(reply, "queued 12"));
    for (size_t i = 0; i < 6; i++) {
        static const uint64_t expected[] = { 0, 12, 0, 0, 5, 0 };

        assert_int_equal(dm_reply_number(reply, i, &number), expected[i] != 0);
        if (expected[i])
            assert_int_equal(number, expected[i]);
    }
    dm_reply_free(reply);
    for (size_t i = 0; i < 3; i++) { /* nothing but spaces, or nothing */
        static const char *const texts[] = { "$0\r\n\r\n", "$1\r\n \r\n", "$2\r\n  \r\n" };

        reply = read_text(texts[i]);
        for (size_t j = 0; j < 4; j++)
            assert_false(dm_reply_number(reply, j, &number));
        assert_false(dm_reply_is(reply, "owned"));
        dm_reply_free(reply);
    }
}

/* A reply that is neither an array nor a text has no numbers and no first word. */
static void test_reply_has_no_elements_when_it_is_no_array(void **state)
{
    static const char *const texts[] = { ":5\r\n", "+owned\r\n", "-owned\r\n", "$-1\r\n", "*-1\r\n", "*0\r\n" };
    uint64_t number;

    (void)state;
    for (size_t i = 0; i < COUNT(texts); i++) {
        redisReply *reply = read_text(texts[i]);

        assert_false(dm_reply_number(reply, 0, &number));
        assert_false(dm_reply_is(reply, "owned"));
        dm_reply_free(reply);
    }
}

/* The word is the whole first element. */
static void test_reply_is_a_word_when_the_first_element_says_it(void **state)
{
    redisReply *reply = read_text("*2\r\n$5\r\nowned\r\n:5\r\n");

    (void)state;
    assert_true(dm_reply_is(reply, "owned"));
    assert_false(dm_reply_is(reply, "own"));
    assert_false(dm_reply_is(reply, "ownedx"));
    dm_reply_free(reply);
    reply = read_text("*2\r\n*1\r\n$5\r\nowned\r\n:5\r\n");
    assert_false(dm_reply_is(reply, "owned"));
    dm_reply_free(reply);
}

/* ---- sizes ------------------------------------------------------------------------------- */

/* A header that announces more elements than any script's answer is refused before any room is made. */
static void test_reader_refuses_an_array_when_too_many_elements_are_announced(void **state)
{
    static const char *const texts[] = { "*1025\r\n",         "*1000000000\r\n",          "*4294967295\r\n",
                                         "*2147483648\r\n",   "*9223372036854775807\r\n", "*-2\r\n",
                                         "*2\r\n*1000000\r\n" };

    (void)state;
    for (size_t i = 0; i < COUNT(texts); i++) {
        struct dm_reader reader;
        redisReply *reply;

        assert_true(dm_reader_begin(&reader));
        assert_true(dm_reader_feed(&reader, texts[i], strlen(texts[i])));
        assert_false(dm_reader_next(&reader, &reply));
        assert_null(reply);
        dm_reader_end(&reader);
    }
}

/* The greatest answer of a script, to 100 renewals, is read, and an array at the limit. */
static void test_reader_takes_an_array_when_it_is_as_long_as_ours(void **state)
{
    static const int sizes[] = { 1, 101, 1024 };

    (void)state;
    for (size_t i = 0; i < COUNT(sizes); i++) {
        char text[16 + 1024 * 4];
        int used = snprintf(text, sizeof text, "*%d\r\n", sizes[i]);
        redisReply *reply;

        for (int element = 0; element < sizes[i]; element++)
            used += snprintf(text + used, sizeof text - (size_t)used, ":1\r\n");
        reply = read_text(text);
        assert_int_equal(reply->elements, sizes[i]);
        dm_reply_free(reply);
    }
}

/* A bulk without an end is given up before the bulk fills the memory. */
static void test_reader_takes_no_more_when_a_bulk_grows_without_end(void **state)
{
    struct dm_reader reader;
    char piece[4096];
    size_t fed = 0;
    redisReply *reply;

    (void)state;
    memset(piece, 'x', sizeof piece);
    assert_true(dm_reader_begin(&reader));
    assert_true(dm_reader_feed(&reader, "$500000000\r\n", 12));
    while (dm_reader_feed(&reader, piece, sizeof piece)) {
        fed += sizeof piece;
        assert_true(fed < 1024 * 1024);
        assert_true(dm_reader_next(&reader, &reply));
        assert_null(reply);
    }
    dm_reader_end(&reader);
}

/* ---- answers to posted scripts ----------------------------------------------------------- */

/* Each answer to a release is read; any other reply means: not confirmed. */
static void test_release_is_read_when_answered(void **state)
{
    static const struct {
        const char *text;
        enum dm_verdict verdict;
        bool is_wanted;
    } cases[] = {
        { "*2\r\n$8\r\nreleased\r\n:0\r\n", DM_SAYS_DONE, false },
        { "*2\r\n$8\r\nreleased\r\n:1\r\n", DM_SAYS_DONE, true },
        { "*1\r\n$4\r\nleft\r\n", DM_SAYS_DONE, false },
        { "*1\r\n$8\r\nnotowner\r\n", DM_SAYS_NOT_OWNER, false },
        { "-LOADING x\r\n", DM_SAYS_NOTHING, false },
        { "-ERR x\r\n", DM_SAYS_NOTHING, false },
        { "*1\r\n$5\r\nowned\r\n", DM_SAYS_NOTHING, false },
        { "+released\r\n", DM_SAYS_NOTHING, false },
        { "*0\r\n", DM_SAYS_NOTHING, false },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        redisReply *reply = read_text(cases[i].text);
        struct dm_answer answer = read_one(DM_OP_RELEASE, reply, 0);

        assert_int_equal(answer.verdict, cases[i].verdict);
        assert_int_equal(answer.is_wanted, cases[i].is_wanted);
        dm_reply_free(reply);
    }
}

/* Each attempt of a batch of polls has a separate answer; a missing or strange answer is no answer. */
static void test_poll_is_read_for_each_attempt_when_answered(void **state)
{
    static const char text[] = "*9\r\n:1000000\r\n*3\r\n$5\r\nowned\r\n:77\r\n:1\r\n"
                               "*3\r\n$6\r\nqueued\r\n:2\r\n:500\r\n*2\r\n$7\r\nunknown\r\n:1\r\n"
                               "*1\r\n$14\r\nnotrecoverable\r\n*2\r\n$5\r\nerror\r\n$1\r\nx\r\n$-1\r\n"
                               "*3\r\n$5\r\nowned\r\n$2\r\n-1\r\n:0\r\n"
                               "*3\r\n$5\r\nowned\r\n:4503599627370496\r\n:0\r\n";
    static const enum dm_verdict expected[] = { DM_SAYS_OWNED,           DM_SAYS_QUEUED,  DM_SAYS_UNKNOWN,
                                                DM_SAYS_NOT_RECOVERABLE, DM_SAYS_NOTHING, DM_SAYS_NOTHING,
                                                DM_SAYS_NOTHING,         DM_SAYS_NOTHING, DM_SAYS_NOTHING };
    redisReply *reply = read_text(text);

    (void)state;
    for (int i = 0; i < (int)COUNT(expected); i++)
        assert_int_equal(read_one(DM_OP_POLL, reply, i).verdict, expected[i]);
    assert_int_equal(read_one(DM_OP_POLL, reply, 0).token, 77);
    assert_true(read_one(DM_OP_POLL, reply, 0).is_owner_dead);
    assert_int_equal(read_one(DM_OP_POLL, reply, 0).store_us, 1000000);
    assert_int_equal(read_one(DM_OP_POLL, reply, 1).position, 2);
    assert_int_equal(read_one(DM_OP_POLL, reply, 1).remaining_ms, 500);
    dm_reply_free(reply);
}

/* 0 lost, 1 confirmed, 2 confirmed and others wait; anything else is no answer. */
static void test_renewal_is_read_for_each_lock_when_answered(void **state)
{
    redisReply *reply = read_text("*6\r\n:1000000\r\n:0\r\n:1\r\n:2\r\n:-1\r\n$1\r\nx\r\n");

    (void)state;
    assert_int_equal(read_one(DM_OP_RENEW, reply, 0).verdict, DM_SAYS_UNKNOWN);
    assert_int_equal(read_one(DM_OP_RENEW, reply, 1).verdict, DM_SAYS_OWNED);
    assert_int_equal(read_one(DM_OP_RENEW, reply, 2).verdict, DM_SAYS_OWNED);
    for (int i = 0; i < 6; i++)
        assert_int_equal(read_one(DM_OP_RENEW, reply, i).has_waiter, i == 2);
    for (int i = 3; i < 6; i++)
        assert_int_equal(read_one(DM_OP_RENEW, reply, i).verdict, DM_SAYS_NOTHING);
    dm_reply_free(reply);
}

/* A renewal is confirmed by 1 or 2 and by nothing else. */
static void test_renewal_is_not_confirmed_when_the_number_is_strange(void **state)
{
    redisReply *reply = read_text("*2\r\n:1000000\r\n:3\r\n");

    (void)state;
    assert_int_not_equal(read_one(DM_OP_RENEW, reply, 0).verdict, DM_SAYS_OWNED);
    dm_reply_free(reply);
}

/* ---- messages ---------------------------------------------------------------------------- */

/* A grant names the server by the run id; a grant of version 0.1.0 names no server. */
static void test_message_names_the_server_when_it_is_a_grant(void **state)
{
    struct dm_message message;
    uint64_t run;

    (void)state;
    assert_true(dm_redis_read_message("granted 12 3 45 1000 0 0123456789abcdef", &message, &run));
    assert_int_equal(message.kind, DM_MESSAGE_GRANTED);
    assert_true(run == UINT64_C(0x0123456789abcdef));
    assert_true(dm_redis_read_message("granted 12 3 45 1000 0", &message, &run));
    assert_true(run == 0);
}

/* The messages "granted", "lost", "ask" and "wanted" are read with all numbers. */
static void test_message_is_read_when_it_is_one_of_ours(void **state)
{
    struct dm_message message;
    uint64_t run;

    (void)state;
    assert_true(dm_redis_read_message("granted 12 3 4503599627370495 1000 1", &message, &run));
    assert_int_equal(message.kind, DM_MESSAGE_GRANTED);
    assert_int_equal(message.attempt, 12);
    assert_int_equal(message.request, 3);
    assert_int_equal(message.answer.verdict, DM_SAYS_OWNED);
    assert_true(message.answer.token == UINT64_C(4503599627370495));
    assert_true(message.answer.is_owner_dead);
    assert_true(dm_redis_read_message("granted 12 3 45 1000 0", &message, &run));
    assert_false(message.answer.is_owner_dead);
    assert_true(dm_redis_read_message("lost 5", &message, &run));
    assert_int_equal(message.kind, DM_MESSAGE_LOST);
    assert_int_equal(message.attempt, 5);
    assert_true(dm_redis_read_message("ask 6", &message, &run));
    assert_int_equal(message.kind, DM_MESSAGE_ASK);
    assert_int_equal(message.attempt, 6);
    assert_true(dm_redis_read_message("wanted 9223372036854775807", &message, &run));
    assert_int_equal(message.kind, DM_MESSAGE_WANTED);
    assert_true(message.attempt == UINT64_C(9223372036854775807));
}

/* Texts that are not exactly a message of this version are refused, even those of a later version. */
static void test_message_is_refused_when_it_is_not_ours(void **state)
{
    static const char *const texts[] = { "",
                                         " ",
                                         "granted",
                                         "granted 1",
                                         "granted 1 2 3 4",
                                         "granted 1 2 3 4 0 ",
                                         "granted 1 2 3 4 0 0123456789abcde",
                                         "granted 1 2 3 4 0 0123456789abcdef0",
                                         "granted 1 2 3 4 0 0123456789abcdef 1",
                                         "granted 1 2 3 4 0 0123456789abcdeF",
                                         "granted x 2 3 4 0",
                                         "granted 1 2 3 4 x",
                                         "granted 1 2 4503599627370496 4 0",
                                         "granted 1 2 9223372036854775807 4 0",
                                         "Granted 1 2 3 4 0",
                                         "lost",
                                         "lost x",
                                         "ask",
                                         "asking 1",
                                         "wanted",
                                         "wanted ",
                                         "wanted x",
                                         "wanted 1 ",
                                         "wanted 1 2",
                                         "wantedx 1",
                                         "unwanted 1",
                                         "signalled 1",
                                         "granted1 2 3 4 0",
                                         "lostx 5" };
    struct dm_message message;
    uint64_t run;

    (void)state;
    for (size_t i = 0; i < COUNT(texts); i++) {
        if (dm_redis_read_message(texts[i], &message, &run))
            fail_msg("taken for a message: \"%s\"", texts[i]);
    }
}

/* A message is refused if a number is negative or too great. */
static void test_message_is_refused_when_a_number_cannot_be_ours(void **state)
{
    static const char *const texts[] = { "granted -1 2 3 4 0",
                                         "granted 1 -2 3 4 0",
                                         "granted 1 2 -3 4 0",
                                         "granted 99999999999999999999999 2 3 4 0",
                                         "granted 1 2 99999999999999999999 4 0",
                                         "lost -5",
                                         "ask -1",
                                         "wanted -1",
                                         "wanted 99999999999999999999",
                                         "lost 99999999999999999999" };
    struct dm_message message;
    uint64_t run;

    (void)state;
    for (size_t i = 0; i < COUNT(texts); i++) {
        if (dm_redis_read_message(texts[i], &message, &run))
            fail_msg("taken for a message: \"%s\"", texts[i]);
    }
}

/* ---- anything ---------------------------------------------------------------------------- */

/* Reads a reply with each reader; for an answer "owned", the bytes must contain that word. */
static void read_in_every_way(const redisReply *reply, const char *bytes, size_t length)
{
    uint64_t number;

    dm_reply_row(reply);
    dm_reply_number(reply, 0, &number);
    if (read_one(DM_OP_RELEASE, reply, 0).is_wanted)
        assert_non_null(memmem(bytes, length, "released", 8));
    for (int index = 0; index < 4; index++) {
        read_one(DM_OP_RENEW, reply, index);
        if (read_one(DM_OP_POLL, reply, index).verdict == DM_SAYS_OWNED)
            assert_non_null(memmem(bytes, length, "owned", 5));
    }
}

static const char *const replies[] = {
    "*3\r\n:1000000\r\n*3\r\n$5\r\nowned\r\n:77\r\n:1\r\n*3\r\n$6\r\nqueued\r\n:2\r\n:500\r\n",
    "*2\r\n$8\r\nreleased\r\n:0\r\n",
    "*3\r\n:1000000\r\n:1\r\n:2\r\n",
    "-NOSCRIPT No matching script\r\n",
    "*3\r\n$7\r\nmessage\r\n$5\r\ninbox\r\n$24\r\ngranted 12 3 45 1000 0 x\r\n",
};

/* Answers of scripts with some bytes changed or cut are read or refused, without a fault that a sanitizer finds. */
static void test_reply_is_read_or_refused_when_its_bytes_are_damaged(void **state)
{
    int damaged = rounds(50000);

    (void)state;
    while (damaged-- > 0) {
        char bytes[256];
        size_t length = (size_t)snprintf(bytes, sizeof bytes, "%s", replies[random_below(COUNT(replies))]);
        redisReply *reply;

        for (unsigned changes = random_below(4); changes > 0; changes--)
            bytes[random_below((unsigned)length)] = "*$:+-0123456789\r\nx"[random_below(19)];
        if (random_below(4) == 0)
            length = random_below((unsigned)length);
        bytes[length] = '\0';
        reply = read_bytes(bytes, length);
        if (reply)
            read_in_every_way(reply, bytes, length);
        dm_reply_free(reply);
    }
}

/* Random bytes are read or refused, without a fault that a sanitizer finds. */
static void test_reply_is_read_or_refused_when_its_bytes_are_random(void **state)
{
    int texts = rounds(50000);

    (void)state;
    while (texts-- > 0) {
        char bytes[64];
        unsigned length = 1 + random_below(60);
        redisReply *reply;

        random_bytes(bytes, length, '\0');
        bytes[0] = "*$:+-"[random_below(5)];
        reply = read_bytes(bytes, length);
        if (reply)
            read_in_every_way(reply, bytes, length);
        dm_reply_free(reply);
    }
}

/* Messages of random words are read or refused; a grant must begin with the word. */
static void test_message_is_read_or_refused_when_it_is_random(void **state)
{
    static const char *const words[] = { "granted", "lost", "ask", "1", "0",
                                         "-1",      "77",   "x",   "",  "99999999999999999999",
                                         "%s%n" };
    int texts = rounds(50000);

    (void)state;
    while (texts-- > 0) {
        char text[256] = "";
        struct dm_message message;
        uint64_t run;
        int used = 0;

        for (unsigned count = random_below(8); count > 0; count--)
            used += snprintf(text + used, sizeof text - (size_t)used, "%s ", words[random_below(COUNT(words))]);
        if (dm_redis_read_message(text, &message, &run) && message.kind == DM_MESSAGE_GRANTED)
            assert_memory_equal(text, "granted ", 8);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reply_has_its_row_when_it_is_an_error),
        cmocka_unit_test(test_reply_number_is_read_when_it_is_one),
        cmocka_unit_test(test_reply_has_words_when_it_is_a_text),
        cmocka_unit_test(test_reply_has_no_elements_when_it_is_no_array),
        cmocka_unit_test(test_reply_is_a_word_when_the_first_element_says_it),
        cmocka_unit_test(test_reader_refuses_an_array_when_too_many_elements_are_announced),
        cmocka_unit_test(test_reader_takes_an_array_when_it_is_as_long_as_ours),
        cmocka_unit_test(test_reader_takes_no_more_when_a_bulk_grows_without_end),
        cmocka_unit_test(test_release_is_read_when_answered),
        cmocka_unit_test(test_poll_is_read_for_each_attempt_when_answered),
        cmocka_unit_test(test_renewal_is_read_for_each_lock_when_answered),
        cmocka_unit_test(test_renewal_is_not_confirmed_when_the_number_is_strange),
        cmocka_unit_test(test_message_names_the_server_when_it_is_a_grant),
        cmocka_unit_test(test_message_is_read_when_it_is_one_of_ours),
        cmocka_unit_test(test_message_is_refused_when_it_is_not_ours),
        cmocka_unit_test(test_message_is_refused_when_a_number_cannot_be_ours),
        cmocka_unit_test(test_reply_is_read_or_refused_when_its_bytes_are_damaged),
        cmocka_unit_test(test_reply_is_read_or_refused_when_its_bytes_are_random),
        cmocka_unit_test(test_message_is_read_or_refused_when_it_is_random),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
