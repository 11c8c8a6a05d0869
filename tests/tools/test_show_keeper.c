/* SPDX-License-Identifier: BSD-2-Clause */
/* dmutex show and list name the job behind dmutex-keeper, which holds lock files for jobs. */
#include <stdlib.h>
#include <string.h>

#include "../preload/host.h"

static int setup(void **state)
{
    char path[4096];

    test_build_path(path, sizeof path, "tools/dmutex");
    setenv("dmutex", path, 1);
    return host_pair_setup(state);
}

/* dmutex itself runs without the module of the hosts' programs. */
static void test_show_names_the_job_when_a_keeper_of_this_host_holds_a_lock_file(void **state)
{
    struct job *holder = host_start(a, "flock x.lock sh -c 'echo has; read go'"), *look;

    (void)state;
    job_expect(holder, "has");
    look = host_start(a, "env -u LD_PRELOAD $dmutex show f/x.lock");
    assert_non_null(strstr(job_rest(look), "  held by   flock (process "));
    assert_int_equal(job_end(look), 0);
    look = host_start(a, "env -u LD_PRELOAD $dmutex show f/x.lock");
    assert_non_null(strstr(job_rest(look), "/x.lock\n"));
    assert_int_equal(job_end(look), 0);
    look = host_start(a, "env -u LD_PRELOAD $dmutex list --json 'f/*'");
    assert_non_null(strstr(job_rest(look), "\"job\":{\"program\":\"flock\",\"pid\":"));
    assert_int_equal(job_end(look), 0);
    job_finish(holder);
}

/* Another host's keeper cannot be asked, and is shown as the holder. */
static void test_show_names_the_keeper_when_it_is_of_another_host(void **state)
{
    struct job *holder = host_start(a, "flock y.lock sh -c 'echo has; read go'"), *look;

    (void)state;
    job_expect(holder, "has");
    look = host_start(b, "env -u LD_PRELOAD $dmutex show f/y.lock");
    assert_non_null(strstr(job_rest(look), "held by   dmutex-keeper (process "));
    assert_int_equal(job_end(look), 0);
    job_finish(holder);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        host_test(test_show_names_the_job_when_a_keeper_of_this_host_holds_a_lock_file),
        host_test(test_show_names_the_keeper_when_it_is_of_another_host),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, setup, host_pair_teardown);
}
