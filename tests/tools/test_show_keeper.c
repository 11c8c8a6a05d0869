/* SPDX-License-Identifier: BSD-2-Clause */
/* dmutex show and list name the job that dmutex-keeper holds a lock file for. */
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

/* dmutex itself runs without the module that the hosts' programs use. */
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

/* A keeper of another host cannot be asked, and is shown as the holder. */
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

/* The keeper holds locks for others, too: when dmutex run loses its lock, only its own job is ended. */
static void test_a_keeper_goes_on_when_the_job_that_started_it_has_lost_its_lock(void **state)
{
    struct host *c = host_make("c", "lease=1s");
    struct job *run = host_start(c, "module=$LD_PRELOAD; exec env -u LD_PRELOAD $dmutex run --on-lost KILL s/run -- "
                                    "env LD_PRELOAD=$module flock x.lock sh -c 'echo has; read go'");
    struct job *other;
    dmutex_t lock = DMUTEX_INITIALIZER("s/run");
    pid_t keeper;

    (void)state;
    job_expect(run, "has");
    keeper = host_keeper(c);
    other = host_start(c, "flock y.lock sh -c 'echo has; read go'");
    job_expect(other, "has");
    assert_result(dmutex_forceunlock_np(&lock), 0);
    assert_int_equal(job_end(run), 76);
    assert_int_equal(host_keeper(c), keeper);
    assert_true(proc_is_alive(keeper));
    job_finish(other);
    host_end(c);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        host_test(test_show_names_the_job_when_a_keeper_of_this_host_holds_a_lock_file),
        host_test(test_show_names_the_keeper_when_it_is_of_another_host),
        host_test(test_a_keeper_goes_on_when_the_job_that_started_it_has_lost_its_lock),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, setup, host_pair_teardown);
}
