/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How to test a program that uses libdmutex: a complete test with cmocka, on a private server that starts and ends with
 * the test group.
 *
 *     cc ledger_test.c $(pkg-config --cflags --libs dmutex cmocka) && ./a.out
 *
 * Needs redis-server or valkey-server to be installed, but not running, and leaves nothing behind.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <dmutex/dmutex.h>
#include <dmutex/testing.h>

/* ---- the code under test: in your program, a separate file ------------------------------- */

enum { SUM = 100 };

/* Two balances in a file, whose sum is constant. A process that changes them holds the mutex. */
struct balances {
    int savings, current;
};

struct ledger {
    dmutex_t mutex;
    int fd;
};

static void ledger_init(struct ledger *ledger, int fd, unsigned lease_ms)
{
    dmutexattr_t attr;

    dmutexattr_init(&attr);
    dmutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
    dmutexattr_setlease_np(&attr, lease_ms);
    dmutex_init_np(&ledger->mutex, "bank/ledger", &attr);
    dmutexattr_destroy(&attr);
    ledger->fd = fd;
}

static struct balances ledger_read(const struct ledger *ledger)
{
    struct balances balances = { SUM, 0 };

    if (pread(ledger->fd, &balances, sizeof balances, 0) != (ssize_t)sizeof balances)
        balances = (struct balances){ SUM, 0 }; /* a new ledger */
    return balances;
}

static int ledger_write(struct ledger *ledger, struct balances balances)
{
    return pwrite(ledger->fd, &balances, sizeof balances, 0) == (ssize_t)sizeof balances ? 0 : EIO;
}

/* Locks the mutex, within two seconds. If an owner died and left a change half done, repairs it. */
static int ledger_lock(struct ledger *ledger)
{
    struct timespec until;
    int error;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 2;
    error = dmutex_timedlock(&ledger->mutex, &until);
    if (error == EOWNERDEAD) {
        struct balances balances = ledger_read(ledger);

        balances.savings = SUM - balances.current;
        ledger_write(ledger, balances);
        error = dmutex_consistent(&ledger->mutex);
    }
    return error;
}

/* Moves some of the savings. Returns 0, or an errno value if nothing has changed. */
static int ledger_transfer(struct ledger *ledger, int amount)
{
    struct balances balances;
    int error = ledger_lock(ledger);

    if (error)
        return error;
    balances = ledger_read(ledger);
    balances.savings -= amount;
    balances.current += amount;
    error = ledger_write(ledger, balances);
    dmutex_unlock(&ledger->mutex);
    return error;
}

/* ---- the tests --------------------------------------------------------------------------- */

enum { LEASE_MS = 500, TIMES = 20 };

static FILE *file; /* of the ledger; each test starts with an empty file */
static struct ledger ledger;

static int set_up(void **state)
{
    (void)state;
    file = tmpfile();
    if (!file)
        return -1;
    ledger_init(&ledger, fileno(file), LEASE_MS);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    return fclose(file);
}

static void assert_balances(int savings, int current)
{
    struct balances balances = ledger_read(&ledger);

    assert_int_equal(balances.savings, savings);
    assert_int_equal(balances.current, current);
}

static void *transfer_often(void *user)
{
    for (int i = 0; i < TIMES; i++) {
        if (ledger_transfer(&ledger, 1) != 0)
            return NULL;
    }
    return user;
}

/* A thread of this process, and another process, which uses the same server automatically. */
static void test_no_transfer_is_lost_when_two_do_them_at_once(void **state)
{
    pid_t child = fork();
    pthread_t thread;
    void *is_done;
    int status;

    (void)state;
    if (child == 0)
        _exit(transfer_often(&ledger) ? 0 : 1);
    assert_int_equal(pthread_create(&thread, NULL, transfer_often, &ledger), 0);
    assert_int_equal(pthread_join(thread, &is_done), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_non_null(is_done);
    assert_int_equal(status, 0);
    assert_balances(SUM - 2 * TIMES, 2 * TIMES);
}

/* The owner dies between the two changes. The next owner learns of it and repairs them. */
static void test_a_transfer_repairs_when_an_owner_has_died(void **state)
{
    (void)state;
    assert_int_equal(ledger_lock(&ledger), 0);
    assert_int_equal(ledger_write(&ledger, (struct balances){ SUM - 30, 0 }), 0);
    assert_int_equal(dmutex_test_abandon(&ledger.mutex), 0);

    assert_int_equal(ledger_transfer(&ledger, 10), 0);
    assert_balances(SUM - 10, 10);
}

/* Without a server, a transfer fails in time and changes nothing. Once a server is back, transfers work again. */
static void test_a_transfer_fails_when_the_server_is_dead(void **state)
{
    dmutex_test_server_t *server = *state;

    assert_int_equal(ledger_transfer(&ledger, 10), 0);
    assert_int_equal(dmutex_test_server_kill(server), 0);
    assert_int_equal(ledger_transfer(&ledger, 10), ETIMEDOUT);
    assert_balances(SUM - 10, 10);

    assert_int_equal(dmutex_test_server_restart(server), 0);
    assert_int_equal(ledger_transfer(&ledger, 10), 0);
    assert_balances(SUM - 20, 20);
}

/* To the caller, a server that hangs is the same as a dead one. */
static void test_a_transfer_fails_when_the_server_hangs(void **state)
{
    dmutex_test_server_t *server = *state;

    assert_int_equal(dmutex_test_server_pause(server), 0);
    assert_int_equal(ledger_transfer(&ledger, 10), ETIMEDOUT);
    assert_balances(SUM, 0);

    assert_int_equal(dmutex_test_server_resume(server), 0);
    assert_int_equal(ledger_transfer(&ledger, 10), 0);
    assert_balances(SUM - 10, 10);
}

int main(void)
{
    const struct CMUnitTest sharing[] = {
        cmocka_unit_test_setup_teardown(test_no_transfer_is_lost_when_two_do_them_at_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_transfer_repairs_when_an_owner_has_died, set_up, tear_down),
    };
    const struct CMUnitTest failing[] = {
        cmocka_unit_test_setup_teardown(test_a_transfer_fails_when_the_server_is_dead, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_transfer_fails_when_the_server_hangs, set_up, tear_down),
    };
    int failed = cmocka_run_group_tests(sharing, dmutex_test_group_setup, dmutex_test_group_teardown);

    return failed + cmocka_run_group_tests(failing, dmutex_test_group_setup, dmutex_test_group_teardown);
}
