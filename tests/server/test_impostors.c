/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The program that answers is not a server of ours, but talks nonsense, is silent or closes. Each call ends in time
 * with an errno value and a sentence, and nothing is held.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "../lib/testlib.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])
#define IN_TIME 3000 /* for some calls that take 80 ms each */

static int begin_fake(void **state)
{
    (void)state;
    impostor_begin(the_server->folder);
    return 0;
}

static int end_fake(void **state)
{
    (void)state;
    impostor_end();
    return 0;
}

/* Nothing was locked, for any answer; each call has ended in time. */
static void check_calls(struct actor *a, const char *what)
{
    promise_within(IN_TIME);
    do {
        actor_send(a, "trylock bad/x");
        if (strcmp(actor_answer(a), "ENOLCK") != 0)
            fail_msg("%s: trylock does not say ENOLCK", what);
        actor_assert_words(a, "");
    } while (impostor_said() == 0);
    actor_send(a, "timedlock bad/x 30");
    if (strcmp(actor_answer(a), "0") == 0)
        fail_msg("%s: timedlock owns", what);
    actor_do(a, "0 0", "holdcount bad/x");
    actor_do(a, "EPERM", "unlock bad/x");
    assert_kept();
    actor_do(a, "0 0", "lost");
}

/* The same for calls that ask about a mutex. */
static void check_questions(struct actor *a)
{
    promise_within(IN_TIME);
    actor_do(a, "ENOLCK", "islocked bad/x");
    actor_do(a, "ENOLCK", "waiters bad/x");
    actor_send(a, "forceunlock bad/x");
    actor_answer(a); /* some of the nonsense is a wanted answer */
    assert_kept();
}

static const struct impostor_bytes nonsense[] = {
    IMPOSTOR_BYTES("+OK\r\n"),
    IMPOSTOR_BYTES("+QUEUED\r\n"),
    IMPOSTOR_BYTES(":1\r\n"),
    IMPOSTOR_BYTES(":99999999999999999999999\r\n"),
    IMPOSTOR_BYTES("$-1\r\n"),
    IMPOSTOR_BYTES("*-1\r\n"),
    IMPOSTOR_BYTES("*0\r\n"),
    IMPOSTOR_BYTES("*1\r\n$5\r\nowned\r\n"),
    IMPOSTOR_BYTES("*4\r\n$5\r\nowned\r\n$3\r\nabc\r\n:0\r\n:0\r\n"),
    IMPOSTOR_BYTES("*4\r\n$5\r\nowned\r\n*1\r\n:1\r\n:0\r\n:0\r\n"),
    IMPOSTOR_BYTES("*4\r\n$5\r\nowned\r\n:9223372036854775807\r\n:0\r\n:0\r\n"), /* a token that would be the last */
    IMPOSTOR_BYTES("*2\r\n$6\r\nqueuex\r\n:1\r\n"),
    IMPOSTOR_BYTES("*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n+x\r\n"),
    IMPOSTOR_BYTES("*2147483647\r\n"),
    IMPOSTOR_BYTES("*99999999999999999999\r\n"),
    IMPOSTOR_BYTES("$2147483647\r\nabc"),
    IMPOSTOR_BYTES("$-7\r\n"),
    IMPOSTOR_BYTES("-ERR what do you mean?\r\n"),
    IMPOSTOR_BYTES("-\r\n"),
    IMPOSTOR_BYTES("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"),
    IMPOSTOR_BYTES("220 mail.example.org ESMTP\r\n"),
    IMPOSTOR_BYTES("\r\n\r\n\r\n"),
    IMPOSTOR_BYTES("\0\0\0\0\0\0\0\0"),
    IMPOSTOR_BYTES("\xff\xfe\xfd\x80\x00\x01\x02\x03"),
    IMPOSTOR_BYTES("%1\r\n+a\r\n+b\r\n"),
};

/* Nonsense from the beginning: no call owns, hangs or crashes, and each names the fault. */
static void test_calls_say_enolck_when_the_server_talks_nonsense(void **state)
{
    struct actor *a = actor_start_at(impostor_url());

    (void)state;
    for (size_t i = 0; i < COUNT(nonsense); i++) {
        impostor_be(MANNER_BABBLING, nonsense[i].bytes, nonsense[i].length);
        check_calls(a, nonsense[i].bytes);
    }
    check_questions(a);
    actor_end(a);
}

/* The same from a server that greets as ours, and answers the scripts with nonsense. */
static void test_calls_say_enolck_when_scripts_are_answered_by_nonsense(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(nonsense); i++) {
        struct actor *a = actor_start_at(impostor_url());

        impostor_be(MANNER_LYING, nonsense[i].bytes, nonsense[i].length);
        check_calls(a, nonsense[i].bytes);
        if (i % 4 == 0)
            check_questions(a);
        actor_end(a);
    }
}

/* The answer to a signal that could name no mutex says that waiters of a mutex are left: no waiter is served. */
static void test_a_signal_does_no_harm_when_its_answer_is_about_a_mutex_that_it_did_not_name(void **state)
{
    static const char moved[] = "*4\r\n$5\r\nmoved\r\n:1\r\n:0\r\n:1\r\n";
    struct actor *a = actor_start_at(impostor_url());

    (void)state;
    impostor_be(MANNER_LYING, moved, sizeof moved - 1);
    actor_do(a, "0", "signal bad/c");
    actor_do(a, "0 0", "lost");
    actor_end(a);
}

/* A server that closes at once, or in the middle of an answer. */
static void test_calls_say_enolck_when_the_server_closes(void **state)
{
    static const enum manner manners[] = { MANNER_CLOSING, MANNER_CLOSING_HALFWAY };

    (void)state;
    for (size_t i = 0; i < COUNT(manners); i++) {
        struct actor *a = actor_start_at(impostor_url());

        impostor_be(manners[i], "", 0);
        check_calls(a, "closing");
        check_questions(a);
        actor_end(a);
    }
}

/* The tries become fewer and fewer, and the log says once that the connection broke. */
static void check_tries_become_rare(enum manner manner, const char *answer)
{
    char log[192], url[224];
    struct actor *a;

    snprintf(url, sizeof url, "DMUTEX_URL=%s", impostor_url());
    snprintf(log, sizeof log, "DMUTEX_LOG=debug:%s/flapping", the_server->folder);
    impostor_be(manner, answer, strlen(answer));
    a = actor_start_with(the_server, url, log, NULL);
    actor_send(a, "lock bad/flapping");
    wait_until(impostor_said() > 0);
    let_pass(3000);
    if (impostor_said() > 80) /* 10, 20, 40, ... 250 ms, half on the average: some 30; 240 without */
        fail_msg("it was tried %d times", impostor_said());
    assert_true(actor_is_silent(a));
    command_run("test $(grep -c 'the connection' %s/flapping) -eq 1 && rm %s/flapping", the_server->folder,
                the_server->folder);
    assert_status(0);
    actor_kill(a);
    actor_end(a);
}

/* A server that greets properly and closes at the first script, again and again. */
static void test_a_server_is_tried_less_often_when_it_always_closes(void **state)
{
    (void)state;
    check_tries_become_rare(MANNER_FLAPPING, "");
}

/* A server that greets properly, and is another one, or wants a login, at the first script, again and again. */
static void test_a_server_is_tried_less_often_when_it_always_redirects(void **state)
{
    (void)state;
    check_tries_become_rare(MANNER_LYING, "-READONLY You can't write against a read only replica.\r\n");
    check_tries_become_rare(MANNER_LYING, "-NOAUTH Authentication required.\r\n");
}

/*
 * A server that accepts and never answers: each call ends by its own time, lock keeps trying, and the process can still
 * end.
 */
static void test_calls_end_in_time_when_the_server_never_answers(void **state)
{
    struct actor *a = actor_start_at(impostor_url()), *b;
    char url[256];

    (void)state;
    impostor_be(MANNER_SILENT, "", 0);
    snprintf(url, sizeof url, "DMUTEX_URL=%s", impostor_url());
    b = actor_start_with(the_server, url, "DMUTEX_ONDOWN=fail", NULL);
    promise_within(IN_TIME);
    actor_do(a, "ENOLCK", "trylock bad/silent");
    actor_assert_words(a, "");
    actor_do(a, "ETIMEDOUT", "timedlock bad/silent 200");
    actor_do(a, "ETIMEDOUT", "clocklock bad/silent 200");
    actor_do(a, "ENOLCK", "islocked bad/silent");
    actor_do(b, "ENOLCK", "lock bad/silent");
    assert_kept();
    actor_do(a, "0", "start lock bad/silent");
    let_pass(500);
    actor_do(a, "0 0", "holdcount bad/silent");
    promise_within(IN_TIME);
    actor_send(a, "exit 5");
    assert_int_equal(WEXITSTATUS(actor_await(a)), 5);
    assert_kept();
    actor_end(b);
}

/* A caller that has no answer yet gets the server's name: before the connection is there, and after. */
static void test_calls_name_the_server_when_no_answer_has_come_yet(void **state)
{
    struct actor *a, *b;
    char url[192];

    (void)state;
    snprintf(url, sizeof url, "unix://%s?grace=off&command_timeout=80&connect_timeout=60000", impostor_path());
    impostor_be(MANNER_SILENT, "", 0);
    a = actor_start_at(url);
    actor_do(a, "ENOLCK", "trylock bad/named");
    actor_assert_words(a, impostor_path());
    actor_do(a, "ETIMEDOUT", "timedlock bad/named 30");
    actor_assert_words(a, impostor_path());
    impostor_be(MANNER_LYING, "", 0);
    b = actor_start_at(url);
    actor_do(b, "ENOLCK", "trylock bad/named");
    actor_assert_words(b, impostor_path());
    actor_end(a);
    actor_end(b);
}

#define FAKE_TEST(test) cmocka_unit_test_setup_teardown(test, begin_fake, end_fake)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        FAKE_TEST(test_calls_say_enolck_when_the_server_talks_nonsense),
        FAKE_TEST(test_calls_say_enolck_when_scripts_are_answered_by_nonsense),
        FAKE_TEST(test_a_signal_does_no_harm_when_its_answer_is_about_a_mutex_that_it_did_not_name),
        FAKE_TEST(test_calls_say_enolck_when_the_server_closes),
        FAKE_TEST(test_a_server_is_tried_less_often_when_it_always_closes),
        FAKE_TEST(test_a_server_is_tried_less_often_when_it_always_redirects),
        FAKE_TEST(test_calls_end_in_time_when_the_server_never_answers),
        FAKE_TEST(test_calls_name_the_server_when_no_answer_has_come_yet),
        cmocka_unit_test(test_nothing_is_left),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, test_group_setup, test_group_teardown);
}
