/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Kept leases under faults: messages and answers that are late or lost, no inbox, no network, another server; and the
 * back-off.  The keeper reaches the server by a the_proxy, the other process does not.
 */
#include <stdio.h>
#include <string.h>

#include <dmutex/testing.h>

#include "kept.h"

/* ---- asked back -------------------------------------------------------------------------- */

/* The hold goes through the seats of the keeper first, within the bound, and is not kept then. */
static void test_the_lease_is_obtained_when_threads_of_the_keeper_wait(void **state)
{
    char file[64];

    (void)state;
    kept_begin(NULL, "faults/seated", LONG_LEASE);
    snprintf(file, sizeof file, "%s/seated", the_server->folder);
    actor_begin_count(file);
    actor_do(keeper, "0", "lock faults/seated");
    actor_do(keeper, "0", "start count %s 3 faults/seated", file);
    actor_send(other, "lock faults/seated");
    wait_until(waiters_of(&kept_mutex) == 1);
    promise_within(AT_ONCE);
    actor_do(keeper, "0", "unlock faults/seated");
    actor_expect(other, "0");
    assert_kept();
    actor_do(other, "0", "unlock faults/seated");
    actor_do(keeper, "0", "join");
    assert_int_equal(actor_counted(file), 3);
    kept_end();
}

/* The server has executed the renewal with the mark, and the answer is on its way: the message comes before. */
static void test_the_lease_is_obtained_when_the_answer_to_the_mark_is_late(void **state)
{
    uint64_t before;

    (void)state;
    kept_begin(proxy_url(the_proxy), "faults/mark", LONG_LEASE);
    kept_use(keeper, "faults/mark");
    kept_use(keeper, "faults/mark");
    kept_take("faults/mark", 0); /* after two relocks: the next unlock keeps */
    actor_do(keeper, "0", "lock faults/mark");
    before = (uint64_t)actor_value(keeper, "token faults/mark") >> 12;
    proxy_break(the_proxy, PROXY_HOLD_REPLY, PROXY_COMMANDS, "mark", 1);
    actor_do(keeper, "0", "unlock faults/mark");
    wait_until(proxy_hits(the_proxy) == 1);
    wait_until(kept_is_marked("faults/mark"));
    kept_take("faults/mark", before);
    proxy_pass(the_proxy);
    kept_use(keeper, "faults/mark");
    kept_end();
}

/* The next renewal reports the waiter instead of the lost message. */
static void test_the_lease_is_obtained_by_a_renewal_when_the_message_is_lost(void **state)
{
    uint64_t before;

    (void)state;
    kept_begin(proxy_url(the_proxy), "faults/wanted", SHORT_LEASE);
    before = kept_token(keeper, "faults/wanted");
    proxy_break(the_proxy, PROXY_SWALLOW_REPLY, PROXY_INBOX, "wanted", 1);
    kept_take("faults/wanted", before);
    assert_int_equal(proxy_hits(the_proxy), 1);
    kept_end();
}

/* The keeper's inbox is closed, and does not come back; the commands go on. */
static void close_inbox(void)
{
    int channels = side_count_channels(the_server->side);

    proxy_hold(the_proxy, PROXY_TO_SERVER, PROXY_INBOX);
    proxy_cut(the_proxy);
    wait_until(side_count_channels(the_server->side) == channels - 1);
}

/* An earlier lease is asked back by a renewal; a new hold is not kept without an inbox. */
static void test_no_lease_is_kept_when_the_inbox_is_closed(void **state)
{
    uint64_t before;

    (void)state;
    kept_begin(proxy_url(the_proxy), "faults/inbox", SHORT_LEASE);
    before = kept_token(keeper, "faults/inbox");
    close_inbox();
    kept_take("faults/inbox", before);
    kept_use(keeper, "faults/inbox");
    assert_false(kept_is_locked("faults/inbox"));
    proxy_pass(the_proxy);
    kept_end();
}

/* ---- back-off ---------------------------------------------------------------------------- */

/* How often the keeper unlocks without keeping, before it keeps. */
static int unlocks_without_keeping(const char *name)
{
    int count = 0;

    for (;;) {
        kept_use(keeper, name);
        if (kept_is_locked(name))
            break;
        count++;
    }
    wait_until(kept_is_marked(name));
    return count;
}

/* A lease asked back before two relocks is not kept at the next 1, 3, 7 … 63 unlocks; two relocks end this. */
static void test_the_back_off_grows_and_ends(void **state)
{
    static const int waits[] = { 1, 3, 7, 15, 31, 63, 63 };
    const char *name = "faults/back-off";

    (void)state;
    kept_begin(NULL, name, LONG_LEASE);
    for (int i = 0; i < 2; i++)
        kept_use(keeper, name);
    kept_take(name, 0); /* after two relocks */
    assert_int_equal(unlocks_without_keeping(name), 0);
    for (size_t i = 0; i < sizeof waits / sizeof waits[0]; i++) {
        kept_take(name, 0);
        assert_int_equal(unlocks_without_keeping(name), waits[i]);
    }
    kept_use(keeper, name);
    kept_use(keeper, name);
    kept_take(name, 0);
    assert_int_equal(unlocks_without_keeping(name), 0);
    kept_end();
}

/* ---- no network -------------------------------------------------------------------------- */

/* A lease that ends while nobody is inside is nobody's loss; the next lock asks. */
static void test_a_kept_lease_ends_in_silence_when_the_network_is_gone(void **state)
{
    const char *name = "faults/idle";
    uint64_t before;

    (void)state;
    kept_begin(proxy_url(the_proxy), name, SHORT_LEASE);
    before = kept_token(keeper, name);
    proxy_hold(the_proxy, PROXY_BOTH_WAYS, PROXY_ALL);
    promise_within(AT_ONCE);
    actor_do(other, "0", "lock %s", name);
    assert_kept();
    proxy_pass(the_proxy);
    wait_until(side_count_channels(the_server->side) >= 2);
    actor_send(keeper, "lock %s", name);
    wait_until(waiters_of(&kept_mutex) == 1);
    assert_true(actor_is_silent(keeper));
    actor_do(other, "0", "unlock %s", name);
    actor_expect(keeper, "0");
    assert_true((uint64_t)actor_value(keeper, "token %s", name) >> 12 > before);
    actor_do(keeper, "0", "unlock %s", name);
    assert_int_equal(actor_losses(keeper), 0);
    kept_end();
}

/* A thread that has entered without the server is told of the loss as any other. */
static void test_a_relocked_hold_is_lost_when_the_network_is_gone(void **state)
{
    const char *name = "faults/inside";

    (void)state;
    kept_begin(proxy_url(the_proxy), name, SHORT_LEASE);
    actor_do(keeper, "0", "lock %s", name);
    proxy_hold(the_proxy, PROXY_BOTH_WAYS, PROXY_ALL);
    promise_within(AT_ONCE);
    actor_do(other, "0", "lock %s", name);
    assert_kept();
    wait_until(actor_losses(keeper) == 1);
    actor_do(keeper, "EPERM", "unlock %s", name);
    proxy_pass(the_proxy);
    actor_do(other, "0", "unlock %s", name);
    kept_use(keeper, name);
    assert_int_equal(actor_losses(keeper), 1);
    kept_end();
}

/* ---- another server ---------------------------------------------------------------------- */

/* The keeper uses the mutex; true if the server got no command. */
static bool is_used_without_a_command(const char *name)
{
    int64_t commands = client_commands();

    kept_use(keeper, name);
    return client_commands() == commands;
}

/* A server without data gets the kept lease back, with its mark: no other process owns meanwhile, or waits for long. */
static void test_a_kept_lease_comes_back_when_the_server_is_empty(void **state)
{
    const char *name = "faults/empty";
    uint64_t before;

    (void)state;
    kept_begin(NULL, name, LONG_LEASE);
    before = kept_token(keeper, name);
    server_kill(the_server);
    server_restart(the_server);
    wait_until(kept_is_marked(name));
    wait_until(is_used_without_a_command(name)); /* the mark may be there before the keeper has its answer */
    actor_do(other, "EBUSY", "trylock %s", name);
    kept_take(name, before);
    assert_int_equal(actor_losses(keeper), 0);
    kept_end();
}

/* An older copy knows another holder, which has given the lock back long since. */
static void test_a_kept_lease_comes_back_when_the_server_has_an_older_copy(void **state)
{
    const char *name = "faults/older";
    struct server *first = the_server, *saving = server_start_with(false, "--dbfilename", "copy.rdb", NULL);
    uint64_t before;

    (void)state;
    the_server = saving;
    kept_begin(NULL, name, LONG_LEASE);
    kept_use(keeper, name);
    kept_use(keeper, name);
    actor_do(other, "0", "lock %s", name); /* after two relocks: the next unlock keeps */
    side_text(the_server->side, "SAVE");
    actor_do(other, "0", "unlock %s", name);
    kept_keep(name);
    before = kept_token(keeper, name);
    server_kill(the_server);
    server_restart(the_server);
    wait_until(kept_is_marked(name));
    kept_take(name, before);
    assert_int_equal(actor_losses(keeper), 0);
    kept_end();
    server_end(saving);
    the_server = first;
}

/* In the grace of a new server the keeper goes on; a lease that it gives back is granted when the grace is over. */
static void test_a_kept_lease_is_used_in_the_grace_of_a_server(void **state)
{
    struct server *first = the_server;
    const char *name = "faults/grace";
    uint64_t before;

    (void)state;
    the_server = server_start();
    snprintf(the_server->url, sizeof the_server->url, "unix://%s", the_server->path); /* with grace */
    server_make_old(the_server);
    kept_begin(NULL, name, LONG_LEASE);
    before = kept_token(keeper, name);
    server_kill(the_server);
    server_restart(the_server);
    wait_until(kept_is_marked(name));
    kept_use(keeper, name);
    actor_do(other, "EBUSY", "trylock %s", name);
    actor_send(other, "lock %s", name);
    wait_until(!kept_is_locked(name)); /* asked back */
    assert_true(actor_is_silent(other));
    server_make_old(the_server);
    side_text(the_server->side, "CLIENT KILL TYPE normal SKIPME yes");
    actor_expect(other, "0");
    assert_true((uint64_t)actor_value(other, "token %s", name) >> 12 > before);
    actor_do(other, "0", "unlock %s", name);
    assert_int_equal(actor_losses(keeper), 0);
    kept_end();
    server_end(the_server);
    the_server = first;
}

/* The first unlock opens the inbox, if need be, and gives back. */
static bool is_kept_now(dmutex_t *mutex)
{
    assert_result(dmutex_lock(mutex), 0);
    assert_result(dmutex_unlock(mutex), 0);
    return is_locked(mutex);
}

/* A kept lease keeps no process at its server: the lease goes back, and nothing is kept of it at the next server. */
static void test_another_server_is_used_while_a_lease_is_kept(void **state)
{
    dmutex_test_server_t *server;
    dmutex_t mutex;

    (void)state;
    other = actor_start(the_server);
    make_handed(&mutex, "faults/switch", &kinds[0], LONG_LEASE, LONG_LEASE);
    wait_until(is_kept_now(&mutex));
    assert_result(dmutex_test_server_start(&server), 0);
    actor_do(other, "0", "trylock faults/switch");
    for (int i = 0; i < 3; i++) {
        assert_result(dmutex_lock(&mutex), 0);
        assert_result(dmutex_unlock(&mutex), 0);
    }
    assert_result(dmutex_test_server_stop(server), 0);
    assert_result(dmutex_trylock(&mutex), EBUSY);
    actor_do(other, "0", "unlock faults/switch");
    assert_result(dmutex_lock(&mutex), 0);
    assert_result(dmutex_unlock(&mutex), 0);
    assert_result(dmutex_destroy(&mutex), 0);
    actor_end(other);
}

#define FAULT_TEST(test) cmocka_unit_test_setup_teardown(test, test_proxy_setup, test_proxy_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        FAULT_TEST(test_the_lease_is_obtained_when_threads_of_the_keeper_wait),
        FAULT_TEST(test_the_lease_is_obtained_when_the_answer_to_the_mark_is_late),
        FAULT_TEST(test_the_lease_is_obtained_by_a_renewal_when_the_message_is_lost),
        FAULT_TEST(test_no_lease_is_kept_when_the_inbox_is_closed),
        FAULT_TEST(test_the_back_off_grows_and_ends),
        FAULT_TEST(test_a_kept_lease_ends_in_silence_when_the_network_is_gone),
        FAULT_TEST(test_a_relocked_hold_is_lost_when_the_network_is_gone),
        FAULT_TEST(test_a_kept_lease_comes_back_when_the_server_is_empty),
        FAULT_TEST(test_a_kept_lease_comes_back_when_the_server_has_an_older_copy),
        FAULT_TEST(test_a_kept_lease_is_used_in_the_grace_of_a_server),
        FAULT_TEST(test_another_server_is_used_while_a_lease_is_kept),
        cmocka_unit_test(test_nothing_is_left),
    };

    test_begin(argc, argv);
    test_put_server_into_path();
    return cmocka_run_group_tests(tests, test_group_setup, test_group_teardown);
}
