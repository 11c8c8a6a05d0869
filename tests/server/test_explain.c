/* SPDX-License-Identifier: BSD-2-Clause */
/* No wait is silent: after a second the log names the holder of the mutex, and so does the sentence of a timeout. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../lib/testlib.h"

/* Long enough to be explained, see process/calls/explain.c. */
#define LONG_WAIT_MS 1200

/* The lines of the log that are about waiting, and their number. */
static char line[512];
static int line_count;

static void take_line(int level, const char *message, void *user)
{
    (void)user;
    if (level != DMUTEX_LOG_INFO || strncmp(message, "waiting for ", 12) != 0)
        return;
    snprintf(line, sizeof line, "%s", message);
    __atomic_add_fetch(&line_count, 1, __ATOMIC_RELEASE);
}

static bool is_line_there(void)
{
    return __atomic_load_n(&line_count, __ATOMIC_ACQUIRE) > 0;
}

static void listen_to_log(void)
{
    line_count = 0;
    dmutex_setlog_np(take_line, NULL);
}

/* "by process PID (" of the actor, as every explanation names the holder. */
static const char *pid_text(struct actor *holder)
{
    static char text[40];

    snprintf(text, sizeof text, "held by process %d (", (int)actor_pid(holder));
    return text;
}

static struct timespec after_ms(int ms)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    now.tv_sec += ms / 1000;
    now.tv_nsec += ms % 1000 * 1000000L;
    if (now.tv_nsec >= 1000000000) {
        now.tv_sec++;
        now.tv_nsec -= 1000000000;
    }
    return now;
}

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_BOOTTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* The seconds of "…, for 1.2 s" in the caller's sentence. */
static double held_s(void)
{
    const char *at = strstr(dmutex_strerror_np(), ", for ");

    assert_non_null(at);
    return strtod(at + strlen(", for "), NULL);
}

/*
 * Locks until a deadline so far away that the wait is explained, and fails; false if this machine was too busy for an
 * explanation, which keeps no caller for more than 50 ms.
 */
static bool times_out_with(dmutex_t *mutex, const char *words)
{
    struct timespec end = after_ms(LONG_WAIT_MS);

    assert_result(dmutex_timedlock(mutex, &end), ETIMEDOUT);
    return strstr(dmutex_strerror_np(), words) != NULL;
}

/* The sentence of a timeout names the holder, the time of the hold so far, and the place in the queue. */
static void test_a_timeout_names_the_holder_when_the_wait_was_long(void **state)
{
    double before_s = now_s();
    struct actor *holder = actor_start_holder(the_server, "explain/timeout", "");
    dmutex_t mutex;

    (void)state;
    assert_result(dmutex_init_np(&mutex, "explain/timeout", NULL), 0);
    wait_until(times_out_with(&mutex, pid_text(holder)));
    assert_non_null(strstr(dmutex_strerror_np(), "place 1 of 1"));
    assert_true(held_s() > 1 && held_s() < now_s() - before_s + 0.1); /* tenths are rounded */
    actor_do(holder, "0", "unlock explain/timeout");
    actor_end(holder);
}

static void *use_mutex(void *user)
{
    lock_and_unlock(user);
    return NULL;
}

/* An endless wait says the same in one line of the log. */
static void test_the_log_names_the_holder_when_a_lock_waits(void **state)
{
    struct actor *holder = actor_start_holder(the_server, "explain/log", "");
    pthread_t thread;
    dmutex_t mutex;

    (void)state;
    listen_to_log();
    assert_result(dmutex_init_np(&mutex, "explain/log", NULL), 0);
    pthread_create(&thread, NULL, use_mutex, &mutex);
    wait_until(is_line_there());
    assert_non_null(strstr(line, "\"explain/log\""));
    assert_non_null(strstr(line, pid_text(holder)));
    assert_non_null(strstr(line, "place 1 of 1"));
    actor_do(holder, "0", "unlock explain/log");
    pthread_join(thread, NULL);
    assert_int_equal(line_count, 1);
    dmutex_setlog_np(NULL, NULL);
    actor_end(holder);
}

/* The server is gone, so nobody can say who holds the mutex: the line says that, and the call ends as usual. */
static void test_the_log_names_the_server_when_it_cannot_be_reached(void **state)
{
    struct timespec until;
    dmutex_t mutex;

    (void)state;
    assert_result(dmutex_init_np(&mutex, "explain/gone", NULL), 0);
    server_kill(the_server);
    assert_result(dmutex_trylock(&mutex), ENOLCK); /* from now on the library knows that the server is gone */
    listen_to_log();
    until = after_ms(LONG_WAIT_MS);
    assert_result(dmutex_timedlock(&mutex, &until), ETIMEDOUT);
    assert_int_equal(line_count, 1);
    assert_non_null(strstr(line, "\"explain/gone\""));
    assert_non_null(strstr(line, the_server->path));
    dmutex_setlog_np(NULL, NULL);
    server_restart(the_server);
    assert_result(dmutex_lock(&mutex), 0);
    assert_result(dmutex_unlock(&mutex), 0);
}

/* Nothing was ever sent, so nothing must be given back: the process ends within a tenth of command_timeout. */
static void test_exit_waits_for_nothing_when_no_server_was_ever_reached(void **state)
{
    struct actor *actor;
    char url[120];

    (void)state;
    snprintf(url, sizeof url, "redis://127.0.0.1:%d?command_timeout=100000", server_free_port());
    actor = actor_start_at(url);
    actor_do(actor, "ETIMEDOUT", "timedlock exit/nobody 100");
    side_set_control(the_server->side, "exit", 10000);
    actor_end(actor);
    assert_false(side_is_control_over(the_server->side, "exit"));
}

static int revive_server(void **state)
{
    (void)state;
    if (!the_server->pid)
        server_restart(the_server);
    return 0;
}

/* A thread that waits for itself gets a sentence that says so. */
static void test_a_timeout_says_so_when_a_thread_waits_for_itself(void **state)
{
    dmutex_t mutex;

    (void)state;
    assert_result(dmutex_init_np(&mutex, "explain/self", NULL), 0);
    assert_result(dmutex_lock(&mutex), 0);
    wait_until(times_out_with(&mutex, "held by the calling thread itself"));
    assert_result(dmutex_unlock(&mutex), 0);
}

/*
 * Nobody listens and nothing ends the wait: no script is called again.  No poll and no renewal is due so soon, only the
 * check of the server.
 */
static void test_a_wait_asks_nothing_more_when_nobody_listens(void **state)
{
    struct actor *holder = actor_start(the_server), *waiter = actor_start(the_server);
    int64_t before;

    (void)state;
    actor_do(holder, "0", "init explain/silent lease=60000");
    actor_do(holder, "0", "lock explain/silent");
    actor_do(waiter, "0", "init explain/silent lease=60000");
    actor_send(waiter, "lock explain/silent");
    wait_until(waiters_at(the_server->side, "explain/silent") == 1);
    before = side_calls(the_server->side, "evalsha");
    let_pass(LONG_WAIT_MS);
    assert_within(side_calls(the_server->side, "evalsha"), before, before + 1); /* the poll after a new inbox */
    actor_do(holder, "0", "unlock explain/silent");
    actor_expect(waiter, "0");
    actor_do(waiter, "0", "unlock explain/silent");
    actor_end(waiter);
    actor_end(holder);
}

/* ---- a server that has just come --------------------------------------------------------- */

/* As times_out_with(). */
static bool actor_times_out_with(struct actor *actor, const char *words)
{
    actor_do(actor, "ETIMEDOUT", "timedlock explain/grace %d", LONG_WAIT_MS);
    actor_send(actor, "strerror");
    return strstr(actor_answer(actor), words) != NULL;
}

static struct actor *start_with_grace(void)
{
    char url[112];

    snprintf(url, sizeof url, "unix://%s", the_server->path);
    return actor_start_at(url);
}

/* A trylock of a free mutex is EBUSY in the grace, and the sentence says so. */
static void test_a_try_reports_the_grace_when_the_server_is_new(void **state)
{
    struct actor *actor;

    (void)state;
    server_kill(the_server);
    server_restart(the_server);
    actor = start_with_grace();
    actor_do(actor, "0", "init explain/grace lease=60000");
    actor_do(actor, "EBUSY", "trylock explain/grace");
    actor_send(actor, "strerror");
    assert_non_null(strstr(actor_answer(actor), "has just started"));
    wait_until(actor_times_out_with(actor, "grants nothing new for"));
    actor_end(actor);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_timeout_names_the_holder_when_the_wait_was_long),
        cmocka_unit_test(test_the_log_names_the_holder_when_a_lock_waits),
        cmocka_unit_test_teardown(test_the_log_names_the_server_when_it_cannot_be_reached, revive_server),
        cmocka_unit_test(test_exit_waits_for_nothing_when_no_server_was_ever_reached),
        cmocka_unit_test(test_a_timeout_says_so_when_a_thread_waits_for_itself),
        cmocka_unit_test(test_a_wait_asks_nothing_more_when_nobody_listens),
        cmocka_unit_test(test_a_try_reports_the_grace_when_the_server_is_new),
        cmocka_unit_test(test_nothing_is_left),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, test_group_setup, test_group_teardown);
}
