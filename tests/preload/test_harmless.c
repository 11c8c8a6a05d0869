/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs that no rule names behave the same under the module as without the module: the same output, the same end,
 * nothing on the server. The programs are taken from this machine, if installed.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "programs.h"

/* Rules of each kind, none of which matches; the last ones make the module check every lock. */
static const char nothing[] = "sym:no-such-program:lock => h/a; sym:libnosuch.so:lock => h/b;"
                              "off:no-such-program@build-id:12+8 => h/c; cond:sym:no-such-program:ready => h/d;"
                              "flock:/no/such/* => h/e; fcntl:/no/such/* => h/f;"
                              "shm:/dmutex-no-such+8 => h/g; map:/no/such/file+8 => h/h";

static char expected[COMMAND_ROOM];

static bool is_installed(const char *program)
{
    command_run("command -v %s >/dev/null", program);
    return ran.status == 0;
}

/* Runs a shell script in the folder: alone, under the module, and under rules. The results must be equal. */
static void check_script(const char *script)
{
    static const char *const rules[] = { NULL, nothing };
    int64_t before = client_commands();
    FILE *file;
    char path[100];
    int status;

    snprintf(path, sizeof path, "%s/script", folder);
    file = fopen(path, "w");
    fputs(script, file);
    assert_int_equal(fclose(file), 0);
    command_run("cd %s && exec sh ./script", folder);
    status = ran.status;
    strcpy(expected, ran.output);
    assert_string_equal(ran.errors, "");
    assert_true(strlen(expected) > 0);
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        run_under(rules[i], "sh ./script");
        assert_status(status);
        assert_string_equal(ran.errors, "");
        assert_string_equal(ran.output, expected);
    }
    assert_int_equal(client_commands(), before);
}

/* Shells behave the same: children, pipes, jobs, traps. */
static void test_shells_do_the_same(void **state)
{
    (void)state;
    check_script("for i in 1 2 3; do (sleep 0; echo $i >job.$i) & done; wait; cat job.*; rm job.*\n"
                 "trap 'echo trapped' USR1; kill -USR1 $$; seq 1000 | sort -r | head -3; exit 3\n");
    if (is_installed("bash"))
        check_script("exec bash -c 'a=$(seq 100); set -- $a; echo $#; kill -TERM $$'\n");
}

/* A compiler behaves the same, and the compiled program too. */
static void test_a_compiler_does_the_same(void **state)
{
    (void)state;
    check_script(
        "echo 'int puts(const char *); int main(void) { puts(\"hello\"); return 5; }' >hello.c\n"
        "${CC:-cc} -O2 -o hello hello.c && ./hello; echo $?; ${CC:-cc} -c no-such-file.c 2>/dev/null; echo $?\n");
}

/* Python behaves the same: threads with python's own locks and conditions, children, lock files. */
static void test_python_does_the_same(void **state)
{
    (void)state;
    if (!is_installed("python3"))
        return;
    check_script("exec python3 - <<'END'\n"
                 "import fcntl, os, queue, subprocess, threading\n"
                 "q, total, lock = queue.Queue(10), 0, threading.Lock()\n"
                 "def work():\n"
                 "    global total\n"
                 "    while (n := q.get()) is not None:\n"
                 "        with lock: total += n\n"
                 "threads = [threading.Thread(target=work) for i in range(8)]\n"
                 "for t in threads: t.start()\n"
                 "for n in range(5000): q.put(n)\n"
                 "for t in threads: q.put(None)\n"
                 "for t in threads: t.join()\n"
                 "print(total)\n"
                 "with open('lockfile', 'w') as f:\n"
                 "    fcntl.flock(f, fcntl.LOCK_EX); fcntl.lockf(f, fcntl.LOCK_EX); print('locked')\n"
                 "print(subprocess.run(['sh', '-c', 'echo child; exit 4'], stdout=subprocess.PIPE))\n"
                 "END\n");
}

/* Perl behaves the same: modules that are loaded later, children, lock files. */
static void test_perl_does_the_same(void **state)
{
    (void)state;
    if (!is_installed("perl"))
        return;
    check_script(
        "exec perl -MPOSIX -MFcntl=:flock -e 'open my $f, \">\", \"lockfile\"; print flock($f, LOCK_EX), \"\\n\";"
        "$| = 1; for my $i (1..3) { my $p = fork; if (!$p) { print \"child $i\\n\"; POSIX::_exit($i); }"
        "waitpid $p, 0; print $? >> 8, \"\\n\"; } exit 9'\n");
}

/* A server with threads under load behaves the same, and the load program too. */
static void test_a_server_under_load_does_the_same(void **state)
{
    const char *server = getenv("DMUTEX_TEST_SERVER");
    char script[4096];

    (void)state;
    server = server && *server ? server : "redis-server";
    if (!is_installed("redis-benchmark") || !is_installed("redis-cli"))
        return;
    snprintf(script, sizeof script,
             "%s --port 0 --unixsocket $PWD/load --save '' --io-threads 2 --logfile $PWD/log >/dev/null &\n"
             "until redis-cli -s load ping >/dev/null 2>&1; do :; done\n"
             "redis-benchmark -s load -n 5000 -c 20 --threads 2 -q -t incr,lpush >/dev/null; echo $?\n"
             "redis-cli -s load get counter:__rand_int__; redis-cli -s load llen mylist\n"
             "redis-cli -s load shutdown nosave; wait; echo $?; rm -f log\n",
             server);
    check_script(script);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shells_do_the_same),
        cmocka_unit_test(test_a_compiler_does_the_same),
        cmocka_unit_test(test_python_does_the_same),
        cmocka_unit_test(test_perl_does_the_same),
        cmocka_unit_test(test_a_server_under_load_does_the_same),
        cmocka_unit_test(test_nothing_is_left),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, programs_setup, programs_teardown);
}
