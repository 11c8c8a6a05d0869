/* SPDX-License-Identifier: BSD-2-Clause */
/* The costs of locks, waiters and holds for the server, and for uninvolved processes. */
#include <dirent.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "warm.h"

#define LONG_LEASE 60000 /* no poll and no renewal within the time of a test */
#define AT_ONCE 5000
#define MANY 1000

static dmutex_t mutex;
static dmutex_t many[MANY];

/* ---- handoffs ---------------------------------------------------------------------------- */

/* N processes count in one file under one mutex; the commands of each handoff, times ten. */
static int64_t cost_of_handoff(int processes, int rounds)
{
    struct actor *actors[100];
    char file[64];
    int64_t before;

    snprintf(file, sizeof file, "%s/count%d", the_server->folder, processes);
    make_normal(&mutex, "cost/handoff", LONG_LEASE);
    assert_result(dmutex_lock(&mutex), 0);
    for (int i = 0; i < processes; i++)
        actors[i] = start_warm("cost/handoff", LONG_LEASE, "");
    for (int i = 0; i < processes; i++) {
        actor_send(actors[i], "count %s %d cost/handoff", file, rounds);
        wait_until(waiters_of(&mutex) == i + 1);
    }
    before = client_commands() - processes; /* the first lock commands have been sent */
    assert_result(dmutex_unlock(&mutex), 0);
    for (int i = 0; i < processes; i++)
        actor_expect(actors[i], "0");
    before = client_commands() - before;
    assert_int_equal(actor_counted(file), processes * rounds);
    for (int i = 0; i < processes; i++)
        actor_end(actors[i]);
    return before * 10 / (processes * rounds);
}

/* Failure 14: a handoff costs two commands, however many wait: one to wait and one to release. */
static void test_a_handoff_costs_two_commands_however_many_wait(void **state)
{
    (void)state;
    assert_within(cost_of_handoff(2, 200), 10, 22);
    assert_within(cost_of_handoff(8, 50), 10, 22);
    assert_within(cost_of_handoff(32, 20), 10, 22);
    assert_within(cost_of_handoff(100, 10), 10, 22);
}

/*
 * How often this thread has gone to sleep by itself; 0 for a thread that is neither the process's first nor the
 * library's: sanitizers have their own threads, which tick.
 */
static long sleeps_of_thread(pid_t pid, const char *thread)
{
    char path[300], line[128], name[17] = "";
    long count = 0;
    FILE *status;

    snprintf(path, sizeof path, "/proc/%d/task/%s/status", (int)pid, thread);
    status = fopen(path, "r");
    while (status && fgets(line, sizeof line, status)) {
        sscanf(line, "Name: %16s", name);
        sscanf(line, "voluntary_ctxt_switches: %ld", &count);
    }
    if (status)
        fclose(status);
    return atoi(thread) == pid || strcmp(name, "dmutex") == 0 ? count : 0;
}

static long sleeps_of(const struct actor *actor)
{
    char path[300];
    long sum = 0;
    struct dirent *task;
    DIR *tasks;

    snprintf(path, sizeof path, "/proc/%d/task", (int)actor_pid(actor));
    tasks = opendir(path);
    assert_non_null(tasks);
    while ((task = readdir(tasks)))
        sum += sleeps_of_thread(actor_pid(actor), task->d_name);
    closedir(tasks);
    return sum;
}

static bool is_asleep_for_good(const struct actor *actor)
{
    long before = sleeps_of(actor);

    let_pass(50);
    return sleeps_of(actor) == before;
}

/* Only of the actor's own thread, because the library checks the server each second while a thread waits. */
static long own_sleeps_of(const struct actor *actor)
{
    char pid[16];

    snprintf(pid, sizeof pid, "%d", (int)actor_pid(actor));
    return sleeps_of_thread(actor_pid(actor), pid);
}

/* POSIX scenario 10, failure 14: a release notifies one process, and wakes one thread; the others sleep on. */
static void test_a_release_wakes_one_process_when_many_wait(void **state)
{
    struct actor *waiters[6];
    long sleeps[6];
    int64_t messages;

    (void)state;
    make_normal(&mutex, "cost/wake", LONG_LEASE);
    assert_result(dmutex_lock(&mutex), 0);
    for (int i = 0; i < 6; i++) {
        waiters[i] = start_warm("cost/wake", LONG_LEASE, "");
        actor_send(waiters[i], "lock cost/wake");
        wait_until(waiters_of(&mutex) == i + 1);
    }
    for (int i = 1; i < 6; i++) {
        wait_until(is_asleep_for_good(waiters[i]));
        sleeps[i] = own_sleeps_of(waiters[i]);
    }
    messages = side_calls(the_server->side, "publish");
    assert_result(dmutex_unlock(&mutex), 0);
    actor_expect(waiters[0], "0");
    assert_int_equal(side_calls(the_server->side, "publish"), messages + 1);
    let_pass(100);
    for (int i = 1; i < 6; i++) {
        assert_true(actor_is_silent(waiters[i]));
        assert_int_equal(own_sleeps_of(waiters[i]), sleeps[i]);
    }
    for (int i = 0; i < 6; i++) {
        if (i > 0)
            actor_expect(waiters[i], "0");
        actor_do(waiters[i], "0", "unlock cost/wake");
        actor_end(waiters[i]);
    }
}

/* Failure 15: an owner that locks again and again does not keep the mutex from the waiters. */
static void test_waiters_own_when_the_owner_locks_in_a_loop(void **state)
{
    struct actor *waiters[5];
    char file[64];
    int cycles = 0;

    (void)state;
    snprintf(file, sizeof file, "%s/loop", the_server->folder);
    make_normal(&mutex, "cost/loop", LONG_LEASE);
    assert_result(dmutex_lock(&mutex), 0);
    for (int i = 0; i < 5; i++) {
        waiters[i] = start_warm("cost/loop", LONG_LEASE, "");
        actor_send(waiters[i], "count %s 1 cost/loop", file);
        wait_until(waiters_of(&mutex) == i + 1);
    }
    do {
        assert_result(dmutex_unlock(&mutex), 0);
        assert_result(dmutex_lock(&mutex), 0);
    } while (actor_counted(file) < 5 && ++cycles < 10);
    assert_int_equal(actor_counted(file), 5);
    assert_result(dmutex_unlock(&mutex), 0);
    for (int i = 0; i < 5; i++) {
        actor_expect(waiters[i], "0");
        actor_end(waiters[i]);
    }
}

/* ---- inboxes ----------------------------------------------------------------------------- */

static void name_many(int count, const char *leaf, unsigned lease_ms)
{
    for (int i = 0; i < count; i++) {
        char name[32];

        snprintf(name, sizeof name, "cost/%s%d", leaf, i);
        make_normal(&many[i], name, lease_ms);
    }
}

static int subscribers(void)
{
    const char *list = side_text(the_server->side, "CLIENT LIST TYPE pubsub");
    int lines = 0;

    while ((list = strstr(list, "addr="))) {
        lines += strncmp(list - 1, "laddr=", 6) != 0;
        list++;
    }
    return lines;
}

/* A wait subscribes; a short one on a busy machine may be over before. */
static bool has_subscribed(dmutex_t *held)
{
    return timedlock_soon(held) == ETIMEDOUT && side_count_channels(the_server->side) == 1 && subscribers() == 1;
}

/* Failure 13: one process has one inbox, for any number of names that threads wait for. */
static void test_a_process_has_one_inbox_when_it_waits_for_many_names(void **state)
{
    struct actor *owner = actor_start(the_server);
    struct errand errands[40];

    (void)state;
    name_many(40, "inbox", LONG_LEASE);
    for (int i = 0; i < 40; i++)
        actor_do(owner, "0", "lock cost/inbox%d", i);
    wait_until(has_subscribed(&many[0]));
    for (int i = 0; i < 40; i++)
        errand_begin(&errands[i], dmutex_lock, &many[i]);
    for (int i = 0; i < 40; i++)
        wait_until(waiters_of(&many[i]) == 1);
    assert_int_equal(side_count_channels(the_server->side), 1);
    assert_int_equal(subscribers(), 1);
    for (int i = 0; i < 40; i++)
        actor_do(owner, "0", "unlock cost/inbox%d", i);
    for (int i = 0; i < 40; i++)
        assert_result(errand_join(&errands[i]), 0);
    assert_int_equal(side_count_channels(the_server->side), 1);
    actor_end(owner);
    for (int i = 0; i < 40; i++)
        wait_until(!is_locked(&many[i]));
}

/* Failure 13: waits that time out leave nothing, neither here nor on the server. */
static void test_nothing_grows_when_many_waits_run_out(void **state)
{
    struct actor *owner = actor_start(the_server);
    size_t used[3];

    (void)state;
    name_many(100, "ends", LONG_LEASE);
    for (int i = 0; i < 100; i++)
        actor_do(owner, "0", "lock cost/ends%d", i);
    for (int round = 0; round < 3; round++) {
        name_many(100, "ends", LONG_LEASE);
        for (int i = 0; i < 100; i++) {
            struct timespec soon = wait_time_in_ms(CLOCK_REALTIME, 1);

            assert_result(dmutex_timedlock(&many[i], &soon), ETIMEDOUT);
        }
        for (int i = 0; i < 100; i++)
            assert_result(dmutex_destroy(&many[i]), 0);
        used[round] = mallinfo2().uordblks;
    }
    assert_true(used[2] <= used[1] + 16 * 1024);
    wait_until(side_count_keys(the_server->side, "*:queue:ends*") == 0);
    assert_int_equal(side_count_keys(the_server->side, "*:waiter:ends*"), 0);
    actor_end(owner);
}

/* ---- holds ------------------------------------------------------------------------------- */

/* A process that holds nothing and waits for nothing costs the server no command at all. */
static void test_an_idle_process_sends_no_command(void **state)
{
    struct actor *actor = start_warm("cost/idle", LONG_LEASE, "");
    int64_t before;

    (void)state;
    make_normal(&mutex, "cost/idle", 300);
    assert_result(dmutex_lock(&mutex), 0);
    assert_result(dmutex_unlock(&mutex), 0);
    wait_until(!is_locked(&mutex));
    actor_do(actor, "0", "lock cost/idle");
    actor_do(actor, "0", "unlock cost/idle");
    wait_until(!is_locked(&mutex));
    before = client_commands();
    let_pass(1500);
    assert_int_equal(client_commands(), before);
    actor_end(actor);
}

/*
 * Holds and waiters with long leases cost nothing while nothing changes, except a check of the server in each second of
 * a wait.
 */
static void test_a_long_lease_costs_nothing_while_nothing_changes(void **state)
{
    struct actor *waiter = start_warm("cost/long", LONG_LEASE, "");
    int64_t before, looks;

    (void)state;
    make_normal(&mutex, "cost/long", LONG_LEASE);
    assert_result(dmutex_lock(&mutex), 0);
    actor_send(waiter, "lock cost/long");
    wait_until(waiters_of(&mutex) == 1);
    before = client_commands();
    looks = side_calls(the_server->side, "info");
    let_pass(1500);
    assert_within(side_calls(the_server->side, "info") - looks, 1, 1 + 3); /* the test's own, and the waiters' */
    assert_int_equal(client_commands(), before);
    assert_result(dmutex_unlock(&mutex), 0);
    actor_expect(waiter, "0");
    actor_do(waiter, "0", "unlock cost/long");
    actor_end(waiter);
}

/* A recursive relock is a local matter: no command, however deep. */
static void test_a_recursive_relock_sends_no_command(void **state)
{
    int64_t before;

    (void)state;
    make_recursive(&mutex, "cost/deep", LONG_LEASE);
    assert_result(dmutex_lock(&mutex), 0);
    before = client_commands();
    for (int i = 0; i < 1000; i++)
        assert_result(dmutex_lock(&mutex), 0);
    for (int i = 0; i < 1000; i++)
        assert_result(dmutex_unlock(&mutex), 0);
    assert_int_equal(client_commands(), before);
    assert_int_equal(holdcount_of(&mutex), 1);
    assert_result(dmutex_unlock(&mutex), 0);
}

/* A thousand holds are renewed by 16 script calls a round at most, and none is lost. */
static void test_a_thousand_holds_are_renewed_in_few_calls(void **state)
{
    int64_t before;

    (void)state;
    name_many(MANY, "hold", 1800);
    for (int i = 0; i < MANY; i++)
        assert_result(dmutex_lock(&many[i]), 0);
    let_pass(700); /* the first round has brought the renewals together */
    before = client_commands();
    let_pass(3 * 600);
    assert_within(client_commands() - before, 3, 4 * 16);
    for (int i = 0; i < MANY; i++) {
        assert_true(remaining_of(&many[i]) > 0);
        assert_result(dmutex_unlock(&many[i]), 0);
    }
    wait_until(side_count_keys(the_server->side, "*:lock:hold*") == 0);
}

/* A held lock takes two KiB of the process's memory at most. */
static void test_a_hold_takes_little_memory(void **state)
{
    size_t before;

    (void)state;
    name_many(MANY, "memory", LONG_LEASE);
    before = mallinfo2().uordblks;
    for (int i = 0; i < MANY; i++)
        assert_result(dmutex_lock(&many[i]), 0);
    assert_true(mallinfo2().uordblks - before <= MANY * 2048);
    for (int i = 0; i < MANY; i++)
        assert_result(dmutex_unlock(&many[i]), 0);
    for (int i = 0; i < MANY; i++)
        assert_result(dmutex_destroy(&many[i]), 0);
    assert_true(mallinfo2().uordblks <= before + 128 * 1024);
}

/* A process that uses each name once, as for mutexes named after orders, keeps some of the names, not all. */
static void test_nothing_grows_when_each_name_is_used_once(void **state)
{
    size_t used[2];
    char name[40];

    (void)state;
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 6000; i++) {
            snprintf(name, sizeof name, "cost/once%d-%d", round, i);
            make_normal(&mutex, name, LONG_LEASE);
            assert_result(dmutex_lock(&mutex), 0);
            assert_result(dmutex_unlock(&mutex), 0);
        }
        used[round] = mallinfo2().uordblks;
    }
    assert_true(used[1] <= used[0] + 1024 * 1024); /* 6000 names take two MB */
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_handoff_costs_two_commands_however_many_wait),
        cmocka_unit_test(test_a_release_wakes_one_process_when_many_wait),
        cmocka_unit_test(test_waiters_own_when_the_owner_locks_in_a_loop),
        cmocka_unit_test(test_a_process_has_one_inbox_when_it_waits_for_many_names),
        cmocka_unit_test(test_nothing_grows_when_many_waits_run_out),
        cmocka_unit_test(test_an_idle_process_sends_no_command),
        cmocka_unit_test(test_a_long_lease_costs_nothing_while_nothing_changes),
        cmocka_unit_test(test_a_recursive_relock_sends_no_command),
        cmocka_unit_test(test_a_thousand_holds_are_renewed_in_few_calls),
        cmocka_unit_test(test_a_hold_takes_little_memory),
        cmocka_unit_test(test_nothing_grows_when_each_name_is_used_once),
        cmocka_unit_test(test_nothing_is_left),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, test_group_setup, test_group_teardown);
}
