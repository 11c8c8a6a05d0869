/* SPDX-License-Identifier: BSD-2-Clause */
/* dmutex(1) on etcd, and what goes wrong there: each fault has a sentence with what to do. */
#include "../tools/tool.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../lib/folder.h"
#include "../registers/etcdserver.h"

static struct etcdserver *server;
static char url[160];

static int setup(void **state)
{
    (void)state;
    server = etcdserver_start(1);
    keeper_make_folder(folder, sizeof folder);
    snprintf(url, sizeof url, "%s?grace=off", server->url);
    tool_use(folder, url);
    return 0;
}

static int teardown(void **state)
{
    etcdserver_end(server);
    return folder_teardown(state);
}

/* run, list, show, top, token, wait and break work as on Redis */
static void test_every_subcommand_works(void **state)
{
    (void)state;
    tool_use_subcommands(url);
}

/* doctor finds all well on a server as it comes, and says what is wrong with others */
static void test_doctor_says_what_holds(void **state)
{
    struct etcdserver *full, *closed;

    (void)state;
    command_run("exec $dmutex doctor");
    assert_status(0);
    assert_output("ok    majority     a majority of the members answers\n");
    assert_output("ok    rights       the keys below /dmutex/ can be read and written\n");
    assert_output("ok    members      one member: while it is down, locks wait\n");
    assert_output("ok    alarm        none is raised\n");
    assert_output("P0    yes ");
    assert_output("P4    yes ");
    command_run("exec $dmutex doctor --json");
    assert_status(0);
    assert_output("\"result\":\"ok\"");
    command_run("DMUTEX_URL=etcd://127.0.0.1:%d,127.0.0.1:1/not_yet exec $dmutex doctor", server->ports[0]);
    assert_status(0);
    assert_output("warn  server       127.0.0.1:1: ");
    assert_output("there are no locks below /not_yet/ yet");
    command_run("DMUTEX_URL=etcd://127.0.0.1:1 exec $dmutex doctor");
    assert_status(69);
    assert_output("fail  server       no member of etcd can be used\n");

    full = etcdserver_start_with_quota(1 << 20);
    etcdserver_fill(full);
    command_run("DMUTEX_URL=%s exec $dmutex doctor", full->url);
    assert_status(0);
    assert_output("warn  alarm        the quota is used up");
    etcdserver_end(full);

    closed = etcdserver_start(1);
    etcdserver_use_login(closed, "app", "secret", "/dmutex/", "/dmutex0");
    command_run("DMUTEX_URL=etcd://app:secret@127.0.0.1:%d exec $dmutex doctor", closed->ports[0]);
    assert_status(0);
    command_run("DMUTEX_URL=etcd://app:wrong@127.0.0.1:%d exec $dmutex doctor", closed->ports[0]);
    assert_status(77);
    assert_output("fail  login        ");
    assert_null(strstr(ran.output, "wrong"));
    command_run("DMUTEX_URL=%s exec $dmutex doctor", closed->url);
    assert_status(77);
    assert_output("-> write etcd://USER:PASSWORD@HOST");
    command_run("DMUTEX_URL=etcd://app:secret@127.0.0.1:%d/others exec $dmutex doctor", closed->ports[0]);
    assert_status(1);
    assert_output("fail  rights       the user may not read and write the keys below /others/");
    assert_output("etcdctl role grant-permission ROLE readwrite --prefix=true /others/");
    assert_output("P0    no ");
    command_run("DMUTEX_URL=etcd://app:secret@127.0.0.1:%d/others exec $dmutex acl", closed->ports[0]);
    assert_status(78);
    assert_errors("etcdctl role grant-permission ROLE readwrite --prefix=true /others/");
    etcdserver_end(closed);
}

/* Asserts that a lock fails with this status, and that its sentence contains these words. */
static void assert_fails(const char *where, int status, const char *words)
{
    command_run("DMUTEX_URL='%s' exec $dmutex run -w 5 --lease 1000 fault true", where);
    assert_status(status);
    assert_errors(words);
}

/* A value that is not ours is refused, and not overwritten; no etcd, or nobody, is told */
static void test_faults_are_told(void **state)
{
    (void)state;
    etcdserver_put(server, "/dmutex/r/n/fault", "by hand");
    assert_fails(url, 69, "has been changed by hand: delete it if nobody holds the lock");
    assert_fails("etcd://127.0.0.1:1", 69, "cannot reach etcd at 127.0.0.1:1");
    etcdserver_put(server, "/other/epoch", "by hand");
    command_run("DMUTEX_URL='etcd://127.0.0.1:%d/other' exec $dmutex run -w 5 fault true", server->ports[0]);
    assert_status(77);
    assert_errors("the key /other/epoch has been changed by hand");
    command_run("DMUTEX_URL='etcd://127.0.0.1:%d' exec $dmutex run -w 5 fault true", server->peer_ports[0]);
    assert_errors("what answers there is no etcd 3.4 or later");
}

/* An unlock after which nobody holds takes away what those have left who wanted the lock in vain */
static void test_unlock_listens_at_the_door(void **state)
{
    (void)state;
    etcdserver_put(server, "/dmutex/k/n/door", "");
    command_run("exec $dmutex run door true");
    assert_status(0);
    assert_int_equal(etcdserver_count(server, "/dmutex/k/"), 0);
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
    etcdserver_kill(server, 0);
    etcdserver_restart(server, 0);
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
        cmocka_unit_test(test_doctor_says_what_holds),
        cmocka_unit_test(test_every_subcommand_works),
        cmocka_unit_test(test_faults_are_told),
        cmocka_unit_test(test_unlock_listens_at_the_door),
        cmocka_unit_test(test_run_keeps_the_lock_over_a_crash_of_the_server),
    };

    if (!etcdserver_is_possible()) {
        puts("1..0 # SKIP no etcd is installed (package etcd-server)");
        return 0;
    }
    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, setup, teardown);
}
