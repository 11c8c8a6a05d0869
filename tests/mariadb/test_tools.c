/* SPDX-License-Identifier: BSD-2-Clause */
/* dmutex(1) on MariaDB. */
#include "../tools/tool.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../lib/folder.h"
#include "../registers/mariaserver.h"

static struct mariaserver *server;

/* The folder is the tools' $F. */
static int setup(void **state)
{
    static char url[128];

    (void)state;
    server = mariaserver_start();
    keeper_make_folder(folder, sizeof folder);
    snprintf(url, sizeof url, "%s&grace=off", server->url);
    tool_use(folder, url);
    return 0;
}

static int teardown(void **state)
{
    mariaserver_end(server);
    return folder_teardown(state);
}

/* Executes what dmutex sql has printed. */
static void execute_printed(void)
{
    char *text = strdup(ran.output), *rest = text, *statement;

    assert_non_null(text);
    mariaserver_sql(server, "USE locks");
    while ((statement = strsep(&rest, ";"))) {
        if (statement[strspn(statement, " \n")])
            mariaserver_sql(server, "%s", statement);
    }
    free(text);
}

/* An account that may make nothing locks with what dmutex sql prints, and needs all of it */
static void test_sql_prints_what_an_account_needs(void **state)
{
    (void)state;
    mariaserver_sql(server, "CREATE USER app@localhost");
    command_run("exec $dmutex sql mariadb app@localhost");
    assert_status(0);
    execute_printed();
    command_run("DMUTEX_URL='mariadb://app@/locks?grace=off&socket=%s/socket' exec $dmutex run -w 5 job true",
                server->folder);
    assert_status(0);
    command_run("exec $dmutex sql --restored mariadb");
    assert_status(0);
    execute_printed();
    command_run("exec $dmutex sql --prefix other mariadb it\\`s");
    assert_output("GRANT SELECT ON `other_epoch` TO `it``s`@`%`;\n");
}

static void test_doctor_says_what_holds(void **state)
{
    (void)state;
    command_run("exec $dmutex doctor");
    assert_output("ok    tables       the tables dmutex_registers, dmutex_epoch and dmutex_start can be used\n");
    assert_output("ok    durability   locks survive a crash and a power failure\n");
    assert_output("ok    connections  ");
    assert_output("ok    wake-ups     the server sends no notices");
    assert_output("P0    yes ");
    assert_output("P4    yes ");
    command_run("DMUTEX_URL='%s&prefix=none' exec $dmutex doctor", server->url);
    assert_output("this account sees none with the prefix none");
    assert_string_equal(mariaserver_sql(server, "SHOW TABLES FROM locks LIKE 'none%%'"), "");
    mariaserver_sql(server, "SET GLOBAL innodb_flush_log_at_trx_commit = 2");
    command_run("exec $dmutex doctor");
    assert_output("innodb_flush_log_at_trx_commit is not 1");
    assert_output("P4    no ");
    mariaserver_sql(server, "SET GLOBAL innodb_flush_log_at_trx_commit = 1");
    command_run("DMUTEX_URL='mariadb://root:wrong@/locks?socket=%s/socket' exec $dmutex doctor", server->folder);
    assert_status(77);
    assert_output("fail  login  ");
    command_run("DMUTEX_URL='mariadb://root@127.0.0.1:1/locks' exec $dmutex doctor");
    assert_status(69);
}

static void test_every_subcommand_works(void **state)
{
    (void)state;
    command_run("exec $dmutex run job $dmutex show job");
    assert_status(0);
    assert_output("job");
    command_run("exec $dmutex run job $dmutex list");
    assert_output("job");
    command_run("exec $dmutex acl");
    assert_errors("dmutex sql mariadb prints the grants");
    command_run("exec $dmutex sql mysql");
    assert_errors("postgresql or mariadb");
}

/* libmariadb ignores SIGPIPE for the whole process, and its sockets live on in other programs: those of ours do not */
/* Signals up to 32; make has libc's own ones ignored, and whoever uses threads has not. */
static void test_job_gets_no_socket_and_its_signals(void **state)
{
    (void)state;
    command_run("grep SigIgn /proc/self/status | tail -c 9 >$F/before; exec $dmutex run job sh -c "
                "'ls -l /proc/self/fd; grep SigIgn /proc/self/status | tail -c 9 | cmp $F/before -'");
    assert_status(0);
    assert_null(strstr(ran.output, "socket:"));
}

/* A job keeps its lock for as long as it runs, whatever happens to the server meanwhile */
static void test_run_keeps_the_lock_over_a_crash_of_the_server(void **state)
{
    pid_t pid = keeper_fork();

    (void)state;
    command_run("mkfifo $F/ready $F/end");
    if (pid == 0) {
        execl(
            "/bin/sh", "sh", "-c",
            "until test -p $F/end; do :; done; exec $dmutex run job sh -c 'test $DMUTEX_TOKEN -gt 0 && echo >$F/ready "
            "&& read x <$F/end'",
            (char *)NULL);
        _exit(127);
    }
    command_run("read x <$F/ready; exec $dmutex run -n job true");
    assert_status(75);
    mariaserver_kill(server);
    mariaserver_restart(server, NULL);
    command_run("exec $dmutex run -n job true");
    assert_status(75);
    command_run("echo go >$F/end");
    assert_int_equal(keeper_reap(pid), 0);
    command_run("exec $dmutex run -n job true");
    assert_status(0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sql_prints_what_an_account_needs),
        cmocka_unit_test(test_doctor_says_what_holds),
        cmocka_unit_test(test_every_subcommand_works),
        cmocka_unit_test(test_job_gets_no_socket_and_its_signals),
        cmocka_unit_test(test_run_keeps_the_lock_over_a_crash_of_the_server),
    };

    if (!mariaserver_is_possible()) {
        puts("1..0 # SKIP no MariaDB is installed (package mariadb-server-core)");
        return 0;
    }
    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, setup, teardown);
}
