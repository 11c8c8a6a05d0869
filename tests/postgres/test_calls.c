/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a mutex costs on PostgreSQL: system calls of the process, counted by ptrace(), statements, as the server logs
 * them, and bytes.  Nothing is timed.
 */
#include "../lib/testlib.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "../lib/tracer.h"
#include "../registers/pgserver.h"

#define PAIRS 500
#define HANDOFFS 20
#define NEWCOMERS 60
#define CROWD 8
#define HOLDS 1500

/* No beat of a session in the test, unless it takes 20 s. */
#define LONG_MS 60000
#define LONG "lease=60000"

/* Every 50 ms the loop thread looks whether somebody still polls: one sleep, and a look at what is due. */
#define TICK_MS 50

static struct pgserver *server;
static char url[128];

/* Nothing was held in these data before. */
static int setup(void **state)
{
    (void)state;
    server = pgserver_start();
    snprintf(url, sizeof url, "%s&dmutex.grace=off", server->url);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    pgserver_end(server);
    return 0;
}

static bool has_answered(void *user)
{
    return !actor_is_silent(user);
}

/* The list ends with -1. */
static long sum_of(const struct tracer *tracer, const int *numbers)
{
    long sum = 0;

    for (; *numbers >= 0; numbers++)
        sum += tracer->calls[*numbers];
    return sum;
}

/* The first pairs connect, and make the name.  Returns for how many ms the traced pairs took. */
static int64_t trace_pairs(struct tracer *tracer, const char *name)
{
    struct actor *actor = actor_start_at(url);
    int64_t began_ms;
    char file[64];

    snprintf(file, sizeof file, "%s/calls", server->folder);
    actor_begin_count(file);
    actor_do(actor, "0", "init %s " LONG, name);
    actor_do(actor, "0", "count %s 2 %s", file, name);
    tracer_start(tracer, actor_pid(actor));
    began_ms = wait_now_ms();
    actor_send(actor, "count %s %d %s", file, PAIRS, name);
    tracer_run(tracer, has_answered, actor);
    tracer_stop(tracer);
    actor_expect(actor, "0");
    actor_end(actor);
    return wait_now_ms() - began_ms;
}

/*
 * A pair is two round trips: a thread writes, sleeps until the answer comes, and reads, and nobody wakes anybody.  The
 * ticks of the loop thread, and the actor's own command, come on top.
 */
static void test_pair_is_two_round_trips_when_nobody_else_wants_the_mutex(void **state)
{
    static const int sends[] = { SYS_sendto, SYS_sendmsg, -1 }, receives[] = { SYS_recvfrom, SYS_recvmsg, -1 };
    static const int sleeps[] = { SYS_poll, SYS_ppoll, SYS_select, SYS_clock_nanosleep, -1 };
    static const int wakeups[] = { SYS_futex, SYS_write, SYS_writev, -1 };
    static const int checks[] = { SYS_fstat, SYS_newfstatat, SYS_fcntl, -1 };
    struct tracer tracer;
    int64_t took_ms = trace_pairs(&tracer, "pairs");
    long ticks = 2 * (took_ms / TICK_MS + 1);

    (void)state;
    print_message("# for %d pairs in %lld ms: %ld sends, %ld reads, %ld sleeps, %ld wake-ups, %ld checks\n", PAIRS,
                  (long long)took_ms, sum_of(&tracer, sends), sum_of(&tracer, receives), sum_of(&tracer, sleeps),
                  sum_of(&tracer, wakeups), sum_of(&tracer, checks));
    assert_true(sum_of(&tracer, sends) >= 2 * PAIRS);
    assert_true(sum_of(&tracer, sends) <= 2 * PAIRS + ticks);
    assert_true(sum_of(&tracer, receives) <= 2 * PAIRS + ticks);
    assert_true(sum_of(&tracer, sleeps) <= 2 * PAIRS + ticks);
    assert_true(sum_of(&tracer, wakeups) <= PAIRS / 10 + 2 * ticks);
    assert_true(sum_of(&tracer, checks) <= took_ms + ticks);
}

/* ---- statements -------------------------------------------------------------------------- */

/* Lines of the log that begin with `who` and have the text. */
static int count_logged_by(const char *who, const char *text)
{
    char path[64], line[4096];
    int count = 0;
    FILE *file;

    snprintf(path, sizeof path, "%s/log", server->folder);
    file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file))
        count += strncmp(line, who, strlen(who)) == 0 && strstr(line, text);
    fclose(file);
    return count;
}

static int count_logged(const char *text)
{
    return count_logged_by("", text);
}

static struct actor *start_with(const char *name)
{
    struct actor *actor = actor_start_at(url);

    actor_do(actor, "0", "init %s " LONG, name);
    return actor;
}

/* One whose commits do not wait for the disk. */
static struct actor *start_at_once_with(const char *name)
{
    struct actor *actor;
    char all[200];

    snprintf(all, sizeof all, "%s&options=-csynchronous_commit%%3Doff", url);
    actor = actor_start_at(all);
    actor_do(actor, "0", "init %s " LONG, name);
    return actor;
}

/* Changes with each swap of the name. */
static const char *version_of(const char *name)
{
    return pgserver_sql(server, "SELECT encode(version, 'hex') FROM dmutex.registers WHERE name = 'n/%s'", name);
}

/* Returns once the waiter is in the queue. */
static void send_waiter(struct actor *actor, const char *name)
{
    char before[64];

    snprintf(before, sizeof before, "%s", version_of(name));
    actor_send(actor, "lock %s", name);
    wait_until(strcmp(version_of(name), before) != 0);
}

static void hand_on(struct actor **holder, struct actor **waiter, const char *name)
{
    for (int i = 0; i < HANDOFFS; i++) {
        struct actor *former = *holder;

        actor_do(former, "0", "unlock %s", name);
        actor_expect(*waiter, "0");
        send_waiter(former, name);
        *holder = *waiter;
        *waiter = former;
    }
}

/*
 * Two processes hand a mutex to and fro.  Whoever has given it back stands in line by one swap of its copy, which is
 * new.  Whoever was granted it knows that somebody has swapped since, so its release reads first, and is not refused.
 * The first handoffs bring the rows along with swaps, because there was a conflict at the beginning.
 */
static void test_handoff_is_two_swaps_a_read_and_a_notice(void **state)
{
    struct actor *holder, *waiter;
    int updates, reads, tells;

    (void)state;
    pgserver_sql(server, "ALTER SYSTEM SET log_statement = 'all'");
    pgserver_sql(server, "SELECT pg_reload_conf()");
    holder = start_with("handed");
    waiter = start_with("handed");
    actor_do(holder, "0", "lock handed");
    send_waiter(waiter, "handed");
    hand_on(&holder, &waiter, "handed");
    updates = count_logged("execute dmutex_update");
    reads = count_logged("execute dmutex_read");
    tells = count_logged("execute dmutex_tell");
    hand_on(&holder, &waiter, "handed");
    updates = count_logged("execute dmutex_update") - updates;
    reads = count_logged("execute dmutex_read") - reads;
    tells = count_logged("execute dmutex_tell") - tells;
    print_message("# for %d handoffs: %d swaps, %d reads, %d notices\n", HANDOFFS, updates, reads, tells);
    assert_true(updates >= 2 * HANDOFFS && updates <= 2 * HANDOFFS + 2);
    assert_true(reads <= HANDOFFS + 2);
    assert_int_equal(tells, HANDOFFS);
    actor_do(holder, "0", "unlock handed");
    actor_expect(waiter, "0");
    actor_end(holder);
    actor_end(waiter);
}

/* Nobody waits for long for a commit that does not wait for the disk, so the swap sends the notice itself. */
static void test_handoff_has_no_transaction_for_the_notice_when_commits_do_not_wait(void **state)
{
    struct actor *holder, *waiter;
    int telling, updates;

    (void)state;
    pgserver_sql(server, "ALTER SYSTEM SET log_statement = 'all'");
    pgserver_sql(server, "SELECT pg_reload_conf()");
    holder = start_at_once_with("at-once");
    waiter = start_at_once_with("at-once");
    actor_do(holder, "0", "lock at-once");
    send_waiter(waiter, "at-once");
    hand_on(&holder, &waiter, "at-once");
    telling = count_logged("execute dmutex_update_telling");
    updates = count_logged("execute dmutex_update_told") + count_logged("execute dmutex_tell");
    hand_on(&holder, &waiter, "at-once");
    assert_int_equal(count_logged("execute dmutex_update_telling") - telling, HANDOFFS);
    assert_int_equal(count_logged("execute dmutex_update_told") + count_logged("execute dmutex_tell") - updates, 0);
    actor_do(holder, "0", "unlock at-once");
    actor_expect(waiter, "0");
    actor_end(holder);
    actor_end(waiter);
}

/*
 * A name that nobody has used is read, and in doubt, so the mark is read after it; then come the insertion and the swap
 * of the unlock.  All of them are prepared.  A beat of the session, and its read of the mark, may come on top.
 */
static void test_first_use_of_a_name_is_two_reads_and_two_swaps(void **state)
{
    struct actor *actor;
    int updates, reads, insertions;

    (void)state;
    pgserver_sql(server, "ALTER SYSTEM SET log_statement = 'all'");
    pgserver_sql(server, "SELECT pg_reload_conf()");
    actor = start_with("used");
    actor_do(actor, "0", "lock used");
    actor_do(actor, "0", "unlock used");
    updates = count_logged("execute dmutex_update");
    reads = count_logged("execute dmutex_read");
    insertions = count_logged("execute dmutex_insert");
    for (int i = 0; i < HANDOFFS; i++) {
        actor_do(actor, "0", "init new%d " LONG, i);
        actor_do(actor, "0", "lock new%d", i);
        actor_do(actor, "0", "unlock new%d", i);
    }
    updates = count_logged("execute dmutex_update") - updates;
    reads = count_logged("execute dmutex_read") - reads;
    insertions = count_logged("execute dmutex_insert") - insertions;
    print_message("# for %d new names: %d reads, %d insertions, %d updates\n", HANDOFFS, reads, insertions, updates);
    assert_int_equal(insertions, HANDOFFS);
    assert_true(updates >= HANDOFFS && updates <= HANDOFFS + 2);
    assert_true(reads >= 2 * HANDOFFS && reads <= 2 * HANDOFFS + 2);
    actor_end(actor);
}

/*
 * A newcomer locks a mutex that another process locks and unlocks as fast as it can.  Each of its locks is two swaps,
 * one to stand in line and one to unlock.  Either is refused once at most: then the server lets it wait in line.  A
 * beat of the session may come on top.
 */
static void test_newcomer_is_refused_once_at_most_when_another_process_never_pauses(void **state)
{
    struct actor *busy, *newcomer;
    char file[64], named[160];
    int swaps, most = 0;

    (void)state;
    pgserver_sql(server, "ALTER SYSTEM SET log_statement = 'all'");
    pgserver_sql(server, "ALTER SYSTEM SET log_line_prefix = '%%a '");
    pgserver_sql(server, "SELECT pg_reload_conf()");
    snprintf(named, sizeof named, "%s&application_name=newcomer", url);
    snprintf(file, sizeof file, "%s/busy", server->folder);
    actor_begin_count(file);
    busy = start_with("wanted");
    newcomer = actor_start_at(named);
    actor_do(newcomer, "0", "init wanted " LONG);
    actor_do(newcomer, "0", "lock wanted");
    actor_do(newcomer, "0", "unlock wanted");
    actor_send(busy, "count %s 1000000000 wanted", file);
    wait_until(actor_counted(file) > 10);
    for (int i = 0; i < NEWCOMERS; i++) {
        swaps = count_logged_by("newcomer", "execute dmutex_update");
        actor_do(newcomer, "0", "lock wanted");
        actor_do(newcomer, "0", "unlock wanted");
        swaps = count_logged_by("newcomer", "execute dmutex_update") - swaps;
        most = swaps > most ? swaps : most;
    }
    print_message("# at most %d swaps for each of %d locks; the other process had %lld\n", most, NEWCOMERS,
                  actor_counted(file));
    assert_true(most <= 2 * 2 + 1);
    actor_kill(busy);
    actor_end(newcomer);
}

/* Processes that lock, count and unlock at once, again and again. */
static void count_together(int count, const char *name)
{
    struct actor *actors[CROWD];
    int updates, reads, reserved, tells, locks = count * (2 * HANDOFFS);
    char file[64];

    snprintf(file, sizeof file, "%s/%s", server->folder, name);
    actor_begin_count(file);
    for (int i = 0; i < count; i++) {
        actors[i] = start_with(name);
        actor_do(actors[i], "0", "lock %s", name);
        actor_do(actors[i], "0", "unlock %s", name);
    }
    updates = count_logged("execute dmutex_update");
    reads = count_logged("execute dmutex_read");
    reserved = count_logged("execute dmutex_reserve");
    tells = count_logged("execute dmutex_tell");
    for (int i = 0; i < count; i++)
        actor_send(actors[i], "count %s %d %s", file, 2 * HANDOFFS, name);
    for (int i = 0; i < count; i++) {
        actor_expect(actors[i], "0");
        actor_end(actors[i]);
    }
    updates = count_logged("execute dmutex_update") - updates;
    reads = count_logged("execute dmutex_read") - reads;
    reserved = count_logged("execute dmutex_reserve") - reserved;
    tells = count_logged("execute dmutex_tell") - tells;
    print_message("# %d processes, %d locks: %d swaps, %d reads, %d reservations, %d notices\n", count, locks, updates,
                  reads, reserved, tells);
    assert_int_equal(actor_counted(file), locks);
    assert_true(updates <= 4 * locks);
}

/* Each lock is two swaps, and each of them is refused once at most. */
static void test_swaps_are_refused_once_at_most_when_many_want_one_name(void **state)
{
    (void)state;
    pgserver_sql(server, "ALTER SYSTEM SET log_statement = 'all'");
    pgserver_sql(server, "SELECT pg_reload_conf()");
    count_together(2, "two");
    count_together(CROWD, "crowd");
}

/* ---- memory ------------------------------------------------------------------------------ */

static size_t heap_bytes(void)
{
    struct mallinfo2 info = mallinfo2();

    return info.uordblks + info.hblkhd;
}

/* Holds names that nobody has used before.  Returns the bytes that they take while they are held. */
static size_t hold_many(dmutex_t *mutexes, const char *group)
{
    size_t before = heap_bytes(), held;
    dmutexattr_t attributes;
    char name[64];

    dmutexattr_init(&attributes);
    assert_int_equal(dmutexattr_setlease_np(&attributes, LONG_MS), 0);
    for (int i = 0; i < HOLDS; i++) {
        snprintf(name, sizeof name, "%s/%d", group, i);
        assert_int_equal(dmutexattr_setname_np(&attributes, name), 0);
        assert_int_equal(dmutex_init(&mutexes[i], &attributes), 0);
        assert_int_equal(dmutex_lock(&mutexes[i]), 0);
    }
    held = heap_bytes() - before;
    for (int i = 0; i < HOLDS; i++) {
        assert_int_equal(dmutex_unlock(&mutexes[i]), 0);
        assert_int_equal(dmutex_destroy(&mutexes[i]), 0);
    }
    dmutexattr_destroy(&attributes);
    return held;
}

/* A hold takes as much as its key and value, while it is not being renewed. */
static void test_many_holds_take_little_memory(void **state)
{
    dmutex_t *mutexes = calloc(HOLDS, sizeof *mutexes);
    size_t held;

    (void)state;
    assert_non_null(mutexes);
    assert_int_equal(dmutex_configure_np(url), 0);
    held = hold_many(mutexes, "first");
    print_message("# %zu bytes for a hold\n", held / HOLDS);
    assert_true(held / HOLDS <= 2000);
    free(mutexes);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pair_is_two_round_trips_when_nobody_else_wants_the_mutex),
        cmocka_unit_test(test_handoff_is_two_swaps_a_read_and_a_notice),
        cmocka_unit_test(test_first_use_of_a_name_is_two_reads_and_two_swaps),
        cmocka_unit_test(test_handoff_has_no_transaction_for_the_notice_when_commits_do_not_wait),
        cmocka_unit_test(test_newcomer_is_refused_once_at_most_when_another_process_never_pauses),
        cmocka_unit_test(test_swaps_are_refused_once_at_most_when_many_want_one_name),
        cmocka_unit_test(test_many_holds_take_little_memory),
    };

    test_begin(argc, argv);
    if (!pgserver_is_possible()) {
        puts("1..0 # SKIP no PostgreSQL is installed (package postgresql)");
        return 0;
    }
    return cmocka_run_group_tests(tests, setup, teardown);
}
