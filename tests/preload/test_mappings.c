/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Mutexes of an unchanged program in memory that processes share are named after the file and the offset in it. Two
 * programs with a file each represent two hosts.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "naming.h"

#define VISITS 200
#define REMAPS 3000
#define KIB_OF_ALL 1000 /* less than a record for each mapping */

#define test_of_program(test) cmocka_unit_test_setup(test, begin_test)

static char ring[80], other[80], shm_ring[32], shm_other[32];

/* Removes the files, so that each test begins with files never written to. */
static int begin_test(void **state)
{
    unlink(ring);
    unlink(other);
    shm_unlink(shm_ring);
    shm_unlink(shm_other);
    return forget_said(state);
}

static int build_all(void **state)
{
    if (programs_setup(state) != 0)
        return -1;
    build("legacy", LEGACY, "");
    snprintf(ring, sizeof ring, "%s/ring", folder);
    snprintf(other, sizeof other, "%s/other", folder);
    snprintf(shm_ring, sizeof shm_ring, "/dmutex-test-%d", (int)getpid());
    snprintf(shm_other, sizeof shm_other, "/dmutex-other-%d", (int)getpid());
    return 0;
}

static int end_all(void **state)
{
    return begin_test(state) || programs_teardown(state);
}

/* Starts a program that has mapped the file, with a name for the mutex at offset 0x40. */
static struct actor *start_with_file(const char *file, const char *settings)
{
    char rule[200];
    struct actor *actor;

    snprintf(rule, sizeof rule, "map:%s+0x40 => t/ring%s", file, settings);
    actor = start_program("legacy", rule, NULL);
    actor_do(actor, "0", "map %s", file);
    return actor;
}

/* ---- names ------------------------------------------------------------------------------- */

/* Two programs with a file each, as on two hosts, are never inside at once. */
static void test_two_exclude_each_other_when_each_has_a_file_of_its_own(void **state)
{
    struct actor *a = start_with_file(ring, ""), *b = start_with_file(other, "");
    char page[80];

    (void)state;
    snprintf(page, sizeof page, "%s/page", folder);
    actor_begin_count(page);
    actor_do(a, "0", "init mapped+64 shared");
    actor_do(b, "0", "init mapped+64 shared");
    actor_send(a, "count %s %d mapped+64", page, VISITS);
    actor_send(b, "count %s %d mapped+64", page, VISITS);
    actor_expect(a, "0");
    actor_expect(b, "0");
    assert_int_equal(actor_counted(page), 2 * VISITS);
    actor_end(a);
    actor_end(b);
    assert_string_equal(said(), "");
}

/* A mutex is named in a process that has not made the mutex, because the mutex's type lies in the memory. */
static void test_a_mutex_is_named_when_another_process_has_made_it(void **state)
{
    struct actor *a = start_with_file(ring, ""), *b = start_with_file(ring, "");

    (void)state;
    actor_do(a, "0", "init mapped+64 shared errorcheck");
    check_named(b, "mapped+64", "t/ring");
    actor_do(b, "0", "lock mapped+64");
    actor_do(b, "EDEADLK", "lock mapped+64");
    actor_do(a, "EBUSY", "trylock mapped+64");
    actor_do(b, "0", "unlock mapped+64");
    actor_end(a);
    actor_end(b);
}

/* A mutex in memory of shm_open() is named by the name that the program gives to shm_open(). */
static void test_a_mutex_is_named_when_it_is_in_posix_shared_memory(void **state)
{
    char rule[200];
    struct actor *actor;

    (void)state;
    snprintf(rule, sizeof rule, "shm:%s+64 => t/shm; shm:%s+4096 => t/second", shm_ring, shm_ring);
    actor = start_program("legacy", rule, NULL);
    actor_do(actor, "0", "shm %s", shm_ring);
    actor_do(actor, "0", "init mapped+64 shared");
    actor_do(actor, "0", "init mapped+4096 shared");
    check_named(actor, "mapped+64", "t/shm");
    check_named(actor, "mapped+4096", "t/second");
    actor_end(actor);
}

/* A mutex at another offset, in other memory, or not process-shared, is the program's own. */
static void test_a_mutex_is_local_when_no_rule_names_its_place(void **state)
{
    struct actor *actor = start_with_file(ring, "");

    (void)state;
    actor_do(actor, "0", "init mapped+256 shared");
    check_local(actor, "mapped+256");
    actor_do(actor, "0", "init mapped+64");
    check_local(actor, "mapped+64");
    actor_do(actor, "0", "init made_lock shared");
    check_local(actor, "made_lock");
    actor_do(actor, "0 0", "has libdmutex.so");
    actor_end(actor);
}

/* A mutex in a file without a name is local, because no rule can match. */
static void test_a_mutex_is_local_when_its_file_is_deleted(void **state)
{
    struct actor *actor = start_with_file(ring, "");

    (void)state;
    assert_return_code(unlink(ring), errno);
    actor_do(actor, "0", "init mapped+64 shared");
    check_local(actor, "mapped+64");
    actor_end(actor);
}

/* ---- memory that ends -------------------------------------------------------------------- */

/* The same address with another file is another mutex; with the first file again, the first mutex. */
static void test_a_name_goes_with_its_mapping_when_the_address_is_used_again(void **state)
{
    struct actor *actor = start_with_file(ring, "");

    (void)state;
    for (int i = 0; i < 3; i++) {
        actor_do(actor, "0", "init mapped+64 shared");
        check_named(actor, "mapped+64", "t/ring");
        actor_do(actor, "0", "unmap");
        actor_do(actor, "0", "map %s", other);
        actor_do(actor, "0", "init mapped+64 shared");
        check_local(actor, "mapped+64");
        actor_do(actor, "0", "unmap");
        actor_do(actor, "0", "map %s", ring);
    }
    actor_end(actor);
}

/* A name in the last page ends with the page, also if munmap() was given only a part of the page. */
static void test_a_name_goes_with_its_page_when_a_part_of_that_is_unmapped(void **state)
{
    char rule[200], object[32];
    struct actor *actor;
    long page = sysconf(_SC_PAGESIZE);

    (void)state;
    snprintf(object, sizeof object, "mapped+%ld", page + 512);
    snprintf(rule, sizeof rule, "map:%s+%ld => t/ring", ring, page + 512);
    actor = start_program("legacy", rule, NULL);
    actor_do(actor, "0", "map %s", ring);
    actor_do(actor, "0", "init %s shared", object);
    check_named(actor, object, "t/ring");
    actor_do(actor, "0", "unmap %ld", page + 1);
    actor_do(actor, "0", "map %s", other);
    actor_do(actor, "0", "init %s shared", object);
    check_local(actor, object);
    actor_end(actor);
}

/* A program that keeps mapping and unmapping does not grow. */
static void test_memory_does_not_grow_when_mappings_come_and_go(void **state)
{
    struct actor *actor;
    long long before;

    (void)state;
    if (is_sanitized())
        return;
    actor = start_with_file(ring, "");
    actor_do(actor, "0", "init mapped+64 shared");
    actor_do(actor, "0", "init mapped+256 shared");
    actor_do(actor, "0", "remaps %s 10 mapped+64", ring);
    before = actor_value(actor, "memory");
    actor_do(actor, "0", "remaps %s %d mapped+64", ring, REMAPS);
    actor_do(actor, "0", "remaps %s %d mapped+256", ring, REMAPS);
    assert_within(actor_value(actor, "memory"), 0, before + KIB_OF_ALL);
    actor_end(actor);
}

/* ---- owners that die --------------------------------------------------------------------- */

/* The next owner of a robust mutex learns that the owner was killed, even if each process has its own file. */
static void test_the_next_learns_when_an_owner_of_a_robust_mutex_is_killed(void **state)
{
    struct actor *a = start_with_file(ring, " lease=300"), *b = start_with_file(other, " lease=300");

    (void)state;
    actor_do(a, "0", "init mapped+64 shared robust");
    actor_do(b, "0", "init mapped+64 shared robust");
    actor_do(a, "0", "lock mapped+64");
    actor_send(b, "lock mapped+64");
    actor_kill(a);
    actor_expect(b, "EOWNERDEAD");
    actor_do(b, "0", "consistent mapped+64");
    actor_do(b, "0", "unlock mapped+64");
    actor_do(b, "0", "lock mapped+64");
    actor_do(b, "0", "unlock mapped+64");
    actor_end(a);
    actor_end(b);
}

/* A robust mutex that is unlocked without being made consistent is not recoverable. */
static void test_a_robust_mutex_is_lost_when_nobody_makes_it_consistent(void **state)
{
    struct actor *a = start_with_file(ring, " lease=300"), *b = start_with_file(other, " lease=300");

    (void)state;
    actor_do(a, "0", "init mapped+64 shared robust");
    actor_do(b, "0", "init mapped+64 shared robust");
    actor_do(a, "0", "lock mapped+64");
    actor_kill(a);
    actor_do(b, "EOWNERDEAD", "lock mapped+64");
    actor_do(b, "0", "unlock mapped+64");
    actor_do(b, "ENOTRECOVERABLE", "lock mapped+64");
    actor_end(a);
    actor_end(b);
}

/* ---- conditions -------------------------------------------------------------------------- */

/* A signal on a named condition in a mapping arrives in a process with another file. */
static void test_a_signal_arrives_when_a_condition_in_a_mapping_is_named(void **state)
{
    struct actor *sides[2];
    const char *files[2] = { ring, other };
    char number[80];

    (void)state;
    snprintf(number, sizeof number, "%s/number", folder);
    for (int i = 0; i < 2; i++) {
        char rules[300];

        snprintf(rules, sizeof rules, "map:%s+64 => m/x; cond:map:%s+128 => m/c", files[i], files[i]);
        sides[i] = start_program("legacy", rules, NULL);
        actor_do(sides[i], "0", "map %s", files[i]);
        actor_do(sides[i], "0", "init mapped+64 shared");
        actor_do(sides[i], "0", "cinit mapped+128 shared");
    }
    command_run("echo 0 >%s", number);
    actor_send(sides[0], "until mapped+128 mapped+64 %s 1", number);
    wait_until(side_int(the_server->side, "ZCARD dmutex:{m}:cond:c") == 1);
    actor_do(sides[1], "0", "put mapped+128 mapped+64 %s 1", number);
    actor_expect(sides[0], "0");
    for (int i = 0; i < 2; i++)
        actor_end(sides[i]);
    assert_string_equal(said(), "");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        test_of_program(test_two_exclude_each_other_when_each_has_a_file_of_its_own),
        test_of_program(test_a_mutex_is_named_when_another_process_has_made_it),
        test_of_program(test_a_mutex_is_named_when_it_is_in_posix_shared_memory),
        test_of_program(test_a_mutex_is_local_when_no_rule_names_its_place),
        test_of_program(test_a_mutex_is_local_when_its_file_is_deleted),
        test_of_program(test_a_name_goes_with_its_mapping_when_the_address_is_used_again),
        test_of_program(test_a_name_goes_with_its_page_when_a_part_of_that_is_unmapped),
        test_of_program(test_memory_does_not_grow_when_mappings_come_and_go),
        test_of_program(test_the_next_learns_when_an_owner_of_a_robust_mutex_is_killed),
        test_of_program(test_a_robust_mutex_is_lost_when_nobody_makes_it_consistent),
        test_of_program(test_a_signal_arrives_when_a_condition_in_a_mapping_is_named),
        cmocka_unit_test(test_nothing_is_left),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, build_all, end_all);
}
