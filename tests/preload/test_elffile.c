/* SPDX-License-Identifier: BSD-2-Clause */
/* preload/shared/elffile: symbols and build-ids of programs that the test compiles, and of garbage. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../unit/random.h"
#include "programs.h"
#include "shared/elffile.h"

#define SOURCES "symbols.c symbols_again.c"
#define ID "aabbccddeeff00112233445566778899aabbccdd"
#define WITH_ID "-Wl,--build-id=0x" ID

static char path[128];

/* The path of a file in the folder. */
static const char *at(const char *name)
{
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

/* Sets the folder of debug files. */
static void set_debug_folder(const char *name)
{
    static char debug[80];

    snprintf(debug, sizeof debug, "%s/%s", folder, name);
    elf_debug_folder = debug;
}

/* The value that nm prints of a symbol; the file has only one symbol of the name. */
static uint64_t offset_by_nm(const char *file, const char *symbol)
{
    command_run("nm %s | awk '$3 == \"%s\" { print $1 }'", file, symbol);
    assert_status(0);
    assert_int_equal(strlen(ran.output), 17);
    return strtoull(ran.output, NULL, 16);
}

static void check_found(const char *name, const char *symbol)
{
    uint64_t offset = 1, wanted = offset_by_nm(at(name), symbol);

    assert_int_equal(elf_find_symbol(at(name), symbol, &offset), ELF_FOUND);
    assert_int_equal(offset, wanted);
}

static void check_not_found(const char *name, const char *symbol, enum elf_found why)
{
    uint64_t offset = 7;

    assert_int_equal(elf_find_symbol(at(name), symbol, &offset), why);
    assert_int_equal(offset, 7);
}

/* ---- programs ---------------------------------------------------------------------------- */

static int build_all(void **state)
{
    if (folder_setup(state) != 0)
        return -1;
    build("pie", SOURCES, "-fPIE -pie " WITH_ID);
    build("fixed", SOURCES, "-fno-pie -no-pie -Wl,--build-id=none");
    build("exporting", SOURCES, "-rdynamic -Wl,--build-id=0xab");
    command_run("cd %s && strip -o stripped pie && strip exporting && mkdir -p debug/aa && "
                "objcopy --only-keep-debug pie debug/aa/%s.debug",
                folder, &ID[2]);
    assert_status(0);
    return 0;
}

/* Global and static variables, with values or without, are found, in position-independent and fixed programs. */
static void test_a_symbol_is_found_when_it_is_a_variable(void **state)
{
    static const char *const names[] = { "global_lock", "alias_lock", "only_lock", "zero_lock", "box_lock" };

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        check_found("pie", names[i]);
        check_found("fixed", names[i]);
    }
}

/* A symbol that is no variable is not found, nor a name that two variables have. */
static void test_a_symbol_is_not_found_when_it_is_none_that_may_be_meant(void **state)
{
    (void)state;
    check_not_found("pie", "main", ELF_NO_OBJECT);
    check_not_found("pie", "thread_lock", ELF_NO_OBJECT);
    check_not_found("pie", "constant_lock", ELF_NO_OBJECT);
    check_not_found("pie", "twice_lock", ELF_NOT_UNIQUE);
    check_not_found("pie", "pthread_mutex_trylock", ELF_NO_SYMBOL);
    check_not_found("pie", "pthread_mutex_t", ELF_NO_SYMBOL);
    check_not_found("stripped", "global_lock", ELF_NO_SYMBOL);
    check_not_found("exporting", "only_lock", ELF_NO_SYMBOL);
}

/* Nothing is found in a missing file, nor in a file that is not ELF. */
static void test_nothing_is_found_when_there_is_no_elf_file(void **state)
{
    FILE *file = fopen(at("text"), "w");

    (void)state;
    fputs("#!/bin/sh\n", file);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(fclose(fopen(at("empty"), "w")), 0);
    check_not_found("text", "x", ELF_NO_FILE);
    check_not_found("empty", "x", ELF_NO_FILE);
    check_not_found("nothing", "x", ELF_NO_FILE);
    check_not_found(".", "x", ELF_NO_FILE);
}

/* An exported symbol is found in a stripped program, because strip leaves .dynsym. */
static void test_a_symbol_is_found_when_a_stripped_program_exports_it(void **state)
{
    uint64_t offset = 0, copy = 0;

    (void)state;
    assert_int_equal(elf_find_symbol(at("exporting"), "global_lock", &offset), ELF_FOUND);
    assert_true(elf_find_copy(at("exporting"), "global_lock", &copy));
    assert_int_equal(offset, copy);
    assert_false(elf_find_copy(at("exporting"), "only_lock", &copy));
    assert_false(elf_find_copy(at("pie"), "global_lock", &copy));
}

/* ---- debug files ------------------------------------------------------------------------- */

/* A stripped symbol is found in the debug file of the same build-id, and nowhere else. */
static void test_a_symbol_is_found_when_the_debug_file_has_it(void **state)
{
    (void)state;
    set_debug_folder("debug");
    for (const char *const *name = (const char *const[]){ "global_lock", "only_lock", "box_lock", NULL }; *name;
         name++) {
        uint64_t offset = 0, wanted = offset_by_nm(at("pie"), *name);

        assert_int_equal(elf_find_symbol(at("stripped"), *name, &offset), ELF_FOUND);
        assert_int_equal(offset, wanted);
    }
    check_not_found("stripped", "twice_lock", ELF_NOT_UNIQUE);
    check_not_found("stripped", "thread_lock", ELF_NO_OBJECT);
    check_not_found("stripped", "none", ELF_NO_SYMBOL);
    elf_debug_folder = "/nowhere";
    check_not_found("stripped", "global_lock", ELF_NO_SYMBOL);
}

/* A debug file at the right place is ignored if it has another build-id, or is garbage. */
static void test_no_symbol_is_found_when_the_debug_file_is_of_another_build(void **state)
{
    (void)state;
    set_debug_folder("other");
    command_run("cd %s && mkdir -p other/aa && cp fixed other/aa/%s.debug", folder, &ID[2]);
    assert_status(0);
    check_not_found("stripped", "global_lock", ELF_NO_SYMBOL);
    command_run("cd %s && cp text other/aa/%s.debug", folder, &ID[2]);
    assert_status(0);
    check_not_found("stripped", "global_lock", ELF_NO_SYMBOL);
}

/* ---- names of offsets -------------------------------------------------------------------- */

static const char *name_at(const char *file, uint64_t offset)
{
    static char name[64];

    return elf_name_offset(at(file), offset, name, sizeof name) ? name : NULL;
}

/* An offset gets the name of the symbol that covers the offset, with the distance from the symbol's beginning. */
static void test_an_offset_has_a_name_when_a_symbol_covers_it(void **state)
{
    uint64_t box = offset_by_nm(at("pie"), "box_lock"), only = offset_by_nm(at("pie"), "only_lock");

    (void)state;
    assert_string_equal(name_at("pie", only), "only_lock");
    assert_string_equal(name_at("pie", box), "box_lock");
    assert_string_equal(name_at("pie", box + 16), "box_lock+0x10");
    assert_string_equal(name_at("pie", box + 55), "box_lock+0x37");
    assert_null(name_at("pie", 0x7fffffff));
    assert_null(name_at("pie", UINT64_MAX));
    assert_null(name_at("pie", offset_by_nm(at("pie"), "main")));
    elf_debug_folder = "/nowhere";
    assert_null(name_at("stripped", only));
    assert_null(name_at("nothing", only));
}

/* An offset has no name if the name does not fit. */
static void test_an_offset_has_no_name_when_it_does_not_fit(void **state)
{
    uint64_t only = offset_by_nm(at("pie"), "only_lock");
    char name[9];

    (void)state;
    assert_false(elf_name_offset(at("pie"), only, name, sizeof name));
}

/* ---- build-ids --------------------------------------------------------------------------- */

/* A build-id of any length is read, also if nothing follows; a program without a build-id has none. */
static void test_a_build_id_is_read_when_there_is_one(void **state)
{
    char id[ELF_BUILD_ID_ROOM] = "x";

    (void)state;
    assert_true(elf_build_id(at("pie"), id));
    assert_string_equal(id, ID);
    assert_true(elf_build_id(at("stripped"), id));
    assert_string_equal(id, ID);
    assert_true(elf_build_id(at("exporting"), id));
    assert_string_equal(id, "ab");
    assert_false(elf_build_id(at("fixed"), id));
    assert_string_equal(id, "");
    assert_false(elf_build_id(at("nothing"), id));
}

/* ---- garbage ----------------------------------------------------------------------------- */

static void ask_all(const char *file)
{
    char id[ELF_BUILD_ID_ROOM], name[32];
    uint64_t offset;

    elf_find_symbol(file, "global_lock", &offset);
    elf_find_symbol(file, "none", &offset);
    elf_find_copy(file, "global_lock", &offset);
    elf_name_offset(file, 0x4040, name, sizeof name);
    elf_build_id(file, id);
}

static char *read_all(const char *file, size_t *ret_size)
{
    FILE *from = fopen(file, "r");
    struct stat status;
    char *bytes;

    assert_non_null(from);
    assert_return_code(fstat(fileno(from), &status), errno);
    *ret_size = (size_t)status.st_size;
    bytes = malloc(*ret_size);
    assert_int_equal(fread(bytes, 1, *ret_size, from), *ret_size);
    fclose(from);
    return bytes;
}

static void write_all(const char *file, const char *bytes, size_t size)
{
    FILE *to = fopen(file, "w");

    assert_non_null(to);
    assert_int_equal(fwrite(bytes, 1, size, to), size);
    assert_int_equal(fclose(to), 0);
}

/* A file that is cut off anywhere is read without a crash. */
static void test_a_file_is_read_when_it_ends_anywhere(void **state)
{
    size_t size;
    char *bytes = read_all(at("exporting"), &size);

    (void)state;
    elf_debug_folder = "/nowhere";
    for (size_t length = 1; length < size; length += 1 + length / 50) {
        write_all(at("cut"), bytes, length);
        ask_all(at("cut"));
    }
    free(bytes);
}

/* A file with wrong numbers is read without a crash: places, counts and sizes of the file's parts. */
static void test_a_file_is_read_when_its_numbers_are_wrong(void **state)
{
    size_t size, sections;
    char *bytes = read_all(at("exporting"), &size), *changed = malloc(size);

    (void)state;
    memcpy(&sections, bytes + 40, sizeof sections); /* e_shoff */
    assert_within(sections, 64, size);
    for (int round = 0; round < rounds(3000); round++) {
        memcpy(changed, bytes, size);
        for (unsigned i = 0; i < 1 + random_below(4); i++) {
            size_t where =
                random_below(2) ? 16 + random_below(1200) : sections + random_below((unsigned)(size - sections));
            uint64_t number = random_below(3) ? random_word() : random_below((unsigned)size + 64);
            size_t width = (size_t)1 << random_below(4);

            memcpy(changed + (where + 8 > size ? size - 8 : where), &number, width);
        }
        write_all(at("changed"), changed, size);
        ask_all(at("changed"));
    }
    free(changed);
    free(bytes);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_symbol_is_found_when_it_is_a_variable),
        cmocka_unit_test(test_a_symbol_is_not_found_when_it_is_none_that_may_be_meant),
        cmocka_unit_test(test_nothing_is_found_when_there_is_no_elf_file),
        cmocka_unit_test(test_a_symbol_is_found_when_a_stripped_program_exports_it),
        cmocka_unit_test(test_a_symbol_is_found_when_the_debug_file_has_it),
        cmocka_unit_test(test_no_symbol_is_found_when_the_debug_file_is_of_another_build),
        cmocka_unit_test(test_an_offset_has_a_name_when_a_symbol_covers_it),
        cmocka_unit_test(test_an_offset_has_no_name_when_it_does_not_fit),
        cmocka_unit_test(test_a_build_id_is_read_when_there_is_one),
        cmocka_unit_test(test_a_file_is_read_when_it_ends_anywhere),
        cmocka_unit_test(test_a_file_is_read_when_its_numbers_are_wrong),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, build_all, folder_teardown);
}
