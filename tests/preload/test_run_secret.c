/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A password in a configuration file stays there: neither the command's environment nor any child's contains it, and
 * every process that may read the file finds the server.
 */
#include "run.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../lib/stranger.h"

static char config[128];   /* mode 0600, with the password */
static char library[4096]; /* the folder of libdmutex */

/* Makes a server where no client can lock without the password. */
static int setup(void **state)
{
    run_server_setup(state);
    assert_string_equal(side_text(the_server->side, "ACL SETUSER app on >s3cret ~* &* +@all"), "OK");
    assert_string_equal(side_text(the_server->side, "ACL SETUSER default -evalsha -eval"), "OK");
    snprintf(config, sizeof config, "%s/secret.conf", folder);
    write_file("secret.conf", 0600,
               "# Url=redis://no\n[defaults]\nLease=5s\n\n [server]  \n  Url = unix://app:s3cret@%s?grace=off  \n"
               "[lock f/%%b]\nMatch=flock:%s/*.lock\n[lock run/queue]\nMatch=sym:legacy:queue_lock\n",
               the_server->path, folder);
    test_build_path(library, sizeof library, "libdmutex/.libs");
    unsetenv("DMUTEX_URL");
    return 0;
}

/* No password is in the environment of the command or of a child, nor in the messages of dmutex-run. */
static void test_no_password_is_in_the_environment_when_a_file_has_it(void **state)
{
    (void)state;
    command_run("exec %s --config %s sh -c 'env; sh -c \"env; cat /proc/self/environ\"'", dmutex_run, config);
    assert_status(0);
    assert_output("DMUTEX_URL_FILE=");
    assert_null(strstr(ran.output, "s3cret"));
    assert_null(strstr(ran.output, "DMUTEX_URL="));
    assert_string_equal(ran.errors, "");
    command_run("DMUTEX_URL=redis://other exec %s --config %s --dry-run true", dmutex_run, config);
    assert_output("DMUTEX_URL='' ");
    assert_null(strstr(ran.output, "s3cret"));
}

/* A mutex is locked on a server that needs the password. */
static void test_a_mutex_is_locked_when_a_file_has_the_password(void **state)
{
    (void)state;
    write_file("legacy.c", 0644,
               "#include <pthread.h>\n"
               "static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;\n"
               "int main(void) { return pthread_mutex_lock(&queue_lock) || pthread_mutex_unlock(&queue_lock); }\n");
    compile("legacy.c", "legacy", "$SANITIZER_CFLAGS");
    command_run("LD_LIBRARY_PATH=%s exec %s --config %s sh -c 'exec %s/legacy'", library, dmutex_run, config, folder);
    assert_status(0);
    assert_string_equal(ran.errors, "");
    assert_int_equal(side_count_keys(the_server->side, "dmutex:{run}:state:queue"), 1);
}

/*
 * A lock file is locked by a keeper that has the password neither in its environment nor in its arguments, which others
 * could read.
 */
static void test_a_file_is_locked_when_a_file_has_the_password(void **state)
{
    (void)state;
    command_run("exec %s --config %s flock %s/x.lock sh -c '"
                "for p in /proc/[0-9]*; do cat $p/cmdline 2>/dev/null | tr \"\\0\" \" \" |"
                " grep -q \"dmutex-keepe[r].*%s/keeper-0x\" || continue; "
                "echo kept; cat $p/environ $p/cmdline | tr \"\\0\" \"\\n\" | grep s3cret; done; true'",
                dmutex_run, config, folder, folder);
    assert_status(0);
    assert_string_equal(ran.output, "kept\n");
    assert_string_equal(ran.errors, "");
    assert_int_equal(side_count_keys(the_server->side, "dmutex:{f}:state:x.lock"), 1);
}

/*
 * A program that has read the password as root, and has become another user, is out of reach of that user's other
 * processes; so is the keeper that it starts.
 */
static void test_no_password_is_in_reach_of_a_user_that_a_program_has_become(void **state)
{
    char locker[4096];

    (void)state;
    if (geteuid() != 0)
        return;
    test_build_path(locker, sizeof locker, "tests/preload/locker");
    assert_return_code(chmod(folder, 0755), errno);
    assert_return_code(chmod(the_server->folder, 0755), errno);
    assert_return_code(chmod(the_server->path, 0777), errno);
    command_run("cd %s; mkdir -m 700 its; chown %d its; mkfifo go; "
                "DMUTEX_LOCAL_DIR=$PWD/its %s --config %s %s w.lock drop flock wait <go >out & exec 9>go; "
                "until grep -q flock out; do sleep 0.1; done; cat out; "
                "for p in /proc/[0-9]*; do cat $p/cmdline 2>/dev/null | tr '\\0' ' ' |"
                " grep -q 'dmutex-keepe[r].*/its/keeper-0x' || continue; "
                "echo kept; setpriv --reuid=%d --clear-groups cat $p/environ; done; echo >&9; wait",
                folder, STRANGER, dmutex_run, config, locker, STRANGER);
    assert_string_equal(ran.output, "drop 0\nflock 0\nkept\n");
    assert_errors("/environ: Permission denied\n");
    assert_return_code(chmod(folder, 0700), errno);
}

/* A dmutex-run inside, for a user without a configuration, uses the same file. */
static void test_the_file_is_found_when_another_dmutex_run_is_inside(void **state)
{
    (void)state;
    command_run("exec %s --config %s env -u DMUTEX_CONF HOME=/nowhere XDG_CONFIG_HOME=/nowhere %s --check true",
                dmutex_run, config, dmutex_run);
    assert_status(0);
    assert_output("good: the server unix://***@");
    assert_output("(DMUTEX_URL_FILE) answers\n");
    assert_null(strstr(ran.output, "s3cret"));
}

/* A user without a right to the file gets no lock, but a reason. The module is a copy that every user can reach. */
static void test_a_lock_fails_with_a_sentence_when_the_file_cannot_be_read(void **state)
{
    (void)state;
    if (geteuid() != 0)
        return;
    assert_return_code(chmod(folder, 0755), errno);
    command_run(
        "touch %s/y.lock; chmod 0666 %s/y.lock; exec %s --config %s sh -c 'cp -p $LD_PRELOAD %s/module.so; "
        "LD_PRELOAD=%s/module.so exec setpriv --reuid=%d --regid=%d --clear-groups flock %s/y.lock echo is run'",
        folder, folder, dmutex_run, config, folder, folder, STRANGER, STRANGER, folder);
    assert_int_not_equal(ran.status, 0);
    assert_string_equal(ran.output, "");
    assert_errors("dmutex: the server is not known: its URL is in ");
    assert_errors("/secret.conf, and Permission denied; ");
    assert_return_code(chmod(folder, 0700), errno);
}

/* A warning is said if others can read a file with a password. */
static void test_a_warning_is_said_when_others_can_read_the_password(void **state)
{
    (void)state;
    assert_return_code(chmod(config, 0644), errno);
    command_run("exec %s --config %s true", dmutex_run, config);
    assert_status(0);
    assert_errors("/secret.conf: has a password, and can be read by others: chmod go-r ");
    assert_return_code(chmod(config, 0600), errno);
}

/* A file that the module would read in another way than dmutex-run is refused. */
static void test_the_file_is_refused_when_the_module_cannot_read_it(void **state)
{
    static char long_name[1200];

    (void)state;
    memset(long_name, 'x', sizeof long_name - 1);
    write_file("long.conf", 0600, "[server]\nUrl=unix://app:s3cret@/%s\n[lock a]\nMatch=flock:/x\n", long_name);
    command_run("exec %s --config %s/long.conf --dry-run true", dmutex_run, folder);
    assert_status(78);
    assert_null(strstr(ran.errors, "s3cret"));
}

/*
 * A password in dmutex.conf, which is also the library's file, is in no environment either, and a file is locked on the
 * server of that file.
 */
static void test_no_password_is_in_the_environment_when_dmutex_conf_has_it(void **state)
{
    char wanted[512];

    (void)state;
    write_file(".config/dmutex/dmutex.conf", 0600, "[server]\nUrl=unix://app:s3cret@%s?grace=off\n", the_server->path);
    command_run("exec %s -e 'flock:%s/*.own => f/%%b' sh -c 'env | grep -e DMUTEX_URL -e s3cret; "
                "flock %s/z.own env | grep -e DMUTEX_URL -e s3cret'",
                dmutex_run, folder, folder);
    assert_status(0);
    snprintf(wanted, sizeof wanted,
             "DMUTEX_URL_FILE=%s/.config/dmutex/dmutex.conf\nDMUTEX_URL_FILE=%s/.config/dmutex/dmutex.conf\n", folder,
             folder);
    assert_string_equal(ran.output, wanted);
    assert_string_equal(ran.errors, "");
    assert_int_equal(side_count_keys(the_server->side, "dmutex:{f}:state:z.own"), 1);
    command_run("rm %s/.config/dmutex/dmutex.conf", folder);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_password_is_in_the_environment_when_a_file_has_it),
        cmocka_unit_test(test_a_mutex_is_locked_when_a_file_has_the_password),
        cmocka_unit_test(test_a_file_is_locked_when_a_file_has_the_password),
        cmocka_unit_test(test_no_password_is_in_reach_of_a_user_that_a_program_has_become),
        cmocka_unit_test(test_the_file_is_found_when_another_dmutex_run_is_inside),
        cmocka_unit_test(test_a_lock_fails_with_a_sentence_when_the_file_cannot_be_read),
        cmocka_unit_test(test_a_warning_is_said_when_others_can_read_the_password),
        cmocka_unit_test(test_the_file_is_refused_when_the_module_cannot_read_it),
        cmocka_unit_test(test_no_password_is_in_the_environment_when_dmutex_conf_has_it),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, setup, run_server_teardown);
}
