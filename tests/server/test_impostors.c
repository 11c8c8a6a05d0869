/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The answering program is no server of ours, but talks nonsense, is silent or closes. Each call ends in time with an
 * errno value and a sentence, and nothing is held.
 */
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../lib/testlib.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])
#define IN_TIME 3000 /* for some calls that take 80 ms each */

/* ---- a program that pretends to be a server ---------------------------------------------- */

enum manner {
    SILENT,          /* accepts, reads, and never says anything */
    CLOSING,         /* closes each accepted connection */
    BABBLING,        /* answers every command with the nonsense */
    CLOSING_HALFWAY, /* answers properly, by half, and closes */
    FLAPPING,        /* a proper server that closes on a script */
    LYING            /* a proper server, but scripts are answered with the nonsense */
};

#define GUESTS 64

/* One thread that serves all; the nonsense may be changed at any time, under the guard. */
static struct {
    pthread_mutex_t guard;
    pthread_t thread;
    char path[64], url[192];
    int door, bell[2];
    enum manner manner;
    const char *nonsense;
    size_t length;
    int said; /* number of answers since the last change */
    struct {
        int fd;
        redisReader *reader; /* a client's commands are arrays of bulks, as replies are */
    } guests[GUESTS];
} fake = { .guard = PTHREAD_MUTEX_INITIALIZER };

static void say(int fd, const char *bytes, size_t length)
{
    ssize_t sent = send(fd, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT);

    (void)sent; /* a departed client hears nothing */
}

static void say_nonsense(int fd)
{
    fake.said++;
    say(fd, fake.nonsense, fake.length);
}

/* The answer of a good server to a command of the greeting; NULL: a script. */
static const char *proper_answer(const redisReply *command)
{
    const char *word = command->elements ? command->element[0]->str : "";

    if (strcmp(word, "ROLE") == 0)
        return "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n";
    if (strcmp(word, "CLIENT") == 0)
        return ":7\r\n";
    if (strcmp(word, "INFO") == 0)
        return "$0\r\n\r\n";
    if (strcmp(word, "SUBSCRIBE") == 0)
        return "*3\r\n$9\r\nsubscribe\r\n$1\r\nx\r\n:1\r\n";
    if (strcmp(word, "EVAL") == 0 && strstr(command->element[3]->str, "{~probe."))
        return "+OK\r\n";
    return NULL;
}

/* False: the guest is to go. */
static bool serve_command(int fd, const redisReply *command)
{
    const char *answer = proper_answer(command);

    if (answer)
        say(fd, answer, strlen(answer));
    else if (fake.manner == FLAPPING)
        fake.said++;
    else
        say_nonsense(fd);
    return answer || fake.manner != FLAPPING;
}

/* False: the guest is to go. */
static bool serve(int guest, const char *bytes, size_t length)
{
    int fd = fake.guests[guest].fd;
    void *command = NULL;
    bool is_welcome = true;

    switch (fake.manner) {
    case SILENT:
        return true;
    case CLOSING:
        return false;
    case BABBLING:
        say_nonsense(fd);
        return true;
    case CLOSING_HALFWAY:
        fake.said++;
        say(fd, "*3\r\n$6\r\nmas", 11);
        return false;
    case FLAPPING:
    case LYING:
        redisReaderFeed(fake.guests[guest].reader, bytes, length);
        while (redisReaderGetReply(fake.guests[guest].reader, &command) == REDIS_OK && command) {
            is_welcome = is_welcome && serve_command(fd, command);
            freeReplyObject(command);
            command = NULL;
        }
        return is_welcome;
    }
    return false;
}

static void dismiss(int guest)
{
    close(fake.guests[guest].fd);
    redisReaderFree(fake.guests[guest].reader);
    fake.guests[guest].fd = -1;
}

static void welcome(void)
{
    int fd = accept4(fake.door, NULL, NULL, SOCK_CLOEXEC);
    int guest = 0;

    while (guest < GUESTS && fake.guests[guest].fd >= 0)
        guest++;
    if (fd >= 0 && guest < GUESTS) {
        fake.guests[guest].fd = fd;
        fake.guests[guest].reader = redisReaderCreate();
        if (fake.manner == CLOSING) {
            fake.said++;
            dismiss(guest);
        }
    } else if (fd >= 0) {
        close(fd);
    }
}

static void listen_to(int guest)
{
    char bytes[65536];
    ssize_t length = recv(fake.guests[guest].fd, bytes, sizeof bytes, MSG_DONTWAIT);

    if (length <= 0 || !serve(guest, bytes, (size_t)length))
        dismiss(guest);
}

static void *run_fake(void *user)
{
    struct pollfd ready[GUESTS + 2];

    do {
        ready[GUESTS] = (struct pollfd){ .fd = fake.door, .events = POLLIN };
        ready[GUESTS + 1] = (struct pollfd){ .fd = fake.bell[0], .events = POLLIN };
        for (int i = 0; i < GUESTS; i++)
            ready[i] = (struct pollfd){ .fd = fake.guests[i].fd, .events = POLLIN };
        poll(ready, GUESTS + 2, -1);
        pthread_mutex_lock(&fake.guard);
        for (int i = 0; i < GUESTS; i++) {
            if (ready[i].fd >= 0 && ready[i].revents)
                listen_to(i);
        }
        if (ready[GUESTS].revents)
            welcome();
        pthread_mutex_unlock(&fake.guard);
    } while (!ready[GUESTS + 1].revents);
    return user;
}

static void fake_be(enum manner manner, const char *nonsense, size_t length)
{
    pthread_mutex_lock(&fake.guard);
    fake.manner = manner;
    fake.nonsense = nonsense;
    fake.length = length;
    fake.said = 0;
    pthread_mutex_unlock(&fake.guard);
}

static bool fake_has_said_it(void)
{
    bool has;

    pthread_mutex_lock(&fake.guard);
    has = fake.said > 0;
    pthread_mutex_unlock(&fake.guard);
    return has;
}

static int begin_fake(void **state)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };

    (void)state;
    snprintf(fake.path, sizeof fake.path, "%s/fake", the_server->folder);
    snprintf(fake.url, sizeof fake.url, "unix://%s?grace=off&command_timeout=80&connect_timeout=80", fake.path);
    strcpy(address.sun_path, fake.path);
    for (int i = 0; i < GUESTS; i++)
        fake.guests[i].fd = -1;
    fake.door = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_return_code(bind(fake.door, (struct sockaddr *)&address, sizeof address), errno);
    assert_return_code(listen(fake.door, GUESTS), errno);
    assert_return_code(pipe2(fake.bell, O_CLOEXEC), errno);
    fake_be(SILENT, "", 0);
    assert_int_equal(pthread_create(&fake.thread, NULL, run_fake, NULL), 0);
    return 0;
}

static int end_fake(void **state)
{
    (void)state;
    assert_int_equal(write(fake.bell[1], "", 1), 1);
    assert_int_equal(pthread_join(fake.thread, NULL), 0);
    for (int i = 0; i < GUESTS; i++) {
        if (fake.guests[i].fd >= 0)
            dismiss(i);
    }
    close(fake.door);
    close(fake.bell[0]);
    close(fake.bell[1]);
    unlink(fake.path);
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
    } while (!fake_has_said_it());
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

#define TEXT(text)             \
    {                          \
        text, sizeof(text) - 1 \
    }

static const struct {
    const char *bytes;
    size_t length;
} nonsense[] = {
    TEXT("+OK\r\n"),
    TEXT("+QUEUED\r\n"),
    TEXT(":1\r\n"),
    TEXT(":99999999999999999999999\r\n"),
    TEXT("$-1\r\n"),
    TEXT("*-1\r\n"),
    TEXT("*0\r\n"),
    TEXT("*1\r\n$5\r\nowned\r\n"),
    TEXT("*4\r\n$5\r\nowned\r\n$3\r\nabc\r\n:0\r\n:0\r\n"),
    TEXT("*4\r\n$5\r\nowned\r\n*1\r\n:1\r\n:0\r\n:0\r\n"),
    TEXT("*4\r\n$5\r\nowned\r\n:9223372036854775807\r\n:0\r\n:0\r\n"), /* a token that would be the last */
    TEXT("*2\r\n$6\r\nqueuex\r\n:1\r\n"),
    TEXT("*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n+x\r\n"),
    TEXT("*2147483647\r\n"),
    TEXT("*99999999999999999999\r\n"),
    TEXT("$2147483647\r\nabc"),
    TEXT("$-7\r\n"),
    TEXT("-ERR what do you mean?\r\n"),
    TEXT("-\r\n"),
    TEXT("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"),
    TEXT("220 mail.example.org ESMTP\r\n"),
    TEXT("\r\n\r\n\r\n"),
    TEXT("\0\0\0\0\0\0\0\0"),
    TEXT("\xff\xfe\xfd\x80\x00\x01\x02\x03"),
    TEXT("%1\r\n+a\r\n+b\r\n"),
};

/* Nonsense from the beginning: no call owns, hangs or crashes, and each names the fault. */
static void test_calls_say_enolck_when_the_server_talks_nonsense(void **state)
{
    struct actor *a = actor_start_at(fake.url);

    (void)state;
    for (size_t i = 0; i < COUNT(nonsense); i++) {
        fake_be(BABBLING, nonsense[i].bytes, nonsense[i].length);
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
        struct actor *a = actor_start_at(fake.url);

        fake_be(LYING, nonsense[i].bytes, nonsense[i].length);
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
    struct actor *a = actor_start_at(fake.url);

    (void)state;
    fake_be(LYING, moved, sizeof moved - 1);
    actor_do(a, "0", "signal bad/c");
    actor_do(a, "0 0", "lost");
    actor_end(a);
}

/* A server that closes at once, or in the middle of an answer. */
static void test_calls_say_enolck_when_the_server_closes(void **state)
{
    static const enum manner manners[] = { CLOSING, CLOSING_HALFWAY };

    (void)state;
    for (size_t i = 0; i < COUNT(manners); i++) {
        struct actor *a = actor_start_at(fake.url);

        fake_be(manners[i], "", 0);
        check_calls(a, "closing");
        check_questions(a);
        actor_end(a);
    }
}

static int times_said(void)
{
    int said;

    pthread_mutex_lock(&fake.guard);
    said = fake.said;
    pthread_mutex_unlock(&fake.guard);
    return said;
}

/*
 * A server that greets properly and closes at the first script, again and again: the tries become fewer and fewer, and
 * the log says once that the connection broke.
 */
static void test_a_server_is_tried_less_often_when_it_always_closes(void **state)
{
    char log[192], url[224];
    struct actor *a;

    (void)state;
    snprintf(url, sizeof url, "DMUTEX_URL=%s", fake.url);
    snprintf(log, sizeof log, "DMUTEX_LOG=debug:%s/flapping", the_server->folder);
    fake_be(FLAPPING, "", 0);
    a = actor_start_with(the_server, url, log, NULL);
    actor_send(a, "lock bad/flapping");
    wait_until(times_said() > 0);
    let_pass(3000);
    if (times_said() > 80) /* 10, 20, 40, ... 250 ms, half on the average: some 30; 240 without */
        fail_msg("it was tried %d times", times_said());
    assert_true(actor_is_silent(a));
    command_run("test $(grep -c 'the connection' %s/flapping) -eq 1", the_server->folder);
    assert_status(0);
    actor_kill(a);
    actor_end(a);
}

/*
 * A server that accepts and never answers: each call ends by its own time, lock goes on trying, and the process can end
 * all the same.
 */
static void test_calls_end_in_time_when_the_server_never_answers(void **state)
{
    struct actor *a = actor_start_at(fake.url), *b;
    char url[256];

    (void)state;
    fake_be(SILENT, "", 0);
    snprintf(url, sizeof url, "DMUTEX_URL=%s", fake.url);
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

/* A caller without an answer yet is told the server's name: before the connection is there, and after. */
static void test_calls_name_the_server_when_no_answer_has_come_yet(void **state)
{
    struct actor *a, *b;
    char url[192];

    (void)state;
    snprintf(url, sizeof url, "unix://%s?grace=off&command_timeout=80&connect_timeout=60000", fake.path);
    fake_be(SILENT, "", 0);
    a = actor_start_at(url);
    actor_do(a, "ENOLCK", "trylock bad/named");
    actor_assert_words(a, fake.path);
    actor_do(a, "ETIMEDOUT", "timedlock bad/named 30");
    actor_assert_words(a, fake.path);
    fake_be(LYING, "", 0);
    b = actor_start_at(url);
    actor_do(b, "ENOLCK", "trylock bad/named");
    actor_assert_words(b, fake.path);
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
        FAKE_TEST(test_calls_end_in_time_when_the_server_never_answers),
        FAKE_TEST(test_calls_name_the_server_when_no_answer_has_come_yet),
        cmocka_unit_test(test_nothing_is_left),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, test_group_setup, test_group_teardown);
}
