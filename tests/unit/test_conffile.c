/* SPDX-License-Identifier: BSD-2-Clause */
/* base/conffile: the grammar of dmutex.conf(5), and the files that are refused. */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../lib/folder.h"
#include "../lib/testlib.h"
#include "config/conffile.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static char path[DM_CONFFILE_PATH_ROOM];
static char reason[DM_CONFFILE_REASON_ROOM];
static struct dm_conffile conf;

static int setup(void **state)
{
    (void)state;
    keeper_make_folder(folder, sizeof folder);
    snprintf(path, sizeof path, "%s/dmutex.conf", folder);
    memset(&conf, 0, sizeof conf);
    return 0;
}

static void write_file(const char *text)
{
    FILE *file = fopen(path, "we");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_return_code(chmod(path, 0600), errno);
}

static void assert_refused(const char *words)
{
    reason[0] = '\0';
    assert_false(dm_conffile_read(path, &conf, reason));
    if (!strstr(reason, words) || strncmp(reason, path, strlen(path)) != 0)
        fail_msg("\"%s\" does not name the file and \"%s\"", reason, words);
}

/* All keys are read, blanks and comments are left out, and the password file becomes a part of the URL. */
static void test_a_file_is_read_when_it_has_all_keys(void **state)
{
    (void)state;
    write_file(
        "# comment\n\n [server]\nUrl = redis://h?db=1 \r\nPasswordFile=/a b/%\nLocal=forbid\n[defaults]\nLease=2min");
    assert_true(dm_conffile_read(path, &conf, reason));
    assert_string_equal(conf.url, "redis://h?db=1&password_file=/a%20b/%25");
    assert_string_equal(conf.url_from, path);
    assert_true(conf.forbids_local);
    assert_string_equal(conf.forbidden_by, path);
    assert_int_equal(conf.lease_ms, 120000);
}

/* Each key of [defaults] has the values of its variable. */
static void test_defaults_are_read_when_they_are_written_as_in_the_environment(void **state)
{
    (void)state;
    write_file("[defaults]\nHost=db 2\nLinger=2s\nLog=info:/var/log/a\nMetrics=/m/%p.prom\nMetricsNames=yes\n"
               "OnDown=fail\nOnLost=signal:USR1");
    assert_true(dm_conffile_read(path, &conf, reason));
    assert_string_equal(conf.host, "db 2");
    assert_int_equal(conf.linger_ms, 2000);
    assert_string_equal(conf.log, "info:/var/log/a");
    assert_string_equal(conf.metrics, "/m/%p.prom");
    assert_true(conf.has_metrics_names);
    assert_true(conf.fails_when_down);
    assert_int_equal(conf.on_lost, DM_LOST_SIGNAL);
    assert_int_equal(conf.lost_signal, SIGUSR1);
    write_file("[defaults]\nLog=debug\nOnDown=wait\nOnLost=log\nLinger=0\n");
    assert_true(dm_conffile_read(path, &conf, reason));
    assert_string_equal(conf.log, "debug");
    assert_false(conf.fails_when_down);
    assert_int_equal(conf.on_lost, DM_LOST_LOG);
    assert_int_equal(conf.lost_signal, 0);
    assert_int_equal(conf.linger_ms, 0);
}

/* A second file changes only the keys in the file; an earlier password is not used for another server. */
static void test_a_second_file_changes_only_what_it_says(void **state)
{
    (void)state;
    write_file("[server]\nUrl=redis://h\nPasswordFile=/p\nLocal=forbid\n[defaults]\nLease=500ms\n");
    assert_true(dm_conffile_read(path, &conf, reason));
    write_file("[server]\nUrl=unix:///s\n");
    assert_true(dm_conffile_read(path, &conf, reason));
    assert_string_equal(conf.url, "unix:///s");
    assert_true(conf.forbids_local);
    assert_int_equal(conf.lease_ms, 500);
    write_file("[server]\nLocal=allow\n[defaults]\nLease=3600000\n");
    assert_true(dm_conffile_read(path, &conf, reason));
    assert_string_equal(conf.url, "unix:///s");
    assert_false(conf.forbids_local);
    assert_int_equal(conf.lease_ms, 3600000);
}

/* An absent file or folder changes nothing, and is no failure. */
static void test_an_absent_file_says_nothing(void **state)
{
    (void)state;
    assert_true(dm_conffile_read(path, &conf, reason));
    assert_true(dm_conffile_read("/nonexistent/folder/dmutex.conf", &conf, reason));
    assert_string_equal(conf.url, "");
}

/* A mistake is reported with file, line and reason, or with the values that are allowed. */
static void test_a_mistake_is_reported_with_its_line(void **state)
{
    static const struct {
        const char *text, *words;
    } mistakes[] = {
        { "Url=redis://h\n", ":1: there is no key \"Url\" here" },
        { "[server]\nurl=redis://h\n", ":2: there is no key \"url\" here" },
        { "[server]\nLease=10s\n", ":2: there is no key \"Lease\" here" },
        { "\n[sever]\n", ":2: there is no section [sever]" },
        { "[server]\nUrl\n", ":2: a line is" },
        { "[server]\nUrl=\n", ":2: Url is empty" },
        { "[server]\nUrl=a\nUrl=b\n", ":3: Url is there twice" },
        { "[server]\nUrl=a\\sb\n", ":2: the value of Url has a backslash" },
        { "[server]\nLocal=no\n", ":2: Local \"no\" is neither" },
        { "[server]\nUrl=a\nPasswordFile=p\n", ":3: PasswordFile \"p\" is not an absolute path" },
        { "[server]\nPasswordFile=/p\n", ": PasswordFile without Url" },
        { "[defaults]\nLease=99\n", ":2: Lease \"99\" is not a time" },
        { "[defaults]\nLease=61min\n", ":2: Lease \"61min\" is not a time" },
        { "[defaults]\nLease=-1\n", "Lease \"-1\" is not a time" },
        { "[defaults]\nLease=10 s\n", "Lease \"10 s\" is not a time" },
        { "[defaults]\nLease=99999999999999999999s\n", "is not a time" },
        { "[defaults]\nLease=\n", "Lease \"\" is not a time" },
        { "[defaults]\nHost=\n", ":2: Host is empty" },
        { "[defaults]\nLinger=soon\n", ":2: Linger \"soon\" is not a time" },
        { "[defaults]\nLog=all\n", ":2: Log \"all\" is not warn, info or debug" },
        { "[defaults]\nLog=infor\n", ":2: Log \"infor\" is not" },
        { "[defaults]\nLog=info:log\n", ":2: Log \"info:log\" is not" },
        { "[defaults]\nMetrics=m.prom\n", ":2: Metrics \"m.prom\" is not an absolute path" },
        { "[defaults]\nMetricsNames=1\n", ":2: MetricsNames \"1\" is neither yes nor no" },
        { "[defaults]\nOnDown=no\n", ":2: OnDown \"no\" is neither wait nor fail" },
        { "[defaults]\nOnLost=signal:NONE\n", ":2: OnLost \"signal:NONE\" is not log, abort or signal:NAME" },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(mistakes); i++) {
        write_file(mistakes[i].text);
        assert_refused(mistakes[i].words);
    }
}

/* A value longer than the room is refused, not cut. */
static void test_a_long_value_is_refused(void **state)
{
    char text[2 * DM_CONFFILE_URL_ROOM];

    (void)state;
    snprintf(text, sizeof text, "[server]\nUrl=%0*d\n", DM_CONFFILE_URL_ROOM, 0);
    write_file(text);
    assert_refused("longer than");
    snprintf(text, sizeof text, "[server]\nUrl=a\nPasswordFile=/%0*d\n", DM_CONFFILE_URL_ROOM, 0);
    write_file(text);
    assert_refused("too long");
}

/* A file is refused if other users can write or replace the file. */
static void test_a_file_is_refused_when_others_can_change_it(void **state)
{
    (void)state;
    write_file("[server]\nUrl=redis://h\n");
    assert_return_code(chmod(path, 0620), errno);
    assert_refused("can be written by others than its owner: chmod go-w");
    assert_return_code(chmod(path, 0602), errno);
    assert_refused("can be written by others");
    assert_return_code(chmod(path, 0644), errno);
    assert_true(dm_conffile_read(path, &conf, reason));
    assert_return_code(chmod(folder, 0770), errno);
    assert_refused("can be changed by others");
    assert_return_code(chmod(folder, 0700), errno);
}

/* As in a volume of Kubernetes: dmutex.conf -> ..data/dmutex.conf, ..data -> ..2026_11_28. */
static void make_volume(void)
{
    assert_return_code(mkdir(in_folder("..2026_11_28"), 0755), errno);
    write_file("[server]\nUrl=redis://h\n");
    assert_return_code(rename(path, in_folder("..2026_11_28/dmutex.conf")), errno);
    assert_return_code(symlink("..2026_11_28", in_folder("..data")), errno);
    assert_return_code(symlink("..data/dmutex.conf", path), errno);
}

/* R6: each link on the way is checked as a folder is; a link to nothing is a mistake, and not an absent file. */
static void test_a_file_is_read_when_links_lead_there(void **state)
{
    (void)state;
    make_volume();
    assert_true(dm_conffile_read(path, &conf, reason));
    assert_string_equal(conf.url, "redis://h");
    assert_return_code(chmod(in_folder("..2026_11_28/dmutex.conf"), 0622), errno);
    assert_refused("can be written by others");
    assert_return_code(chmod(in_folder("..2026_11_28/dmutex.conf"), 0644), errno);
    assert_return_code(chmod(in_folder("..2026_11_28"), 0777), errno);
    assert_refused("can be changed by others");
    assert_return_code(unlink(in_folder("..2026_11_28/dmutex.conf")), errno);
    assert_return_code(chmod(in_folder("..2026_11_28"), 0755), errno);
    assert_refused("a link leads to ..data/dmutex.conf, which is not there: put it there, or remove the link");
}

/* A folder that is a link to nothing, as to a disk that is not mounted, is not an absent folder. */
static void test_a_file_is_refused_when_its_folder_is_a_link_to_nothing(void **state)
{
    (void)state;
    assert_return_code(symlink("/nonexistent/etc", in_folder("link")), errno);
    snprintf(path, sizeof path, "%s/link/dmutex.conf", folder);
    assert_refused("a link leads to /nonexistent, which is not there: put it there, or remove the link");
}

/* Files of /proc say that they are empty. */
static void test_a_file_is_read_when_its_size_is_not_known(void **state)
{
    char name[16];

    (void)state;
    prctl(PR_GET_NAME, name);
    prctl(PR_SET_NAME, "[server]\nUrl=h");
    assert_true(dm_conffile_read("/proc/thread-self/comm", &conf, reason));
    assert_string_equal(conf.url, "h");
    prctl(PR_SET_NAME, name);
}

/* A file that is cut would be read as far as it goes. */
static void test_a_file_is_refused_when_it_is_longer_than_the_most(void **state)
{
    static char text[65536 + 2];

    (void)state;
    memset(text, '#', sizeof text - 1);
    write_file(text);
    assert_refused("is not a file of at most 65536 bytes");
    text[65536] = '\0';
    write_file(text);
    assert_true(dm_conffile_read(path, &conf, reason));
}

/* The link of another user, in a folder where all may make links. */
static void test_a_file_is_refused_when_the_link_is_of_another_user(void **state)
{
    (void)state;
    make_volume();
    if (geteuid() != 0)
        return;
    assert_return_code(chmod(folder, 01777), errno);
    assert_true(dm_conffile_read(path, &conf, reason));
    assert_return_code(lchown(path, 12345, (gid_t)-1), errno);
    assert_refused("belongs to user 12345");
}

/* In a namespace of mounts: 0 if the file is read once the mount is read-only, and not before. */
static int read_in_volume(void)
{
    int result = 1;

    if (unshare(CLONE_NEWNS) != 0 || mount(folder, folder, NULL, MS_BIND, NULL) != 0)
        return 2;
    mount(NULL, folder, NULL, MS_PRIVATE, NULL);
    if (!dm_conffile_read(path, &conf, reason) && strstr(reason, "can be changed by others") &&
        mount(NULL, folder, NULL, MS_BIND | MS_REMOUNT | MS_RDONLY, NULL) == 0 && dm_conffile_read(path, &conf, reason))
        result = 0;
    umount2(folder, MNT_DETACH);
    return result;
}

/* R6: the folder of a ConfigMap has the mode 0777, and is read-only for all. */
static void test_a_file_is_read_when_its_open_folder_is_mounted_read_only(void **state)
{
    pid_t pid;
    int status;

    (void)state;
    make_volume();
    if (geteuid() != 0)
        return;
    assert_return_code(chmod(folder, 0777), errno);
    pid = keeper_fork();
    if (pid == 0)
        _exit(read_in_volume());
    status = keeper_reap(pid);
    assert_int_equal(status, 0);
}

/* A FIFO and a folder are refused, without blocking. */
static void test_a_fifo_is_refused(void **state)
{
    (void)state;
    assert_return_code(mkfifo(path, 0600), errno);
    assert_refused("is not a file");
    assert_return_code(unlink(path), errno);
    assert_return_code(mkdir(path, 0700), errno);
    assert_refused("is not a file");
}

/*
 * A file of another user is refused.  Only root can make such a file; without root, the test checks that an
 * unreadable file is refused.
 */
static void test_a_file_is_refused_when_it_is_of_another_user(void **state)
{
    (void)state;
    write_file("[server]\nUrl=redis://h\n");
    if (geteuid() == 0) {
        assert_return_code(chown(path, 12345, (gid_t)-1), errno);
        assert_refused("belongs to user 12345");
        assert_return_code(chown(path, 0, (gid_t)-1), errno);
        assert_return_code(chown(folder, 12345, (gid_t)-1), errno);
        assert_refused("belongs to user 12345");
    } else {
        assert_return_code(chmod(path, 0), errno);
        assert_refused(strerror(EACCES));
    }
}

/* The user's file is below XDG_CONFIG_HOME, else below HOME; without an absolute path in either there is no file. */
static void test_the_users_path_follows_the_environment(void **state)
{
    char user[DM_CONFFILE_PATH_ROOM];

    (void)state;
    setenv("HOME", "/h", 1);
    setenv("XDG_CONFIG_HOME", "/x", 1);
    assert_true(dm_conffile_user_path(user));
    assert_string_equal(user, "/x/dmutex/dmutex.conf");
    setenv("XDG_CONFIG_HOME", "relative", 1);
    assert_true(dm_conffile_user_path(user));
    assert_string_equal(user, "/h/.config/dmutex/dmutex.conf");
    unsetenv("XDG_CONFIG_HOME");
    unsetenv("HOME");
    assert_false(dm_conffile_user_path(user));
}

/* Exits with 0 if all files are read, and the user's file is passed over. */
static void read_all_as_another_user(void)
{
    if (geteuid() == 0 && (setgid(12345) != 0 || setuid(12345) != 0))
        _exit(2);
    _exit(dm_conffile_read_all(&conf, reason) && strcmp(conf.passed_over, path) == 0 ? 0 : 1);
}

/* A daemon gives root's rights up, and still has root's HOME. */
static void test_the_users_file_is_passed_over_when_its_folder_is_closed(void **state)
{
    pid_t pid;

    (void)state;
    setenv("XDG_CONFIG_HOME", folder, 1);
    assert_true(dm_conffile_user_path(path));
    assert_return_code(mkdir(in_folder("dmutex"), 0700), errno);
    write_file("[server]\nUrl=redis://h\n");
    assert_true(dm_conffile_read_all(&conf, reason));
    assert_string_equal(conf.url, "redis://h");
    assert_string_equal(conf.passed_over, "");
    assert_return_code(chmod(folder, 0600), errno);
    pid = keeper_fork();
    if (pid == 0)
        read_all_as_another_user();
    assert_int_equal(keeper_reap(pid), 0);
    assert_return_code(chmod(folder, 0700), errno);
    unsetenv("XDG_CONFIG_HOME");
}

#define with_a_folder(test) cmocka_unit_test_setup_teardown(test, setup, folder_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        with_a_folder(test_a_file_is_read_when_it_has_all_keys),
        with_a_folder(test_defaults_are_read_when_they_are_written_as_in_the_environment),
        with_a_folder(test_a_second_file_changes_only_what_it_says),
        with_a_folder(test_an_absent_file_says_nothing),
        with_a_folder(test_a_mistake_is_reported_with_its_line),
        with_a_folder(test_a_long_value_is_refused),
        with_a_folder(test_a_file_is_refused_when_others_can_change_it),
        with_a_folder(test_a_file_is_read_when_links_lead_there),
        with_a_folder(test_a_file_is_refused_when_its_folder_is_a_link_to_nothing),
        with_a_folder(test_a_file_is_read_when_its_size_is_not_known),
        with_a_folder(test_a_file_is_refused_when_it_is_longer_than_the_most),
        with_a_folder(test_a_file_is_refused_when_the_link_is_of_another_user),
        with_a_folder(test_a_file_is_read_when_its_open_folder_is_mounted_read_only),
        with_a_folder(test_a_fifo_is_refused),
        with_a_folder(test_a_file_is_refused_when_it_is_of_another_user),
        with_a_folder(test_the_users_file_is_passed_over_when_its_folder_is_closed),
        cmocka_unit_test(test_the_users_path_follows_the_environment),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
