/* SPDX-License-Identifier: BSD-2-Clause */
/* preload/module/names/maps: the file that is mapped at an address, and the rule for a place in the file. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../lib/testlib.h"
#include "module/base/settings.h"
#include "module/names/maps.h"

static char folder[64], file[80], found[MAPS_PATH_ROOM];
static char rules_folder[64]; /* the folder in the rules */
static char *memory;
static size_t page;

/* Makes a file of two pages, and maps the second page. */
static int map_file(void **state)
{
    int fd;

    (void)state;
    page = (size_t)sysconf(_SC_PAGESIZE);
    keeper_make_folder(folder, sizeof folder);
    snprintf(file, sizeof file, "%s/a b", folder);
    fd = open(file, O_RDWR | O_CREAT, 0600);
    assert_return_code(ftruncate(fd, 2 * (off_t)page), errno);
    memory = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)page);
    assert_ptr_not_equal(memory, MAP_FAILED);
    close(fd);
    return 0;
}

static int unmap_file(void **state)
{
    (void)state;
    keeper_remove_folder(folder);
    return munmap(memory, page);
}

/* A mapped file is found, with the offset in the file, not in the mapping; a path may have blanks. */
static void test_a_file_is_found_when_it_is_mapped(void **state)
{
    uint64_t offset = 0;

    (void)state;
    errno = EXDEV;
    assert_true(maps_find(memory, found, &offset));
    assert_string_equal(found, file);
    assert_int_equal(offset, page);
    assert_true(maps_find(memory + page - 1, found, &offset));
    assert_int_equal(offset, 2 * page - 1);
    assert_int_equal(errno, EXDEV);
}

/* No file is found for heap, stack, an unmapped address, and a deleted file. */
static void test_no_file_is_found_when_the_memory_has_none(void **state)
{
    char *heap = malloc(1), *other = mmap(NULL, page, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    uint64_t offset;

    (void)state;
    assert_false(maps_find(heap, found, &offset));
    assert_false(maps_find(&offset, found, &offset));
    assert_false(maps_find(other, found, &offset));
    munmap(other, page);
    assert_false(maps_find(other, found, &offset));
    assert_false(maps_find(NULL, found, &offset));
    free(heap);
    assert_return_code(unlink(file), errno);
    assert_false(maps_find(memory, found, &offset));
    assert_int_equal(close(open(file, O_RDWR | O_CREAT, 0600)), 0);
    assert_false(maps_find(memory, found, &offset));
}

/* A file is found among more mappings than a buffer of lines holds, with long paths. */
static void test_a_file_is_found_when_there_are_many_mappings(void **state)
{
    enum { MANY = 600 };
    char long_path[300], *maps[MANY];
    uint64_t offset;
    int fd;

    (void)state;
    snprintf(long_path, sizeof long_path, "%s/%0200d", folder, 1);
    fd = open(long_path, O_RDWR | O_CREAT, 0600);
    assert_return_code(ftruncate(fd, 2 * (off_t)page), errno);
    for (int i = 0; i < MANY; i++)
        maps[i] = mmap(NULL, page, PROT_READ, MAP_SHARED, fd, i % 2 ? (off_t)page : 0);
    close(fd);
    for (int i = 0; i < MANY; i += 37) {
        assert_true(maps_find(maps[i] + 8, found, &offset));
        assert_string_equal(found, long_path);
        assert_int_equal(offset, (i % 2 ? page : 0) + 8);
    }
    for (int i = 0; i < MANY; i++)
        munmap(maps[i], page);
}

/* ---- rules ------------------------------------------------------------------------------- */

static const char *rule_of(const char *path, uint64_t offset, bool is_condition)
{
    const struct rule *rule = maps_rule(path, offset, is_condition);

    return rule ? rule->name : NULL;
}

/* A rule is found if path, offset and kind are the rule's; of two rules the first counts. */
static void test_a_rule_is_found_when_all_is_its_own(void **state)
{
    (void)state;
    assert_string_equal(rule_of("/dev/shm/ring", 64, false), "a");
    assert_null(rule_of("/dev/shm/ring", 65, false));
    assert_null(rule_of("/dev/shm/ring2", 64, false));
    assert_null(rule_of("/ring", 64, false));
    assert_null(rule_of("/dev/shm/ring", 64, true));
    assert_string_equal(rule_of("/dev/shm/ring", 128, true), "b");
    assert_string_equal(rule_of("/no/such/file", 0, false), "c");
}

/* A rule may name a link: the kernel reports the link's target. */
static void test_a_rule_is_found_when_it_says_a_link(void **state)
{
    char link_path[100];

    (void)state;
    snprintf(link_path, sizeof link_path, "%s/link", rules_folder);
    assert_null(rule_of(file, 8, false));
    assert_return_code(symlink(file, link_path), errno);
    assert_string_equal(rule_of(file, 8, false), "e");
    assert_string_equal(rule_of(link_path, 8, false), "e");
    assert_null(rule_of(file, 9, false));
}

/* Sets the rules for all tests of this program, because the rules are read only once. */
static int set_rules(void **state)
{
    char rules[400];

    (void)state;
    keeper_make_folder(rules_folder, sizeof rules_folder);
    snprintf(rules, sizeof rules,
             "shm:/ring+64 => a; cond:shm:/ring+128 => b; map:/no/such/file+0 => c; shm:/ring+64 => d;"
             "map:%s/link+8 => e; sym:a:b => f",
             rules_folder);
    setenv("DMUTEX_MAP", rules, 1);
    assert_int_equal(settings_get()->count, 6);
    assert_true(settings_get()->has_mappings);
    return 0;
}

static int remove_rules(void **state)
{
    (void)state;
    keeper_remove_folder(rules_folder);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_file_is_found_when_it_is_mapped, map_file, unmap_file),
        cmocka_unit_test_setup_teardown(test_no_file_is_found_when_the_memory_has_none, map_file, unmap_file),
        cmocka_unit_test_setup_teardown(test_a_file_is_found_when_there_are_many_mappings, map_file, unmap_file),
        cmocka_unit_test(test_a_rule_is_found_when_all_is_its_own),
        cmocka_unit_test_setup_teardown(test_a_rule_is_found_when_it_says_a_link, map_file, unmap_file),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, set_rules, remove_rules);
}
