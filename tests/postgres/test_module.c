/* SPDX-License-Identifier: BSD-2-Clause */
/* The module that the library loads for the first URL of PostgreSQL: missing, of another version, or with a bad URL. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/folder.h"
#include "../lib/testlib.h"
#include "../registers/pgserver.h"

#define NOWHERE "postgresql:///?host=/nowhere&dmutex.command_timeout=100"

static struct pgserver *server;

/* A folder with a library, without its module. */
static int setup(void **state)
{
    char library[4096];

    (void)state;
    keeper_make_folder(folder, sizeof folder);
    test_build_path(library, sizeof library, "libdmutex/.libs/libdmutex.so.0");
    command_run("cp %s %s && mkdir %s/libdmutex", library, folder, folder);
    assert_status(0);
    command_run("echo 'void constructed(void);\n"
                "__attribute__((constructor)) static void begin(void) { constructed(); }\n"
                "' | %s -shared -fPIC -x c - -o %s/constructed.so",
                test_compiler(), folder);
    assert_status(0);
    server = pgserver_start();
    return 0;
}

static int teardown(void **state)
{
    pgserver_end(server);
    return folder_teardown(state);
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
                "void dm_postgres_examine(void) {}\n"
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

/* HOW as in_constructor says. */
static void run_in_constructor(const char *how)
{
    char program[4096];

    test_build_path(program, sizeof program, "tests/server/in_constructor");
    command_run("exec %s '%s&dmutex.grace=off' lock %s/constructed.so %s", program, server->url, folder, how);
    assert_status(0);
}

/* The thread that is in dlopen() waits for the lock, and no other can load the module. */
static void test_a_constructor_locks_when_dlopen_runs_it(void **state)
{
    (void)state;
    run_in_constructor("lock");
    assert_string_equal(ran.output, "0 \n");
}

/* The first thread makes what both need, and waits for the second in dlopen(). */
static void test_a_constructor_locks_when_another_thread_is_loading_the_module(void **state)
{
    (void)state;
    run_in_constructor("both");
    assert_string_equal(ran.output, "0 \n0 \n");
}

/* It leaves the load to another thread, because dlopen() knows no deadline. */
static void test_a_constructor_is_told_why_when_its_lock_has_a_deadline(void **state)
{
    (void)state;
    run_in_constructor("timed");
    assert_output("the module of PostgreSQL cannot be loaded: another thread of this program is in dlopen() for so "
                  "long");
}

/* The deadline is that of the kernel's wall clock, also if the process sees another one in between. */
static void test_a_call_is_late_by_the_clock_that_it_waited_for(void **state)
{
    const int64_t ahead_s = -1200;
    char skew[4096], path[128];
    FILE *file;

    (void)state;
    test_build_path(skew, sizeof skew, "tests/chaos/.libs/skew.so");
    snprintf(path, sizeof path, "%s/ahead", folder);
    file = fopen(path, "we");
    assert_non_null(file);
    fwrite(&ahead_s, sizeof ahead_s, 1, file);
    fclose(file);
    setenv("LD_PRELOAD", skew, 1);
    setenv("DMUTEX_TEST_SKEW", path, 1);
    run_in_constructor("wall");
    unsetenv("LD_PRELOAD");
    unsetenv("DMUTEX_TEST_SKEW");
    assert_output("the module of PostgreSQL cannot be loaded: another thread of this program is in dlopen() for so "
                  "long");
    assert_int_equal(atoi(ran.output), ETIMEDOUT);
}

/* The fork waits for the load, which waits for the thread that forks. */
static void test_a_constructor_forks_when_another_thread_is_loading_the_module(void **state)
{
    (void)state;
    run_in_constructor("fork");
    assert_string_equal(ran.output, "forked 0\n0 \n");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_url_is_refused_when_the_module_is_missing),
        cmocka_unit_test(test_url_is_refused_when_the_module_is_of_another_version),
        cmocka_unit_test(test_url_is_refused_when_libpq_cannot_read_it),
        cmocka_unit_test(test_installed_program_takes_no_module_of_another_folder),
        cmocka_unit_test(test_a_constructor_locks_when_dlopen_runs_it),
        cmocka_unit_test(test_a_constructor_locks_when_another_thread_is_loading_the_module),
        cmocka_unit_test(test_a_constructor_is_told_why_when_its_lock_has_a_deadline),
        cmocka_unit_test(test_a_call_is_late_by_the_clock_that_it_waited_for),
        cmocka_unit_test(test_a_constructor_forks_when_another_thread_is_loading_the_module),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, setup, teardown);
}
