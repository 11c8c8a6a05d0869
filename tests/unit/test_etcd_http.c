/* SPDX-License-Identifier: BSD-2-Clause */
/* stores/etcd/http: answers in all pieces, and what is no answer. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "random.h"
#include "stores/etcd/http.h"

#define MOST 1000

static struct dm_http http;
static int far;
static char reason[DM_REASON_ROOM];

/* A connection on which a question has been asked. */
static void begin(void)
{
    struct dm_bytes body = { .at = (char *)"{}", .size = 2 };
    char asked[512];
    int pair[2];
    ssize_t size;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
    far = pair[1];
    dm_http_begin(&http, dm_stream_of(pair[0]), MOST);
    assert_true(dm_http_ask(&http, "h:1", "/v3/kv/range", "token", &body));
    size = read(far, asked, sizeof asked - 1);
    assert_true(size > 0);
    asked[size] = '\0';
    assert_string_equal(asked, "POST /v3/kv/range HTTP/1.1\r\nHost: h:1\r\nContent-Type: application/json\r\n"
                               "Content-Length: 2\r\nAuthorization: token\r\n\r\n{}");
}

static void end(void)
{
    dm_http_close(&http);
    close(far);
}

/* Says it in pieces of this size; false if the connection is of no more use. */
static bool say(const char *text, size_t length, size_t piece)
{
    for (size_t at = 0; at < length; at += piece) {
        size_t size = length - at < piece ? length - at : piece;

        assert_int_equal(write(far, text + at, size), (ssize_t)size);
        do {
            if (!dm_http_turn(&http, reason))
                return false;
        } while (dm_http_has_more(&http));
    }
    return true;
}

/* A body of known length, and one in chunks, after an interim answer, in pieces of all sizes; and another question */
static void test_answers_are_read_in_all_pieces(void **state)
{
    static const char *const answers[] = {
        "HTTP/1.1 200 OK\r\nContent-Type: x\r\nContent-Length: 11\r\n\r\nhello world",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\ncontent-length:11\n\nhello world",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n006;x=y\r\n world\r\n0\r\nT: x\r\n\r\n",
    };

    (void)state;
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        for (size_t piece = 1; piece <= strlen(answers[i]); piece++) {
            begin();
            for (int again = 0; again < 2; again++) {
                if (!say(answers[i], strlen(answers[i]), piece))
                    fail_msg("%s", reason);
                assert_int_equal(http.state, DM_HTTP_ANSWERED);
                assert_int_equal(http.status, 200);
                assert_string_equal(http.body.at, "hello world");
                assert_true(dm_http_ask(&http, "h:1", "/version", "", NULL));
            }
            end();
        }
    }
}

/* What a chunk brings can be used before the next one comes */
static void test_chunks_can_be_used_before_the_end(void **state)
{
    static const char first[] = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\none\n\r\n",
                      more[] = "4\r\ntwo\n\r\n";

    (void)state;
    begin();
    assert_true(say(first, strlen(first), 100));
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(http.body.size, 4);
        dm_bytes_take(&http.body, 4);
        assert_true(say(more, strlen(more), 100));
    }
    end();
}

/* What is no HTTP, or says more than we asked for, ends the connection, with a sentence */
static void test_what_is_no_answer_is_refused(void **state)
{
    static const struct {
        const char *text, *words;
    } bad[] = {
        { "-ERR unknown command\r\n", "does not speak HTTP/1.1" },
        { "\r\n", "does not speak HTTP/1.1" },
        { "HTTP/2 200\r\n", "does not speak HTTP/1.1" },
        { "HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n", "longer than any of etcd" },
        { "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "longer than any of etcd" },
        { "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\n", "longer than any of etcd" },
        { "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", "does not speak HTTP/1.1" },
        { "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n", "longer than any of etcd" },
        { "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffffff\r\n", "longer than any of etcd" },
        { "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n", "does not speak HTTP/1.1" },
        { "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab\r\n", "does not speak HTTP/1.1" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        begin();
        if (say(bad[i].text, strlen(bad[i].text), 7))
            fail_msg("accepted: %s", bad[i].text);
        if (!strstr(reason, bad[i].words))
            fail_msg("%s: %s", bad[i].text, reason);
        end();
    }
}

/* A line without an end, many lines, many chunks: memory stays bounded, and the connection ends */
static void test_endless_answers_end(void **state)
{
    static const struct {
        const char *before, *again;
    } rows[] = {
        { "", "x" },
        { "HTTP/1.1 200 OK\r\n", "X: y\r\n" },
        { "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "5\r\nhello\r\n" },
        { "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "0" },
        { "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", "T: x\r\n" },
        { "", "HTTP/1.1 100 Continue\r\n\r\n" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bool is_well;
        int said = 0;

        begin();
        is_well = say(rows[i].before, strlen(rows[i].before), 100);
        for (; is_well && said < 20000; said++)
            is_well = say(rows[i].again, strlen(rows[i].again), 100);
        if (is_well)
            fail_msg("row %zu goes on", i);
        assert_true(http.line.room <= 64 * 1024 && http.body.room <= 2 * MOST + 256);
        end();
    }
}

/* The connection ends in the middle, or the server says that it will */
static void test_ends_of_connections_are_told(void **state)
{
    static const char half[] = "HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nhel";
    static const char last[] = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok";

    (void)state;
    begin();
    assert_true(say(half, strlen(half), 100));
    shutdown(far, SHUT_WR);
    assert_false(dm_http_turn(&http, reason));
    assert_string_equal(reason, "it has closed the connection");
    end();
    begin();
    assert_true(say(last, strlen(last), 100));
    assert_int_equal(http.state, DM_HTTP_ANSWERED);
    assert_true(http.must_close);
    end();
}

/* Arbitrary bytes after a good beginning: for sanitizers */
static void test_changed_bytes_do_no_harm(void **state)
{
    static const char good[] =
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 7\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
    char copy[sizeof good];

    (void)state;
    for (int i = 0; i < rounds(2000); i++) {
        memcpy(copy, good, sizeof good);
        for (int j = 0; j < 2; j++)
            copy[random_below(sizeof good - 1)] = (char)random_word();
        begin();
        say(copy, sizeof copy - 1, 1 + random_below(20));
        assert_true(http.body.size <= MOST);
        end();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers_are_read_in_all_pieces), cmocka_unit_test(test_chunks_can_be_used_before_the_end),
        cmocka_unit_test(test_what_is_no_answer_is_refused),   cmocka_unit_test(test_endless_answers_end),
        cmocka_unit_test(test_ends_of_connections_are_told),   cmocka_unit_test(test_changed_bytes_do_no_harm),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
