/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every subcommand of dmutex(1) over TLS: with a client certificate, with a wrong authority, and without a certificate.
 */
#include "tool.h"

#include <stdlib.h>
#include <string.h>

#include "../lib/tls.h"

static struct tls_server *tls;
static char with_certificate[600];

static int begin_group(void **state)
{
    tls_begin();
    tls = tls_server_start("server", "yes", NULL);
    snprintf(with_certificate, sizeof with_certificate, "%s&cert=%s/client.crt&key=%s/client.key&command_timeout=2000",
             tls->url, tls_folder, tls_folder);
    return tool_setup(state);
}

static int end_group(void **state)
{
    tls_server_end(tls);
    tls_end();
    return tool_teardown(state);
}

static void test_each_subcommand_works_when_the_server_wants_a_certificate(void **state)
{
    (void)state;
    tool_use_subcommands(with_certificate);
}

/* Each connection of doctor's presents the certificate, too. */
static void test_doctor_and_acl_work_when_the_server_wants_a_certificate(void **state)
{
    (void)state;
    command_run("DMUTEX_URL=$URL exec $dmutex doctor");
    assert_status(0);
    assert_output(" answers, by TLS\n");
    assert_output("ok    messages ");
    assert_null(strstr(ran.output, "fail  "));
    command_run("DMUTEX_URL=$URL exec $dmutex acl");
    assert_status(0);
    assert_output("ACL SETUSER app on >PASSWORD");
    command_run("DMUTEX_URL=\"$URL&verify=none\" exec $dmutex doctor");
    assert_status(0);
    assert_output("warn  tls          verify=none");
}

/* acl asks no server. */
static void check_refusals(const char *url, const char *sentence)
{
    tool_check_refusals(url, "fail  server       ", sentence);
    assert_output(sentence);
    command_run("DMUTEX_URL=$URL exec $dmutex acl");
    assert_status(0);
    assert_null(strstr(ran.errors, "dmutex: "));
}

static void test_each_subcommand_says_why_when_the_authority_is_wrong(void **state)
{
    char url[600];

    (void)state;
    snprintf(url, sizeof url,
             "rediss://127.0.0.1:%d?cacert=%s/other.crt&cert=%s/client.crt&key=%s/client.key&command_timeout=1000",
             tls->port, tls_folder, tls_folder, tls_folder);
    check_refusals(url, "does not have: name the issuer's certificate by cacert");
}

static void test_each_subcommand_says_why_when_it_has_no_certificate(void **state)
{
    char url[600];

    (void)state;
    snprintf(url, sizeof url, "%s&command_timeout=1000", tls->url);
    check_refusals(url, "the server wants a certificate of this client: add cert and key");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_subcommand_works_when_the_server_wants_a_certificate),
        cmocka_unit_test(test_doctor_and_acl_work_when_the_server_wants_a_certificate),
        cmocka_unit_test(test_each_subcommand_says_why_when_the_authority_is_wrong),
        cmocka_unit_test(test_each_subcommand_says_why_when_it_has_no_certificate),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, begin_group, end_group);
}
