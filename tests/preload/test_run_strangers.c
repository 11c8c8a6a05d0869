/* SPDX-License-Identifier: BSD-2-Clause */
/* dmutex-run as root on a machine with other users, who take over the folder of temporary files that it has used. */
#include <stdlib.h>
#include <sys/stat.h>

#include "../lib/stranger.h"
#include "run.h"

/* A folder as /tmp is. */
static int begin(void **state)
{
    static char place[sizeof folder + 4];

    run_setup(state);
    snprintf(place, sizeof place, "%s/tmp", folder);
    assert_return_code(chmod(folder, 0711), errno);
    assert_return_code(mkdir(place, 0700), errno);
    assert_return_code(chmod(place, 01777), errno);
    setenv("TMPDIR", place, 1);
    return 0;
}

/*
 * A stranger makes the folder again, as after a cleaning of /tmp or the end of dmutex-run, with links to a file of root
 * instead of the reports.
 */
#define PLANT                                                                             \
    "rm -r $DMUTEX_LIST; LD_PRELOAD= setpriv --reuid 61234 --regid 61234 --clear-groups " \
    "sh -c \"mkdir -m 777 $DMUTEX_LIST; ln -s %2$s/victim $DMUTEX_LIST/made; ln -s %2$s/victim $DMUTEX_LIST/$$\"; "

/* A process writes no report through a stranger's links: neither of locks nor of files that it makes. */
static void test_no_report_is_written_when_a_stranger_has_made_the_folder(void **state)
{
    (void)state;
    write_file("victim", 0644, "%s", "kept");
    command_run("exec %1$s --list sh -c '" PLANT "set -C; : >%2$s/x; exec flock %2$s/y.lock true'", dmutex_run, folder);
    assert_status(0);
    command_run("cat %s/victim", folder);
    assert_string_equal(ran.output, "kept");
}

/* The end of --list removes nothing by a stranger's link in place of the folder. */
static void test_nothing_is_removed_when_a_stranger_has_put_a_link_there(void **state)
{
    (void)state;
    command_run("mkdir %2$s/d; echo kept >%2$s/d/f; exec %1$s --list sh -c 'rm -r $DMUTEX_LIST; LD_PRELOAD= setpriv "
                "--reuid 61234 ln -s %2$s/d $DMUTEX_LIST; exec true'",
                dmutex_run, folder);
    assert_status(0);
    command_run("cat %s/d/f", folder);
    assert_string_equal(ran.output, "kept\n");
}

/* Nor is a stranger's folder of the same name, though it is empty. */
static void test_a_folder_is_not_removed_when_a_stranger_has_made_it(void **state)
{
    (void)state;
    command_run("exec %1$s --list sh -c 'rm -r $DMUTEX_LIST; LD_PRELOAD= setpriv --reuid 61234 mkdir $DMUTEX_LIST; "
                "echo $DMUTEX_LIST >%2$s/where; exec true'",
                dmutex_run, folder);
    assert_status(0);
    command_run("rmdir $(cat %s/where)", folder);
    assert_status(0);
}

/* The folder that --list has made is removed. */
static void test_the_folder_is_removed_when_it_is_there(void **state)
{
    (void)state;
    command_run("exec %1$s --list sh -c 'echo $DMUTEX_LIST >%2$s/where; test -d $DMUTEX_LIST'", dmutex_run, folder);
    assert_status(0);
    command_run("test ! -e $(cat %s/where)", folder);
    assert_status(0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_report_is_written_when_a_stranger_has_made_the_folder),
        cmocka_unit_test(test_nothing_is_removed_when_a_stranger_has_put_a_link_there),
        cmocka_unit_test(test_a_folder_is_not_removed_when_a_stranger_has_made_it),
        cmocka_unit_test(test_the_folder_is_removed_when_it_is_there),
    };

    test_begin(argc, argv);
    stranger_require();
    return cmocka_run_group_tests(tests, begin, folder_teardown);
}
