/* SPDX-License-Identifier: BSD-2-Clause */
/* dmutex(1) on ZooKeeper, and what goes wrong there: each fault has a sentence with what to do. */
#include "../tools/tool.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../lib/folder.h"
#include "../lib/talker.h"
#include "../registers/zkserver.h"

static struct zkserver *server;
static char url[160];

static int setup(void **state)
{
    (void)state;
    server = zkserver_start(1);
    keeper_make_folder(folder, sizeof folder);
    snprintf(url, sizeof url, "%s?grace=off", server->url);
    tool_use(folder, url);
    return 0;
}

static int teardown(void **state)
{
    zkserver_end(server);
    return folder_teardown(state);
}

/* run, list, show, top, token, wait and break work as on Redis */
static void test_every_subcommand_works(void **state)
{
    (void)state;
    tool_use_subcommands(url);
}

/* doctor finds all well on a server as it comes, warns of locks without a login, and says what is wrong with others */
static void test_doctor_says_what_holds(void **state)
{
    (void)state;
    command_run("DMUTEX_URL=zookeeper://127.0.0.1:%d/not_yet exec $dmutex doctor", server->ports[0]);
    assert_status(0);
    assert_output("there are no locks below /not_yet yet");
    assert_output("warn  acl          without a login the locks will be open to anybody");
    assert_int_equal(zkserver_count(server, "/", "not_yet"), 0);
    command_run("$dmutex run doctored true; exec $dmutex doctor");
    assert_status(0);
    assert_output("ok    rights       nodes below /dmutex can be made and deleted\n");
    assert_output("warn  acl          anybody who reaches ZooKeeper may change the locks below /dmutex\n");
    assert_output("ok    servers      one server: while it is down, locks wait\n");
    assert_output(": standalone\n");
    assert_output("P0    yes ");
    assert_output("P4    yes ");
    assert_int_equal(zkserver_count(server, "/dmutex/r", "doctor"), 0);
    command_run("DMUTEX_URL=zookeeper://127.0.0.1:1 exec $dmutex doctor");
    assert_status(69);
    assert_output("fail  server       no server of ZooKeeper can be used\n");
    command_run("DMUTEX_URL=zookeeper://127.0.0.1:%d exec $dmutex acl", server->ports[0]);
    assert_status(78);
    assert_errors("with a login in the URL, the nodes below /dmutex are for it alone");
}

#define HEARD_MOST (32L * 1024 * 1024) /* what the kernel keeps on the way, and more */

static long said; /* to who asks for the version */

/* Talks for as long as it is heard: of itself, or with answers to pings after a session was given. */
static void talk_on(struct guest *guest)
{
    static const char session[] = "\0\0\0\x25\0\0\0\0\0\0\x27\x10\0\0\0\0\0\0\0\1\0\0\0\x10"
                                  "0123456789abcdef"; /* the NUL at the end is: not for reading alone */
    static const char ping[20] = "\0\0\0\x10\xff\xff\xff\xfe\0\0\0\0\0\0\0\1\0\0\0";
    char words[800 * sizeof ping], question[4];
    bool is_asked = guest->hear(guest, question, sizeof question) == 4 && memcmp(question, "srvr", 4) == 0;

    for (size_t i = 0; i < sizeof words; i += sizeof ping)
        memcpy(words + i, ping, sizeof ping);
    if (is_asked)
        memset(words, 'x', sizeof words);
    else if (!guest->say(guest, session, sizeof session))
        return;
    while (!talker_is_over() && guest->say(guest, words, sizeof words)) {
        if (is_asked)
            __atomic_add_fetch(&said, (long)sizeof words, __ATOMIC_RELAXED);
    }
}

/* doctor ends, and keeps no more than a little, though the server never stops talking */
static void test_doctor_ends_on_a_server_that_never_stops_talking(void **state)
{
    int port = talker_begin(talk_on);

    (void)state;
    command_run("DMUTEX_URL='zookeeper://127.0.0.1:%d?command_timeout=1000' exec timeout 60 $dmutex doctor", port);
    talker_end();
    assert_status(69);
    assert_output("it has not answered for 1000 ms");
    assert_true(__atomic_load_n(&said, __ATOMIC_RELAXED) < HEARD_MOST);
}

/* What a login has made is for that login; others are told */
static void test_nodes_belong_to_a_login(void **state)
{
    (void)state;
    command_run("DMUTEX_URL='zookeeper://app:se%%3Acret@127.0.0.1:%d/mine?grace=off' exec $dmutex run fault true",
                server->ports[0]);
    assert_status(0);
    command_run("DMUTEX_URL='zookeeper://app:se%%3Acret@127.0.0.1:%d/mine' exec $dmutex doctor", server->ports[0]);
    assert_status(0);
    assert_output("ok    acl          the locks below /mine are for a login alone\n");
    command_run("DMUTEX_URL='zookeeper://127.0.0.1:%d/mine' exec $dmutex run -w 5 fault true", server->ports[0]);
    assert_status(77);
    assert_errors("give nobody a right to /mine: write user and password into the URL");
    command_run("DMUTEX_URL='zookeeper://app:wrong@127.0.0.1:%d/mine' exec $dmutex run -w 5 fault true",
                server->ports[0]);
    assert_status(77);
    assert_errors("give this login no right to /mine");
    assert_null(strstr(ran.errors, "wrong"));
    command_run("DMUTEX_URL='zookeeper://app:wrong@127.0.0.1:%d/mine' exec $dmutex doctor", server->ports[0]);
    assert_status(1);
    assert_output("fail  rights       the ACLs do not let us make and delete nodes below /mine\n");
    assert_output("P0    no ");
}

/* Asserts that a lock fails with this status, and that its sentence contains these words. */
static void assert_fails(const char *where, int status, const char *words)
{
    command_run("DMUTEX_URL='%s' exec $dmutex run -w 5 --lease 1000 fault true", where);
    assert_status(status);
    assert_errors(words);
}

/* A node that is not ours is refused, and not overwritten; no ZooKeeper, or nobody, is told */
static void test_faults_are_told(void **state)
{
    (void)state;
    command_run("exec $dmutex run before true");
    zkserver_make(server, "/dmutex/r/n:fault", "by hand");
    assert_fails(url, 69, "has been changed by hand: delete its node if nobody holds the lock");
    zkserver_delete(server, "/dmutex/r/n:fault");
    assert_fails("zookeeper://127.0.0.1:1", 69, "cannot reach ZooKeeper at 127.0.0.1:1");
    zkserver_make(server, "/other", "");
    zkserver_make(server, "/other/epoch", "");
    zkserver_make(server, "/other/epoch/by-hand", "");
    command_run("DMUTEX_URL='zookeeper://127.0.0.1:%d/other' exec $dmutex run -w 5 fault true", server->ports[0]);
    assert_status(77);
    assert_errors("the node /other/epoch has been changed by hand");
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
    zkserver_kill(server, 0);
    zkserver_restart(server, 0);
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
        cmocka_unit_test(test_doctor_ends_on_a_server_that_never_stops_talking),
        cmocka_unit_test(test_nodes_belong_to_a_login),
        cmocka_unit_test(test_faults_are_told),
        cmocka_unit_test(test_run_keeps_the_lock_over_a_crash_of_the_server),
    };

    if (!zkserver_is_possible()) {
        puts("1..0 # SKIP no ZooKeeper is installed (package zookeeper)");
        return 0;
    }
    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, setup, teardown);
}
