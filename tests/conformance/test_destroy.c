/* SPDX-License-Identifier: BSD-2-Clause */
/* How objects end: scenarios 15 to 17. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../lib/testlib.h"

/* POSIX scenario 15: EBUSY while a thread of this process holds the mutex, the calling thread or another. */
static void test_destroy_refuses_when_held(void **state)
{
    const char *const names[] = { "destroy/held", NULL };

    (void)state;
    for (int i = 0; i < 2; i++) {
        dmutex_t mutex;

        make_recursive(&mutex, names[i], 0);
        assert_result(dmutex_lock(&mutex), 0);
        assert_result(dmutex_lock(&mutex), 0);
        assert_result(dmutex_destroy(&mutex), EBUSY);
        assert_result(in_thread(dmutex_destroy, &mutex), EBUSY);
        assert_result(dmutex_unlock(&mutex), 0);
        assert_result(dmutex_destroy(&mutex), EBUSY);
        assert_result(dmutex_unlock(&mutex), 0);
        assert_result(dmutex_destroy(&mutex), 0);
        assert_result(dmutex_destroy(&mutex), EINVAL);
    }
}

/* POSIX scenario 15: EBUSY while a thread of this process waits, though another process holds the mutex. */
static void test_destroy_refuses_when_waited_for(void **state)
{
    dmutex_t mutex = DMUTEX_INITIALIZER("destroy/waited");
    struct actor *a = actor_start(the_server);
    struct errand waiter;

    (void)state;
    actor_do(a, "0", "lock destroy/waited");
    errand_begin(&waiter, dmutex_lock, &mutex);
    wait_until(waiters_of(&mutex) == 1);
    assert_result(dmutex_destroy(&mutex), EBUSY);
    actor_do(a, "0", "unlock destroy/waited");
    assert_result(errand_join(&waiter), 0);
    assert_result(dmutex_lock(&mutex), 0); /* the hold's thread has ended */
    assert_result(dmutex_unlock(&mutex), 0);
    assert_result(dmutex_destroy(&mutex), 0);
    actor_end(a);
}

/* A failed destroy changes nothing: the mutex still works. */
static void test_mutex_works_when_destroy_was_refused(void **state)
{
    dmutex_t mutex = DMUTEX_ANONYMOUS_INITIALIZER;
    struct errand waiter;

    (void)state;
    assert_result(dmutex_lock(&mutex), 0);
    errand_begin(&waiter, timedlock_soon, &mutex);
    assert_result(dmutex_destroy(&mutex), EBUSY);
    assert_result(errand_join(&waiter), ETIMEDOUT);
    assert_int_equal(holdcount_of(&mutex), 1);
    assert_result(dmutex_unlock(&mutex), 0);
    assert_result(dmutex_destroy(&mutex), 0);
}

/* ---- the reference count idiom ----------------------------------------------------------- */

/* An object that the last user frees; on a separate page, so that a later touch is a crash. */
struct counted {
    dmutex_t mutex;
    int users;
};

static struct counted *make_counted(const char *name)
{
    struct counted *counted = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_ptr_not_equal(counted, MAP_FAILED);
    if (name)
        assert_result(dmutex_init_np(&counted->mutex, name, NULL), 0);
    counted->users = 2;
    return counted;
}

static int leave(dmutex_t *mutex)
{
    struct counted *counted = (struct counted *)mutex;
    int result = dmutex_lock(mutex);
    bool is_last;

    if (result)
        return result;
    is_last = --counted->users == 0;
    result = dmutex_unlock(mutex);
    if (result || !is_last)
        return result;
    result = dmutex_destroy(mutex);
    munmap(counted, 4096);
    return result;
}

/*
 * POSIX scenario 16: two threads leave an object, the last thread destroys and unmaps the object at once: unlock does
 * not touch the object when another thread can own the mutex. Destroy right after unlock is never EBUSY.
 */
static void leave_again_and_again(const char *name, int rounds)
{
    for (int i = 0; i < rounds; i++) {
        struct counted *counted = make_counted(name);
        struct errand other;

        errand_begin(&other, leave, &counted->mutex);
        assert_result(leave(&counted->mutex), 0);
        assert_result(errand_join(&other), 0);
    }
}

static void test_last_user_frees_when_anonymous(void **state)
{
    (void)state;
    leave_again_and_again(NULL, repetitions(1500));
    assert_int_equal(side_count_keys(the_server->side, "*{~*"), 0);
}

static void test_last_user_frees_when_named(void **state)
{
    (void)state;
    leave_again_and_again("destroy/counted", repetitions(1500));
}

/*
 * POSIX scenario 15: destroy is 0 right after the own unlock, though a contender is just leaving.
 */
static void test_destroy_succeeds_when_a_contender_is_returning(void **state)
{
    (void)state;
    for (int i = 0; i < repetitions(200); i++) {
        dmutex_t mutex = DMUTEX_ANONYMOUS_INITIALIZER;
        struct errand other;

        assert_result(dmutex_lock(&mutex), 0);
        errand_begin(&other, lock_and_unlock, &mutex);
        assert_result(dmutex_unlock(&mutex), 0);
        wait_until(errand_is_over(&other));
        assert_result(dmutex_lock(&mutex), 0);
        assert_result(dmutex_unlock(&mutex), 0);
        assert_result(dmutex_destroy(&mutex), 0);
        assert_result(errand_join(&other), 0);
    }
}

/* ---- handles of one name ----------------------------------------------------------------- */

/* POSIX scenario 17: an object's end does not disturb another process that holds the name. */
static void test_destroy_spares_the_name_when_another_process_holds(void **state)
{
    struct actor *a = actor_start(the_server);
    dmutex_t mutex = DMUTEX_INITIALIZER("destroy/name");
    long long token;

    (void)state;
    assert_result(dmutex_lock(&mutex), 0);
    assert_result(dmutex_unlock(&mutex), 0);
    actor_do(a, "0", "lock destroy/name");
    token = actor_value(a, "token destroy/name");
    assert_result(dmutex_destroy(&mutex), 0);
    assert_int_equal(actor_value(a, "holdcount destroy/name"), 1);
    assert_int_equal(actor_value(a, "token destroy/name"), token);
    actor_do(a, "0", "renew destroy/name");

    make_errorcheck(&mutex, "destroy/name", 0);
    assert_result(dmutex_trylock(&mutex), EBUSY);
    actor_do(a, "0", "unlock destroy/name");
    assert_result(dmutex_lock(&mutex), 0);
    assert_true(token_of(&mutex) > (uint64_t)token);
    assert_result(dmutex_unlock(&mutex), 0);
    actor_end(a);
}

/* POSIX scenario 17: set up again, also with another type: the type is the object's. */
static void test_object_works_when_set_up_again_with_another_type(void **state)
{
    dmutex_t mutex;

    (void)state;
    for (int i = 0; i < KIND_COUNT; i++) {
        make_mutex(&mutex, "destroy/again", &kinds[i], 0);
        assert_result(dmutex_lock(&mutex), 0);
        assert_result(dmutex_trylock(&mutex), kinds[i].type == PTHREAD_MUTEX_RECURSIVE ? 0 : EBUSY);
        while (dmutex_unlock(&mutex) == 0)
            ;
        assert_result(dmutex_destroy(&mutex), 0);
        assert_result(dmutex_lock(&mutex), EINVAL);
    }
}

/* An object that was never used is destroyed without the server, and init needs no server either. */
static void test_object_needs_no_server_when_never_used(void **state)
{
    struct actor *a = actor_start_at("unix:///nonexistent/socket");

    (void)state;
    actor_do(a, "0", "init destroy/unused robust");
    actor_do(a, "0", "destroy destroy/unused");
    actor_do(a, "0", "zero m");
    if (!private_is_libc()) /* glibc takes note of any unlock */
        actor_do(a, "EPERM", "unlock m");
    actor_do(a, "0", "destroy m");
    actor_end(a);
}

/* An anonymous process-shared mutex, with a lease that no test waits for. */
static void make_shared(dmutex_t *mutex)
{
    dmutexattr_t attr;

    assert_result(dmutexattr_init(&attr), 0);
    assert_result(dmutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED), 0);
    assert_result(dmutexattr_setlease_np(&attr, 600000), 0);
    assert_result(dmutex_init(mutex, &attr), 0);
}

/* Such a mutex in a file, where actors find the mutex as `m` by "map m FILE 0". */
static dmutex_t *map_shared(char *ret_path, size_t room)
{
    dmutex_t *mutex;
    int fd;

    snprintf(ret_path, room, "%s/destroyed", the_server->folder);
    fd = open(ret_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_return_code(ftruncate(fd, 4096), errno);
    mutex = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(mutex, MAP_FAILED);
    close(fd);
    make_shared(mutex);
    return mutex;
}

/* This process holds the mutex, and an actor waits. */
static struct actor *start_waiter(dmutex_t *mutex, const char *path)
{
    struct actor *a = actor_start(the_server);

    assert_result(dmutex_lock(mutex), 0);
    actor_do(a, "0", "map m %s 0", path);
    actor_send(a, "lock m");
    wait_until(waiters_of(mutex) == 1);
    return a;
}

/* A hold granted to a dead process ends with the lease: lets that time pass. */
static void end_leases_of_the_dead(void)
{
    char *keys = strdup(side_keys(the_server->side)), *rest = keys, *key;

    while ((key = strsep(&rest, "\n"))) {
        if (!strstr(key, "{~"))
            continue;
        assert_within(side_int(the_server->side, "PTTL %s", key), 1, 600000);
        side_int(the_server->side, "DEL %s", key);
    }
    free(keys);
}

/*
 * A waiting process is stopped, granted the mutex and killed; or killed first.  Once the server sees that the process
 * is gone, neither its hold nor its place keeps the object's owner from destroying the object.
 */
static void test_destroy_succeeds_when_a_waiter_was_killed(void **state)
{
    char path[64];

    (void)state;
    for (int is_granted = 0; is_granted < 2; is_granted++) {
        dmutex_t *mutex = map_shared(path, sizeof path);
        int channels = side_count_channels(the_server->side);
        struct actor *a = start_waiter(mutex, path);

        if (is_granted) {
            actor_stop(a);
            assert_result(dmutex_unlock(mutex), 0);
            wait_until(waiters_of(mutex) == 0);
            assert_result(dmutex_destroy(mutex), EBUSY);
        }
        actor_kill(a);
        wait_until(side_count_channels(the_server->side) <= channels);
        if (!is_granted)
            assert_result(dmutex_unlock(mutex), 0);
        wait_until(dmutex_destroy(mutex) == 0);
        end_leases_of_the_dead();
        actor_end(a);
        munmap(mutex, 4096);
    }
}

/*
 * The server reads the end of a killed waiter and the unlock in one turn: the inbox is still open for the grant.  A
 * destroy after the unlock is not refused because of the dead process's lease.
 */
static void test_destroy_succeeds_when_a_waiter_dies_as_it_is_granted(void **state)
{
    char path[64];

    (void)state;
    for (int i = 0; i < repetitions(10); i++) {
        dmutex_t *mutex = map_shared(path, sizeof path);
        struct actor *a = start_waiter(mutex, path);

        server_stop(the_server);
        actor_kill(a);
        assert_result(dmutex_unlock(mutex), 0);
        server_cont(the_server);
        assert_result(dmutex_destroy(mutex), 0);
        end_leases_of_the_dead();
        actor_end(a);
        munmap(mutex, 4096);
    }
}

/* A process that has never waited, with an inbox unknown to the server, holds the mutex: the mutex stays. */
static void test_destroy_refuses_when_the_holder_has_no_inbox(void **state)
{
    struct proxy *proxy = proxy_start(the_server);
    char path[64];
    dmutex_t *mutex = map_shared(path, sizeof path);
    struct actor *a = actor_start_at(proxy_url(proxy));
    int channels = side_count_channels(the_server->side);
    long long token;

    (void)state;
    proxy_break(proxy, PROXY_SWALLOW_COMMAND, PROXY_INBOX, "SUBSCRIBE", 1000);
    actor_do(a, "0", "map m %s 0", path);
    actor_do(a, "0", "lock m");
    token = actor_value(a, "token m");
    assert_result(dmutex_destroy(mutex), EBUSY);
    assert_true(side_count_channels(the_server->side) <= channels + 1); /* this process's channel, at most */
    actor_do(a, "0", "renew m");
    assert_int_equal(actor_value(a, "token m"), token);
    assert_result(dmutex_destroy(mutex), EBUSY);
    actor_do(a, "0", "unlock m");
    wait_until(dmutex_destroy(mutex) == 0);
    proxy_pass(proxy);
    actor_end(a);
    munmap(mutex, 4096);
    proxy_end(proxy);
}

/* A lost hold of an object does not keep the object from being destroyed. */
static void test_destroy_succeeds_when_the_hold_was_lost(void **state)
{
    dmutex_t mutex;

    (void)state;
    make_shared(&mutex);
    assert_result(dmutex_lock(&mutex), 0);
    assert_result(dmutex_forceunlock_np(&mutex), 0);
    wait_until(holdcount_of(&mutex) == 0);
    assert_result(dmutex_destroy(&mutex), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_destroy_refuses_when_held),
        cmocka_unit_test(test_destroy_refuses_when_waited_for),
        cmocka_unit_test(test_mutex_works_when_destroy_was_refused),
        cmocka_unit_test(test_last_user_frees_when_anonymous),
        cmocka_unit_test(test_last_user_frees_when_named),
        cmocka_unit_test(test_destroy_succeeds_when_a_contender_is_returning),
        cmocka_unit_test(test_destroy_spares_the_name_when_another_process_holds),
        cmocka_unit_test(test_object_works_when_set_up_again_with_another_type),
        cmocka_unit_test(test_object_needs_no_server_when_never_used),
        cmocka_unit_test(test_destroy_succeeds_when_a_waiter_was_killed),
        cmocka_unit_test(test_destroy_succeeds_when_a_waiter_dies_as_it_is_granted),
        cmocka_unit_test(test_destroy_refuses_when_the_holder_has_no_inbox),
        cmocka_unit_test(test_destroy_succeeds_when_the_hold_was_lost),
        cmocka_unit_test(test_nothing_is_left),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, test_group_setup, test_group_teardown);
}
