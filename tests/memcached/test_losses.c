/* SPDX-License-Identifier: BSD-2-Clause */
/* memcached forgets: what becomes of locks then, as the table in doc/guide/memcached.md says. */
#include "../lib/testlib.h"

#include <string.h>

#include "../registers/mcserver.h"

/* Long enough that a server starts again within a part of it, on a busy machine as well. */
#define LEASE "lease=5000"

static struct mcserver *server;

static struct actor *start_with(const char *name, const char *options)
{
    struct actor *actor = actor_start_at(server->url);

    actor_do(actor, "0", "init %s %s", name, options);
    return actor;
}

static void restart(void)
{
    mcserver_kill(server);
    mcserver_restart(server);
}

static void send_waiter(struct actor *actor, const char *name)
{
    char key[64];
    unsigned long before;

    snprintf(key, sizeof key, "n/%s", name);
    before = mcserver_version_of(server, key);
    actor_send(actor, "lock %s", name);
    wait_until(mcserver_version_of(server, key) != before);
}

/* The data go, by a flush and by a restart: the holder puts its lock back, and goes on; waiters wait in line again */
static void test_holder_puts_its_lock_back(void **state)
{
    struct actor *a, *b;
    long long token;

    (void)state;
    server = mcserver_start("-M");
    a = start_with("back", LEASE);
    b = start_with("back", LEASE);
    actor_do(a, "0", "lock back");
    token = actor_value(a, "token back");
    send_waiter(b, "back");
    mcserver_ask(server, "flush_all");
    wait_until(mcserver_version_of(server, "n/back"));
    assert_true(actor_is_silent(b));
    restart();
    wait_until(mcserver_version_of(server, "n/back"));
    assert_true(actor_is_silent(b));
    actor_do(a, "0", "renew back");
    assert_true(actor_value(a, "token back") == token);
    actor_do(a, "0", "unlock back");
    actor_expect(b, "0");
    assert_true(actor_value(b, "token back") > token);
    actor_do(b, "0", "unlock back");
    assert_int_equal(actor_losses(a), 0);
    actor_end(a);
    actor_end(b);
    mcserver_end(server);
}

/* The server ends and starts again and again while many count: nobody counts in between */
static void test_count_is_right_over_restarts(void **state)
{
    struct actor *actors[3];
    char path[64];
    int restarts = 3;

    (void)state;
    server = mcserver_start("-M");
    snprintf(path, sizeof path, "%s/count", server->folder);
    actor_begin_count(path);
    for (int i = 0; i < 3; i++) {
        actors[i] = start_with("count", "lease=1000");
        actor_send(actors[i], "count %s 80 count 2", path);
    }
    for (int i = 0; i < restarts; i++) {
        long long before = actor_counted(path);

        wait_until(actor_counted(path) > before);
        restart();
    }
    for (int i = 0; i < 3; i++) {
        assert_string_equal(actor_answer_of_count(actors[i], path), "0");
        actor_end(actors[i]);
    }
    assert_true(actor_counted(path) >= 480);
    mcserver_end(server);
}

/* One key alone goes, as by eviction: nobody can know, and there are two owners */
static void test_lock_that_is_evicted_has_two_owners(void **state)
{
    struct actor *a, *b;

    (void)state;
    server = mcserver_start("");
    a = start_with("evicted", "lease=1000");
    b = start_with("evicted", "lease=1000");
    actor_do(a, "0", "lock evicted");
    actor_do(b, "EBUSY", "trylock evicted");
    mcserver_ask(server, "md dmutex:r/n/evicted");
    actor_do(b, "0", "trylock evicted");
    actor_do(a, "EPERM", "unlock evicted");
    actor_do(b, "0", "unlock evicted");
    actor_end(a);
    actor_end(b);
    mcserver_end(server);
}

/* The memory is full: the holder learns that it loses its lock before another has it, and others get a sentence */
static void test_full_memory_makes_no_second_owner(void **state)
{
    struct actor *a, *b;

    (void)state;
    server = mcserver_start("-M -m 2");
    a = start_with("full", "lease=1000");
    b = start_with("full", "lease=1000");
    actor_do(a, "0", "lock full");
    mcserver_fill(server);
    actor_do(b, "ENOLCK", "lock full");
    wait_until(actor_losses(a) == 1);
    actor_do(a, "EPERM", "unlock full");
    mcserver_ask(server, "flush_all");
    actor_do(b, "0", "lock full");
    actor_do(b, "0", "unlock full");
    actor_end(a);
    actor_end(b);
    mcserver_end(server);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_holder_puts_its_lock_back),
        cmocka_unit_test(test_count_is_right_over_restarts),
        cmocka_unit_test(test_lock_that_is_evicted_has_two_owners),
        cmocka_unit_test(test_full_memory_makes_no_second_owner),
    };

    test_begin(argc, argv);
    if (!mcserver_is_possible())
        return 0;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
