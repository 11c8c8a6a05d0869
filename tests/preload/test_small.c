/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads and handlers with small stacks, and cancelled threads, in programs under the module. */
#include <stdlib.h>
#include <unistd.h>

#include "programs.h"

#define NAMED "sym:small:named_lock => small/named"
#define EACH NAMED "; sym:small:inheriting_lock => small/inheriting; sym:small:other_lock => small/other"

static int build_small(void **state)
{
    int failed = programs_setup(state);
    char keeper[4096];

    if (failed)
        return failed;
    test_build_path(keeper, sizeof keeper, "preload/keeper/dmutex-keeper");
    setenv("DMUTEX_KEEPER", keeper, 1);
    setenv("DMUTEX_LOCAL_DIR", folder, 1);
    build("libshelf.so", "shelf.c", "-fPIC -shared");
    build("small", "small.c", "");
    build("finder", "small.c", "-Wl,-rpath,$folder");
    return 0;
}

static void assert_well(const char *rules, const char *command)
{
    run_under(rules, command);
    assert_status(0);
    assert_output("well");
}

/* The sanitizer's own calls need more room than these stacks have. */
static void assert_well_with_little_room(const char *rules, const char *command)
{
    if (!IS_ADDRESS_SANITIZED)
        assert_well(rules, command);
}

/* By path, by a name that libc finds, and by a name that only the program's own paths find. */
static void test_dlopen_has_room_when_the_stack_is_the_smallest(void **state)
{
    (void)state;
    assert_well_with_little_room(NAMED, "./small open ./libshelf.so");
    assert_well_with_little_room(NAMED, "./small open libm.so.6");
    assert_well_with_little_room("sym:finder:named_lock => small/named", "./finder open libshelf.so");
}

/* The library is opened, and connects. */
static void test_the_first_lock_has_room_when_the_stack_is_the_smallest(void **state)
{
    (void)state;
    assert_well_with_little_room(NAMED, "./small lock");
}

static void test_a_mutex_in_a_mapping_has_room_when_the_stack_is_the_smallest(void **state)
{
    char rule[256];

    (void)state;
    command_run("truncate -s 4096 %s/mapping", folder);
    snprintf(rule, sizeof rule, "map:%s/mapping+0 => small/mapped", folder);
    assert_well_with_little_room(rule, "./small shared ./mapping");
}

/* An alternate stack of 8 KiB, which the constant SIGSTKSZ was, has this much room besides the frame of AVX-512. */
static void test_flock_has_room_when_a_handler_has_a_small_stack(void **state)
{
    char rule[256];

    (void)state;
    snprintf(rule, sizeof rule, "flock:%1$s/small.lock => small/file; fcntl:%1$s/small.lock => small/range", folder);
    assert_well_with_little_room(rule, "./small flock ./small.lock");
}

/* The descriptors and mappings of a process whose first thread has ended can only be found through another thread. */
static void test_objects_are_found_when_the_first_thread_has_ended(void **state)
{
    dmutex_t in_file = DMUTEX_INITIALIZER("small/late"), in_mapping = DMUTEX_INITIALIZER("small/late-mapped");
    char rules[512];

    (void)state;
    command_run("truncate -s 4096 %s/late", folder);
    snprintf(rules, sizeof rules, "flock:%1$s/late => small/late; map:%1$s/late+0 => small/late-mapped", folder);
    assert_result(dmutex_lock(&in_file), 0);
    assert_result(dmutex_lock(&in_mapping), 0);
    assert_well_with_little_room(rules, "./small late ./late");
    assert_result(dmutex_unlock(&in_file), 0);
    assert_result(dmutex_unlock(&in_mapping), 0);
}

/* Attack K2: the thread left the module's lock locked, and each first use of a named object hung. */
static void test_a_first_use_goes_on_when_a_thread_was_cancelled_while_the_module_spoke(void **state)
{
    (void)state;
    assert_well(EACH, "./small cancel");
}

/*
 * Attack R8: the loader continues without a module that it does not find.  A namespace makes this process root, if it
 * is not.
 */
static void test_the_module_says_so_when_a_program_drops_it(void **state)
{
    (void)state;
    command_run("mkdir %s/root", folder);
    run_under(NAMED, geteuid() == 0 ? "chroot root /none" : "unshare -r chroot root /none");
    assert_status(127);
    assert_errors("are not distributed");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dlopen_has_room_when_the_stack_is_the_smallest),
        cmocka_unit_test(test_the_first_lock_has_room_when_the_stack_is_the_smallest),
        cmocka_unit_test(test_a_mutex_in_a_mapping_has_room_when_the_stack_is_the_smallest),
        cmocka_unit_test(test_flock_has_room_when_a_handler_has_a_small_stack),
        cmocka_unit_test(test_objects_are_found_when_the_first_thread_has_ended),
        cmocka_unit_test(test_a_first_use_goes_on_when_a_thread_was_cancelled_while_the_module_spoke),
        cmocka_unit_test(test_the_module_says_so_when_a_program_drops_it),
        cmocka_unit_test(test_nothing_is_left),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, build_small, programs_teardown);
}
