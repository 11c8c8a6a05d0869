/* SPDX-License-Identifier: BSD-2-Clause */
/* The module that the library loads for the first connection by TLS: missing, of another version, or bound wrongly. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../lib/folder.h"
#include "../lib/testlib.h"
#include "../lib/tls.h"

static struct tls_server *tls;

/* A folder with a library, without its module. */
static int begin_group(void **state)
{
    char library[4096];

    test_group_setup(state);
    tls_begin();
    tls = tls_server_start("server", "no", NULL);
    keeper_make_folder(folder, sizeof folder);
    test_build_path(library, sizeof library, "libdmutex/.libs/libdmutex.so.0");
    command_run("cp %s %s && mkdir %s/libdmutex", library, folder, folder);
    assert_status(0);
    return 0;
}

static int end_group(void **state)
{
    tls_server_end(tls);
    tls_end();
    folder_teardown(state);
    return test_group_teardown(state);
}

/* Runs an outsider with NAME=VALUE. */
static void run_with(const char *name, const char *value, const char *outsider, const char *more)
{
    char program[4096];

    test_build_path(program, sizeof program, outsider);
    command_run("%s=%s exec %s '%s&command_timeout=2000' module/lock %s", name, value, program, tls->url, more);
    assert_status(0);
}

/* Runs an outsider with the library of the build tree, or of the folder. */
static void run(const char *outsider, const char *library_path, const char *more)
{
    run_with("LD_LIBRARY_PATH", library_path, outsider, more);
}

/* A module in the folder that has the version, and perhaps more. */
static void make_module(const char *version, const char *more)
{
    command_run("echo '#include <unistd.h>\n"
                "static const struct { const char *version; } calls = { \"%s\" };\n"
                "const void *dm_tls_module_begin(const void *host) { (void)host; return &calls; }\n"
                "%s' | %s -shared -fPIC -x c - -o %s/libdmutex/libdmutex-tls.so",
                version, more, test_compiler(), folder);
    assert_status(0);
}

static void test_openssl_is_loaded_when_a_program_uses_tls(void **state)
{
    (void)state;
    run("tests/server/outsider", "", "");
    assert_output("0  libssl\n");
}

/* The library's thread that loads the module has allocated nothing before. */
static void test_openssl_is_loaded_with_an_allocator_that_makes_threads(void **state)
{
    (void)state;
    if (getenv("SANITIZER_CFLAGS") && *getenv("SANITIZER_CFLAGS"))
        return; /* the sanitizer's allocator must be the first of all */
    command_run("%s -O1 -pthread -fPIC -shared -fno-builtin -o %s/malloc.so "
                "%s/tests/preload/programs/spawning_malloc.c",
                test_compiler(), folder, getenv("srcdir"));
    assert_status(0);
    run_with("LD_PRELOAD", in_folder("malloc.so"), "tests/server/outsider", "");
    assert_output("0  libssl\n");
}

/* As in the environments of a build server. */
static void test_openssl_is_loaded_when_the_path_of_the_library_is_long(void **state)
{
    char deep[320], module[4096];

    (void)state;
    snprintf(deep, sizeof deep, "%s/%0200d", folder, 0);
    test_build_path(module, sizeof module, "libdmutex/.libs/libdmutex-tls.so");
    command_run("mkdir -p %s/libdmutex && cp %s/libdmutex.so.0 %s && cp %s %s/libdmutex", deep, folder, deep, module,
                deep);
    assert_status(0);
    run("tests/server/outsider", deep, "");
    assert_output("0  libssl\n");
}

/* OpenSSL would be half the program's: a call of ours, or one of libssl's own. */
static void test_tls_is_refused_when_the_program_exports_a_function_of_openssl(void **state)
{
    (void)state;
    run("tests/server/outsider_module", "", "");
    assert_output("TLS cannot be used: SSL_CTX_new_ex must be OpenSSL's, but ");
    assert_output("/outsider_module has a function of that name, too");
    assert_string_equal(ran.errors, "");
    run("tests/server/outsider_libssl", "", "");
    assert_output("TLS cannot be used: EVP_CIPHER_CTX_new must be OpenSSL's, but ");
    assert_string_equal(ran.errors, "");
}

static void test_tls_is_refused_when_the_module_is_missing(void **state)
{
    (void)state;
    run("tests/server/outsider", folder, "");
    assert_output("TLS cannot be loaded, install what is missing: ");
    assert_output("/libdmutex/libdmutex-tls.so: cannot open shared object file");
}

/* After an update on the disk, in a process that still has the old library. */
static void test_tls_is_refused_when_the_module_is_of_another_version(void **state)
{
    (void)state;
    make_module("99.9", "");
    run("tests/server/outsider", folder, "");
    assert_output("/libdmutex/libdmutex-tls.so is of version 99.9, and this program runs with libdmutex ");
}

/* The fork that waits for the load, which waits for what happens behind the fork. */
static void test_fork_comes_back_when_the_module_is_being_loaded(void **state)
{
    char code[512], files[128];

    (void)state;
    snprintf(code, sizeof code,
             "__attribute__((constructor)) static void load(void)\n"
             "{ if (symlink(\"x\", \"%s/begun\") == 0) while (access(\"%s/go\", F_OK) != 0) usleep(1000); }",
             folder, folder);
    make_module("99.9", code);
    command_run("touch %s/x", folder);
    snprintf(files, sizeof files, "%s/begun %s/go", folder, folder);
    run("tests/server/outsider", folder, files);
    assert_int_equal(access(in_folder("go"), F_OK), 0);
}

/* The URL has a name, which is looked up in a thread of the library. */
static void run_in_constructor(const char *how, const char *more)
{
    char program[4096];

    command_run("echo 'void constructed(void);\n"
                "__attribute__((constructor)) static void begin(void) { constructed(); }\n"
                "' | %s -shared -fPIC -x c - -o %s/constructed.so",
                test_compiler(), folder);
    assert_status(0);
    test_build_path(program, sizeof program, "tests/server/in_constructor");
    command_run("exec %s 'rediss://localhost:%d?grace=off&cacert=%s/ca.crt%s' in_constructor/lock %s/constructed.so %s",
                program, tls->port, tls_folder, more, folder, how);
    assert_status(0);
}

/* The thread that is in dlopen() waits for the lock, and no other can load the module. */
static void test_a_constructor_locks_when_dlopen_runs_it(void **state)
{
    (void)state;
    run_in_constructor("lock", "");
    assert_string_equal(ran.output, "0 \n");
}

/* Whoever comes first. */
static void test_a_constructor_locks_when_another_thread_is_loading_the_module(void **state)
{
    (void)state;
    run_in_constructor("both", "");
    assert_string_equal(ran.output, "0 \n0 \n");
}

/* It leaves the load to another thread, because dlopen() knows no deadline. */
static void test_a_constructor_is_told_why_when_its_lock_has_a_deadline(void **state)
{
    (void)state;
    run_in_constructor("timed", "&connect_timeout=500");
    assert_output("TLS cannot be loaded: another thread of this program is in dlopen() for so long");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_openssl_is_loaded_when_a_program_uses_tls),
        cmocka_unit_test(test_openssl_is_loaded_with_an_allocator_that_makes_threads),
        cmocka_unit_test(test_openssl_is_loaded_when_the_path_of_the_library_is_long),
        cmocka_unit_test(test_tls_is_refused_when_the_program_exports_a_function_of_openssl),
        cmocka_unit_test(test_tls_is_refused_when_the_module_is_missing),
        cmocka_unit_test(test_tls_is_refused_when_the_module_is_of_another_version),
        cmocka_unit_test(test_fork_comes_back_when_the_module_is_being_loaded),
        cmocka_unit_test(test_a_constructor_locks_when_dlopen_runs_it),
        cmocka_unit_test(test_a_constructor_locks_when_another_thread_is_loading_the_module),
        cmocka_unit_test(test_a_constructor_is_told_why_when_its_lock_has_a_deadline),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, begin_group, end_group);
}
