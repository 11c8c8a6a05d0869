/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A contested release makes the server send the grant before the reply to the release (link/command.c).
 *
 * The first two tests only concern the server: if one fails, the command that goes ahead has no effect with this
 * server.
 */
#include <hiredis.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "warm.h"

#define LONG_LEASE 60000 /* no poll and no renewal within the time of a test */
#define TURNS 100

static dmutex_t mutex;

/* ---- the server -------------------------------------------------------------------------- */

struct pair_of_links {
    redisContext *speaker, *listener;
    int epoll; /* lists the links in the order in which something came */
};

static redisContext *connect_to_server(int epoll)
{
    redisContext *context = redisConnectUnix(the_server->path);
    struct epoll_event event = { .events = EPOLLIN };

    assert_true(context && !context->err);
    event.data.ptr = context;
    assert_int_equal(epoll_ctl(epoll, EPOLL_CTL_ADD, context->fd, &event), 0);
    return context;
}

static void read_replies(redisContext *context, int count)
{
    for (int i = 0; i < count; i++) {
        redisReply *reply;

        assert_int_equal(redisGetReply(context, (void **)&reply), REDIS_OK);
        freeReplyObject(reply);
    }
}

/*
 * The kernel orders a link by its first unread bytes, until somebody has checked it after they were read.  The server's
 * writes are over when it answers another link, but the kernel may still report bytes that were read.
 */
static void forget_order(struct pair_of_links *links)
{
    struct epoll_event none[2];

    side_text(the_server->side, "PING");
    assert_int_equal(epoll_wait(links->epoll, none, 2, 0), 0);
}

static void open_links(struct pair_of_links *links)
{
    links->epoll = epoll_create1(EPOLL_CLOEXEC);
    assert_true(links->epoll >= 0);
    links->speaker = connect_to_server(links->epoll);
    links->listener = connect_to_server(links->epoll);
    redisAppendCommand(links->listener, "SUBSCRIBE news");
    read_replies(links->listener, 1);
    forget_order(links);
}

static void close_links(struct pair_of_links *links)
{
    redisFree(links->speaker);
    redisFree(links->listener);
    close(links->epoll);
}

/* Sends all commands at once, of which the last publishes.  Returns the link that the server sends to first. */
static redisContext *first_told(struct pair_of_links *links, int commands)
{
    struct epoll_event event;

    if (commands > 1)
        redisAppendCommand(links->speaker, "CLIENT ID");
    redisAppendCommand(links->speaker, "PUBLISH news 1");
    for (int is_sent = 0; !is_sent;)
        assert_int_equal(redisBufferWrite(links->speaker, &is_sent), REDIS_OK);
    assert_int_equal(epoll_wait(links->epoll, &event, 1, -1), 1);
    read_replies(links->speaker, commands);
    read_replies(links->listener, 1);
    forget_order(links);
    return event.data.ptr;
}

static void assert_first_told(int commands, bool is_listener)
{
    struct pair_of_links links;

    open_links(&links);
    for (int i = 0; i < TURNS; i++)
        assert_ptr_equal(first_told(&links, commands), is_listener ? links.listener : links.speaker);
    close_links(&links);
}

static void test_a_server_replies_before_it_sends_the_message(void **state)
{
    (void)state;
    assert_first_told(1, false);
}

static void test_a_server_sends_the_message_first_when_another_reply_waits(void **state)
{
    (void)state;
    assert_first_told(2, true);
}

/* ---- the library ------------------------------------------------------------------------- */

static int64_t commands_ahead(void)
{
    return side_calls(the_server->side, "client|id");
}

/* Nobody waits, so a release notifies nobody. */
static void test_no_command_goes_ahead_when_nobody_contests_the_name(void **state)
{
    int64_t before;

    (void)state;
    make_normal(&mutex, "news/free", LONG_LEASE);
    assert_result(lock_and_unlock(&mutex), 0);
    before = commands_ahead();
    for (int i = 0; i < TURNS; i++)
        assert_result(lock_and_unlock(&mutex), 0);
    assert_int_equal(commands_ahead(), before);
}

static void take_turns(struct actor *actor, int turns)
{
    for (int i = 0; i < turns; i++) {
        actor_do(actor, "0", "lock news/wanted");
        actor_do(actor, "0", "unlock news/wanted");
    }
}

/* A hold that was handed over is a sign of more waiters, for some holds. */
static void test_a_command_goes_ahead_while_the_name_is_contested(void **state)
{
    struct actor *first, *second;
    int64_t before;

    (void)state;
    make_normal(&mutex, "news/wanted", LONG_LEASE);
    first = start_warm("news/wanted", LONG_LEASE, "");
    second = start_warm("news/wanted", LONG_LEASE, "");
    actor_do(first, "0", "lock news/wanted");
    actor_send(second, "lock news/wanted");
    wait_until(waiters_of(&mutex) == 1);
    before = commands_ahead();
    actor_do(first, "0", "unlock news/wanted");
    actor_expect(second, "0");
    assert_int_equal(commands_ahead(), before);
    actor_do(second, "0", "unlock news/wanted");
    assert_int_equal(commands_ahead(), before + 1);
    take_turns(second, 1);
    assert_int_equal(commands_ahead(), before + 2);
    take_turns(second, 10);
    before = commands_ahead();
    take_turns(second, 10);
    assert_int_equal(commands_ahead(), before);
    actor_end(first);
    actor_end(second);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_server_replies_before_it_sends_the_message),
        cmocka_unit_test(test_a_server_sends_the_message_first_when_another_reply_waits),
        cmocka_unit_test(test_no_command_goes_ahead_when_nobody_contests_the_name),
        cmocka_unit_test(test_a_command_goes_ahead_while_the_name_is_contested),
        cmocka_unit_test(test_nothing_is_left),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, test_group_setup, test_group_teardown);
}
