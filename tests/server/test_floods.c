/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A server that never stops talking: a reply without end, messages without end. The client's memory stays bounded, and
 * the client's own times are kept: a loss is told while the flood goes on.
 */
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "../lib/testlib.h"

#define LEASE 1000
#define FLOOD_BYTES (16 * 1024 * 1024) /* of ":1": some hundred MiB where all is kept */
#define GROWTH_MAX_KIB (24 * 1024)

/* Begins a reply that is whole after 5000 arrays of 1000 numbers, 20 MB: later than the flood ends. */
#define NESTED "*1000\r\n*1000\r\n*1000\r\n*1000\r\n*1000\r\n"
#define MESSAGE "*3\r\n$7\r\nmessage\r\n$5\r\ninbox\r\n$6\r\nask 99\r\n"

/* ---- the server: a thread for each connection -------------------------------------------- */

enum flood { FLOOD_GREETING, FLOOD_SCRIPT, FLOOD_INBOX_REPLY, FLOOD_MESSAGES };

static struct {
    enum flood kind;
    char path[64], url[192];
    int door;
    pthread_t thread;
    bool is_over, has_owner;
    int guests;       /* serving threads */
    long flooded;     /* bytes that were sent beyond measure */
    int floods_ended; /* by the client */
} fake;

#define get(field) __atomic_load_n(&fake.field, __ATOMIC_ACQUIRE)
#define set(field, value) __atomic_store_n(&fake.field, value, __ATOMIC_RELEASE)

static bool say(int fd, const char *bytes, size_t length)
{
    return send(fd, bytes, length, MSG_NOSIGNAL) == (ssize_t)length;
}

static bool say_text(int fd, const char *text)
{
    return say(fd, text, strlen(text));
}

/* Sends `begin` once, then `many` times the drop after the head, again and again until the client closes. */
static bool flood(int fd, const char *begin, const char *head, const char *drop, int many)
{
    char bytes[64 * 1024];
    size_t used = (size_t)snprintf(bytes, sizeof bytes, "%s", head);
    bool is_open = say_text(fd, begin);

    for (int i = 0; i < many; i++)
        used += (size_t)snprintf(bytes + used, sizeof bytes - used, "%s", drop);
    while (is_open && !get(is_over)) {
        is_open = say(fd, bytes, used);
        __atomic_add_fetch(&fake.flooded, (long)used, __ATOMIC_ACQ_REL);
    }
    __atomic_add_fetch(&fake.floods_ended, 1, __ATOMIC_ACQ_REL);
    return false;
}

static bool flood_reply(int fd)
{
    return flood(fd, NESTED, "*1000\r\n", ":1\r\n", 1000);
}

static bool flood_messages(int fd)
{
    return flood(fd, "", "", MESSAGE, 1000);
}

/* The first script about "held" is answered "owned", scripts about other mutexes "busy". */
static bool serve_script(int fd, const redisReply *command)
{
    if (strstr(command->element[3]->str, "{~probe."))
        return say_text(fd, "+OK\r\n");
    if (strstr(command->element[3]->str, "held") && !__atomic_exchange_n(&fake.has_owner, true, __ATOMIC_ACQ_REL))
        return say_text(fd, "*4\r\n$5\r\nowned\r\n:12345\r\n:0\r\n:0\r\n");
    if (fake.kind == FLOOD_SCRIPT)
        return flood_reply(fd);
    return strstr(command->element[3]->str, "held") || say_text(fd, "*3\r\n$4\r\nbusy\r\n:100000\r\n:0\r\n");
}

static bool serve(int fd, const redisReply *command)
{
    const char *word = command->elements ? command->element[0]->str : "";

    if (strcmp(word, "ROLE") == 0 && fake.kind == FLOOD_GREETING)
        return flood_reply(fd);
    if (strcmp(word, "ROLE") == 0)
        return say_text(fd, "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n");
    if (strcmp(word, "CLIENT") == 0)
        return say_text(fd, ":7\r\n");
    if (strcmp(word, "INFO") == 0)
        return say_text(fd, "$50\r\n\nrun_id:0123456789abcdef0123456789abcdef01234567\r\n\r\n");
    if (strcmp(word, "SUBSCRIBE") == 0)
        return say_text(fd, "*3\r\n$9\r\nsubscribe\r\n$1\r\nx\r\n:1\r\n") &&
               (fake.kind == FLOOD_MESSAGES ? flood_messages(fd) : fake.kind != FLOOD_INBOX_REPLY || flood_reply(fd));
    return command->elements > 3 && serve_script(fd, command);
}

static void *serve_guest(void *user)
{
    int fd = (int)(intptr_t)user;
    redisReader *reader = redisReaderCreate();
    void *command = NULL;
    char bytes[4096];
    ssize_t length;
    bool is_open = true;

    while (is_open && (length = recv(fd, bytes, sizeof bytes, 0)) > 0) {
        redisReaderFeed(reader, bytes, (size_t)length);
        while (is_open && redisReaderGetReply(reader, &command) == REDIS_OK && command) {
            is_open = serve(fd, command);
            freeReplyObject(command);
        }
    }
    redisReaderFree(reader);
    close(fd);
    __atomic_sub_fetch(&fake.guests, 1, __ATOMIC_ACQ_REL);
    return NULL;
}

static void *welcome(void *user)
{
    struct timeval patience = { .tv_sec = 1 };
    pthread_t thread;
    int fd;

    while ((fd = accept4(fake.door, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience); /* so that the server ends with the test */
        __atomic_add_fetch(&fake.guests, 1, __ATOMIC_ACQ_REL);
        assert_int_equal(pthread_create(&thread, NULL, serve_guest, (void *)(intptr_t)fd), 0);
        pthread_detach(thread);
    }
    return user;
}

static struct actor *begin_flood(enum flood kind)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };

    memset(&fake, 0, sizeof fake);
    fake.kind = kind;
    snprintf(fake.path, sizeof fake.path, "%s/fake", the_server->folder);
    snprintf(fake.url, sizeof fake.url, "unix://%s?grace=off&command_timeout=300&connect_timeout=300", fake.path);
    strcpy(address.sun_path, fake.path);
    fake.door = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_return_code(bind(fake.door, (struct sockaddr *)&address, sizeof address), errno);
    assert_return_code(listen(fake.door, 64), errno);
    assert_int_equal(pthread_create(&fake.thread, NULL, welcome, NULL), 0);
    return actor_start_at(fake.url);
}

static void end_flood(struct actor *a)
{
    actor_kill(a);
    actor_end(a);
    set(is_over, true);
    shutdown(fake.door, SHUT_RDWR);
    pthread_join(fake.thread, NULL);
    close(fake.door);
    unlink(fake.path);
    wait_until(get(guests) == 0);
}

/* ---- the client --------------------------------------------------------------------------- */

/* The most memory that the process has had, in KiB. */
static long peak_kib(struct actor *a)
{
    char path[64], line[200];
    long kib = 0;
    FILE *file;

    snprintf(path, sizeof path, "/proc/%d/status", (int)actor_pid(a));
    file = fopen(path, "re");
    assert_non_null(file);
    while (fgets(line, sizeof line, file))
        sscanf(line, "VmHWM: %ld", &kib);
    fclose(file);
    assert_true(kib > 0);
    return kib;
}

/* The flood was given up often, or went on for long: the client has not kept the flood. */
static void check_growth(struct actor *a, long before_kib)
{
    wait_until(get(floods_ended) >= 3 || get(flooded) > FLOOD_BYTES);
    if (peak_kib(a) - before_kib > GROWTH_MAX_KIB)
        fail_msg("grew by %ld KiB by %ld KiB of a flood", peak_kib(a) - before_kib, get(flooded) / 1024);
}

/* A reply that never ends is given up, in the greeting as later. */
static void test_memory_stays_bounded_when_a_reply_never_ends(void **state)
{
    static const enum flood floods[] = { FLOOD_GREETING, FLOOD_SCRIPT };

    (void)state;
    for (size_t i = 0; i < sizeof floods / sizeof floods[0]; i++) {
        struct actor *a = begin_flood(floods[i]);
        long before_kib = peak_kib(a);

        actor_send(a, "lock flood/x");
        check_growth(a, before_kib);
        assert_true(actor_is_silent(a));
        end_flood(a);
    }
}

/* Holds one mutex, waits for another, so that the inbox is subscribed. */
static long hold_and_wait(struct actor *a)
{
    long before_kib = peak_kib(a);

    actor_do(a, "0", "init flood/held lease=%d", LEASE);
    actor_do(a, "0", "lock flood/held");
    actor_do(a, "0", "start lock flood/other");
    return before_kib;
}

/* The same on the inbox, of one message that never ends, and of messages that are whole. */
static void test_memory_stays_bounded_when_the_inbox_is_flooded(void **state)
{
    static const enum flood floods[] = { FLOOD_INBOX_REPLY, FLOOD_MESSAGES };

    (void)state;
    for (size_t i = 0; i < sizeof floods / sizeof floods[0]; i++) {
        struct actor *a = begin_flood(floods[i]);

        check_growth(a, hold_and_wait(a));
        end_flood(a);
    }
}

/* Renewals are not answered and the inbox is flooded: the loss is told while the flood goes on. */
static void test_a_loss_is_told_in_time_when_the_inbox_is_flooded(void **state)
{
    struct actor *a = begin_flood(FLOOD_MESSAGES);
    const char *said;

    (void)state;
    hold_and_wait(a);
    promise_within(LEASE + 4000);
    wait_until(get(flooded) > 0);
    do {
        wait_nap();
        actor_send(a, "lost");
        said = actor_answer(a);
    } while (strcmp(said, "0 0") == 0);
    assert_kept();
    assert_int_equal(get(floods_ended), 0);
    assert_int_equal(strtol(said, NULL, 10), 1);
    end_flood(a);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory_stays_bounded_when_a_reply_never_ends),
        cmocka_unit_test(test_memory_stays_bounded_when_the_inbox_is_flooded),
        cmocka_unit_test(test_a_loss_is_told_in_time_when_the_inbox_is_flooded),
        cmocka_unit_test(test_nothing_is_left),
    };

    test_begin(argc, argv);
    test_tell_asan("quarantine_size_mb=1"); /* freed memory that the sanitizer keeps is no growth of the client's */
    return cmocka_run_group_tests(tests, test_group_setup, test_group_teardown);
}
