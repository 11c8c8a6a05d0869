/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process that has no thread or no descriptor left when the library is first used: an errno value and a sentence, no
 * crash, nothing left over, and everything works once there is room.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../lib/testlib.h"

static dmutex_t mutex = DMUTEX_INITIALIZER("limits/first");

/* No warm-up: the first test must find the library unused. */
static int begin_group(void **state)
{
    static char url[192];

    the_server = server_start();
    snprintf(url, sizeof url, "%s&command_timeout=200&connect_timeout=200", the_server->url);
    setenv("DMUTEX_URL", url, 1);
    *state = the_server;
    return 0;
}

static void check_refused(mutex_call call)
{
    errno = 4711;
    assert_result(call(&mutex), ENOLCK);
    assert_int_equal(errno, 4711);
    assert_non_null(strchr(dmutex_strerror_np(), ' '));
}

/* The default stack size of a new thread. */
static void set_default_stack(size_t size)
{
    pthread_attr_t attributes;

    assert_int_equal(pthread_attr_init(&attributes), 0);
    assert_int_equal(pthread_attr_setstacksize(&attributes, size), 0);
    assert_int_equal(pthread_setattr_default_np(&attributes), 0);
    assert_int_equal(pthread_attr_destroy(&attributes), 0);
}

/* No thread can be started, because the stack has no room: ENOLCK at every try. */
static void test_first_use_says_enolck_when_there_is_no_thread(void **state)
{
    pthread_attr_t usual;
    size_t size;
    int before;

    (void)state;
    assert_int_equal(pthread_getattr_default_np(&usual), 0);
    assert_int_equal(pthread_attr_getstacksize(&usual, &size), 0);
    before = open_descriptors();
    set_default_stack((size_t)1 << 47);
    for (int i = 0; i < 10; i++) {
        for (int w = 0; w < WAY_COUNT; w++)
            check_refused(ways_to_lock[w].lock);
    }
    assert_result(dmutex_unlock(&mutex), EPERM);
    set_default_stack(size);
    pthread_attr_destroy(&usual);
    assert_int_equal(open_descriptors(), before);
    assert_string_equal(side_keys(the_server->side), "");
}

/* The lowest number that a new descriptor would have. */
static rlim_t next_descriptor(void)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

    assert_return_code(fd, errno);
    close(fd);
    return (rlim_t)fd;
}

static void limit_descriptors(rlim_t count)
{
    struct rlimit limit;

    assert_return_code(getrlimit(RLIMIT_NOFILE, &limit), errno);
    limit.rlim_cur = count;
    assert_return_code(setrlimit(RLIMIT_NOFILE, &limit), errno);
}

/* None, one, two... descriptors are left: ENOLCK, until there are enough; then the lock is had. */
static void test_first_use_says_enolck_when_there_is_no_descriptor(void **state)
{
    rlim_t next = next_descriptor(), room = 0;
    struct rlimit usual;
    int before = open_descriptors(), result, refused = 0;

    (void)state;
    assert_return_code(getrlimit(RLIMIT_NOFILE, &usual), errno);
    do {
        limit_descriptors(next + room++);
        result = dmutex_trylock(&mutex);
        if (result) {
            assert_result(result, ENOLCK);
            assert_non_null(strchr(dmutex_strerror_np(), ' '));
            refused++;
        }
        assert_true(room < 50);
    } while (result);
    limit_descriptors(usual.rlim_cur);
    assert_true(refused > 1);
    assert_true(open_descriptors() <= before + (int)room);
    assert_int_equal(holdcount_of(&mutex), 1);
    assert_result(dmutex_unlock(&mutex), 0);
}

/* In use, and no descriptor left: open connections continue, and broken ones come back once there is room. */
static void test_a_hold_goes_on_when_there_is_no_descriptor_for_a_while(void **state)
{
    struct rlimit usual;
    dmutex_t held;

    (void)state;
    make_normal(&held, "limits/held", 60000);
    assert_return_code(getrlimit(RLIMIT_NOFILE, &usual), errno);
    assert_result(dmutex_lock(&held), 0);
    limit_descriptors(next_descriptor());
    assert_result(dmutex_lock(&mutex), 0);
    assert_result(dmutex_unlock(&mutex), 0);
    limit_descriptors(3); /* not even the number that becomes free */
    side_text(the_server->side, "CLIENT KILL TYPE normal SKIPME yes");
    assert_result(dmutex_trylock(&mutex), ENOLCK);
    assert_true(remaining_of(&held) > 0);
    limit_descriptors(usual.rlim_cur);
    assert_result(dmutex_lock(&mutex), 0);
    assert_result(dmutex_unlock(&mutex), 0);
    assert_result(dmutex_renew_np(&held), 0);
    assert_result(dmutex_unlock(&held), 0);
}

/* The server has no connection left: each call ends in time, a lock is had when there is one. */
static void test_lock_waits_when_the_server_has_no_connection_left(void **state)
{
    struct server *other = server_start();
    char url[192];
    struct actor *a;

    (void)state;
    snprintf(url, sizeof url, "%s&command_timeout=150&connect_timeout=150", other->url);
    a = actor_start_at(url);
    side_text(other->side, "CONFIG SET maxclients 1");
    side_set_bound(the_server->side, "bound", 3000);
    actor_do(a, "ENOLCK", "trylock limits/full");
    actor_do(a, "ETIMEDOUT", "timedlock limits/full 200");
    assert_false(side_is_control_over(the_server->side, "bound"));
    actor_send(a, "lock limits/full");
    side_set_control(the_server->side, "time", 300);
    side_await_control(the_server->side, "time");
    assert_true(actor_is_silent(a));
    side_text(other->side, "CONFIG SET maxclients 100");
    actor_expect(a, "0");
    actor_do(a, "0", "unlock limits/full");
    actor_end(a);
    server_end(other);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_use_says_enolck_when_there_is_no_thread),
        cmocka_unit_test(test_first_use_says_enolck_when_there_is_no_descriptor),
        cmocka_unit_test(test_a_hold_goes_on_when_there_is_no_descriptor_for_a_while),
        cmocka_unit_test(test_lock_waits_when_the_server_has_no_connection_left),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, begin_group, test_group_teardown);
}
