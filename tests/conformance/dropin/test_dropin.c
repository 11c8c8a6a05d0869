/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What <dmutex/pthread.h> does to a plain pthread program (visits.c): builds that name the program's static
 * initialisers exclude each other, builds without names do not. Each process is a new program, and only shares a file
 * with the others.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../lib/testlib.h"
#include "visits.h"

#define VISITS 300
#define TURNS 100
#define WORDS 4

/* The builds of visits.c. */
#define ANONYMOUS "visits_anonymous" /* only the header */
#define GROUP "visits_group"         /* DMUTEX_GROUP */
#define UNIT "visits_unit"           /* DMUTEX_GROUP and DMUTEX_UNIT */
#define NAMED "visits_named"         /* dmutexattr_setname_np() */
#define LONGEST "visits_longest"     /* a name of 200 bytes */

static char path[64];
static struct book *book;

/* A new book for each test. */
static int open_book(void **state)
{
    int file;

    (void)state;
    snprintf(path, sizeof path, "%s/book", the_server->folder);
    file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(file >= 0);
    assert_int_equal(ftruncate(file, sizeof *book), 0);
    book = mmap(NULL, sizeof *book, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    assert_ptr_not_equal(book, MAP_FAILED);
    close(file);
    return 0;
}

static int close_book(void **state)
{
    (void)state;
    munmap(book, sizeof *book);
    return 0;
}

/* Starts a build of visits.c; the command has up to WORDS words. */
static pid_t start(const char *build, const char *command)
{
    char program[4096], line[64], *arguments[WORDS + 3] = { program, path };
    pid_t pid = keeper_fork();
    int count = 2;

    if (pid > 0)
        return pid;
    snprintf(program, sizeof program, "%.*s/%s", (int)(strrchr(program_path, '/') - program_path), program_path, build);
    snprintf(line, sizeof line, "%s", command);
    for (char *word = strtok(line, " "); word && count < WORDS + 2; word = strtok(NULL, " "))
        arguments[count++] = word;
    execv(program, arguments);
    _exit(127);
}

/* The process's exit status, as the name of an errno value. */
static const char *end(pid_t pid)
{
    int status = keeper_reap(pid);

    return WIFEXITED(status) ? result_name(WEXITSTATUS(status)) : "killed";
}

#define assert_end(pid, wanted) assert_string_equal(end(pid), result_name(wanted))

/* While a process of one build is inside, a process of another looks: EBUSY, if the two are kept apart. */
static void check_look(const char *inside, const char *outside, const char *kind, int wanted)
{
    char stay[32], look[32];
    pid_t pid;

    snprintf(stay, sizeof stay, "%sstay", kind);
    snprintf(look, sizeof look, "%slook", kind);
    book->leave = 0;
    pid = start(inside, stay);
    wait_until(book->inside == 1);
    assert_end(start(outside, look), wanted);
    book->leave = 1;
    assert_end(pid, 0);
    assert_end(start(outside, look), 0);
}

static bool has_key(const char *pattern)
{
    return side_count_keys(the_server->side, pattern) == 1;
}

/* The numbers of a condition's waiters live three leases longer than the wait. */
static int forget_arrivals(void **state)
{
    static const char script[] = "return redis.call('DEL', unpack(redis.call('KEYS', '*:sleeper:*')))";

    assert_int_equal(side_int(the_server->side, "EVAL %s 0", script), 1);
    return close_book(state);
}

/* With a group: two processes of one build are never inside at once, and no visit is lost. */
static void test_a_group_excludes_when_a_program_is_started_twice(void **state)
{
    char come[32];
    pid_t a, b;

    (void)state;
    snprintf(come, sizeof come, "come %d", VISITS);
    a = start(GROUP, come);
    b = start(GROUP, come);
    assert_end(a, 0);
    assert_end(b, 0);
    assert_int_equal(book->overlaps, 0);
    assert_int_equal(book->visits, 2 * VISITS);
    check_look(GROUP, GROUP, "", EBUSY);
}

/* Without a group the same program's mutex is each process's own: both processes are inside at once. */
static void test_no_group_excludes_nobody_when_a_program_is_started_twice(void **state)
{
    pid_t a = start(ANONYMOUS, "overlap"), b = start(ANONYMOUS, "overlap");

    (void)state;
    assert_end(a, 0);
    assert_end(b, 0);
    assert_true(book->overlaps > 0);
    check_look(ANONYMOUS, ANONYMOUS, "", 0);
}

/* A signal of one process wakes the waiter of the other: each turn needs a signal. */
static void test_a_group_signals_when_a_program_is_started_twice(void **state)
{
    char turns[2][32];
    pid_t pids[2];

    (void)state;
    for (int who = 0; who < 2; who++) {
        snprintf(turns[who], sizeof turns[who], "turns %d %d", TURNS, who);
        pids[who] = start(GROUP, turns[who]);
    }
    assert_end(pids[0], 0);
    assert_end(pids[1], 0);
    assert_int_equal(book->visits, 2 * TURNS);
}

/* The k-th static initialiser of a unit has the group, the file's name, and k. */
static void test_the_names_are_group_file_and_number(void **state)
{
    pid_t pid = start(GROUP, "stay");

    (void)state;
    wait_until(book->inside == 1);
    assert_true(has_key("dmutex:{dropin}:lock:*visits.c%3A0"));
    assert_true(has_key("dmutex:{dropin}:lock:*visits.c%3A2"));
    assert_false(has_key("dmutex:{dropin}:lock:*%3A1"));
    book->leave = 1;
    assert_end(pid, 0);
    pid = start(GROUP, "turns 1 1");
    wait_until(has_key("dmutex:{dropin}:cond:*visits.c%3A1"));
    assert_end(start(GROUP, "turns 1 0"), 0);
    assert_end(pid, 0);
}

/* DMUTEX_UNIT is another word for the file's name, and so another mutex. */
static void test_a_unit_is_another_name_than_the_file(void **state)
{
    (void)state;
    check_look(UNIT, UNIT, "", EBUSY);
    check_look(UNIT, GROUP, "", 0);
    assert_true(has_key("dmutex:{dropin}:state:ledger%3A0"));
    assert_true(has_key("dmutex:{dropin}:state:ledger%3A2"));
}

/* A mutex made by pthread_mutex_init() is anonymous, unless one line names the mutex. */
static void test_a_made_mutex_is_named_by_one_line(void **state)
{
    (void)state;
    check_look(GROUP, GROUP, "made-", 0);
    check_look(NAMED, NAMED, "made-", EBUSY);
    assert_true(has_key("dmutex:{dropin}:state:set"));
}

/*
 * A condition works with a mutex of the other kind: the condition follows the mutex. Not with a private mutex of the
 * server, which has no group for a named condition.
 */
static void test_a_condition_follows_its_mutex_when_one_is_named(void **state)
{
    (void)state;
    assert_end(start(ANONYMOUS, "mixed"), 0);
    if (private_is_libc())
        assert_end(start(GROUP, "mixed"), 0);
}

/* A name of 200 bytes is a valid name. */
static void test_the_longest_name_excludes_when_a_program_is_started_twice(void **state)
{
    (void)state;
    check_look(LONGEST, LONGEST, "", EBUSY);
}

#define with_a_book(test) cmocka_unit_test_setup_teardown(test, open_book, close_book)
#define with_a_condition(test) cmocka_unit_test_setup_teardown(test, open_book, forget_arrivals)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        with_a_book(test_a_group_excludes_when_a_program_is_started_twice),
        with_a_book(test_no_group_excludes_nobody_when_a_program_is_started_twice),
        with_a_condition(test_a_group_signals_when_a_program_is_started_twice),
        with_a_condition(test_the_names_are_group_file_and_number),
        with_a_book(test_a_unit_is_another_name_than_the_file),
        with_a_book(test_a_made_mutex_is_named_by_one_line),
        with_a_book(test_a_condition_follows_its_mutex_when_one_is_named),
        with_a_book(test_the_longest_name_excludes_when_a_program_is_started_twice),
        cmocka_unit_test(test_nothing_is_left),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, test_group_setup, test_group_teardown);
}
