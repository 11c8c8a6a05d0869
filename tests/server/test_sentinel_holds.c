/* SPDX-License-Identifier: BSD-2-Clause */
/* This process with a group of Sentinel: many holds over a failover, and other servers in between. */
#include <string.h>

#include <dmutex/testing.h>

#include "../lib/testlib.h"

#define TIMES "command_timeout=500&connect_timeout=500&switch=2000"
#define HOLDS 200
#define SERVERS 20

static dmutex_t mutexes[HOLDS];

/*
 * Another server is taken, and ended, while the master watch's questions are under way; nothing of the master watch
 * stays.
 */
static void test_nothing_of_the_master_watch_is_left_when_the_server_is_changed(void **state)
{
    dmutex_test_server_t *server;
    int before = 0;

    (void)state;
    assert_result(dmutex_configure_np(sentinels_url(the_sentinels, "?grace=off&" TIMES)), 0);
    make_fair(&mutexes[0], "h/change", &kinds[0], 0);
    for (int i = 0; i < SERVERS; i++) {
        assert_result(lock_and_unlock(&mutexes[0]), 0);
        wait_until(open_descriptors() >= before);
        assert_result(dmutex_test_server_start(&server), 0);
        assert_result(lock_and_unlock(&mutexes[0]), 0);
        assert_result(dmutex_test_server_stop(server), 0);
        if (i == 1)
            before = open_descriptors();
        if (i > 1)
            check_descriptors(before);
    }
}

/* Holders go on while the sentinels elect; on a busy machine a second election may be needed, 8 s later. */
static void test_all_holds_are_kept_when_the_master_is_killed(void **state)
{
    unsigned lease_ms = (unsigned)late_stretched_ms(60000);
    int before = sentinels_master(the_sentinels, 0), kept = 0;
    long long epoch = sentinels_epoch(the_sentinels);
    char name[16];
    int64_t began_ms;

    (void)state;
    for (int i = 0; i < HOLDS; i++) {
        snprintf(name, sizeof name, "h/kept%d", i);
        make_fair(&mutexes[i], name, &kinds[0], lease_ms);
        assert_result(dmutex_lock(&mutexes[i]), 0);
    }
    began_ms = wait_now_ms();
    server_kill(the_sentinels->data[before]);
    sentinels_await_switch(the_sentinels, epoch);
    print_message("# switched after %lld ms\n", (long long)(wait_now_ms() - began_ms));
    for (int i = 0; i < HOLDS; i++)
        kept += dmutex_unlock(&mutexes[i]) == 0;
    print_message("# %d of %d holds kept, lease %u ms; all given back after %lld ms\n", kept, HOLDS, lease_ms,
                  (long long)(wait_now_ms() - began_ms));
    assert_int_equal(kept, HOLDS);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_of_the_master_watch_is_left_when_the_server_is_changed),
        cmocka_unit_test(test_all_holds_are_kept_when_the_master_is_killed),
    };

    test_begin(argc, argv);
    test_put_server_into_path();
    return cmocka_run_group_tests(tests, sentinels_group_setup, sentinels_group_teardown);
}
