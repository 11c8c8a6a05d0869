/* SPDX-License-Identifier: BSD-2-Clause */
/* link/pipe: when bytes go out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "link/pipe.h"

static struct dm_pipe pipe_here;
static int server; /* the other end */

static int begin(void **state)
{
    int ends[2];

    (void)state;
    memset(&pipe_here, 0, sizeof pipe_here);
    dm_pipe_init(&pipe_here);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    pipe_here.stream.fd = ends[0];
    server = ends[1];
    return dm_pipe_begin(&pipe_here) ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    dm_pipe_close(&pipe_here);
    close(server);
    return 0;
}

static void write_word(const char *word)
{
    assert_true(dm_pipe_write(&pipe_here, word, strlen(word)));
}

/* All that has come to the server since the last time. */
static void assert_came(const char *bytes)
{
    char room[64];
    ssize_t got = recv(server, room, sizeof room, MSG_DONTWAIT);

    assert_int_equal(got < 0 ? 0 : got, strlen(bytes));
    assert_memory_equal(room, bytes, strlen(bytes));
}

static void test_bytes_go_out_at_once(void **state)
{
    (void)state;
    write_word("one");
    assert_came("one");
    assert_int_equal(dm_pipe_pending(&pipe_here), 0);
}

/* A thread that reads in between flushes, too; nobody has to wait for room in the socket. */
static void test_bytes_that_are_held_go_out_together_whoever_flushes_them(void **state)
{
    (void)state;
    pipe_here.is_held = true;
    write_word("one");
    assert_true(dm_pipe_flush(&pipe_here));
    assert_int_equal(dm_pipe_pending(&pipe_here), 0);
    write_word("two");
    assert_came("");
    pipe_here.is_held = false;
    assert_int_equal(dm_pipe_pending(&pipe_here), 6);
    assert_true(dm_pipe_flush(&pipe_here));
    assert_came("onetwo");
    assert_int_equal(dm_pipe_pending(&pipe_here), 0);
}

/* Bytes after a stop wait for dm_pipe_go_on(), even if a hold ends first. */
static void test_bytes_after_a_stop_wait_when_a_hold_ends(void **state)
{
    (void)state;
    pipe_here.is_held = true;
    write_word("look");
    dm_pipe_stop(&pipe_here);
    write_word("lock");
    pipe_here.is_held = false;
    assert_true(dm_pipe_flush(&pipe_here));
    assert_came("look");
    assert_int_equal(dm_pipe_pending(&pipe_here), 0);
    dm_pipe_go_on(&pipe_here);
    assert_true(dm_pipe_flush(&pipe_here));
    assert_came("lock");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_bytes_go_out_at_once, begin, end),
        cmocka_unit_test_setup_teardown(test_bytes_that_are_held_go_out_together_whoever_flushes_them, begin, end),
        cmocka_unit_test_setup_teardown(test_bytes_after_a_stop_wait_when_a_hold_ends, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
