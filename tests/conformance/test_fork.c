/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rights of a forked child over the parent's objects, and of a program over our descriptors. Left out under the
 * thread sanitizer.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../lib/testlib.h"

/*
 * The result of a call in a forked child.  A timed lock may give up before the server has answered; exit() takes its
 * place in the queue back, and _exit() could not.
 */
static int in_child(mutex_call call, dmutex_t *mutex)
{
    pid_t pid = keeper_fork();

    if (pid == 0)
        exit(call(mutex));
    return WEXITSTATUS(keeper_reap(pid));
}

static int use_and_destroy(dmutex_t *mutex)
{
    int result = lock_and_unlock(mutex);

    return result ? result : dmutex_destroy(mutex);
}

static dmutex_t *shared_memory(void)
{
    void *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    assert_ptr_not_equal(memory, MAP_FAILED);
    return memory;
}

static void make_shared(dmutex_t *mutex)
{
    dmutexattr_t attr;

    assert_result(dmutexattr_init(&attr), 0);
    assert_result(dmutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED), 0);
    assert_result(dmutex_init(mutex, &attr), 0);
}

/* Does as handlers of pthread_atfork() do: the child gives back a mutex that the parent has locked. */
static int unlock_use_and_destroy(dmutex_t *mutex)
{
    int result = dmutex_unlock(mutex);

    return result ? result : use_and_destroy(mutex);
}

/*
 * The child's copy of an anonymous private mutex is another one; the parent's stays held.  The copy is free,
 * or, libc's, held by nobody in particular.
 */
static void test_private_copy_is_its_own_when_the_parent_holds(void **state)
{
    dmutex_t mutex = DMUTEX_ANONYMOUS_INITIALIZER;

    (void)state;
    assert_result(dmutex_lock(&mutex), 0);
    if (private_is_libc())
        assert_result(in_child(dmutex_trylock, &mutex), EBUSY);
    assert_result(in_child(dmutex_unlock, &mutex), private_is_libc() ? 0 : EPERM);
    assert_result(in_child(private_is_libc() ? unlock_use_and_destroy : use_and_destroy, &mutex), 0);
    assert_int_equal(holdcount_of(&mutex), 1);
    assert_true(is_locked(&mutex));
    assert_result(dmutex_unlock(&mutex), 0);
    assert_result(dmutex_destroy(&mutex), 0);
}

/* An anonymous shared mutex in shared memory is one for both; the child owns nothing. */
static void test_shared_object_excludes_when_the_parent_holds(void **state)
{
    dmutex_t *mutex = shared_memory();

    (void)state;
    make_shared(mutex);
    assert_result(dmutex_lock(mutex), 0);
    assert_result(in_child(dmutex_trylock, mutex), EBUSY);
    assert_result(in_child(timedlock_soon, mutex), ETIMEDOUT);
    assert_result(in_child(dmutex_unlock, mutex), EPERM);
    assert_result(in_child(dmutex_destroy, mutex), EBUSY);
    assert_int_equal(holdcount_of(mutex), 1);
    assert_result(dmutex_unlock(mutex), 0);
    assert_result(in_child(lock_and_unlock, mutex), 0);
    assert_result(dmutex_destroy(mutex), 0);
    munmap(mutex, 4096);
}

/* POSIX scenario 14: parent and child use a shared object for the first time at once. */
static void test_first_lock_agrees_when_parent_and_child_begin(void **state)
{
    (void)state;
    for (int round = 0; round < repetitions(10); round++) {
        int before = side_count_keys(the_server->side, "*{~*:state:*");
        dmutex_t *mutex = shared_memory();
        pid_t pid;

        make_shared(mutex);
        pid = keeper_fork();
        if (pid == 0)
            exit(lock_and_unlock(mutex));
        assert_result(lock_and_unlock(mutex), 0);
        assert_int_equal(keeper_reap(pid), 0);
        assert_int_equal(side_count_keys(the_server->side, "*{~*:state:*"), before + 1);
        wait_until(dmutex_destroy(mutex) == 0);
        munmap(mutex, 4096);
    }
}

/* A named mutex that the parent holds is held for the child, for any kind of mutex: the child is another owner. */
static void test_named_mutex_is_the_parents_when_the_child_asks(void **state)
{
    (void)state;
    for (int i = 0; i < KIND_COUNT; i++) {
        dmutex_t mutex;
        uint64_t token;

        make_mutex(&mutex, "fork/named", &kinds[i], 0);
        assert_result(dmutex_lock(&mutex), 0);
        token = token_of(&mutex);
        assert_result(in_child(dmutex_trylock, &mutex), EBUSY);
        assert_result(in_child(dmutex_unlock, &mutex), EPERM);
        assert_result(in_child(dmutex_renew_np, &mutex), EPERM);
        assert_int_equal(holdcount_of(&mutex), 1);
        assert_true(token_of(&mutex) == token);
        assert_result(dmutex_unlock(&mutex), 0);
        assert_result(in_child(lock_and_unlock, &mutex), 0);
    }
}

/* ---- a program that closes foreign descriptors ------------------------------------------- */

/* Does as daemons do: closes all descriptors but the standard ones; the next numbers are the program's own files. */
static int open_instead(const char *path, int *ret_file)
{
    close_range(3, ~0U, 0);
    *ret_file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    for (int i = 0; i < 40; i++) {
        if (dup(*ret_file) < 0)
            return errno;
    }
    return 0;
}

/* Locks work on, and nothing of ours is in the program's files. */
static int lock_around_closing(dmutex_t *mutex)
{
    char path[] = "/tmp/dmutex-closed-XXXXXX";
    int result = lock_and_unlock(mutex), file = mkstemp(path);

    for (int i = 0; result == 0 && i < 3; i++) {
        result = open_instead(path, &file);
        for (int locks = 0; result == 0 && locks < 3; locks++)
            result = lock_and_unlock(mutex);
        if (result == 0 && (lseek(file, 0, SEEK_END) != 0 || fcntl(file, F_GETFD) < 0))
            result = EBADF;
    }
    unlink(path);
    return result;
}

static void test_locks_go_on_when_the_program_has_closed_all_descriptors(void **state)
{
    dmutex_t mutex;

    (void)state;
    make_normal(&mutex, "fork/closer", 10000);
    assert_result(in_child(lock_around_closing, &mutex), 0);
    assert_result(lock_and_unlock(&mutex), 0);
    assert_result(dmutex_destroy(&mutex), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_private_copy_is_its_own_when_the_parent_holds),
        cmocka_unit_test(test_shared_object_excludes_when_the_parent_holds),
        cmocka_unit_test(test_first_lock_agrees_when_parent_and_child_begin),
        cmocka_unit_test(test_named_mutex_is_the_parents_when_the_child_asks),
        cmocka_unit_test(test_locks_go_on_when_the_program_has_closed_all_descriptors),
        cmocka_unit_test(test_nothing_is_left),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, test_group_setup, test_group_teardown);
}
