/* SPDX-License-Identifier: BSD-2-Clause */
/* The module that the library loads for the first URL of PostgreSQL: missing, of another version, or with a bad URL. */
#include <string.h>

#include "../lib/folder.h"
#include "../lib/testlib.h"

#define NOWHERE "postgresql:///?host=/nowhere&dmutex.command_timeout=100"

/* A folder with a library, without its module. */
static int setup(void **state)
{
    char library[4096];

    (void)state;
    keeper_make_folder(folder, sizeof folder);
    test_build_path(library, sizeof library, "libdmutex/.libs/libdmutex.so.0");
    command_run("cp %s %s && mkdir %s/libdmutex", library, folder, folder);
    assert_status(0);
    return 0;
}

/* Locks once, with the library of the build tree (""), or of a folder; the program prints the errno value and why. */
static void run(const char *library_path, const char *url)
{
    char program[4096];

    test_build_path(program, sizeof program, "tests/server/outsider");
    command_run("LD_LIBRARY_PATH=%s exec %s '%s' module/lock", library_path, program, url);
    assert_status(0);
}

/* A module in the folder that refuses every URL with a sentence. */
static void make_module(const char *sentence)
{
    command_run("%s -shared -fPIC -x c - -o %s/libdmutex/store-postgres.so <<'END'\n"
                "#include <stdio.h>\n"
                "void *dm_postgres_open(const char *version, const void *place, const void *client, char *reason)\n"
                "{ (void)version; (void)place; (void)client; sprintf(reason, \"%s\"); return 0; }\nEND\n",
                test_compiler(), folder, sentence);
    assert_status(0);
}

/* Without the package the URL is refused at once, and says what to install */
static void test_url_is_refused_when_the_module_is_missing(void **state)
{
    (void)state;
    run(folder, NOWHERE);
    assert_output(
        "22 The server's URL cannot be used: locks on PostgreSQL need a module, install libdmutex-postgres: ");
    assert_output("/libdmutex/store-postgres.so: cannot open shared object file");
}

/* After an update on the disk, in a process that still has the old library */
static void test_url_is_refused_when_the_module_is_of_another_version(void **state)
{
    (void)state;
    make_module("of version 99.9");
    run(folder, NOWHERE);
    assert_output("22 The server's URL cannot be used: of version 99.9");
    command_run("%s -shared -fPIC -x c /dev/null -o %s/libdmutex/store-postgres.so", test_compiler(), folder);
    run(folder, NOWHERE);
    assert_output("is no module of libdmutex: install libdmutex-postgres again");
}

/* libpq reads the URL only now, and what it does not take is no fault of the server */
static void test_url_is_refused_when_libpq_cannot_read_it(void **state)
{
    (void)state;
    run("", NOWHERE);
    assert_output("37 ");
    run("", "postgresql:///?host=/nowhere&no_such_option=1");
    assert_output("22 The server's URL cannot be used: option 2, \"no_such_option\", is neither libpq's nor ours");
    run("", "postgresql://host:secret%zz@/");
    assert_output("22 The server's URL cannot be used: libpq cannot read the URL");
    assert_null(strstr(ran.output, "secret"));
}

/* The installed program takes the module of its installation, and none of another folder or of the environment */
static void test_installed_program_takes_no_module_of_another_folder(void **state)
{
    char program[4096];

    (void)state;
    test_build_path(program, sizeof program, "tools/installed/dmutex");
    make_module("a stranger's");
    command_run("cd %s && mkdir bin && cp %s bin && cp libdmutex/store-postgres.so bin && cp -r libdmutex bin", folder,
                program);
    assert_status(0);
    command_run("cd %s/libdmutex && LD_LIBRARY_PATH=%s/libdmutex:%s DMUTEX_URL='%s' exec ../bin/dmutex run -w 1 n "
                "true",
                folder, folder, folder, NOWHERE);
    assert_status(69);
    assert_null(strstr(ran.errors, "stranger"));
    run(folder, NOWHERE);
    assert_output("a stranger's");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_url_is_refused_when_the_module_is_missing),
        cmocka_unit_test(test_url_is_refused_when_the_module_is_of_another_version),
        cmocka_unit_test(test_url_is_refused_when_libpq_cannot_read_it),
        cmocka_unit_test(test_installed_program_takes_no_module_of_another_folder),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, setup, folder_teardown);
}
