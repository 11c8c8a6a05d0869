/* SPDX-License-Identifier: BSD-2-Clause */
/* The node by itself: when the handlers of finished commands are called. The library's tests do not see this. */
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "../lib/testlib.h"
#include "link/link_parts.h"
#include "stores/redis/node/node.h"

static struct dm_url *url; /* never freed, as in the library */
static struct dm_node node;
static struct dm_node ended[5]; /* an ended node keeps its links and its URL, also for the leak check */
static int ended_count;
static int answers, broken;

static void count_answer(void *user, const struct redisReply *reply)
{
    (void)user;
    answers++;
    broken += !reply;
}

static void no_news(void *user)
{
    (void)user;
}

static void end_node(void)
{
    dm_node_end(&node);
    ended[ended_count++] = node;
}

static struct dm_command ping(void)
{
    struct dm_command command;
    struct dm_args args;

    assert_true(dm_args_init(&args, 1, 0) >= 0);
    dm_args_text(&args, "PING");
    command = dm_args_format(&args);
    dm_args_free(&args);
    return command;
}

/*
 * The library's state is locked while a batch is written, and the handlers of the previous batch lock it, too: no
 * function called in between may call the handlers, even if the connection breaks.
 */
static void test_no_handler_is_called_when_the_connection_breaks_under_a_quiet_caller(void **state)
{
    static const struct dm_node_hooks hooks = { .on_ready = no_news, .on_change = no_news };
    struct dm_deadline soon = dm_deadline_in_ms(5000);
    char reason[DM_REASON_ROOM];
    struct dm_command command = ping();
    struct dm_server server;

    (void)state;
    url = dm_url_parse(the_server->url, reason);
    assert_true(dm_node_init(&node, url, "inbox", &hooks));
    dm_link_want(node.commands.link);
    assert_true(dm_link_await_ready(node.commands.link, &soon));
    server_stop(the_server);
    assert_int_equal(dm_link_post_quietly(node.commands.link, &command, count_answer, NULL), DM_LINK_OK);
    server_kill(the_server);
    assert_int_not_equal(dm_link_post_quietly(node.commands.link, &command, count_answer, NULL), DM_LINK_OK);
    dm_node_link_server(&node.commands, &server);
    assert_false(dm_node_is_ready(&node));
    dm_node_reason(&node, node.commands.link, reason);
    assert_int_equal(answers, 0);
    dm_link_work(node.commands.link);
    assert_true(answers > 0);
    assert_int_equal(broken, answers);
    dm_command_free(&command);
    end_node();
    server_restart(the_server);
}

/* The end of a connection is seen by a check. */
static bool is_another_server(uint64_t number)
{
    struct dm_server server;

    dm_link_work(node.commands.link);
    dm_link_want(node.commands.link);
    return dm_node_is_ready(&node) && dm_node_link_server(&node.commands, &server) != number;
}

/* Bytes written for one server are not sent to another, whether a new server gives grace or not. */
static void test_the_servers_number_changes_when_it_is_another_without_grace(void **state)
{
    static const struct dm_node_hooks hooks = { .on_ready = no_news, .on_change = no_news };
    struct dm_deadline soon = dm_deadline_in_ms(5000);
    struct dm_command command = ping();
    char reason[DM_REASON_ROOM];
    struct dm_server before, server;

    (void)state;
    url = dm_url_parse(the_server->url, reason);
    assert_false(url->has_grace);
    assert_true(dm_node_init(&node, url, "inbox", &hooks));
    dm_link_want(node.commands.link);
    assert_true(dm_link_await_ready(node.commands.link, &soon));
    command.peer = dm_node_link_server(&node.commands, &before);
    assert_int_equal(dm_link_post(node.commands.link, &command, count_answer, NULL), DM_LINK_OK);
    server_kill(the_server);
    server_restart(the_server);
    wait_until(is_another_server(command.peer));
    dm_node_link_server(&node.commands, &server);
    assert_false(dm_server_is_same_run(&before, &server));
    assert_int_equal(dm_link_post(node.commands.link, &command, count_answer, NULL), DM_LINK_OTHER);
    dm_command_free(&command);
    end_node();
    answers = broken = 0;
}

/*
 * A try that fails at once, in the call that asks for the try, is followed by another: nothing else would wake the
 * loop.
 */
static void test_the_next_try_is_planned_when_one_fails_at_once(void **state)
{
    static const struct dm_node_hooks hooks = { .on_ready = no_news, .on_change = no_news };
    struct dm_link_watch watch;
    char reason[DM_REASON_ROOM];

    (void)state;
    url = dm_url_parse("unix:///nonexistent/server", reason);
    assert_true(dm_node_init(&node, url, "inbox", &hooks));
    dm_link_want(node.commands.link);
    dm_link_watch(node.commands.link, &watch);
    assert_true(watch.is_closed);
    assert_int_not_equal(watch.due_ns, DM_NEVER);
    end_node();
}

/* ---- checks ------------------------------------------------------------------------------ */

static bool has_no_memory;
static int checks;

struct dm_command __real_dm_greeting_identify(const struct dm_greeting *greeting);
struct dm_command __wrap_dm_greeting_identify(const struct dm_greeting *greeting);
struct dm_command __wrap_dm_greeting_identify(const struct dm_greeting *greeting)
{
    checks++;
    return has_no_memory ? (struct dm_command){ 0 } : __real_dm_greeting_identify(greeting);
}

static void begin_node(void)
{
    static const struct dm_node_hooks hooks = { .on_ready = no_news, .on_inbox = no_news, .on_change = no_news };
    struct dm_deadline soon = dm_deadline_in_ms(5000);
    char reason[DM_REASON_ROOM];

    url = dm_url_parse(the_server->url, reason);
    assert_true(dm_node_init(&node, url, "inbox", &hooks));
    assert_true(dm_link_await_ready(node.commands.link, &soon));
    assert_true(dm_link_await_ready(node.inbox.link, &soon));
}

/* True if a check was tried; the loop thread comes again when it says, and not at once. */
static bool has_checked_in_vain(void)
{
    int64_t next_ns = dm_node_identify(&node);

    assert_true(next_ns > dm_clock_boot_ns());
    return checks > 0;
}

/* A check without memory is still due: the loop thread comes later, and does not spin. */
static void test_the_next_check_is_later_when_there_is_no_memory_for_one(void **state)
{
    (void)state;
    begin_node();
    has_no_memory = true;
    checks = 0;
    wait_until(has_checked_in_vain());
    has_no_memory = false;
    end_node();
}

/* ---- fork() ------------------------------------------------------------------------------ */

#define LISTENERS 3

static void *listen_until_posted(void *user)
{
    *(struct dm_self **)user = dm_self_get();
    while (!dm_link_listen(node.inbox.link, &dm_deadline_endless, PTHREAD_CANCEL_DISABLE))
        continue;
    return NULL;
}

/* True if one of the listeners leads, and the others sleep. */
static bool do_all_listen(struct dm_link *link)
{
    bool do_listen;

    dm_mutex_lock(&link->lock);
    do_listen = link->leader && link->asleep == LISTENERS - 1;
    dm_mutex_unlock(&link->lock);
    return do_listen;
}

static pid_t fork_beside_listeners(struct dm_link *link)
{
    pid_t pid;

    dm_node_fork_prepare_links(&node);
    dm_node_fork_prepare(&node);
    pid = keeper_fork();
    if (pid == 0) {
        dm_node_fork_child(&node);
        _exit(link->calls || link->leader || link->asleep || link->draining);
    }
    dm_node_fork_parent(&node);
    return pid;
}

/* The parent's threads are not in the child, and no call of theirs is: it would lie in the stack of a new thread. */
static void test_the_child_knows_no_calls_of_other_threads_when_the_process_forks(void **state)
{
    struct dm_self *selves[LISTENERS] = { NULL };
    pthread_t threads[LISTENERS];

    (void)state;
    begin_node();
    for (int i = 0; i < LISTENERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, listen_until_posted, &selves[i]), 0);
    wait_until(do_all_listen(node.inbox.link));
    assert_int_equal(keeper_reap(fork_beside_listeners(node.inbox.link)), 0);
    for (int i = 0; i < LISTENERS; i++)
        dm_self_wake(selves[i]);
    for (int i = 0; i < LISTENERS; i++)
        pthread_join(threads[i], NULL);
    end_node();
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_servers_number_changes_when_it_is_another_without_grace),
        cmocka_unit_test(test_no_handler_is_called_when_the_connection_breaks_under_a_quiet_caller),
        cmocka_unit_test(test_the_next_try_is_planned_when_one_fails_at_once),
        cmocka_unit_test(test_the_next_check_is_later_when_there_is_no_memory_for_one),
        cmocka_unit_test(test_the_child_knows_no_calls_of_other_threads_when_the_process_forks),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, test_group_setup, test_group_teardown);
}
