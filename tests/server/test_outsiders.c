/* SPDX-License-Identifier: BSD-2-Clause */
/* Programs that bring functions with the names of those that we call. */
#include "../lib/testlib.h"

/* A vendored hiredis, exported by the program as redis-server and some interpreters do, is not the library's. */
static void test_a_lock_works_when_the_program_exports_another_hiredis(void **state)
{
    char program[4096];

    (void)state;
    test_build_path(program, sizeof program, "tests/server/outsider_hiredis");
    command_run("exec %s '%s' outsiders/lock", program, the_server->url);
    assert_status(0);
    assert_output("0 ");
    assert_string_equal(ran.errors, "");
}

/* Most programs use no TLS, and loading OpenSSL was four fifths of their start. */
static void test_openssl_is_not_loaded_when_a_program_uses_no_tls(void **state)
{
    char program[4096];

    (void)state;
    test_build_path(program, sizeof program, "tests/server/outsider");
    command_run("exec %s '%s' outsiders/lock", program, the_server->url);
    assert_status(0);
    assert_output("0  no libssl\n");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_lock_works_when_the_program_exports_another_hiredis),
        cmocka_unit_test(test_openssl_is_not_loaded_when_a_program_uses_no_tls),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, test_group_setup, test_group_teardown);
}
