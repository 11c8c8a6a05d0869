/* SPDX-License-Identifier: BSD-2-Clause */
/* dmutex(1), dmutex-run, metrics and compiled pthread source on PostgreSQL. */
#include "../tools/tool.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../lib/folder.h"
#include "../registers/pgserver.h"

static struct pgserver *server;
static char source_folder[PATH_MAX];

/* The folder is the tools' $F, and the URL everybody's.  The first lock waits until the data are a lease old. */
static int setup(void **state)
{
    char path[4096];

    (void)state;
    server = pgserver_start();
    keeper_make_folder(folder, sizeof folder);
    tool_use(folder, server->url);
    test_build_path(path, sizeof path, "preload/here/dmutex-run");
    setenv("run", path, 1);
    test_build_path(path, sizeof path, "libdmutex/.libs");
    setenv("libraries", path, 1);
    test_build_path(path, sizeof path, "preload/keeper/dmutex-keeper");
    setenv("DMUTEX_KEEPER", path, 1);
    setenv("DMUTEX_LOCAL_DIR", folder, 1);
    setenv("HOME", folder, 1);
    assert_non_null(realpath(getenv("srcdir"), source_folder));
    command_run("mkdir -p $F/.config/dmutex && touch $F/.config/dmutex/preload.conf && mkfifo $F/ready $F/end");
    command_run("exec $dmutex run first true");
    assert_status(0);
    return 0;
}

static int teardown(void **state)
{
    pgserver_end(server);
    return folder_teardown(state);
}

/* doctor finds all well on a server as it comes, and says what a change has broken */
static void test_doctor_says_what_holds(void **state)
{
    (void)state;
    command_run("exec $dmutex doctor");
    assert_status(0);
    assert_output("ok    tables       the tables of the schema \"dmutex\" can be used\n");
    assert_output("ok    durability   locks survive a crash: synchronous_commit is on\n");
    assert_output("ok    standbys     none is connected\n");
    assert_output("ok    connections  ");
    assert_output("P0    yes ");
    assert_output("P4    yes ");
    command_run("exec $dmutex doctor --json");
    assert_status(0);
    assert_output("\"result\":\"ok\"");

    command_run("DMUTEX_URL=\"$DMUTEX_URL&dmutex.prefix=not_yet\" exec $dmutex doctor");
    assert_status(0);
    assert_output("there are none in the schema \"not_yet\" yet: the first lock makes them");
    pgserver_sql(server, "CREATE ROLE poor LOGIN; ALTER DATABASE postgres SET synchronous_commit = off");
    command_run("DMUTEX_URL=\"$DMUTEX_URL&user=poor\" exec $dmutex doctor");
    assert_status(1);
    assert_output("fail  tables       this role lacks rights");
    assert_output("warn  durability   synchronous_commit is off");
    assert_output("P0    no ");
    assert_output("P4    no ");
    command_run("DMUTEX_URL=\"$DMUTEX_URL&user=nobody_here\" exec $dmutex doctor");
    assert_status(77);
    assert_output("fail  login        ");
    command_run("DMUTEX_URL='postgresql:///x?host=/nowhere' exec $dmutex doctor");
    assert_status(69);
    assert_output("fail  server       ");
    pgserver_sql(server, "ALTER DATABASE postgres RESET synchronous_commit");
}

/* run, list, show, top, token, wait and break work as on Redis */
static void test_every_subcommand_works(void **state)
{
    (void)state;
    tool_use_subcommands(server->url);
}

/* Starts a line that holds a lock, writes to the fifo, and waits for let_go(). */
static pid_t start_inside(const char *line)
{
    pid_t pid = keeper_fork();

    if (pid == 0) {
        execl("/bin/sh", "sh", "-c", line, (char *)NULL);
        _exit(127);
    }
    command_run("read x <$F/ready");
    assert_status(0);
    return pid;
}

static void let_go(pid_t pid)
{
    command_run("echo go >$F/end");
    assert_int_equal(keeper_reap(pid), 0);
}

/* A job keeps its lock for as long as it runs, whatever happens to the server meanwhile */
static void test_run_keeps_the_lock_over_a_crash_of_the_server(void **state)
{
    pid_t pid;

    (void)state;
    pid = start_inside("exec $dmutex run job sh -c 'test $DMUTEX_TOKEN -gt 0 && echo >$F/ready && read x <$F/end'");
    command_run("exec $dmutex run -n job true");
    assert_status(75);
    pgserver_kill(server);
    pgserver_restart(server);
    command_run("exec $dmutex run -n job true");
    assert_status(75);
    let_go(pid);
    command_run("exec $dmutex run -n job true");
    assert_status(0);
}

/* Locks `guard`, which libc's <pthread.h> and ours declare alike. */
static void compile_guarded(const char *header, const char *switches)
{
    command_run("cd $F && printf '%%s\n' '#include <%s>' '#include <stdio.h>' '#include <stdlib.h>' "
                "'pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;' 'int main(void) {' "
                "'if (pthread_mutex_lock(&guard) != 0) return 3;' "
                "'if (system(\"echo >$F/ready; read x <$F/end\") != 0) return 4;' "
                "'return pthread_mutex_unlock(&guard); }' >guarded.c && %s -pthread -rdynamic guarded.c -o guarded %s",
                header, test_compiler(), switches);
    assert_status(0);
}

/* dmutex-run distributes a mutex of an unchanged program */
static void test_unchanged_program_locks(void **state)
{
    pid_t pid;

    (void)state;
    compile_guarded("pthread.h", "");
    pid = start_inside("LD_LIBRARY_PATH=$libraries exec $run -e 'sym:guarded:guard => run/guard' $F/guarded");
    command_run("exec $dmutex run -n run/guard true");
    assert_status(75);
    let_go(pid);
    command_run("exec $dmutex run -n run/guard true");
    assert_status(0);
}

/* The keeper holds a lock file for an unchanged program */
static void test_lock_file_is_distributed(void **state)
{
    pid_t pid;

    (void)state;
    pid = start_inside("exec $run -e \"flock:$F/*.lock => f/%b\" flock $F/x.lock "
                       "sh -c 'echo >$F/ready; read x <$F/end'");
    command_run("exec $dmutex run -n f/x.lock true");
    assert_status(75);
    command_run("exec $dmutex show f/x.lock");
    assert_output("held by");
    let_go(pid);
    command_run("exec $dmutex run -w 20 f/x.lock true");
    assert_status(0);
}

/* Source that is compiled against <dmutex/pthread.h> locks, and its static mutex has a name of its own */
static void test_recompiled_program_locks(void **state)
{
    char library[4096], switches[4 * 4096];
    pid_t pid;

    (void)state;
    test_build_path(library, sizeof library, "libdmutex/.libs");
    snprintf(switches, sizeof switches, "-DDMUTEX_UNIT='\"unit\"' -I%s/include -L%s -ldmutex -Wl,-rpath,%s",
             source_folder, library, library);
    compile_guarded("dmutex/pthread.h", switches);
    pid = start_inside("exec $F/guarded");
    command_run("exec $dmutex list");
    assert_output("guard");
    let_go(pid);
}

/* Metrics count what a program has locked */
static void test_metrics_are_written(void **state)
{
    (void)state;
    command_run("DMUTEX_METRICS=$F/m.prom $dmutex run metrics/x true && cat $F/m.prom");
    assert_status(0);
    assert_output("\ndmutex_");
    assert_output(" 1\n");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_doctor_says_what_holds),
        cmocka_unit_test(test_every_subcommand_works),
        cmocka_unit_test(test_run_keeps_the_lock_over_a_crash_of_the_server),
        cmocka_unit_test(test_unchanged_program_locks),
        cmocka_unit_test(test_lock_file_is_distributed),
        cmocka_unit_test(test_recompiled_program_locks),
        cmocka_unit_test(test_metrics_are_written),
    };

    test_begin(argc, argv);
    if (!pgserver_is_possible()) {
        puts("1..0 # SKIP no PostgreSQL is installed (package postgresql)");
        return 0;
    }
    return cmocka_run_group_tests(tests, setup, teardown);
}
