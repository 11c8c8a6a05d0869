/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DMUTEX_METRICS=PATH: the counters as a text file for Prometheus.
 *
 * This program executes itself with --lock: locks and unlocks PAIRS times, or as the next word says.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../lib/testlib.h"

#define PAIRS 7

static int lock_often(dmutex_t *mutex, int pairs)
{
    int error = 0;

    for (int i = 0; i < pairs && !error; i++) {
        error = dmutex_lock(mutex);
        if (!error)
            error = dmutex_unlock(mutex);
    }
    return error;
}

/* The child locks once, and ends by exit(). */
static int lock_in_both(dmutex_t *mutex)
{
    int status, error = lock_often(mutex, PAIRS);
    pid_t child = fork();

    if (child == 0)
        exit(lock_often(mutex, 1));
    return waitpid(child, &status, 0) == child && status == 0 ? error : ECHILD;
}

/* As the program with --lock. */
static int use_mutex(const char *how)
{
    dmutex_t mutex = DMUTEX_INITIALIZER("metrics/x");
    dmutex_t local = DMUTEX_ANONYMOUS_INITIALIZER;
    int locked;

    if (strcmp(how, "ask") == 0)
        return dmutex_islocked_np(&mutex, &locked);
    if (strcmp(how, "local") == 0)
        return lock_often(&local, PAIRS);
    if (strcmp(how, "fork") == 0)
        return lock_in_both(&mutex);
    return lock_often(&mutex, PAIRS);
}

/* The URL of the process's arguments, because a program with more rights ignores DMUTEX_URL; prints if it has these. */
static int use_configured(const char *url)
{
    int error = dmutex_configure_np(url);

    printf("%lu\n", getauxval(AT_SECURE));
    return error ? error : use_mutex("");
}

/* Runs this program with --lock; `before` goes before, in the shell, whose number is the program's. */
static void run_with_metrics(const char *before, const char *file, const char *how)
{
    command_run("cd %s && %s DMUTEX_URL='%s' DMUTEX_PRIVATE=libc DMUTEX_METRICS='%s' exec %s --lock %s",
                the_server->folder, before, the_server->url, file, program_path, how);
    assert_status(0);
}

/* The number after the beginning of a line; -1 if there is no such line. */
static long long value_in(const char *path, const char *begin)
{
    char line[256];
    long long value = -1;
    FILE *file = fopen(path, "r");

    while (file && fgets(line, sizeof line, file)) {
        if (strncmp(line, begin, strlen(begin)) == 0 && strchr(line, '}'))
            value = atoll(strchr(line, '}') + 1);
    }
    if (file)
        fclose(file);
    return value;
}

/* The same for a line whose labels end so. */
static long long holds_in(const char *path, const char *from)
{
    char line[256], wanted[64];
    long long value = -1;
    FILE *file = fopen(path, "r");

    snprintf(wanted, sizeof wanted, ",from=\"%s\"} ", from);
    while (file && fgets(line, sizeof line, file)) {
        if (strstr(line, wanted))
            value = atoll(strstr(line, wanted) + strlen(wanted));
    }
    if (file)
        fclose(file);
    return value;
}

static void assert_format(const char *path)
{
    command_run("awk -f \"${srcdir:-.}/tests/lib/metrics.awk\" %s", path);
    assert_status(0);
    assert_string_equal(ran.output, "");
    assert_string_equal(ran.errors, "");
}

/* No files of this folder have such names. */
static void assert_none(const char *pattern)
{
    command_run("cd %s && ls -d %s", the_server->folder, pattern);
    assert_string_equal(ran.output, "");
}

/* ---- the file ---------------------------------------------------------------------------- */

/* exit() writes all that the process has counted, for everybody to read, and leaves no other file. */
static void test_file_has_all_counts_when_the_process_has_ended(void **state)
{
    const char *path = server_file(the_server, "ended.prom");
    struct stat status;

    (void)state;
    run_with_metrics("umask 022;", "ended.prom", "");
    assert_format(path);
    assert_return_code(stat(path, &status), errno);
    assert_int_equal(status.st_mode & 07777, 0644);
    assert_int_equal(holds_in(path, "server"), PAIRS);
    assert_int_equal(holds_in(path, "process"), 0);
    assert_int_equal(value_in(path, "dmutex_lock_seconds_count{"), PAIRS);
    assert_int_equal(value_in(path, "dmutex_hold_seconds_count{"), PAIRS);
    assert_int_equal(value_in(path, "dmutex_timeouts_total{"), 0);
    assert_true(value_in(path, "dmutex_commands_total{") >= 2 * PAIRS);
    command_run("grep -c '^dmutex_waits_total{program=\"[^\"]*test_metrics\",pid=\"' %s", path);
    assert_output("1");
    assert_none("ended.prom.*");
}

/* The loop thread writes at the first lock: a process that is killed has been seen. */
static void test_file_is_there_while_the_process_goes_on(void **state)
{
    char variable[160];
    struct actor *actor;

    (void)state;
    snprintf(variable, sizeof variable, "DMUTEX_METRICS=%s", server_file(the_server, "living.prom"));
    actor = actor_start_with(the_server, variable, NULL);
    assert_none("living.prom");
    actor_do(actor, "0", "lock metrics/living");
    wait_until(access(server_file(the_server, "living.prom"), R_OK) == 0);
    assert_int_equal(holds_in(server_file(the_server, "living.prom"), "server"), 1);
    actor_kill(actor);
    actor_end(actor);
    assert_format(server_file(the_server, "living.prom"));
}

/* A forked child has its own file, with only its own counts. */
static void test_child_has_a_file_of_its_own_when_the_path_names_the_process(void **state)
{
    (void)state;
    if (IS_THREAD_SANITIZED)
        return; /* the forked child starts threads */
    run_with_metrics("echo $$ >parent;", "forked.%p", "fork");
    command_run("cd %s && mv forked.$(cat parent) of-parent && mv forked.* of-child", the_server->folder);
    assert_status(0);
    assert_int_equal(holds_in(server_file(the_server, "of-parent"), "server"), PAIRS);
    assert_int_equal(holds_in(server_file(the_server, "of-child"), "server"), 1);
    assert_format(server_file(the_server, "of-child"));
}

/* A link is replaced and not followed, and a file that a killed process has left is no obstacle. */
static void test_file_replaces_a_link_and_the_rest_of_a_killed_process(void **state)
{
    struct stat status;

    (void)state;
    run_with_metrics("echo kept >target; ln -s target linked.prom; echo >linked.prom.$$.tmp;", "linked.prom", "");
    assert_return_code(lstat(server_file(the_server, "linked.prom"), &status), errno);
    assert_true(S_ISREG(status.st_mode));
    command_run("cat %s", server_file(the_server, "target"));
    assert_string_equal(ran.output, "kept\n");
    assert_none("linked.prom.*");
    assert_format(server_file(the_server, "linked.prom"));
}

/* What the process holds at the moment is there at once, by name if that is asked for. */
static void test_file_shows_what_is_held_now(void **state)
{
    const char *path = server_file(the_server, "held.prom");
    struct actor *actor;
    char variable[300], held[200];

    (void)state;
    snprintf(variable, sizeof variable, "DMUTEX_METRICS=%s", path);
    actor = actor_start_with(the_server, variable, "DMUTEX_METRICS_NAMES=yes", NULL);
    actor_do(actor, "0", "lock metrics/held");
    snprintf(held, sizeof held, "dmutex_held{program=\"test_metrics\",pid=\"%d\",name=\"metrics/held\"} ",
             (int)actor_pid(actor));
    wait_until(value_in(path, held) == 1);
    assert_format(path);
    actor_do(actor, "0", "unlock metrics/held");
    actor_end(actor);
    assert_int_equal(value_in(path, held), -1);
}

#define STRANGER 61234

/* Security: root's programs make no file where another user's link leads, and write into another user's folder. */
static void test_root_follows_no_link_of_a_stranger(void **state)
{
    const char *folder = the_server->folder;

    (void)state;
    if (geteuid() != 0)
        return; /* only root can make the files of a stranger */
    command_run("cd %s && mkdir rooted strange && ln -s rooted way && chown -h %d way strange", folder, STRANGER);
    assert_status(0);
    run_with_metrics("", server_file(the_server, "way/x.prom"), "");
    assert_errors("way/x.prom is not written by root: ");
    assert_errors("way belongs to user 61234");
    assert_none("rooted/x*");
    run_with_metrics("", server_file(the_server, "strange/x.prom"), "");
    assert_string_equal(ran.errors, "");
    assert_format(server_file(the_server, "strange/x.prom"));
}

/* ---- no file ----------------------------------------------------------------------------- */

/* A missing folder costs one line, and no lock; so does a folder where the file should be. */
static void test_locks_go_on_when_the_file_cannot_be_written(void **state)
{
    (void)state;
    run_with_metrics("", "nowhere/file.prom", "");
    assert_errors("the metrics file nowhere/file.prom cannot be written: No such file or directory");
    command_run("printf '%%s' '%s' | grep -c 'metrics file'", ran.errors);
    assert_string_equal(ran.output, "1\n");
    run_with_metrics("mkdir taken;", "taken", "");
    assert_errors("the metrics file taken cannot be written");
    run_with_metrics("ulimit -f 0;", "limited.prom", ""); /* standard error may not grow either */
    assert_none("limited.*");
    assert_none("taken.*");
}

/* As /etc/dmutex/dmutex.conf may name a folder that is another user's: the user's programs say nothing about it. */
static void test_nothing_is_said_when_the_folder_of_dmutex_conf_is_for_others(void **state)
{
    (void)state;
    command_run("umask 022; cd %s && mkdir -p others conf/dmutex && chmod 0 others && "
                "printf '[defaults]\\nMetrics=%%s/others/x.prom\\n' \"$PWD\" >conf/dmutex/dmutex.conf && "
                "less=; test $(id -u) != 0 || less='setpriv --bounding-set=-dac_override,-dac_read_search'; "
                "XDG_CONFIG_HOME=$PWD/conf DMUTEX_URL='%s' DMUTEX_PRIVATE=libc exec $less %s --lock ''",
                the_server->folder, the_server->url, program_path);
    assert_status(0);
    assert_string_equal(ran.errors, "");
    assert_return_code(chmod(server_file(the_server, "others"), 0700), errno);
    assert_none("others/x.prom*");
}

/* A process whose mutexes are local, or that only asks about a mutex, has nothing to report. */
static void test_no_file_is_written_when_nothing_is_locked_on_the_server(void **state)
{
    (void)state;
    run_with_metrics("", "none.prom", "local");
    run_with_metrics("", "none.prom", "ask");
    run_with_metrics("", "", "");
    assert_string_equal(ran.errors, "");
    assert_none("none.prom*");
}

/* ---- the dashboard ----------------------------------------------------------------------- */

/* doc/grafana.json is JSON, and asks for no metric that the library does not write. */
static void test_dashboard_names_only_metrics_that_are_written(void **state)
{
    (void)state;
    run_with_metrics("", "dashboard.prom", "");
    command_run("panel=\"${srcdir:-.}/doc/grafana.json\"; names=$(grep -o 'dmutex_[a-z_]*' \"$panel\" | sort -u); "
                "for name in $names; do grep -q \"^$name{\" %s || echo \"$name is not written\"; done; "
                "test $(echo \"$names\" | wc -l) -ge 10 || echo 'too few metrics'",
                server_file(the_server, "dashboard.prom"));
    assert_string_equal(ran.output, "");
    assert_string_equal(ran.errors, "");
    command_run("! command -v python3 >/dev/null || exec python3 -m json.tool \"${srcdir:-.}/doc/grafana.json\"");
    assert_status(0);
}

/* A group that is not the process's own, to lend the rights of; -1: none. */
static gid_t other_group(void)
{
    gid_t groups[64];
    int count = getgroups(64, groups);

    for (int i = 0; i < count; i++)
        if (groups[i] != getegid())
            return groups[i];
    return geteuid() == 0 ? getegid() + 1 : (gid_t)-1;
}

/* A copy of this program in the server's folder, with these rights, is run. */
static void run_copy(mode_t mode)
{
    assert_int_equal(chmod(server_file(the_server, "copy"), mode), 0);
    command_run("DMUTEX_METRICS=%s/lent.prom exec %s/copy --configured '%s'", the_server->folder, the_server->folder,
                the_server->url);
    assert_status(0);
}

/* Where no group can be lent, or programs of the folder get no rights, nothing is tested but the copy. */
static void test_no_file_is_written_when_the_program_has_rights_of_its_file(void **state)
{
    gid_t group = other_group();

    (void)state;
    command_run("cp %s %s", program_path, server_file(the_server, "copy"));
    assert_status(0);
    assert_true(group == (gid_t)-1 || chown(server_file(the_server, "copy"), (uid_t)-1, group) == 0);
    run_copy(0755);
    assert_string_equal(ran.output, "0\n");
    assert_int_equal(unlink(server_file(the_server, "lent.prom")), 0);
    run_copy(02755);
    if (strcmp(ran.output, "1\n") == 0)
        assert_int_equal(access(server_file(the_server, "lent.prom"), F_OK), -1);
    else
        print_message("# no rights could be lent\n");
    assert_string_equal(ran.errors, "");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_file_has_all_counts_when_the_process_has_ended),
        cmocka_unit_test(test_file_is_there_while_the_process_goes_on),
        cmocka_unit_test(test_child_has_a_file_of_its_own_when_the_path_names_the_process),
        cmocka_unit_test(test_file_replaces_a_link_and_the_rest_of_a_killed_process),
        cmocka_unit_test(test_root_follows_no_link_of_a_stranger),
        cmocka_unit_test(test_file_shows_what_is_held_now),
        cmocka_unit_test(test_locks_go_on_when_the_file_cannot_be_written),
        cmocka_unit_test(test_nothing_is_said_when_the_folder_of_dmutex_conf_is_for_others),
        cmocka_unit_test(test_no_file_is_written_when_nothing_is_locked_on_the_server),
        cmocka_unit_test(test_no_file_is_written_when_the_program_has_rights_of_its_file),
        cmocka_unit_test(test_dashboard_names_only_metrics_that_are_written),
        cmocka_unit_test(test_nothing_is_left),
    };

    if (argc > 1 && strcmp(argv[1], "--lock") == 0)
        return use_mutex(argc > 2 ? argv[2] : "");
    if (argc > 2 && strcmp(argv[1], "--configured") == 0)
        return use_configured(argv[2]);
    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, test_group_setup, test_group_teardown);
}
